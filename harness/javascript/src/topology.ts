/**
 * Topologies: the entities and settings of a namespace.
 *
 * Properties have the names of the configuration file in camel case, such as `maxDeliveryCount: 3`; durations are as there,
 * `"PT30S"`. The emulator validates them.
 */
import { existsSync, readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";

import { EmulatorError } from "./control.js";

/** A queue, topic or subscription: its name, or its name and properties. */
export type Entity = string | ({ name: string } & Properties);
export type Topic = string | ({ name: string; subscriptions?: Subscription[] } & Properties);
export type Subscription = string | ({ name: string; rules?: Rule[] } & Properties);

export interface Properties
  extends
    Partial<Record<"maxDeliveryCount" | "maxSizeInMegabytes" | "maxMessageSizeInKilobytes", number>>,
    Partial<Record<"lockDuration" | "defaultMessageTimeToLive" | "autoDeleteOnIdle", string>>,
    Partial<Record<"requiresSession" | "requiresDuplicateDetection" | "enablePartitioning", boolean>>,
    Partial<Record<"deadLetteringOnMessageExpiration" | "deadLetteringOnFilterEvaluationExceptions", boolean>>,
    Partial<Record<"forwardTo" | "forwardDeadLetteredMessagesTo" | "duplicateDetectionHistoryTimeWindow", string>> {
  status?: "Active" | "Disabled" | "SendDisabled" | "ReceiveDisabled";
}

/** A rule, by an SQL expression or a correlation filter with the names of the configuration file. */
export interface Rule {
  name: string;
  sql?: string;
  correlation?: Record<string, unknown>;
  action?: string;
}

/**
 * Queues and topics of a namespace, without both `queue.1`; `settings` are its block `Emulator`, such as
 * `{ Expiry: "on-receive" }`. Or a configuration of the official emulator, or the file of one, whose path is relative to
 * that of the test.
 */
export type Topology =
  { queues?: Entity[]; topics?: Topic[]; settings?: Record<string, unknown> } | { UserConfig: object } | string | URL;

/** The body of a request; without a topology, `topology.json` beside the test, if it exists. */
export function encoded(topology: Topology | undefined, test: string | undefined): unknown {
  if (typeof topology === "object" && !(topology instanceof URL)) {
    if ("UserConfig" in topology || topology.queues || topology.topics) return topology;
    return { ...topology, queues: ["queue.1"] };
  }
  const directory = test === undefined ? process.cwd() : dirname(test);
  const file = topology instanceof URL ? topology : resolve(directory, topology ?? "topology.json");
  if (topology === undefined && !existsSync(file)) return undefined;
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new EmulatorError(`the topology cannot be read: ${(error as Error).message}`);
  }
}
