/** The code under test: a worker that charges orders. */
import { ServiceBusClient } from "@azure/service-bus";

/** What the bank says when it does not take an order now. */
export class Refused extends Error {}

/**
 * Handles so many deliveries of orders, and charges each order once.
 *
 * What is no number is rejected; what the bank does not take comes again.
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
      // One whose lock was lost comes again, and is known.
      else if (error.code !== "MessageLockLost") throw error;
    }
  }
  await client.close();
}
