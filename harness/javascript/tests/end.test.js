/** The emulator ends with the run, however that ends. */
import assert from "node:assert/strict";
import { copyFileSync, existsSync, readFileSync } from "node:fs";
import { get } from "node:http";
import { once } from "node:events";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";

import { FRAMEWORKS, begin, project } from "./frameworks.js";

const MILLISECONDS = 30_000;
const { vitest, jest, "node:test": node } = FRAMEWORKS;
const WAITS = ["it waits", undefined, "await wait(servicebus);"];
const LEAVES_A_CHILD = ["it waits", undefined, "leaveChild(); await wait(servicebus);"];
const and = (framework, ...options) => ({ ...framework, command: [...framework.command, ...options] });

const RUNS = {
  vitest: [vitest, WAITS],
  "vitest in threads": [and(vitest, "--pool=threads"), WAITS],
  jest: [jest, WAITS],
  "jest in workers": [and(jest, "--workers=2"), WAITS],
  "node:test": [node, WAITS],
  "node:test with a process that goes on": [node, LEAVES_A_CHILD],
};

for (const [name, [framework, waits]] of Object.entries(RUNS)) {
  for (const signal of ["SIGKILL", "SIGTERM", "SIGINT"]) {
    test(`${name}, ${signal}`, async () => {
      const cwd = project(framework, [waits]);
      copyFileSync(join(cwd, framework.file), join(cwd, `other.${framework.file}`)); // Enough for two workers.
      const { run, ended } = begin(framework, cwd);
      try {
        const held = await hold(await line(join(cwd, "emulator")));
        run.kill(signal);
        await once(held.resume(), "close", { signal: AbortSignal.timeout(MILLISECONDS) });
      } finally {
        run.kill("SIGKILL");
      }
      await ended; // With all processes that hold its output.
    });
  }
}

/** The line of a file, as soon as it has been written. */
async function line(file) {
  for (const deadline = Date.now() + MILLISECONDS; ; await pause(50)) {
    const text = existsSync(file) ? readFileSync(file, "utf8") : "";
    if (text.endsWith("\n")) return text.trim();
    assert.ok(Date.now() < deadline, "the test does not start");
  }
}

/** A connection that stays for as long as the emulator runs. */
async function hold(address) {
  const [response] = await once(get(`http://${address}/$emulator/v1/hold`, { agent: false }), "response");
  return response.on("error", () => {}); // However it ends, it does not end before the emulator.
}
