/**
 * Runs one named case against the emulator through the JavaScript SDK.
 *
 *     node run.js <case>        for example: node run.js locks.renews
 *
 * Reads `SERVICEBUS_CONNECTION_STRING`, `SERVICEBUS_CONTROL_URL` (the namespace's part of the
 * control API), `SERVICEBUS_EXPIRY`, `SERVICEBUS_LOCKS_ON_DETACH` and `SERVICEBUS_DOOR`; finds the SDK by `NODE_PATH`.
 * Administration clients also read `SERVICEBUS_ADMIN_CONNECTION_STRING`, and trust `NODE_EXTRA_CA_CERTS`.
 * Exits 0 when the case holds, else prints what differed. A case that hangs ends itself.
 */
"use strict";

const { Bus } = require("./bus");

const DEADLINE_MILLISECONDS = 180_000;

async function run(name) {
  const [module, function_] = name.split(".");
  const case_ = require(`./cases/${module}`)[function_];
  const bus = new Bus();
  try {
    await case_(bus);
  } finally {
    await bus.close();
  }
}

const name = process.argv[2];
setTimeout(() => {
  console.log(`javascript, ${name}: still running after ${DEADLINE_MILLISECONDS} ms`);
  process.exit(1);
}, DEADLINE_MILLISECONDS);
run(name).then(
  () => {
    console.log(`javascript, ${name}: passed`);
    process.exit(0);
  },
  (error) => {
    console.log(error);
    console.log(`javascript, ${name}: failed`);
    process.exit(1);
  },
);
