// The client on React Native's own fetch, WebSocket, Blob and AbortController, with Node's network
// beneath them in place of a phone's. See test/react-native.
import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { type Account, type Organization, System } from "./support/system.js";

const folder = fileURLToPath(new URL("../test/react-native", import.meta.url));
const timeout = 120_000;
let system: System;

before(async () => {
  if (!existsSync(`${folder}/node_modules/react-native`)) {
    // Large, and used by nothing else: only this test fetches it.
    const args = [
      "install",
      "--ignore-scripts",
      "--legacy-peer-deps",
      "--no-audit",
      "--no-fund",
      "--no-package-lock",
      "--loglevel=error",
    ];
    const { status } = spawnSync("npm", args, { cwd: folder, stdio: "inherit" });
    assert.equal(status, 0, "React Native could not be installed");
  }
  system = await System.start();
});
after(() => system?.close());

/** Runs the body of an async function as an app would. */
async function inApp(body: string, given: object): Promise<unknown> {
  const args = [`${folder}/run.js`, body, JSON.stringify({ ...given, control: system.control })];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  return JSON.parse(stdout);
}

/** Causes a fault from within an app, with React Native's own fetch. */
const ASK = `const ask = (path) => fetch(given.control + path, { method: "POST", body: "{}" });
  const until = async (found) => { while (!(await found())) await new Promise((go) => setTimeout(go, 20)); };`;

test("this is React Native: no streams, no Web Crypto", { timeout }, async () => {
  const found = await inApp(
    `return ["body" in Response.prototype, typeof ReadableStream, typeof crypto, typeof fetch, typeof WebSocket]`,
    {},
  );
  assert.deepEqual(found, [false, "undefined", "undefined", "function", "function"]);
});

test("requests, lists, exports, imports and errors", { timeout }, async () => {
  const organization = await system.ask<Organization>("/organization");
  const seen = await inApp(
    `const waypost = new client.Waypost(given);
     const records = Array.from({ length: 150 }, (_, nth) => ({ id: "l-" + nth, name: "Zoë " + nth }));
     let outcomes = 0;
     for await (const one of waypost.leads.import(records)) outcomes += "error" in one ? 0 : 1;
     const listed = await waypost.leads.list({ limit: 100 }).toArray({ limit: 1000 });
     await waypost.companies.create({ id: "c-1", name: "Søren & Söhne" });
     const text = await waypost.companies.export().text();
     const bytes = await waypost.companies.export({ format: "excel" }).bytes();
     const missing = await waypost.runs.get("nothing").catch((error) => error);
     const read = [];
     for await (const event of waypost.events.read({ types: ["company.*"] })) read.push(event.data.name);
     let follow; try { waypost.events.follow(); } catch (error) { follow = error; }
     return { outcomes, listed: listed.length, zoe: listed.some(({ name }) => name === "Zoë 149"),
       text: text.includes("Søren & Söhne"), zip: [bytes[0], bytes[1]], read,
       missing: [missing.name, missing.status, missing.traceId.length], follow: [follow.name, follow.message.includes("socket")] };`,
    organization,
  );
  assert.deepEqual(seen, {
    outcomes: 150,
    listed: 150,
    zoe: true,
    text: true,
    zip: [0x50, 0x4b],
    read: ["Søren & Söhne"],
    missing: ["NotFoundError", 404, 32],
    follow: ["UnsupportedError", true],
  });
});

test("a call ends by a signal of React Native's, and by its time", { timeout }, async () => {
  const organization = await system.ask<Organization>("/organization");
  const seen = await inApp(
    `${ASK}
     const waypost = new client.Waypost({ ...given, maxRetries: 0, attemptTimeoutMs: 300 });
     const controller = new AbortController();
     const call = waypost.leads.page({}, { signal: controller.signal }).catch((error) => error);
     controller.abort();
     const aborted = await call;
     await ask("/nats/hold");
     const late = await waypost.leads.create({ name: "Ada" }).catch((error) => error);
     await ask("/nats/release");
     return [aborted.name, late instanceof client.TimedOutError || late.name];`,
    organization,
  );
  assert.deepEqual(seen, ["AbortError", true]);
});

test("a socket comes back after a kill, and when the app does", { timeout }, async () => {
  const organization = await system.ask<Organization>("/organization");
  const seen = await inApp(
    `${ASK}
     const waypost = new client.Waypost({ ...given, maxRetries: 10 });
     let change;
     const appState = { addEventListener: (type, listener) => ((change = listener), { remove() {} }) };
     const items = [], statuses = [];
     const socket = waypost.socket({ appState, onStatus: (one) => statuses.push(one) });
     socket.subscribe("events", { onItem: (item) => items.push(item) });
     const write = async (from) => { for (let n = from; n < from + 3; n += 1) await waypost.leads.create({ id: "l-" + n, name: "A" }); };
     const events = () => items.filter(({ kind }) => kind === "event").map(({ data }) => data.id);
     await until(() => items.length > 0);
     await write(0);
     await ask("/waypost/kill"); await ask("/waypost/start");
     await write(3);
     await until(() => events().length === 6);
     change("background"); const away = socket.status;
     await write(6);
     change("active");
     await until(() => events().length === 9);
     socket.close();
     return { events: events(), away, reset: items.some(({ kind }) => kind === "reset"), closed: socket.status };`,
    organization,
  );
  const events = Array.from({ length: 9 }, (_, nth) => `l-${nth}`);
  assert.deepEqual(seen, { events, away: "paused", reset: false, closed: "closed" });
});

test("a queue keeps fixes while there is no server, and sends each once", { timeout }, async () => {
  const { url, access_token: token, user } = await system.ask<Account>("/account");
  const seen = await inApp(
    `${ASK}
     const kept = new Map();
     const storage = { getItem: async (key) => kept.get(key) ?? null, setItem: async (key, value) => void kept.set(key, value), removeItem: async (key) => void kept.delete(key) };
     const waypost = new client.Waypost(given);
     let queue = await waypost.locationQueue({ storage });
     await ask("/waypost/kill");
     for (let n = 0; n < 130; n += 1) await queue.add({ lat: 1, lng: n / 10 });
     const offline = await queue.flush();
     await ask("/waypost/start");
     queue = await waypost.locationQueue({ storage });
     await until(async () => (await queue.flush()).waiting === 0);
     const history = await waypost.location.history({ userId: ${user.id}, limit: 1000 });
     return { sent: offline.sent, waiting: offline.waiting, arrived: history.length, kept: [...kept.keys()].length };`,
    { url, token },
  );
  assert.deepEqual(seen, { sent: 0, waiting: 130, arrived: 130, kept: 2 });
});
