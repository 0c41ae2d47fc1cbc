// Sends and receives with `DefaultAzureCredential`, like a program without settings for an emulator.

const { DefaultAzureCredential } = require("@azure/identity");
const { ServiceBusClient } = require("@azure/service-bus");

async function main() {
  const host = process.env.SERVICEBUS_FULLY_QUALIFIED_NAMESPACE;
  const client = new ServiceBusClient(host, new DefaultAzureCredential(), {
    customEndpointAddress: process.env.SERVICEBUS_TLS_ENDPOINT,
  });
  await client.createSender("queue.1").sendMessages({ body: "an order" });
  const receiver = client.createReceiver("queue.1");
  for (const message of await receiver.receiveMessages(1)) {
    if (message.body !== "an order") throw new Error(`received ${message.body}`);
    await receiver.completeMessage(message);
  }
  await client.close();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
