/** The code under test: a worker that charges orders. */
import { ServiceBusClient } from "@azure/service-bus";

/** The error of the bank when it rejects an order for now. */
export class Refused extends Error {}

/**
 * Handles this number of deliveries of orders, and charges each order once.
 *
 * An order without a number is dead-lettered; an order that the bank rejects is abandoned and delivered again.
 */
export async function work(connectionString, charge, deliveries) {
  const charged = new Set();
  const client = new ServiceBusClient(connectionString);
  const receiver = client.createReceiver("orders");
  for (let handled = 0; handled < deliveries; handled += 1) {
    const [order] = await receiver.receiveMessages(1);
    if (!Number.isInteger(order.body)) {
      await receiver.deadLetterMessage(order, { deadLetterReason: "NotANumber" });
      continue;
    }
    try {
      if (!charged.has(order.messageId)) await charge(order.messageId, order.body);
      charged.add(order.messageId);
      await receiver.completeMessage(order);
    } catch (error) {
      if (error instanceof Refused) await receiver.abandonMessage(order);
      // An order whose lock was lost is delivered again, and is known then.
      else if (error.code !== "MessageLockLost") throw error;
    }
  }
  await client.close();
}
