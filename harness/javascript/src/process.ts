/** The process of the emulator. It ends with its standard input, and so with this process, however that ends. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join, dirname } from "node:path";
import { createInterface } from "node:readline";

import { Control, EmulatorError } from "./control.js";

const BINARY_VARIABLE = "SERVICEBUS_EMULATOR_BIN";
const OPTIONS_VARIABLE = "SERVICEBUS_EMULATOR_OPTIONS";
const PLATFORM = `${process.platform}-${process.arch}`;
const START_MILLISECONDS = 30_000;
const STOP_MILLISECONDS = 10_000;
const SAID_LENGTH = 4096;

/** What the emulator's ready line says. */
export type Ready = { pid: number } & Record<"version" | "amqp" | "amqps" | "http" | "ca_certificate", string>;

/** A running emulator, started with options of its command line. */
export class Emulator {
  readonly control: Control;

  private constructor(
    private readonly child: ChildProcess,
    private readonly said: () => string,
    readonly ready: Ready,
  ) {
    this.control = new Control(ready.http, () => this.whyItEnded());
  }

  /** Starts one: `SERVICEBUS_EMULATOR_BIN`, else that of this installation, else the one on the path. */
  static async start(options: readonly string[] = []): Promise<Emulator> {
    const program = process.env[BINARY_VARIABLE] || installed() || "servicebus-emulator";
    const child = spawn(program, ["--for-tests", ...options]);
    let said = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => (said = (said + text).slice(-SAID_LENGTH)));
    child.stdin.on("error", () => {}); // It has ended, which requests tell.
    try {
      const ready = await readyLine(child, program, () => said);
      for (const held of [child, child.stdin, child.stdout, child.stderr]) (held as ChildProcess).unref();
      return new Emulator(child, () => said, ready);
    } catch (error) {
      child.kill("SIGKILL");
      throw error;
    }
  }

  /** Ends the process. */
  async stop(): Promise<void> {
    this.child.stdin?.end();
    if (!(await hasEnded(this.child, STOP_MILLISECONDS))) this.child.kill("SIGKILL");
  }

  private async whyItEnded(): Promise<string> {
    if (!(await hasEnded(this.child, 1_000))) {
      return "the emulator runs and does not answer: end the run, and start it again";
    }
    const { exitCode, signalCode } = this.child;
    const cause = signalCode ? `by ${signalCode}` : `with exit code ${exitCode}`;
    const words = this.said().trim().split("\n").at(-1);
    return `the emulator ended ${cause} in the middle of the run: start the run again${words && `; ${words}`}`;
  }
}

let started: Promise<Emulator> | undefined;

/** The emulator of this process, started when it is first needed. */
export function shared(): Promise<Emulator> {
  if (!started) endWithRunner();
  started ??= Emulator.start(process.env[OPTIONS_VARIABLE]?.split(/\s+/).filter(Boolean));
  return started;
}

/** Ends the emulator of this process, if there is one. */
export async function stopShared(): Promise<void> {
  const emulator = await started?.catch(() => undefined);
  started = undefined;
  await emulator?.stop();
}

/** Ends this process with the runner that made it: `node --test` and Vitest may leave it running when they are killed. */
function endWithRunner(): void {
  if (process.env.NODE_TEST_CONTEXT === undefined && process.send === undefined) return;
  const runner = process.ppid;
  setInterval(() => process.ppid === runner || process.kill(process.pid, "SIGKILL"), 1_000).unref();
}

/** The program of the package for this platform, which npm installs with this one. */
function installed(): string | undefined {
  const name = process.platform === "win32" ? "servicebus-emulator.exe" : "servicebus-emulator";
  try {
    return join(dirname(require.resolve(`@servicebus-emulator/${PLATFORM}/package.json`)), name);
  } catch {
    return undefined;
  }
}

async function readyLine(child: ChildProcess, program: string, said: () => string): Promise<Ready> {
  const failed = once(child, "close").catch((error: NodeJS.ErrnoException) => {
    throw new EmulatorError(notFound(program, error));
  });
  const limit = { signal: AbortSignal.timeout(START_MILLISECONDS) };
  const line = once(createInterface({ input: child.stdout! }), "line", limit).catch(() => []);
  try {
    const ready = JSON.parse((await Promise.race([line, failed]))[0]);
    if (ready.event === "ready") return ready;
  } catch (error) {
    if (error instanceof EmulatorError) throw error;
  }
  const words = said().trim().split("\n")[0] || `${program} is no emulator`;
  throw new EmulatorError(`the emulator did not start: ${words}; check ${OPTIONS_VARIABLE} and ${BINARY_VARIABLE}`);
}

function notFound(program: string, { code, message }: NodeJS.ErrnoException): string {
  if (process.env[BINARY_VARIABLE]) {
    return `${BINARY_VARIABLE} names ${program}, which cannot be started (${code ?? message}): name a program, or unset it`;
  }
  return (
    `this installation has no emulator for ${PLATFORM}, and there is none on the path (${code ?? message}): install without ` +
    "leaving out optional dependencies, or build it with `cargo build --release -p servicebus-emulator` and name it in " +
    BINARY_VARIABLE
  );
}

/** Whether a process ends within this time. */
async function hasEnded(child: ChildProcess, milliseconds: number): Promise<boolean> {
  const ended = () => child.exitCode !== null || child.signalCode !== null;
  if (ended()) return true;
  child.ref(); // This process must not end meanwhile.
  await once(child, "exit", { signal: AbortSignal.timeout(milliseconds) }).catch(() => {});
  child.unref();
  return ended();
}
