/** Runs each test with a namespace, and adds its timeline to failures. */
import { inspect } from "node:util";

import { callSite } from "./call_site.js";
import { EmulatorError } from "./control.js";
import { ExpectationError, ServiceBus } from "./namespace.js";
import { shared } from "./process.js";
import type { Topology } from "./topology.js";

type Body<Arguments extends unknown[]> = (servicebus: ServiceBus, ...context: Arguments) => unknown;
type Test<Arguments extends unknown[]> = (...context: Arguments) => Promise<void>;

/**
 * A test with its own namespace, which is removed when the test ends, for any framework:
 * `test("…", withServiceBus({ queues: ["orders"] }, async (servicebus) => {…}))`.
 *
 * The arguments of the framework follow the namespace.
 */
export function withServiceBus<Arguments extends unknown[]>(body: Body<Arguments>): Test<Arguments>;
export function withServiceBus<Arguments extends unknown[]>(topology: Topology, body: Body<Arguments>): Test<Arguments>;
export function withServiceBus<Arguments extends unknown[]>(
  ...parameters: [Body<Arguments>] | [Topology, Body<Arguments>]
): Test<Arguments> {
  const [topology, body] = parameters.length === 1 ? [undefined, parameters[0]] : parameters;
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

/** Ends the namespace of a test that has passed, and throws if the emulator reports a problem. */
export async function endPassed(servicebus: ServiceBus): Promise<void> {
  const problem = await servicebus.end(true);
  if (problem === null) return;
  const error = new EmulatorError(problem);
  error.stack = String(error); // The problem belongs to no line of code.
  throw error;
}

/** Ends the namespace of a test that has failed, and adds its timeline to an error that does not have it. */
export async function endFailed(servicebus: ServiceBus, error: { name?: string; message: string; stack?: string }) {
  const without = ({ message }: Error) => `timeline of ${servicebus.name}\n  ${message}`;
  const report = await servicebus.end(false).catch(without);
  if (error.name === ExpectationError.name) return;
  const { message, stack = "" } = error;
  const extended = `${message}\n\n${report}\n`;
  const properties = { message: extended, stack: message ? stack.replace(message, () => extended) : stack };
  for (const [key, value] of Object.entries(properties)) {
    Object.defineProperty(error, key, { value, configurable: true, writable: true });
  }
}
