/** Runs each test with a namespace, and adds its timeline to failures. */
import { inspect, types } from "node:util";

import { callSite } from "./call_site.js";
import { EmulatorError } from "./control.js";
import { ExpectationError, ServiceBus } from "./namespace.js";
import { shared } from "./process.js";
import type { Topology } from "./topology.js";

type Body<Arguments extends unknown[]> = (servicebus: ServiceBus, ...context: Arguments) => unknown;
type Test<Arguments extends unknown[]> = (...context: Arguments) => Promise<void>;
/** The part of node:test's context that is used here. */
type NodeContext = Record<"skip" | "todo" | "diagnostic", (message?: string) => void> & {
  after: (hook: () => unknown) => void;
};

/** The namespaces that have not ended, with the names of their tests where `nameTests` provides them. */
const open = new Map<ServiceBus, string | undefined>();
let testName = (): string | undefined => undefined;

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
    const name = testName();
    const servicebus = await ServiceBus.make(await shared(), topology, file);
    open.set(servicebus, name);
    const isSkipped = isNodeContext(context[0]) ? follow(context[0], servicebus) : () => false;
    try {
      await body(servicebus, ...context);
    } catch (thrown) {
      // The namespace of a test that timed out has ended before.
      throw open.delete(servicebus) ? await endFailed(servicebus, asError(thrown)) : thrown;
    }
    if (!open.delete(servicebus)) return;
    await (isSkipped() ? servicebus.end(false) : endPassed(servicebus));
  };
}

/** Ends the namespace also if the test times out, and returns whether it has been skipped or marked as to do. */
function follow(context: NodeContext, servicebus: ServiceBus): () => boolean {
  context.after(async () => {
    if (open.delete(servicebus)) context.diagnostic((await servicebus.end(false)) ?? "");
  });
  let skipped = false;
  for (const method of ["skip", "todo"] as const) {
    const original = context[method];
    context[method] = (message) => {
      skipped = true;
      original.call(context, message);
    };
  }
  return () => skipped;
}

function isNodeContext(context: any): context is NodeContext {
  return typeof context?.diagnostic === "function" && typeof context.after === "function";
}

/** Sets how the name of the current test is found, for a framework that calls `endTimedOut` after each test. */
export function nameTests(name: typeof testName): void {
  testName = name;
}

/** Ends the namespaces of the current test that are still open because it timed out, and throws their timelines. */
export async function endTimedOut(): Promise<void> {
  const left = [...open].filter(([, name]) => name === testName()).map(([servicebus]) => servicebus);
  for (const servicebus of left) open.delete(servicebus);
  const reports = await Promise.all(left.map((servicebus) => servicebus.end(false)));
  if (left.length > 0) throw withoutStack(new EmulatorError(reports.join("\n\n")));
}

/** What was thrown, as an error. Those of Node's core are not instances of the `Error` that Jest gives to a test file. */
export function asError(thrown: unknown): Error {
  if (types.isNativeError(thrown) || thrown instanceof Error) return thrown;
  return new Error(`thrown: ${inspect(thrown)}`, { cause: thrown });
}

/** Ends the namespace of a test that has passed, and throws if the emulator reports a problem. */
export async function endPassed(servicebus: ServiceBus): Promise<void> {
  const problem = await servicebus.end(true);
  if (problem === null) return;
  throw withoutStack(new EmulatorError(problem));
}

/** An error that belongs to no line of code. */
function withoutStack(error: Error): Error {
  error.stack = String(error);
  return error;
}

/**
 * Ends the namespace of a test that has failed, and adds its timeline to an error that does not have it. Returns the error,
 * or if it is frozen, another one that it is the cause of.
 */
export async function endFailed(servicebus: ServiceBus, error: { name?: string; message: string; stack?: string }) {
  const without = ({ message }: Error) => `timeline of ${servicebus.name}\n  ${message}`;
  const report = await servicebus.end(false).catch(without);
  if (error.name === ExpectationError.name) return error;
  const { message, stack = "" } = error;
  const extended = `${message}\n\n${report ?? ""}\n`;
  const properties = { message: extended, stack: message ? stack.replace(message, () => extended) : stack };
  const defined = Object.entries(properties).every(([key, value]) =>
    Reflect.defineProperty(error, key, { value, configurable: true, writable: true }),
  );
  return defined ? error : new Error(extended, { cause: error });
}
