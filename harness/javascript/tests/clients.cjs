/** Clients of the tests, with the SDK. */
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

/** Writes the address of the emulator and a newline to a file, and waits until the process is ended. */
exports.wait = (servicebus) => {
  writeFileSync("emulator", `${servicebus.emulator.ready.http}\n`);
  return new Promise(() => setInterval(() => {}, 1_000));
};

/** Appends the process id of the emulator to a file. */
exports.recordProcess = (servicebus) => appendFileSync("processes", `${servicebus.emulator.ready.pid}\n`);

/** Starts a process that outlives this one for a while. */
exports.leaveChild = () => {
  spawn(process.execPath, ["-e", "setTimeout(() => {}, 60_000)"], { detached: true, stdio: "ignore" }).unref();
};
