/** A namespace: its connection strings, clock, faults and timeline. */
import { EmulatorError, camelCase, checkedFields, renamed, type Ask } from "./control.js";
import type { Expectations, MessageState } from "./expectations.js";
import { Faults } from "./faults.js";
import type { Emulator } from "./process.js";
import { encoded, type Topology } from "./topology.js";

/** Less than the timeout of a test in Vitest and Jest, so that the test fails with the reason instead. */
export const WITHIN_SECONDS = 3;

/** An event of the timeline, as in the control API; `line` is the event as text. */
export type Event = { at: string; offset: number; kind: string; line: string } & Record<
  "entity" | "messageId" | "client" | "lockedUntil" | "reason" | "detail" | "session",
  string | null
> &
  Record<"sequenceNumber" | "deliveryCount", number | null>;

/** The numbers of messages. */
export type Counts = Record<MessageState | "sizeBytes", number>;

/** A session; `holder` is the name of its connection, `state` is in base64. */
export type Session = { id: string } & Record<"active" | "locked" | "deferred", number> &
  Record<"holder" | "lockedUntil" | "state", string | null>;

/** How a rule evaluates a message: `reason` is the first part of its filter that was not true. */
export interface Explained {
  rule: string;
  matched: boolean;
  reason: { expression: string; truth: string; values: { name: string; value: string }[] } | null;
  error: string | null;
}

/** How each rule of a subscription evaluates a message, by its name. */
export type Explanation = Record<string, Explained>;

/** The events of a namespace, oldest first; `toString` returns a line for each. */
export class Timeline extends Array<Event> {
  /** The kind of each event: `["sent", "delivered", "completed"]`. */
  get kinds(): string[] {
    return Array.from(this, (event) => event.kind);
  }

  override toString(): string {
    return Array.from(this, ({ line }) => line).join("\n") || "  nothing happened";
  }
}

/** A namespace as the control API describes it. */
type Described = { name: string; connection_string: string; tls_connection_string?: string };

/** A namespace of an emulator. */
export class ServiceBus {
  readonly name: string;
  readonly connectionString: string;
  /** The connection string for TLS, as in production. */
  readonly tlsConnectionString: string;
  readonly faults: Faults;
  private readonly ask: Ask;
  private ended?: { passed: boolean; report: Promise<string | null> };

  /** A namespace that exists, as the control API describes it. */
  constructor(
    readonly emulator: Emulator,
    described: Described,
  ) {
    this.name = described.name;
    this.connectionString = described.connection_string;
    this.tlsConnectionString = described.tls_connection_string ?? "";
    this.ask = (method, path, ...rest) => emulator.control.ask(method, `namespaces/${this.name}/${path}`, ...rest);
    this.faults = new Faults(this.ask);
  }

  /** Creates a namespace; `test` is the file of the test, to which the path of a topology is relative. */
  static async make(emulator: Emulator, topology?: Topology, test?: string): Promise<ServiceBus> {
    return new ServiceBus(emulator, await emulator.control.ask("POST", "namespaces", encoded(topology, test)));
  }

  /** The file that clients over TLS must trust: `NODE_EXTRA_CA_CERTS`. */
  get caCertificate(): string {
    const file = this.emulator.ready.ca_certificate;
    if (file !== null) return file;
    throw new EmulatorError("the emulator has no directory for its certificate authority: pass `--tls-directory DIR`");
  }

  /** The time of the namespace's clock. */
  async now(): Promise<Date> {
    return new Date((await this.ask("GET", "clock")).now);
  }

  /** Advances the clock, and resolves when everything that is due by then has been processed. */
  async advance(seconds: number): Promise<void> {
    await this.ask("POST", "clock/advance", { seconds });
  }

  /** Stops the clock. */
  async freeze(): Promise<void> {
    await this.ask("POST", "clock/freeze");
  }

  /** Restarts a stopped clock. */
  async resume(): Promise<void> {
    await this.ask("POST", "clock/resume");
  }

  /** Makes the clock step to the next deadline whenever the namespace is idle. */
  async stepByItself(): Promise<void> {
    await this.ask("POST", "clock/auto");
  }

  /** Keeps a clock that steps by itself from stepping while `work` runs, for at most ten minutes. */
  async holdClock<Result>(work: () => Promise<Result>): Promise<Result> {
    const { id } = await this.ask("POST", "clock/hold", { seconds: 600 });
    try {
      return await work();
    } finally {
      await this.ask("DELETE", `clock/hold/${id}`);
    }
  }

  /** Whether the namespace is idle: no message is locked, or can be delivered to a receiver. */
  async isIdle(): Promise<boolean> {
    return (await this.ask("POST", "settled", { within: 0, refuse: false })).settled;
  }

  /** Waits until the namespace is idle. */
  async waitIdle(within = WITHIN_SECONDS): Promise<void> {
    const { settled, failure } = await this.ask("POST", "settled", { within, refuse: false });
    if (!settled) throw new ExpectationError(failure);
  }

  /** Waits until a client receives from a queue or subscription. */
  async waitForReceiver(entity: string, within = WITHIN_SECONDS): Promise<void> {
    await this.expect(entity, "attached", { within });
  }

  /**
   * Waits up to 3 s until an assertion holds: `expect("orders", "dead_lettered", { reason: "Rejected" })`.
   *
   * Otherwise the error shows what was found instead, and the timeline.
   */
  async expect<Kind extends keyof Expectations>(
    entity: string,
    kind: Kind,
    fields: Expectations[Kind] & { within?: number } = {} as Expectations[Kind],
  ): Promise<void> {
    const assertion = { within: WITHIN_SECONDS, ...checkedFields(fields), kind, entity };
    const { holds, failure } = await this.ask("POST", "assertions", assertion);
    if (!holds) throw new ExpectationError(failure.replace(/\b(transfer_)?dead_letter(?= = )/g, camelCase));
  }

  /** The numbers of messages of a queue, subscription or dead-letter queue. */
  async counts(entity: string): Promise<Counts> {
    return renamed(await this.ask("GET", "counts", undefined, { entity }), camelCase);
  }

  /** The recorded events of the namespace, of an entity or of a message. */
  async timeline(entity?: string, messageId?: string): Promise<Timeline> {
    const { events } = await this.ask("GET", "timeline", undefined, { entity, message_id: messageId, lines: "true" });
    return Timeline.from(events, (event: object) => renamed(event, camelCase)) as Timeline;
  }

  /** The sessions of a queue or subscription. */
  async sessions(entity: string): Promise<Session[]> {
    const { sessions } = await this.ask("GET", "sessions", undefined, { entity });
    return sessions.map((session: object) => renamed(session, camelCase));
  }

  /** Ends the lock of a session as if it had expired. */
  async loseSessionLock(entity: string, session: string): Promise<void> {
    await this.ask("POST", "sessions/lose", { entity, session });
  }

  /**
   * How each rule of `topic/Subscriptions/name` evaluates a message, without sending it.
   *
   * `properties` are application properties, `system` broker properties, as in `{ Label: "order" }`.
   */
  async explain(subscription: string, properties: object = {}, system: object = {}): Promise<Explanation> {
    const message = [{ UserProperties: properties, BrokerProperties: system }];
    const { rules } = await this.ask("POST", "explain", message, { subscription });
    return Object.fromEntries(rules.map((rule: Explained) => [rule.rule, rule]));
  }

  /** Removes all messages, sessions and recorded events. */
  async reset(): Promise<void> {
    await this.ask("POST", "reset");
  }

  /**
   * Ends the namespace if it has not ended; returns the problem that fails a test that has passed, or the timeline of one
   * that failed.
   */
  async end(passed: boolean): Promise<string | null> {
    this.ended ??= { passed, report: this.ask("POST", "end", { passed }).then(({ report }) => report) };
    const report = await this.ended.report;
    return passed && !this.ended.passed ? null : report;
  }
}

/** An assertion did not hold; the message has the timeline. */
export class ExpectationError extends Error {}
ExpectationError.prototype.name = "ExpectationError";
