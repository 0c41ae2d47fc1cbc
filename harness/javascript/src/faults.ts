/**
 * Faults that a test injects into operations of clients.
 *
 *     const late = await servicebus.faults.on("complete", { entity: "orders" }).loseLock();
 *
 * A fault that has not fired when the namespace ends fails the test, unless it was removed with `remove`.
 */
import { callSite } from "./call_site.js";
import { checkedFields, type Ask } from "./control.js";

type Settlement = "settle" | "complete" | "abandon" | "dead-letter" | "defer";
type OfMessages = "send" | "receive" | Settlement | "renew-lock";
export type Operation = OfMessages | "attach" | "connect" | "token" | "management" | "discharge" | "http";

/** Selects operations, by the fields of the control API. */
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
  constructor(private readonly ask: Ask) {}

  /** Operations of clients: `on("complete", { entity: "orders", nth: 2 })`. */
  on(operation: Operation, which: Which = {}): Operations {
    return new Operations(this.ask, { operation, ...checkedFields(which) });
  }

  /** Ends all locks and links, as when the service is updated. */
  async serviceUpdate(): Promise<void> {
    await this.ask("POST", "service-update");
  }
}

/** Operations that a fault applies to. Each method adds a fault with one effect. */
export class Operations {
  constructor(
    private readonly ask: Ask,
    private readonly request: object,
  ) {}

  /** Any effect of the control API, by its name: `apply("hold-back", { behind: 2 })`. */
  async apply(name: string, details?: object): Promise<Fault> {
    const fault = { ...this.request, effect: details ? { [name]: details } : name, written_at: callSite()?.location };
    const { id } = await this.ask("POST", "faults", fault);
    return new Fault(id, this.ask);
  }

  /** The operation succeeds, and the client gets no reply. */
  loseReply = () => this.apply("lose-reply");
  /** The operation fails with this AMQP error condition. */
  reject = (condition: string, details: { description?: string } = {}) =>
    this.apply("reject", { condition, ...details });
  /** The operation fails with `com.microsoft:server-busy`. */
  serverBusy = () => this.reject("com.microsoft:server-busy");
  /** The response to a request has this status. */
  answer = (status: number, error: { condition?: string; description?: string } = {}) =>
    this.apply("answer", { status, ...error });
  /** The link is detached before the operation, or after it. */
  detach = (condition = "amqp:link:detach-forced", when: When = "before") => this.apply("detach", { condition, when });
  /** The connection ends without a close frame, before the operation or after it. */
  dropConnection = (when: When = "before") => this.apply("drop", { when });
  /** The operation is delayed. */
  delay = (seconds: number, clock: "virtual" | "real" = "virtual") => this.apply("delay", { seconds, clock });
  /** The lock ends: before a settlement or renewal, after a delivery. */
  loseLock = () => this.apply("lose-lock");
  /** The lock of the session ends. */
  loseSessionLock = () => this.apply("lose-session-lock");
  /** The completion succeeds for the client, but the message is delivered again. */
  redeliver = () => this.apply("deliver-twice");
}

/** A fault that was added to a namespace. */
export class Fault {
  constructor(
    readonly id: number,
    private readonly ask: Ask,
  ) {}

  /** How often the fault has fired. */
  async hits(): Promise<number> {
    return (await this.ask("GET", `faults/${this.id}`)).hits;
  }

  /** Removes the fault, which then does not have to fire. */
  async remove(): Promise<void> {
    await this.ask("DELETE", `faults/${this.id}`);
  }
}
