/**
 * Azure Service Bus for tests: an emulator that runs as long as the tests, with a namespace for each test.
 *
 *     test("an order is charged", withServiceBus({ queues: ["orders"] }, async (servicebus) => {
 *       await work(servicebus.connectionString);
 *     }));
 */
export { Control, EmulatorError } from "./control.js";
export type { Expectations, Text } from "./expectations.js";
export { explore, type Explored, type Run } from "./exploration.js";
export { Fault, Faults, Operations, type Operation, type Which } from "./faults.js";
export { ExpectationError, ServiceBus, Timeline } from "./namespace.js";
export type { Counts, Event, Explained, Explanation, Session } from "./namespace.js";
export { Emulator, type Ready } from "./process.js";
export { withServiceBus } from "./test.js";
export type { Entity, Rule, Subscription, Topic, Topology } from "./topology.js";
