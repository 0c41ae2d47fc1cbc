// Testcontainers' own class for the official emulator, pointed at the image.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { ServiceBusClient } from "@azure/service-bus";
import { AzureServiceBusContainer } from "@testcontainers/azureservicebus";

// The class starts a database container; this one contains no database.
const noDatabase = {
  withNetworkAliases: () => noDatabase,
  withNetwork: () => noDatabase,
  start: async () => ({ getHostname: () => "none", stop: async () => {} }),
};

test("messages are sent and received", async () => {
  const servicebus = await new AzureServiceBusContainer(process.env.SERVICEBUS_EMULATOR_IMAGE)
    .acceptLicense()
    .withConfig(await readFile(process.env.CONFIG_PATH, "utf8"))
    .withMssqlContainer(noDatabase)
    .start();
  const client = new ServiceBusClient(servicebus.getConnectionString());
  try {
    await client.createSender("orders").sendMessages({ body: "an order" });
    const receiver = client.createReceiver("orders");
    const [message] = await receiver.receiveMessages(1);
    assert.equal(message.body, "an order");
    await receiver.completeMessage(message);
  } finally {
    await client.close();
    await servicebus.stop();
  }
});
