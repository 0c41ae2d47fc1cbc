/**
 * Explores a test: it runs again for each operation of its first run and each thing that can go wrong there.
 *
 * The emulator plans the runs and tells what was found. Its time steps by itself when nothing moves, so that a lock that runs
 * out costs no minute. Events come in the order of real time: a token repeats what was planned.
 */
import { readFile } from "node:fs/promises";

import { inject } from "vitest";

import { ServiceBus, TOPOLOGY, ask } from "./servicebus.js";

/** A bus for one run; what the parties do with their connection strings can go wrong. */
class Run extends ServiceBus {
  /**
   * @param {string} control
   * @param {{ connection_string: string, parties: Record<string, string> }} run
   */
  constructor(control, run) {
    super(control, run.connection_string);
    this.parties = run.parties;
  }
}

/**
 * Runs `test` with each fault, and throws the report when it fails in any; options are those of the control API.
 * @param {(run: Run) => Promise<void>} test
 * @param {string[]} parties
 * @param {object} options
 */
export async function explore(test, parties, options = {}) {
  const namespaces = inject("namespaces");
  const explorations = namespaces.replace(/namespaces$/, "explorations");
  const topology = await readFile(TOPOLOGY, "utf8");
  const token = process.env.SERVICEBUS_EXPLORE;
  const asked = { name: test.name, topology, parties, token, ...options };
  const { id } = await ask("POST", explorations, JSON.stringify(asked));
  const exploration = `${explorations}/${id}`;
  try {
    let run;
    while ((run = await ask("POST", `${exploration}/runs`))) {
      const result = await outcome(test, new Run(`${namespaces}/${run.namespace}`, run));
      await ask("POST", `${exploration}/runs/${run.number}/result`, JSON.stringify(result));
    }
    const { report, text } = await ask("GET", exploration);
    if (report.stopped || report.findings.length > 0) throw new Error(text);
  } finally {
    await ask("DELETE", exploration);
  }
}

/**
 * Whether the test passes with this run's bus; if not, what failed, and where.
 * @param {(run: Run) => Promise<void>} test
 * @param {Run} run
 */
async function outcome(test, run) {
  try {
    await test(run);
  } catch (error) {
    const location = /\(?([^\s(]+:\d+):\d+\)?/.exec(error.stack?.split("\n    at ")[1] ?? "")?.[1];
    return { passed: false, message: `${error.name}: ${error.message}`, location };
  }
  return { passed: true };
}
