/** Starts one emulator for the run. It ends with its standard input, and so with Vitest, however that ends. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

const OPTIONS = ["--host", "127.0.0.1", "--amqp-port", "0", "--http-port", "0", "--exit-with-stdin"];

/**
 * Runs the emulator that `SERVICEBUS_EMULATOR_BIN` names, else that on the path, and says where its namespaces are made.
 * @param {import("vitest/node").TestProject} project
 */
export default async function setup(project) {
  const binary = process.env.SERVICEBUS_EMULATOR_BIN ?? "servicebus-emulator";
  const emulator = spawn(binary, OPTIONS, { stdio: ["pipe", "pipe", "inherit"] });
  const ended = once(emulator, "exit").catch((error) => {
    throw new Error(`${error.message}: it is to be on the path, or named by SERVICEBUS_EMULATOR_BIN`);
  });
  const lines = createInterface(emulator.stdout)[Symbol.asyncIterator]();
  const { value: ready } = await Promise.race([lines.next(), ended.then(() => ({ value: undefined }))]);
  if (!ready) throw new Error("the emulator did not start; it says why on standard error");
  project.provide("namespaces", `http://${JSON.parse(ready).http}/$emulator/v1/namespaces`);
  return async () => {
    emulator.stdin.end();
    await ended;
  };
}
