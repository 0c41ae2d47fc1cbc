/** What the tests do as clients, with the SDK. */
const { spawn } = require("node:child_process");
const { appendFileSync, writeFileSync } = require("node:fs");

const { ServiceBusClient } = require("@azure/service-bus");

async function withClient(servicebus, use) {
  const client = new ServiceBusClient(servicebus.connectionString, { retryOptions: { maxRetries: 0 } });
  try {
    return await use(client);
  } finally {
    await client.close();
  }
}

/** Sends a message to a queue or topic. */
exports.send = (servicebus, entity, message = {}) =>
  withClient(servicebus, (client) =>
    client.createSender(entity).sendMessages({ body: 12, messageId: "o-17", ...message }),
  );

/** Receives a message and completes it. */
exports.complete = (servicebus, entity) =>
  withClient(servicebus, async (client) => {
    const receiver = client.createReceiver(entity);
    const [message] = await receiver.receiveMessages(1);
    await receiver.completeMessage(message);
  });

/** Says where the emulator is, with a line's end for a sign that this is all, and waits to be ended. */
exports.wait = (servicebus) => {
  writeFileSync("emulator", `${servicebus.emulator.ready.http}\n`);
  return new Promise(() => setInterval(() => {}, 1_000));
};

/** Says which process the emulator is. */
exports.tellProcess = (servicebus) => appendFileSync("processes", `${servicebus.emulator.ready.pid}\n`);

/** Starts a process that goes on for a while when this one ends. */
exports.leaveChild = () => {
  spawn(process.execPath, ["-e", "setTimeout(() => {}, 60_000)"], { detached: true, stdio: "ignore" }).unref();
};
