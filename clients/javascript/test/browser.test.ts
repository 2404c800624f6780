// The client in a page: headless Chromium, on Waypost's own origin, with nothing but the built files.
import assert from "node:assert/strict";
import { build } from "esbuild";
import { after, before, beforeEach, test } from "node:test";
import { fileURLToPath } from "node:url";
import { Chromium, CHROMIUM } from "./support/chromium.js";
import { type Organization, System, until } from "./support/system.js";

const skip = CHROMIUM === undefined && "Chromium is not installed";
const timeout = 120_000;
let system: System;
let chromium: Chromium;
let client: string;

before(async () => {
  if (skip) {
    return;
  }
  system = await System.start();
  chromium = await Chromium.start();
  const entry = fileURLToPath(new URL("../dist/index.js", import.meta.url));
  const bundle = await build({
    entryPoints: [entry],
    bundle: true,
    write: false,
    format: "iife",
    globalName: "client",
    platform: "browser",
  });
  client = bundle.outputFiles[0]?.text ?? "";
});
after(async () => {
  await chromium?.close();
  await system?.close();
});

let organization: Organization;
beforeEach(async () => {
  if (skip) {
    return;
  }
  organization = await system.ask<Organization>("/organization");
  await chromium.open(`${organization.url}/healthz`);
  await chromium.run(`${client}; globalThis.client = client; undefined`);
  const { url, key } = organization;
  await chromium.run(
    `globalThis.waypost = new client.Waypost(${JSON.stringify({ url, key })}); undefined`,
  );
});

/** Runs the body of an async function in the page. */
const inPage = (body: string): Promise<unknown> => chromium.run(`(async () => { ${body} })()`);

test(
  "requests, lists, exports, errors and reads of one's own writes",
  { skip, timeout },
  async () => {
    const seen = (await inPage(`
    const records = Array.from({ length: 250 }, (_, nth) => ({ id: "c-" + nth, firstName: "Zoë " + nth }));
    let outcomes = 0;
    for await (const outcome of waypost.contacts.import(records)) outcomes += "error" in outcome ? 0 : 1;
    const progress = [];
    const text = await waypost.contacts.export({ onProgress: (one) => progress.push(one) }).text();
    await waypost.leads.create({ id: "l-1", name: "Ada" });
    const { total } = await waypost.leads.page();
    const missing = await waypost.runs.get("nothing").catch((error) => error);
    return {
      outcomes, total, lines: text.trimEnd().split("\\n").length, zoe: text.includes("Zoë 249"),
      progress: progress.length > 0, missing: [missing.name, missing.status, missing.traceId?.length],
    };
  `)) as object;
    const missing = ["NotFoundError", 404, 32];
    assert.deepEqual(seen, {
      outcomes: 250,
      total: 1,
      lines: 251,
      zoe: true,
      progress: true,
      missing,
    });
  },
);

test("a feed is followed over fetch, over a kill of the server", { skip, timeout }, async () => {
  await inPage(`
    const { id } = await waypost.leads.create({ id: "first", name: "Ada" });
    let after;
    for await (const event of waypost.events.read({ types: ["lead.*"] })) after = event.position;
    globalThis.items = [];
    (async () => {
      for await (const event of waypost.events.follow({ after, types: ["lead.*"] })) items.push(event.data.id);
    })();
  `);
  await inPage(`await waypost.leads.create({ id: "l-0", name: "Ada" })`);
  await until("the first event", () => chromium.run("items.length === 1"));
  await system.killAndStart();
  await inPage(
    `for (let nth = 1; nth < 5; nth += 1) await waypost.leads.create({ id: "l-" + nth, name: "Ada" })`,
  );
  await until("all events", () => chromium.run("items.length >= 5"));
  assert.deepEqual(await chromium.run("items"), ["l-0", "l-1", "l-2", "l-3", "l-4"]);
});

test(
  "a socket comes back after a kill, at once where the page is online again",
  { skip, timeout },
  async () => {
    await inPage(`
    globalThis.items = []; globalThis.statuses = []; globalThis.threw = 0;
    globalThis.socket = waypost.socket({ onStatus: (one) => statuses.push(one), onError: () => (threw += 1) });
    socket.subscribe("events", { onItem: (item) => { items.push(item); throw new Error("a user's mistake"); } });
  `);
    const write = (from: number): Promise<unknown> =>
      inPage(
        `for (let nth = ${from}; nth < ${from + 3}; nth += 1) await waypost.leads.create({ id: "l-" + nth, name: "A" })`,
      );
    await until("the subscription", () => chromium.run("items.length > 0"));
    await write(0);
    await system.killAndStart();
    await write(3);
    await system.ask("/waypost/kill");
    await until("the break to be noticed", () => chromium.run(`statuses.at(-1) === "waiting"`));
    await system.ask("/waypost/start");
    await chromium.run(`void window.dispatchEvent(new Event("online"))`);
    await write(6);
    const events = `items.filter(({ kind }) => kind === "event").map(({ data }) => data.id)`;
    await until("all events", () => chromium.run(`${events}.length >= 9`));
    assert.deepEqual(
      await chromium.run(events),
      Array.from({ length: 9 }, (_, nth) => `l-${nth}`),
    );
    assert.equal(await chromium.run("threw === items.length"), true);
    await chromium.run("socket.close()");
  },
);

test("a queue in localStorage survives the page", { skip, timeout }, async () => {
  const person = await system.ask<{ url: string; access_token: string }>("/account");
  const { url, access_token: token } = person;
  const begin = `globalThis.me = new client.Waypost(${JSON.stringify({ url, token })});
    globalThis.queue = await me.locationQueue({ storage: localStorage });`;
  await inPage(
    `${begin} await queue.add({ lat: 1, lng: 2 }); await queue.add({ lat: 3, lng: 4 });`,
  );
  await chromium.open(`${url}/readyz`);
  await chromium.run(`${client}; globalThis.client = client; undefined`);
  assert.deepEqual(await inPage(`${begin} return queue.flush();`), {
    sent: 2,
    waiting: 0,
    parked: 0,
  });
  assert.equal(await inPage("return (await me.location.history()).length"), 2);
});

test("a webhook is verified with the page's Web Crypto", { skip, timeout }, async () => {
  // Web Crypto exists in secure contexts, and the loopback is one.
  const reason = await inPage(`
    const received = { secret: "whsec_AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB", body: "{}", headers: new Headers({
      "webhook-id": "m", "webhook-timestamp": String(Math.floor(Date.now() / 1000)), "webhook-signature": "v1,AAAA" }) };
    return client.verifyWebhook(received).catch((error) => error.reason);
  `);
  assert.equal(reason, "signature");
  assert.deepEqual(chromium.complaints, []);
});
