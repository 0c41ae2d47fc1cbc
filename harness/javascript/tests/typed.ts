/** Calls that the types of the package accept and reject: compiled by `tsc --strict`, never run. */
import { withServiceBus, type ServiceBus } from "servicebus-emulator";
import { withServiceBus as inJest } from "servicebus-emulator/jest";
import { test } from "servicebus-emulator/vitest";

const body = withServiceBus({ queues: ["orders"] }, async (servicebus, context: { name: string }) => {
  await servicebus.expect("orders", "dead_lettered", { reason: { contains: "Max" }, within: 1 });
  const { deadLetter }: { deadLetter: number } = await servicebus.counts("orders");
  return deadLetter + context.name.length;
});
const run: (context: { name: string }) => Promise<void> = body;

const ordersTest = test.override({ topology: { queues: [{ name: "orders", maxDeliveryCount: 3 }] } });
ordersTest("it", async ({ servicebus }) => used(servicebus));

inJest("shop.json", used);

async function used(servicebus: ServiceBus): Promise<void> {
  const { high } = await servicebus.explain("prices/Subscriptions/high", { price: 3 });
  const [first] = high?.reason?.values ?? [];
  const named: string | undefined = first?.name;
  await servicebus.expect("orders", "completed", { messageId: named ?? "", body: Buffer.from("an order") });
  // @ts-expect-error: seconds are a number
  await servicebus.advance("a minute");
  // @ts-expect-error: there is no such assertion
  await servicebus.expect("orders", "compleated");
  // @ts-expect-error: this one takes no reason
  await servicebus.expect("orders", "completed", { reason: "Rejected" });
  // @ts-expect-error: there is no such operation
  await servicebus.faults.on("compleat").loseLock();
}

// @ts-expect-error: a queue has no such property
withServiceBus({ queues: [{ name: "orders", maxDeliveries: 3 }] }, used);
// @ts-expect-error: a context is needed
await run();
