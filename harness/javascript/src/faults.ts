/**
 * Faults: an operation of a client goes wrong where the test says so.
 *
 *     const late = await servicebus.faults.on("complete", { entity: "orders" }).loseLock();
 *
 * One that has not fired when the namespace ends fails the test, unless it was taken out with `remove`.
 */
import { callSite } from "./call_site.js";
import { renamed, snakeCase, type Control } from "./control.js";

type Settlement = "settle" | "complete" | "abandon" | "dead-letter" | "defer";
type OfMessages = "send" | "receive" | Settlement | "renew-lock";
export type Operation = OfMessages | "attach" | "connect" | "token" | "management" | "discharge" | "http";

/** What narrows the operations, as the control API describes it. */
export interface Which
  extends
    Partial<Record<"entity" | "client" | "party" | "messageId" | "sessionId" | "name", string>>,
    Partial<Record<"sequenceNumber" | "delivery" | "nth" | "every" | "times", number>> {
  property?: { name: string; value: string | number | boolean };
  random?: { seed: number; probability: number };
}

type When = "before" | "after";

/** The faults of a namespace. */
export class Faults {
  constructor(
    private readonly control: Control,
    private readonly path: string,
  ) {}

  /** Operations of clients: `on("complete", { entity: "orders", nth: 2 })`. */
  on(operation: Operation, which: Which = {}): Operations {
    return new Operations(operation, which, (body) => this.script(body));
  }

  /** Ends all locks and links, as when the service is updated. */
  async serviceUpdate(): Promise<void> {
    await this.control.ask("POST", `${this.path}/service-update`);
  }

  private async script(body: object): Promise<Fault> {
    const { id } = await this.control.ask("POST", `${this.path}/faults`, body);
    return new Fault(id, (method) => this.control.ask(method, `${this.path}/faults/${id}`));
  }
}

/** Operations that are to go wrong. Each method scripts what becomes of them. */
export class Operations {
  constructor(
    private readonly operation: Operation,
    private readonly which: Which,
    private readonly script: (body: object) => Promise<Fault>,
  ) {}

  /** Any effect of the control API, by its name: `apply("hold-back", { behind: 2 })`. */
  apply(effect: string, details?: object): Promise<Fault> {
    const site = callSite();
    return this.script({
      operation: this.operation,
      ...renamed(this.which, snakeCase),
      effect: details ? { [effect]: details } : effect,
      written_at: site && `${site.file}:${site.line}`,
    });
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
    private readonly ask: (method: string) => Promise<any>,
  ) {}

  /** How often it fired. */
  async hits(): Promise<number> {
    return (await this.ask("GET")).hits;
  }

  /** Takes it out; it need not have fired. */
  async remove(): Promise<void> {
    await this.ask("DELETE");
  }
}
