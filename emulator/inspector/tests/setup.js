// An emulator and a browser for the journeys, and what they do with them again and again.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";

const PROGRAM = process.env.SERVICEBUS_EMULATOR_BIN ?? "../../target/debug/servicebus-emulator";
const BROWSER = process.env.CHROMIUM ?? "/usr/bin/chromium";
const SHOTS = process.env.SERVICEBUS_SCREENSHOTS;

/**
 * The journeys of a file: tests with a namespace and a page of their own, in one emulator and one browser.
 * @returns {{journey: Function, bus: any, browser: any, at: Function}}
 */
export function journeys() {
  const all = {};
  before(async () => {
    [all.bus, all.browser] = await Promise.all([emulator(), browser()]);
  });
  after(async () => {
    await all.browser?.close();
    await all.bus?.stop();
  });
  all.journey = (title, topology, run, { timeout = 60000, ...options } = {}) =>
    test(title, { timeout }, async () => {
      const name = title.toLowerCase().replace(/[^a-z]+/g, "-").slice(0, 40).replace(/^-|-$/g, "");
      const shop = await namespace(all.bus, name, topology);
      const page = await open(all.browser, all.bus, `#/${name}`, options);
      await run(page, shop);
      assert.deepEqual(page.wrong, []);
      await page.context().close();
    });
  all.at = (page, shop, hash) => page.goto(`${all.bus.page}#/${shop.name}/${hash}`);
  return all;
}

/** Rows of the list of messages that have a text. */
export function row(page, text) {
  return page.locator("main .list .row:not(.heads)", { hasText: text });
}

/** Starts an emulator that ends with this process. */
export async function emulator(...options) {
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

/** A client of the control API of one namespace, made for this test. */
export async function namespace(bus, name, topology) {
  const root = `${bus.page}v1/namespaces/${name}`;
  const ask = async (method, path, body) => {
    const response = await fetch(root + path, {
      method,
      headers: body === undefined ? {} : { "content-type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text && JSON.parse(text);
  };
  const made = await ask("PUT", "", topology);
  return {
    name,
    connectionString: made.connection_string,
    ask,
    send: (entity, ...messages) => ask("POST", `/messages?entity=${encodeURIComponent(entity)}`, messages.map(message)),
    counts: (entity) => ask("GET", `/counts?entity=${encodeURIComponent(entity)}`),
  };
}

function message({ id, body = "", properties, subject, session, after, ...rest }) {
  return {
    properties: { message_id: id, subject, group_id: session },
    application_properties: properties,
    body: typeof body === "string" ? { text: body } : { data: [body.toString("base64")] },
    ...rest,
  };
}

/** A configuration of one namespace. */
export function topology(...queues) {
  const named = (it) => (typeof it === "string" ? { Name: it } : it);
  return { UserConfig: { Namespaces: [{ Name: "sbemulatorns", Queues: queues.map(named) }] } };
}

export async function browser() {
  return chromium.launch({ executablePath: BROWSER, args: ["--no-sandbox"] });
}

/** A page that fails the test when anything goes wrong in it, or when it asks another host. */
export async function open(browser, bus, hash, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1400, height: 900 }, ...options });
  const page = await context.newPage();
  const wrong = [];
  page.on("pageerror", (error) => wrong.push(String(error)));
  page.on("console", (entry) => entry.type() === "error" && !/Failed to load resource|net::ERR/.test(entry.text()) && wrong.push(entry.text()));
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(bus.origin) && !/^(data|blob):/.test(url)) wrong.push(`asked ${url}`);
  });
  await page.goto(bus.page + hash);
  return Object.assign(page, { wrong });
}

export async function shot(page, name) {
  if (!SHOTS) return;
  mkdirSync(SHOTS, { recursive: true });
  await page.screenshot({ path: `${SHOTS}/${name}.png` });
}
