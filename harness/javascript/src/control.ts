/** Requests to the emulator's control API. */
import { request } from "node:http";
import { types } from "node:util";

/** What the emulator refused or could not do, in a sentence. */
export class EmulatorError extends Error {
  static {
    this.prototype.name = this.name;
  }
}

const LONGEST_MILLISECONDS = 630_000;

/** What is named otherwise here, in a refusal. */
const FIELDS =
  /`\w+`|(?<!["\w])(message_id|session_id|sequence_number|body_json|at_least|at_most|due_in|(transfer_)?dead_letter)(?!["\w])/g;

type Query = Record<string, string | undefined>;

/** The control API of an emulator; `whyItEnded` tells what became of an emulator that does not answer. */
export class Control {
  constructor(
    private readonly address: string,
    private readonly whyItEnded: () => Promise<string>,
  ) {}

  /** Asks, and returns the answer; one that refuses is thrown as a sentence. A text is sent as it is. */
  async ask(method: string, path: string, body?: unknown, query: Query = {}): Promise<any> {
    const known = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined);
    const target = `/$emulator/v1/${path}?${new URLSearchParams(known)}`;
    const sent = typeof body === "string" ? body : JSON.stringify(body, withBytes);
    const { status, text } = await send(method, `http://${this.address}${target}`, sent).catch(async ({ message }) => {
      throw new EmulatorError(`${await this.whyItEnded()} (${method} ${target}: ${message})`);
    });
    const answer = /^[[{]/.test(text) ? JSON.parse(text) : text;
    if (status < 400) return answer;
    const sentence: string = answer?.error?.text ?? `the emulator answered ${status}: ${text}`;
    throw new EmulatorError(sentence.replace(FIELDS, camelCase));
  }
}

/** `message_id` for `messageId`: what a name is in the control API. */
export function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

export function camelCase(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** An object whose keys are named otherwise. */
export function renamed(object: object, name: (key: string) => string): any {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [name(key), value]));
}

/** Bytes as the control API has them, which alone would be an object that equals nothing. */
function withBytes(this: any, key: string, value: unknown): unknown {
  const given: unknown = this[key];
  return types.isUint8Array(given) ? { $bytes: Buffer.from(given).toString("base64") } : value;
}

/** With a connection of its own, which keeps no process from ending. */
function send(method: string, url: string, body: string | undefined): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const headers = { "content-type": "application/json" };
    const sent = request(url, { method, headers, agent: false }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part: string) => (text += part));
      response.on("end", () => resolve({ status: response.statusCode ?? 0, text })).on("error", reject);
    });
    sent.setTimeout(LONGEST_MILLISECONDS, () => sent.destroy(new Error("no answer")));
    sent.on("error", reject).end(body);
  });
}
