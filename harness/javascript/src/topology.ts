/**
 * What a namespace holds.
 *
 * Properties have the names of the configuration file in camel case, such as `maxDeliveryCount: 3`; durations are as there,
 * `"PT30S"`. The emulator checks all of it, and names what is wrong.
 */
import { existsSync, readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { inspect } from "node:util";

import { EmulatorError } from "./control.js";

/** A queue, topic or subscription: its name, or its name and properties. */
export type Entity = string | ({ name: string } & Properties);
export type Topic = string | ({ name: string; subscriptions?: Subscription[] } & Properties);
export type Subscription = string | ({ name: string; rules?: Rule[] } & Properties);

export interface Properties {
  lockDuration?: string;
  maxDeliveryCount?: number;
  defaultMessageTimeToLive?: string;
  deadLetteringOnMessageExpiration?: boolean;
  deadLetteringOnFilterEvaluationExceptions?: boolean;
  requiresDuplicateDetection?: boolean;
  duplicateDetectionHistoryTimeWindow?: string;
  forwardTo?: string;
  forwardDeadLetteredMessagesTo?: string;
  requiresSession?: boolean;
  status?: "Active" | "Disabled" | "SendDisabled" | "ReceiveDisabled";
  autoDeleteOnIdle?: string;
  maxSizeInMegabytes?: number;
  maxMessageSizeInKilobytes?: number;
  enablePartitioning?: boolean;
}

/** A rule, by an SQL expression or a correlation filter with the names of the configuration file. */
export interface Rule {
  name: string;
  sql?: string;
  correlation?: Record<string, unknown>;
  action?: string;
}

/**
 * Queues and topics of a namespace; `settings` are its block `Emulator`, such as `{ Expiry: "on-receive" }`. Or a
 * configuration of the official emulator, or the file of one, whose path is relative to that of the test.
 */
export type Topology =
  { queues?: Entity[]; topics?: Topic[]; settings?: Record<string, unknown> } | { UserConfig: object } | string | URL;

const FILE = "topology.json";

/** The body of a request. Without a topology `topology.json` beside the test declares it, else there is one queue, `queue.1`. */
export function encoded(topology: Topology | undefined, test: string | undefined): unknown {
  const directory = test === undefined ? process.cwd() : dirname(test);
  if (topology === undefined) {
    const beside = resolve(directory, FILE);
    return encoded(existsSync(beside) ? beside : { queues: ["queue.1"] }, test);
  }
  if (topology instanceof URL) return encoded(fileURLToPath(topology), test);
  if (typeof topology === "string") return content(resolve(directory, topology));
  if ("UserConfig" in topology) return topology;
  const { queues = [], topics = [], settings, ...others } = topology;
  refuse(others, "a topology", "queues, topics and settings, or UserConfig");
  const [Queues, Topics] = [listed("queues", queues, entity), listed("topics", topics, entity)];
  const namespace = { Name: "tests", Queues, Topics, Emulator: settings };
  return { UserConfig: { Namespaces: [namespace] } };
}

function content(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new EmulatorError(`the topology cannot be read: ${(error as Error).message}`);
  }
}

function entity(declared: Topic | Subscription): object {
  if (typeof declared === "string") return { Name: declared };
  const { name, subscriptions, rules, ...properties } = declared as Exclude<Topic & Subscription, string>;
  const Properties = Object.fromEntries(Object.entries(properties).map(([key, value]) => [pascal(key), value]));
  const Subscriptions = subscriptions && listed("subscriptions", subscriptions, entity);
  return { Name: name, Properties, Subscriptions, Rules: rules && listed("rules", rules, rule) };
}

function rule({ name, sql, correlation, action, ...others }: Rule): object {
  refuse(others, "a rule", "name, sql, correlation and action");
  const properties = {
    FilterType: correlation ? "Correlation" : sql === undefined ? "True" : "Sql",
    CorrelationFilter: correlation,
    SqlFilter: expression(sql),
    Action: expression(action),
  };
  return { Name: name, Properties: properties };
}

const expression = (text: string | undefined) => (text === undefined ? undefined : { SqlExpression: text });
const pascal = (name: string) => name.charAt(0).toUpperCase() + name.slice(1);

function listed<Item>(what: string, items: Item[], each: (item: Item) => object): object[] {
  if (Array.isArray(items)) return items.map(each);
  throw new EmulatorError(`${what} is an array: [${inspect(items)}], not ${inspect(items)}`);
}

function refuse(others: object, what: string, known: string): void {
  const unknown = Object.keys(others).join(", ");
  if (unknown) throw new EmulatorError(`${what} has ${known}, not ${unknown}`);
}
