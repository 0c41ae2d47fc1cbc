/** The code under test: a worker that charges orders. */
import { ServiceBusClient } from "@azure/service-bus";

/** What the bank says when it does not take an order now. */
export class Refused extends Error {}

/** Charges so many orders. What is no number is rejected; what the bank does not take comes again. */
export async function work(connectionString, charge, orders) {
  const client = new ServiceBusClient(connectionString);
  const receiver = client.createReceiver("orders");
  for (let done = 0; done < orders; done += 1) {
    const [order] = await receiver.receiveMessages(1);
    if (!Number.isInteger(order.body)) {
      await receiver.deadLetterMessage(order, { deadLetterReason: "NotANumber" });
      continue;
    }
    try {
      await charge(order.messageId, order.body);
      await receiver.completeMessage(order);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      await receiver.abandonMessage(order);
    }
  }
  await client.close();
}
