/** The process of the emulator. It ends when its standard input is closed, so it does not outlive this process. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import * as timers from "node:timers";

import { Control, EmulatorError } from "./control.js";

const BINARY = "SERVICEBUS_EMULATOR_BIN";
const OPTIONS = "SERVICEBUS_EMULATOR_OPTIONS";
const START_SECONDS = 30;
/** The first line of standard error that is not of the log, with the indented lines that follow it. */
const FIRST_ERROR = /^(?!\d{4}-\d\d-\d\dT\S+ +(?:WARN|INFO|DEBUG|TRACE) )\S.*(?:\n\s*[ \t]\S.*)*/m;
const PLATFORM = `${process.platform}-${process.arch}`;
/** The version of this package, which `build` adds. */
const VERSION: string | undefined = require("../package.json").version;
/** Kept when this module is loaded, because the test that needs the emulator first may have fake timers. */
const { setInterval } = timers;

/** The ready line of the emulator. */
export type Ready = { pid: number; ca_certificate: string | null } & Record<
  "version" | "amqp" | "amqps" | "http",
  string
>;

/** A running emulator. */
export class Emulator {
  readonly control: Control;

  private constructor(
    private readonly child: ChildProcess,
    private readonly stderr: () => string,
    readonly ready: Ready,
  ) {
    this.control = new Control(ready.http, () => this.whyItEnded());
  }

  /** Starts the program in `SERVICEBUS_EMULATOR_BIN`, else that of this installation, else the one on `PATH`. */
  static async start(options: readonly string[] = []): Promise<Emulator> {
    const program = process.env[BINARY] || installed() || "servicebus-emulator";
    const child = spawn(program, ["--for-tests", ...options]);
    let stderr = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr = (stderr + text).slice(-4096)));
    child.stdin.on("error", () => {}); // The emulator has ended; requests report that.
    await once(child, "spawn").catch((error: NodeJS.ErrnoException) => {
      throw new EmulatorError(notFound(program, error));
    });
    const late = AbortSignal.timeout(START_SECONDS * 1_000);
    const line = once(createInterface({ input: child.stdout }), "line", { signal: late });
    const [ready] = await Promise.race([line, once(child, "close")]).catch(() => []);
    if (!String(ready).startsWith('{"event":"ready"')) {
      child.kill("SIGKILL");
      const silent = late.aborted
        ? `it was not ready within ${START_SECONDS} s`
        : `${program} is not the emulator's program`;
      throw notStarted(FIRST_ERROR.exec(stderr)?.[0].replace(/\s*\n\s*/g, " ") ?? silent);
    }
    const { version }: Ready = JSON.parse(ready);
    if (version !== (VERSION ?? version)) {
      child.kill("SIGKILL");
      throw notStarted(`${program} is version ${version}, but this package is version ${VERSION}`);
    }
    for (const handle of [child, child.stdin, child.stdout, child.stderr]) (handle as ChildProcess).unref();
    return new Emulator(child, () => stderr, JSON.parse(ready));
  }

  /** Ends the process. */
  async stop(): Promise<void> {
    this.child.stdin?.end();
    if (!(await hasEnded(this.child, 10_000))) this.child.kill("SIGKILL");
  }

  private async whyItEnded(): Promise<string> {
    if (!(await hasEnded(this.child, 1_000))) {
      return "the emulator is running but does not respond: stop the test run, and start it again";
    }
    const { exitCode, signalCode } = this.child;
    const cause = signalCode ? `was ended by ${signalCode}` : `exited with code ${exitCode}`;
    const line = this.stderr().trim().split("\n").at(-1);
    return `the emulator ${cause} during the test run: start the run again${line && `; ${line}`}`;
  }
}

let started: Promise<Emulator> | undefined;

/** The emulator of this process, started when it is first needed. */
export function shared(): Promise<Emulator> {
  if (!started) endWithRunner();
  return (started ??= Emulator.start(split(process.env[OPTIONS] ?? "")));
}

/** Splits options at white space; quotes around a part keep it, as in a shell. */
function split(options: string): string[] {
  const words = options.match(/(?:"[^"]*"|'[^']*'|\S)+/g) ?? [];
  return words.map((word) => word.replace(/"([^"]*)"|'([^']*)'/g, "$1$2"));
}

/** Ends the emulator of this process, if there is one. */
export async function stopShared(): Promise<void> {
  const emulator = await started?.catch(() => undefined);
  started = undefined;
  await emulator?.stop();
}

/** Ends this process when the test runner has ended: `node --test` and Vitest leave it running when they are killed. */
function endWithRunner(): void {
  if (process.env.NODE_TEST_CONTEXT === undefined && process.send === undefined) return;
  const runner = process.ppid;
  setInterval(() => process.ppid === runner || process.kill(process.pid, "SIGKILL"), 1_000).unref();
}

/** The program of the package for this platform, which npm installs with this one. */
function installed(): string | undefined {
  const name = process.platform === "win32" ? "servicebus-emulator.exe" : "servicebus-emulator";
  try {
    return require.resolve(`@servicebus-emulator/${PLATFORM}/${name}`);
  } catch {
    return undefined;
  }
}

function notStarted(reason: string): EmulatorError {
  return new EmulatorError(`the emulator did not start: ${reason}; check ${OPTIONS} and ${BINARY}`);
}

function notFound(program: string, { code, message }: NodeJS.ErrnoException): string {
  const reason = code ?? message;
  if (process.env[BINARY]) {
    return `${BINARY} is ${program}, which cannot be started (${reason}): correct the path, or unset it`;
  }
  const missing = `this installation has no emulator for ${PLATFORM}, and PATH has none (${reason})`;
  const build = `build it with \`cargo build --release -p servicebus-emulator\` and set ${BINARY} to the program`;
  return `${missing}: install optional dependencies, too, or ${build}`;
}

/** Waits until a process has ended, at most this long; returns whether it has. */
async function hasEnded(child: ChildProcess, milliseconds: number): Promise<boolean> {
  const ended = () => child.exitCode !== null || child.signalCode !== null;
  if (ended()) return true;
  child.ref(); // Keeps this process running meanwhile.
  await once(child, "exit", { signal: AbortSignal.timeout(milliseconds) }).catch(() => {});
  child.unref();
  return ended();
}
