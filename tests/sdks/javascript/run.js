/**
 * Runs named cases against the emulator through the JavaScript SDK, in one process.
 *
 * Every line of standard input is a request, `{"id": 1, "case": "locks.renews", "environment": {…}}`, and is answered by
 * a line on standard output, `{"id": 1, "passed": true, "output": ""}`.
 * The environment is a case's own: `SERVICEBUS_CONNECTION_STRING`, `SERVICEBUS_CONTROL_URL` (the namespace's part of the
 * control API), `SERVICEBUS_EXPIRY`, `SERVICEBUS_LOCKS_ON_DETACH`, `SERVICEBUS_CA_FILE` and `SERVICEBUS_TRANSPORT`; for
 * administration clients also `SERVICEBUS_ADMIN_CONNECTION_STRING`. The process finds the SDK by `NODE_PATH`.
 * The requests decide how many cases run side by side. The process ends with its standard input.
 */
"use strict";

const { createInterface } = require("node:readline");
const { inspect } = require("node:util");

const { Bus, environments } = require("./bus");
const { withAuthority } = require("./authorities");

const DEADLINE_MILLISECONDS = 180_000;

/** Fails a case by its id, when a promise that is not awaited is rejected. */
const failures = new Map();

async function run({ id, case: name, environment }) {
  const failing = new Promise((_, reject) => failures.set(id, reject));
  const late = setTimeout(
    () => failures.get(id)?.(new Error(`still running after ${DEADLINE_MILLISECONDS} ms`)),
    DEADLINE_MILLISECONDS,
  );
  try {
    const running = environments.run({ ...withAuthority(environment), id }, runCase, name);
    await Promise.race([running, failing]);
    answer(id, true, "");
  } catch (error) {
    answer(id, false, inspect(error));
  } finally {
    clearTimeout(late);
    failures.delete(id);
  }
}

async function runCase(name) {
  const [module, function_] = name.split(".");
  const case_ = require(`./cases/${module}`)[function_];
  const bus = new Bus();
  try {
    await case_(bus);
  } finally {
    await bus.close();
  }
}

/** Writes to the stream itself, because output of `console` must not be mistaken for a response. */
const write = process.stdout.write.bind(process.stdout);

function answer(id, passed, output) {
  write(`${JSON.stringify({ id, passed, output })}\n`);
}

process.stdout.write = process.stderr.write.bind(process.stderr);
// If the case of a rejection is not known, all cases fail.
for (const kind of ["unhandledRejection", "uncaughtException"]) {
  process.on(kind, (error) => {
    const failed = failures.get(environments.getStore()?.id);
    for (const fail of failed ? [failed] : failures.values()) {
      fail(error);
    }
  });
}
createInterface({ input: process.stdin })
  .on("line", (line) => void run(JSON.parse(line)))
  .on("close", () => process.exit(0));
