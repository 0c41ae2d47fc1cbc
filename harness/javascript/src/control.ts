/** Requests to the emulator's control API. */
import { once } from "node:events";
import { request, type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { types } from "node:util";

/** The emulator rejected a request, could not be started, or has ended. */
export class EmulatorError extends Error {}
EmulatorError.prototype.name = "EmulatorError";

/** The fields in an error of the control API that have names in camel case here. */
const FIELDS =
  /`\w+`|(?<!["\w])(message_id|session_id|sequence_number|body_json|at_least|at_most|due_in|(transfer_)?dead_letter)(?!["\w])/g;

/** Sends a request and returns the response; an error is thrown. */
export type Ask = (method: string, path: string, body?: unknown, query?: Query) => Promise<any>;
type Query = Record<string, string | undefined>;

/** The control API of an emulator; `whyItEnded` explains why an emulator does not respond. */
export class Control {
  constructor(
    private readonly address: string,
    private readonly whyItEnded: () => Promise<string>,
  ) {}

  /** Sends a request and returns the response; an error is thrown. A string is sent unchanged. */
  async ask(method: string, path: string, body?: unknown, query: Query = {}): Promise<any> {
    const parameters = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined);
    const target = `/$emulator/v1/${path}?${new URLSearchParams(parameters)}`;
    const json = typeof body === "string" ? body : JSON.stringify(body, encoded);
    const [status, text] = await send(method, `http://${this.address}${target}`, json).catch(async ({ message }) => {
      throw new EmulatorError(`${await this.whyItEnded()} (${method} ${target}: ${message})`);
    });
    const answer = /^[[{]/.test(text) ? JSON.parse(text) : text;
    if (status < 400) return answer;
    const message: string = answer?.error?.text ?? `the emulator responded with ${status}: ${text}`;
    throw new EmulatorError(message.replace(FIELDS, camelCase));
  }
}

/** The name in the control API: `message_id` for `messageId`. */
export function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

export function camelCase(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** Returns a copy of an object with renamed keys. */
export function renamed(object: object, name: (key: string) => string): any {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [name(key), value]));
}

/** The fields of a request. JSON would omit one that is undefined, and the request then applies to everything. */
export function checkedFields(given: object): any {
  const missing = Object.entries(given).find(([, value]) => value === undefined);
  if (missing) throw new EmulatorError(`${missing[0]} is undefined: omit the field, or give it a value`);
  return renamed(given, snakeCase);
}

/** Encodes bytes as the control API does, and refuses numbers that JSON would replace by null. */
function encoded(this: any, key: string, value: unknown): unknown {
  const original: unknown = this[key];
  if (typeof value === "number" && !Number.isFinite(value)) {
    throw new EmulatorError(`${camelCase(key)} is ${value}, which JSON does not have; it takes a finite number`);
  }
  return types.isUint8Array(original) ? { $bytes: Buffer.from(original).toString("base64") } : value;
}

/** Sends a request by a new connection, which does not keep the process running afterwards. */
async function send(method: string, url: string, body: string | undefined): Promise<[status: number, text: string]> {
  const headers = { "content-type": "application/json" };
  // The timeout is longer than an assertion may wait.
  const sending = request(url, { method, headers, agent: false, timeout: 630_000 });
  sending.on("timeout", () => sending.destroy(new Error("no response"))).end(body);
  const [response]: IncomingMessage[] = await once(sending, "response");
  sending.on("error", () => {}); // The response reports an error, too.
  return [response!.statusCode!, await text(response!)];
}
