/** A namespace for each test, and what is said when the test fails. */
import { inspect } from "node:util";

import { callSite } from "./call_site.js";
import { EmulatorError } from "./control.js";
import { ExpectationError, ServiceBus } from "./namespace.js";
import { shared } from "./process.js";
import type { Topology } from "./topology.js";

type Body<Arguments extends unknown[]> = (servicebus: ServiceBus, ...context: Arguments) => unknown;
type Test<Arguments extends unknown[]> = (...context: Arguments) => Promise<void>;

/**
 * A test with a namespace of its own, gone when the test is, for any framework:
 * `test("…", withServiceBus({ queues: ["orders"] }, async (servicebus) => {…}))`.
 *
 * What the framework gives the test comes after the namespace.
 */
export function withServiceBus<Arguments extends unknown[]>(body: Body<Arguments>): Test<Arguments>;
export function withServiceBus<Arguments extends unknown[]>(topology: Topology, body: Body<Arguments>): Test<Arguments>;
export function withServiceBus<Arguments extends unknown[]>(
  ...given: [Body<Arguments>] | [Topology, Body<Arguments>]
): Test<Arguments> {
  const [topology, body] = given.length === 1 ? [undefined, given[0]] : given;
  const file = callSite()?.file;
  return async (...context) => {
    const servicebus = await ServiceBus.make(await shared(), topology, file);
    await ended(servicebus, async () => {
      await body(servicebus, ...context);
      await check(servicebus);
    });
  };
}

/** Runs the last part of a test and removes its namespace; what is thrown has the timeline. */
export async function ended(servicebus: ServiceBus, part: () => unknown): Promise<void> {
  try {
    await part();
  } catch (thrown) {
    const error = thrown instanceof Error ? thrown : new Error(`thrown: ${inspect(thrown)}`, { cause: thrown });
    await tellTimeline(error, servicebus);
    await servicebus.remove().catch(() => {}); // The emulator has ended, which the failure tells.
    throw error;
  }
  await servicebus.remove();
}

/** Fails for what is wrong though the test has passed. */
export async function check(servicebus: ServiceBus): Promise<void> {
  const problem = await servicebus.problem();
  if (problem === undefined) return;
  const error = new EmulatorError(problem);
  error.stack = String(error); // It is not about a line.
  throw error;
}

/** Adds what happened in the namespace to a failure that does not have it. */
export async function tellTimeline(error: { name?: string; message: string; stack?: string }, servicebus: ServiceBus) {
  if (error.name === ExpectationError.name) return;
  const { message, stack = "" } = error;
  const timeline = await servicebus.timeline().catch((reason: Error) => `  ${reason.message}`);
  const longer = `${message}\n\ntimeline of ${servicebus.name}\n${timeline}\n`;
  const told = { message: longer, stack: message ? stack.replace(message, () => longer) : stack };
  for (const [key, value] of Object.entries(told)) {
    Object.defineProperty(error, key, { value, configurable: true, writable: true });
  }
}
