/** `test` with a fixture: a test that names `servicebus` has a bus of its own, which is gone when the test is. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

import { test as base } from "vitest";

const TOPOLOGY = fileURLToPath(new URL("topology.json", import.meta.url));
const OPTIONS = ["--host", "127.0.0.1", "--amqp-port", "0", "--http-port", "0", "--exit-with-stdin"];

/** A running bus: where it is, its time, and what it knows. */
class ServiceBus {
  constructor(ready) {
    const [namespace] = ready.namespaces;
    this.connectionString = namespace.connection_string;
    this.control = `http://${ready.http}/$emulator/v1/namespaces/${namespace.name}`;
  }

  /** Moves the time of the bus; all that falls due on the way has happened when this resolves. */
  async advance(seconds) {
    await this.ask("clock/advance", { method: "POST", body: JSON.stringify({ seconds }) });
  }

  /** How many messages there are: `active`, `dead_letter`, `locked`, `scheduled` and others. */
  async counts(entity) {
    return this.ask(`counts?${new URLSearchParams({ entity })}`);
  }

  /** What happened to a message, in order. */
  async timeline(entity, messageId) {
    const query = new URLSearchParams({ entity, message_id: messageId });
    const { events } = await this.ask(`timeline?${query}`);
    return events.map((event) => event.kind);
  }

  async ask(path, options) {
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${this.control}/${path}`, { headers, ...options });
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  }
}

export const test = base.extend({
  // Starts the emulator that `SERVICEBUS_EMULATOR_BIN` names, else the one on the path.
  servicebus: async ({}, use) => {
    const binary = process.env.SERVICEBUS_EMULATOR_BIN ?? "servicebus-emulator";
    const emulator = spawn(binary, ["--config", TOPOLOGY, ...OPTIONS], { stdio: ["pipe", "pipe", "inherit"] });
    await once(emulator, "spawn");
    const [ready] = await once(createInterface(emulator.stdout), "line");
    await use(new ServiceBus(JSON.parse(ready)));
    // Without its standard input it ends.
    emulator.stdin.end();
    await once(emulator, "exit");
  },
});
