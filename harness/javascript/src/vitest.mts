/**
 * `test` of Vitest with fixtures: a test that uses `servicebus` has its own namespace, which ends with the test.
 *
 * The fixture `topology` declares its entities: `test.override({ topology: { queues: ["orders"] } })`.
 */
import { test as base } from "vitest";

import { ServiceBus, type Topology } from "./index.js";
import { shared } from "./process.js";
import { endFailed, endPassed } from "./test.js";

export const test = base.extend<{ topology: Topology | undefined; servicebus: ServiceBus }>({
  topology: undefined,

  servicebus: async ({ task, topology }, use) => {
    const servicebus = await ServiceBus.make(await shared(), topology, task.file.filepath);
    const earlier = task.result?.errors?.length ?? 0; // Of earlier repetitions, after which the state remains "fail".
    await use(servicebus);
    const failure = task.result?.errors?.slice(earlier).at(-1);
    if (failure) await endFailed(servicebus, failure);
    else if (task.result?.state === "pass" || earlier > 0) await endPassed(servicebus);
    else await servicebus.end(false);
  },
});
