// Manages a namespace with `@azure/arm-servicebus`, with only a credential and an endpoint.

const assert = require("node:assert");
const { ServiceBusManagementClient } = require("@azure/arm-servicebus");

async function main(endpoint) {
  const credential = { getToken: async () => ({ token: "anyone", expiresOnTimestamp: 4e12 }) };
  const client = new ServiceBusManagementClient(credential, "00000000-0000-0000-0000-000000000001", { endpoint });
  const own = ["rg", "sbemulatorns"];
  const made = await client.queues.createOrUpdate(...own, "orders", { lockDuration: "PT30S", maxDeliveryCount: 3 });
  assert.deepEqual([made.lockDuration, made.maxDeliveryCount], ["PT30S", 3]);
  const names = [];
  for await (const queue of client.queues.listByNamespace(...own, { top: 1 })) names.push(queue.name);
  assert.deepEqual(names, ["orders", "queue.1"]);
  await client.topics.createOrUpdate(...own, "events", {});
  await client.subscriptions.createOrUpdate(...own, "events", "billing", {});
  const filter = { filterType: "SqlFilter", sqlFilter: { sqlExpression: "amount > 10" } };
  await client.rules.createOrUpdate(...own, "events", "billing", "large", filter);
  const rules = [];
  for await (const rule of client.rules.listBySubscriptions(...own, "events", "billing")) rules.push(rule.name);
  assert.deepEqual(rules, ["large"]);
  const keys = await client.namespaces.listKeys(...own, "RootManageSharedAccessKey");
  assert.match(keys.primaryConnectionString, /^Endpoint=sb:.*SharedAccessKey=/);
  await client.topics.delete(...own, "events");
  await client.queues.delete(...own, "orders");
  await assert.rejects(client.queues.get(...own, "orders"), { statusCode: 404 });
  await assert.rejects(client.queues.createOrUpdate(...own, "q", { maxDeliveryCount: 0 }), { statusCode: 400 });
}

main(process.argv[2]).catch((error) => {
  console.error(error);
  process.exit(1);
});
