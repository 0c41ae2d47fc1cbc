/**
 * Explores a test: it runs again for each operation of its first run and each fault that can be injected there.
 *
 * The emulator plans the runs and reports its findings. Its clock steps to the next deadline when the namespace is idle, so
 * a test does not wait for a lock to expire. Events have the order of real time; a token repeats the planned faults.
 */
import { callSite } from "./call_site.js";
import { ExpectationError, ServiceBus, WITHIN_SECONDS } from "./namespace.js";
import { shared } from "./process.js";
import { asError } from "./test.js";
import { encoded, type Topology } from "./topology.js";

/** A namespace for one run; faults are injected into operations of the parties, by their connection strings. */
export type Run = ServiceBus & { parties: Record<string, string> };

/** After a fault there, the SDK waits for up to a minute before it tries again. */
const SLOW_TO_RECOVER = [".connect#", ".token@", ".token#"];

/**
 * The options of an exploration, as in the control API, where `within` is 30 by default instead of 3. Without `only` and
 * `token`, `except` leaves out connections and tokens by default.
 */
export interface Explored
  extends
    Partial<Record<"runs" | "within" | "faults", number>>,
    Partial<Record<"effects" | "only" | "except", string[]>>,
    Partial<Record<"name" | "token", string>> {
  topology?: Topology;
  parties: string[];
}

/**
 * Runs `test` with each fault, and throws the report if a run fails or the exploration proves nothing, or if the default of
 * `within` is too short for the planned runs.
 */
export async function explore(explored: Explored, test: (run: Run) => unknown): Promise<void> {
  const topology = encoded(explored.topology, callSite()?.file) ?? { queues: ["queue.1"] };
  const emulator = await shared();
  const { control } = emulator;
  const within = explored.within ?? WITHIN_SECONDS;
  const token = explored.token ?? process.env["SERVICEBUS_EXPLORE"];
  const { id } = await control.ask("POST", "explorations", {
    ...explored,
    topology,
    name: explored.name ?? (test.name || undefined),
    token,
    except: explored.except ?? (token || explored.only ? [] : SLOW_TO_RECOVER),
    within,
  });
  const exploration = `explorations/${id}`;
  try {
    for (let run; (run = await control.ask("POST", `${exploration}/runs`));) {
      const servicebus = new ServiceBus(emulator, { ...run, name: run.namespace });
      const result = await outcome(test, Object.assign(servicebus, { parties: run.parties }), within);
      await control.ask("POST", `${exploration}/runs/${run.number}/result`, result);
    }
    const { done, failed, text, report } = await control.ask("GET", exploration);
    const isCut = explored.within === undefined && report.cutByBudget > 0 && report.runs < (explored.runs ?? Infinity);
    const hint = isCut
      ? `\nhint: more than ${WITHIN_SECONDS} s are needed: pass \`within\`, and a longer timeout to the test`
      : "";
    if (failed || !done || isCut) throw new ExpectationError(text + hint);
  } finally {
    await control.ask("DELETE", exploration);
  }
}

/** Whether the test passes in this run within some seconds; if not, the error and its location. */
async function outcome(test: (run: Run) => unknown, run: Run, within: number): Promise<object> {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(
      () => reject(new Error(`the run does not end within ${within} s: pass a longer \`within\``)),
      within * 1000,
    );
  });
  try {
    await Promise.race([test(run), late]);
    return { passed: true };
  } catch (thrown) {
    const error = asError(thrown);
    return { passed: false, message: `${error.name}: ${error.message}`, location: callSite(error.stack)?.location };
  } finally {
    clearTimeout(timer);
  }
}
