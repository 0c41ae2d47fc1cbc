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
    try {
      await body(servicebus, ...context);
    } catch (thrown) {
      const error = thrown instanceof Error ? thrown : new Error(`thrown: ${inspect(thrown)}`, { cause: thrown });
      await endFailed(servicebus, error);
      throw error;
    }
    await endPassed(servicebus);
  };
}

/** Ends the namespace of a test that has passed, and fails it for what is wrong nevertheless. */
export async function endPassed(servicebus: ServiceBus): Promise<void> {
  const problem = await servicebus.end(true);
  if (problem === null) return;
  const error = new EmulatorError(problem);
  error.stack = String(error); // It is not about a line.
  throw error;
}

/** Ends the namespace of a test that has failed, and adds what happened in it to a failure that does not have it. */
export async function endFailed(servicebus: ServiceBus, error: { name?: string; message: string; stack?: string }) {
  const report = await servicebus
    .end(false)
    .catch((reason: Error) => `timeline of ${servicebus.name}\n  ${reason.message}`);
  if (error.name === ExpectationError.name) return;
  const { message, stack = "" } = error;
  const longer = `${message}\n\n${report}\n`;
  const told = { message: longer, stack: message ? stack.replace(message, () => longer) : stack };
  for (const [key, value] of Object.entries(told)) {
    Object.defineProperty(error, key, { value, configurable: true, writable: true });
  }
}
