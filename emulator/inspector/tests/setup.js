// Starts the emulator and the browser of a test file, and has the functions that tests share.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { connect, createServer } from "node:net";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";

const PROGRAM = process.env.SERVICEBUS_EMULATOR_BIN ?? "../../target/debug/servicebus-emulator";
const BROWSER = process.env.CHROMIUM ?? "/usr/bin/chromium";
const SCREENSHOTS = process.env.SERVICEBUS_SCREENSHOTS;

/**
 * The tests of a file share an emulator and a browser. Each test has its own namespace and page.
 * @returns {{pageTest: Function, emulator: any, browser: any, visit: Function}}
 */
export function createSuite() {
  const suite = {};
  before(async () => {
    [suite.emulator, suite.browser] = await Promise.all([startEmulator(), launchBrowser()]);
  });
  after(async () => {
    await suite.browser?.close();
    await suite.emulator?.stop();
  });
  suite.pageTest = (title, topology, run, { timeout = 60000, ...options } = {}) =>
    test(title, { timeout }, async () => {
      const name = title.toLowerCase().replace(/[^a-z]+/g, "-").slice(0, 40).replace(/^-|-$/g, "");
      const namespace = await createNamespace(suite.emulator, name, topology);
      const page = await open(suite.browser, suite.emulator, `#/${name}`, options);
      await run(page, namespace);
      assert.deepEqual(page.errors, []);
      await page.context().close();
    });
  suite.visit = (page, namespace, route) => page.goto(`${suite.emulator.page}#/${namespace.name}/${route}`);
  return suite;
}

/** The rows of the message list that contain a text. */
export function row(page, text) {
  return page.locator("main .list .row:not(.header)", { hasText: text });
}

/** Starts an emulator, which ends with this process. */
export async function startEmulator(...options) {
  const ports = ["--host", "127.0.0.1", "--amqp-port", "0", "--http-port", "0", "--exit-with-stdin"];
  const child = spawn(PROGRAM, [...ports, ...options], { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout });
  const ready = await new Promise((resolve, reject) => {
    lines.once("line", (line) => resolve(JSON.parse(line)));
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`the emulator ended with ${code}`)));
  });
  return {
    origin: `http://${ready.http}`,
    page: `http://${ready.http}/$emulator/`,
    kill: () => new Promise((resolve) => child.once("exit", resolve) && child.kill("SIGKILL")),
    stop: () => new Promise((resolve) => child.once("exit", resolve) && child.stdin.end()),
  };
}

/** Creates a namespace and returns a client of its control API. */
export async function createNamespace(emulator, name, topology) {
  const root = `${emulator.page}v1/namespaces/${name}`;
  const request = async (method, path, body) => {
    const response = await fetch(root + path, {
      method,
      headers: body === undefined ? {} : { "content-type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text && JSON.parse(text);
  };
  const created = await request("PUT", "", topology);
  return {
    name,
    connectionString: created.connection_string,
    request,
    send: (entity, ...messages) => request("POST", `/messages?entity=${encodeURIComponent(entity)}`, messages.map(message)),
    counts: (entity) => request("GET", `/counts?entity=${encodeURIComponent(entity)}`),
  };
}

function message({ id, body = "", properties, subject, session, after, ...rest }) {
  return {
    properties: { message_id: id, subject, group_id: session },
    application_properties: properties,
    body: typeof body === "string" ? { text: body } : Buffer.isBuffer(body) ? { data: [body.toString("base64")] } : body,
    ...rest,
  };
}

/** Sends messages to `orders`, whose ids repeat after a thousand. */
export async function fill(namespace, count) {
  const batch = Array.from({ length: 1000 }, (_, index) => ({ id: `m-${index}` }));
  for (let sent = 0; sent < count; sent += batch.length) await namespace.send("orders", ...batch);
}

/** The configuration of one namespace with these queues. */
export function topology(...queues) {
  const queue = (it) => (typeof it === "string" ? { Name: it } : it);
  return { UserConfig: { Namespaces: [{ Name: "sbemulatorns", Queues: queues.map(queue) }] } };
}

export async function launchBrowser(...args) {
  return chromium.launch({ executablePath: BROWSER, args: ["--no-sandbox", ...args] });
}

/** Starts a proxy of the emulator, whose connections can be lost. */
export async function startProxy(emulator) {
  const sockets = new Set();
  let lost = false;
  const server = createServer((client) => {
    if (lost) return client.destroy();
    const upstream = connect(Number(new URL(emulator.origin).port), "127.0.0.1");
    client.pipe(upstream).pipe(client);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", () => {}).on("close", () => [client, upstream].forEach((it) => it.destroy()));
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const origin = `http://127.0.0.1:${server.address().port}`;
  const lose = () => {
    lost = true;
    for (const socket of sockets) socket.destroy();
  };
  return { origin, page: `${origin}/$emulator/`, lose, restore: () => { lost = false; }, stop: () => server.close(lose) };
}

/** Opens a page. `errors` contains errors of the page and its requests to other hosts, which fail the test. */
export async function open(browser, emulator, route, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1400, height: 900 }, ...options });
  const page = await context.newPage();
  const errors = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("console", (entry) => entry.type() === "error" && !/Failed to load resource|net::ERR/.test(entry.text()) && errors.push(entry.text()));
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(emulator.origin) && !/^(data|blob):/.test(url)) errors.push(`request to ${url}`);
  });
  await page.goto(emulator.page + route);
  return Object.assign(page, { errors });
}

export async function screenshot(page, name) {
  if (!SCREENSHOTS) return;
  mkdirSync(SCREENSHOTS, { recursive: true });
  await page.screenshot({ path: `${SCREENSHOTS}/${name}.png` });
}
