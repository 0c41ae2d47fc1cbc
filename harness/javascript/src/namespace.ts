/** A namespace: what an SDK needs to reach it, its time, its faults, and what happened in it. */
import { camelCase, renamed, snakeCase } from "./control.js";
import { type Expectations } from "./expectations.js";
import { Faults } from "./faults.js";
import type { Emulator } from "./process.js";
import { encoded, type Topology } from "./topology.js";

/** Less than Vitest and Jest give a test, which then fails with more than "timed out". */
const WITHIN_SECONDS = 3;

/** Something that happened, as the control API tells it; `line` is all of it as text. */
export type Event = { at: string; offset: number; kind: string; line: string } & Record<
  "entity" | "messageId" | "client" | "lockedUntil" | "reason" | "detail" | "session",
  string | null
> &
  Record<"sequenceNumber" | "deliveryCount", number | null>;

/** How many messages there are. */
export type Counts = Record<
  "active" | "deadLetter" | "transferDeadLetter" | "scheduled" | "transfer" | "locked" | "deferred" | "sizeBytes",
  number
>;

/** A session: its holder by the name of its connection, its state in base64. */
export type Session = { id: string } & Record<"active" | "locked" | "deferred", number> &
  Record<"holder" | "lockedUntil" | "state", string | null>;

/** What a rule says of a message: `reason` is the first part of its filter that was not true. */
export interface Explained {
  rule: string;
  matched: boolean;
  reason: { expression: string; truth: string; values: { name: string; value: string }[] } | null;
  error: string | null;
}

/** What happened, oldest first; as a text it has a line for each event. */
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
  private readonly path: string;

  /** One that there is, as the control API describes it. */
  constructor(
    readonly emulator: Emulator,
    described: Described,
  ) {
    this.name = described.name;
    this.connectionString = described.connection_string;
    this.tlsConnectionString = described.tls_connection_string ?? "";
    this.path = `namespaces/${this.name}`;
    this.faults = new Faults(emulator.control, this.path);
  }

  /** Makes one; `test` is the file of the test, beside which the topology's file lies. */
  static async make(emulator: Emulator, topology?: Topology, test?: string): Promise<ServiceBus> {
    return new ServiceBus(emulator, await emulator.control.ask("POST", "namespaces", encoded(topology, test)));
  }

  /** The file that clients over TLS must trust: `NODE_EXTRA_CA_CERTS`. */
  get caCertificate(): string {
    return this.emulator.ready.ca_certificate;
  }

  /** What the clock of the namespace shows. */
  async now(): Promise<Date> {
    return new Date((await this.ask("GET", "clock")).now);
  }

  /** Moves the clock; all that falls due on the way has happened when this resolves. */
  async advance(seconds: number): Promise<void> {
    await this.ask("POST", "clock/advance", { seconds });
  }

  /** Stops the clock. */
  async freeze(): Promise<void> {
    await this.ask("POST", "clock/freeze");
  }

  /** Lets a stopped clock run on. */
  async resume(): Promise<void> {
    await this.ask("POST", "clock/resume");
  }

  /** From now on the clock steps to the next deadline whenever the namespace is idle. */
  async stepByItself(): Promise<void> {
    await this.ask("POST", "clock/auto");
  }

  /** Whether nothing is left to deliver to a receiver, and no message is locked. */
  async isIdle(): Promise<boolean> {
    return (await this.ask("POST", "settled", { within: 0, refuse: false })).settled;
  }

  /** Waits until the namespace is idle. */
  async waitIdle(within = WITHIN_SECONDS): Promise<void> {
    const { settled, failure } = await this.ask("POST", "settled", { within, refuse: false });
    if (!settled) throw new ExpectationError(failure);
  }

  /**
   * Waits until this holds, up to 3 s: `expect("orders", "dead_lettered", { reason: "Rejected" })`.
   *
   * If it does not, the failure has what there is instead, and the timeline.
   */
  async expect<Kind extends keyof Expectations>(
    entity: string,
    kind: Kind,
    fields: Expectations[Kind] & { within?: number } = {} as Expectations[Kind],
  ): Promise<void> {
    const assertion = { within: WITHIN_SECONDS, ...renamed(fields, snakeCase), kind, entity };
    const { holds, failure } = await this.ask("POST", "assertions", assertion);
    if (!holds) throw new ExpectationError(failure);
  }

  /** How many messages a queue, subscription or dead-letter queue has. */
  async counts(entity: string): Promise<Counts> {
    return renamed(await this.ask("GET", "counts", undefined, { entity }), camelCase);
  }

  /** What happened in the namespace, to an entity or to a message, as far as the record goes back. */
  async timeline(entity?: string, messageId?: string): Promise<Timeline> {
    const query = { entity, message_id: messageId, lines: "true" };
    const { events } = await this.ask("GET", "timeline", undefined, query);
    return Timeline.from(events, (event: object) => renamed(event, camelCase)) as Timeline;
  }

  /** The sessions of a queue or subscription. */
  async sessions(entity: string): Promise<Session[]> {
    const { sessions } = await this.ask("GET", "sessions", undefined, { entity });
    return sessions.map((session: object) => renamed(session, camelCase));
  }

  /** Ends the lock of a session as if its time had run out. */
  async loseSessionLock(entity: string, session: string): Promise<void> {
    await this.ask("POST", "sessions/lose", { entity, session });
  }

  /**
   * What each rule of `topic/Subscriptions/name` says of a message that is not sent.
   *
   * `properties` are those of the application, `system` those of the service under its names, as in `{ Label: "order" }`.
   */
  async explain(
    subscription: string,
    properties: object = {},
    system: object = {},
  ): Promise<Record<string, Explained>> {
    const message = [{ UserProperties: properties, BrokerProperties: system }];
    const { rules } = await this.ask("POST", "explain", message, { subscription });
    return Object.fromEntries(rules.map((rule: Explained) => [rule.rule, rule]));
  }

  /** Removes all messages, sessions and the record. */
  async reset(): Promise<void> {
    await this.ask("POST", "reset");
  }

  /** Ends the namespace: why a test that has passed fails nevertheless, if it does, or what happened in one that failed. */
  async end(passed: boolean): Promise<string | null> {
    return (await this.ask("POST", "end", { passed })).report;
  }

  private ask(method: string, path: string, body?: unknown, query?: Record<string, string | undefined>): Promise<any> {
    return this.emulator.control.ask(method, `${this.path}/${path}`, body, query);
  }
}

/** What was expected and is not so, with the timeline. */
export class ExpectationError extends Error {
  static {
    this.prototype.name = this.name;
  }
}
