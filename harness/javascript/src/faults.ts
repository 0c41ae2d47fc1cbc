/**
 * Faults: an operation of a client goes wrong where the test says so.
 *
 *     const late = await servicebus.faults.on("complete", { entity: "orders" }).loseLock();
 *
 * One that has not fired when the namespace ends fails the test, unless it was taken out with `remove`.
 */
import { inspect } from "node:util";

import { callSite } from "./call_site.js";
import { renamed, snakeCase, type Control } from "./control.js";

export type Operation =
  | "send"
  | "receive"
  | "settle"
  | "complete"
  | "abandon"
  | "dead-letter"
  | "defer"
  | "renew-lock"
  | "attach"
  | "connect"
  | "token"
  | "management"
  | "discharge"
  | "http";

/** What narrows the operations, as the control API describes it. */
export interface Which {
  entity?: string;
  client?: string;
  party?: string;
  messageId?: string;
  sessionId?: string;
  property?: { name: string; value: string | number | boolean };
  name?: string;
  sequenceNumber?: number;
  delivery?: number;
  nth?: number;
  every?: number;
  times?: number;
  random?: { seed: number; probability: number };
}

type When = "before" | "after";

const HINT = "hint: have the test do what the fault is on, or take the fault out with `remove()`";

/** The faults of a namespace. */
export class Faults {
  private readonly scripted = new Set<Fault>();

  constructor(
    private readonly control: Control,
    private readonly path: string,
  ) {}

  /** Operations of clients: `on("complete", { entity: "orders", nth: 2 })`. */
  on(operation: Operation, which: Which = {}): Operations {
    return new Operations(operation, which, (body, written) => this.script(body, written));
  }

  /** Ends all locks and links, as when the service is updated. */
  async serviceUpdate(): Promise<void> {
    await this.control.ask("POST", `${this.path}/service-update`);
  }

  /** What to say of faults that have not fired. */
  async unfired(): Promise<string | undefined> {
    if (this.scripted.size === 0) return undefined;
    const { faults } = await this.control.ask("GET", `${this.path}/faults`);
    const met = new Map<number, any>(faults.map((fault: any) => [fault.id, fault]));
    const missed = [...this.scripted].filter((fault) => met.get(fault.id).hits === 0);
    return missed.length > 0 ? [...missed.map((fault) => fault.missed(met.get(fault.id))), HINT].join("\n") : undefined;
  }

  private async script(body: object, written: string): Promise<Fault> {
    const { id } = await this.control.ask("POST", `${this.path}/faults`, body);
    const ask = (method: string) => this.control.ask(method, `${this.path}/faults/${id}`);
    const fault = new Fault(id, written, ask, () => this.scripted.delete(fault));
    this.scripted.add(fault);
    return fault;
  }
}

/** Operations that are to go wrong. Each method scripts what becomes of them. */
export class Operations {
  constructor(
    private readonly operation: Operation,
    private readonly which: Which,
    private readonly script: (body: object, written: string) => Promise<Fault>,
  ) {}

  /** Any effect of the control API, by its name: `apply("hold-back", { behind: 2 })`. */
  apply(effect: string, details?: object): Promise<Fault> {
    const request = {
      operation: this.operation,
      ...renamed(this.which, snakeCase),
      effect: details ? { [effect]: details } : effect,
    };
    const site = callSite();
    const at = site ? `\n  scripted at ${site.file}:${site.line}` : "";
    return this.script(
      request,
      `on(${written(this.operation, this.which)}).apply(${written(effect, details)})\n%s${at}`,
    );
  }

  /** It happens, and the client gets no reply. */
  loseReply = () => this.apply("lose-reply");
  /** It does not happen, and the client gets the AMQP condition. */
  reject = (condition: string, details: { description?: string } = {}) =>
    this.apply("reject", { condition, ...details });
  /** It does not happen, and the client is told to wait. */
  serverBusy = () => this.reject("com.microsoft:server-busy");
  /** A request is answered with this status. */
  answer = (status: number, error: { condition?: string; description?: string } = {}) =>
    this.apply("answer", { status, ...error });
  /** The link is closed before it happens, or after. */
  detach = (condition = "amqp:link:detach-forced", when: When = "before") => this.apply("detach", { condition, when });
  /** The connection ends without a close frame before it happens, or after. */
  dropConnection = (when: When = "before") => this.apply("drop", { when });
  /** It happens later. */
  delay = (seconds: number, clock: "virtual" | "real" = "virtual") => this.apply("delay", { seconds, clock });
  /** The lock ends: before a settlement or renewal, after a delivery. */
  loseLock = () => this.apply("lose-lock");
  /** The lock of the session ends. */
  loseSessionLock = () => this.apply("lose-session-lock");
  /** The client is told that its completion has happened, and the message is delivered again. */
  redeliver = () => this.apply("deliver-twice");
}

/** A fault that was scripted. */
export class Fault {
  constructor(
    readonly id: number,
    private readonly written: string,
    private readonly ask: (method: string) => Promise<any>,
    private readonly forget: () => void,
  ) {}

  /** How often it fired. */
  async hits(): Promise<number> {
    return (await this.ask("GET")).hits;
  }

  /** Takes it out; it need not have fired. */
  async remove(): Promise<void> {
    await this.ask("DELETE");
    this.forget();
  }

  /** That it has not fired, and what came near. */
  missed(met: { matched: number; different: number; elsewhere: number }): string {
    const near = [
      met.matched && `${met.matched} came before its turn`,
      met.different && `${met.different} came without what was asked for`,
      met.elsewhere && `${met.elsewhere} came in other entities`,
    ];
    const came = near.filter(Boolean).join(", ") || "no such operation came";
    return `a fault never fired: ${this.written.replace("%s", `  ${came}`)}`;
  }
}

function written(name: string, details: object = {}): string {
  const given = Object.keys(details).length > 0 ? `, ${inspect(details, { breakLength: Infinity })}` : "";
  return `"${name}"${given}`;
}
