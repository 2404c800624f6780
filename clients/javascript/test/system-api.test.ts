// The three APIs and the commands beyond them, against the built system.
import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import {
  ConflictError,
  type Event,
  ForbiddenError,
  type LeadRecord,
  NotFoundError,
  type ImportOutcome,
  type Progress,
  RateLimitedError,
  UnauthorizedError,
  verifyWebhook,
  type WebhookEvent,
} from "../dist/index.js";
import { saveExport } from "../dist/node.js";
import { System, until } from "./support/system.js";

let system: System;
before(async () => void (system = await System.start()));
after(() => system.close());

const workflow = {
  name: "Say hello",
  status: "ACTIVE" as const,
  steps: [
    { id: "start", type: "TRIGGER" as const, next: ["tell"] },
    { id: "tell", type: "NOTIFY" as const, event: "hello", data: { name: "{{ trigger.name }}" } },
  ],
};

test("a run is triggered, and read back to its end", async () => {
  const { waypost } = await system.organization();
  await waypost.workflows.put("hello", workflow);
  const { runId } = await waypost.workflows.trigger("hello", { name: "Ada" });
  const run = await until("the run to end", async () => {
    const found = await waypost.runs.get(runId);
    return found.state === "SUCCEEDED" && found;
  });
  assert.equal(run.triggerPayload["name"], "Ada");
  const [first] = await waypost.workflows
    .runs("hello", { state: "SUCCEEDED" })
    .toArray({ limit: 5 });
  assert.equal(first?.runId, runId);
  await assert.rejects(waypost.runs.cancel(runId), ConflictError);
});

test("what a client wrote is in what it reads next, each time", async () => {
  const { waypost } = await system.organization();
  for (let nth = 0; nth < 30; nth += 1) {
    await waypost.orders.create({
      id: `o-${nth}`,
      orderNumber: `WP-${nth}`,
      status: "ACTIVE",
      amount: 100,
    });
    const page = await waypost.orders.page({ limit: 1 });
    assert.equal(page.total, nth + 1);
  }
  assert.equal((await waypost.analytics.get()).totalRevenue, 3_000);
});

test("many records go in by lines and come out by cursor, each once", async () => {
  const { waypost } = await system.organization();
  function* leads(): Generator<LeadRecord> {
    for (let nth = 0; nth < 2_500; nth += 1) {
      yield { id: `l-${nth}`, name: nth === 2_100 ? "" : `Lead ${nth}`, score: nth };
    }
  }
  const outcomes: ImportOutcome[] = [];
  for await (const outcome of waypost.leads.import(leads())) {
    outcomes.push(outcome);
  }
  assert.equal(outcomes.length, 2_500);
  assert.deepEqual(
    outcomes.map(({ line }) => line),
    outcomes.map((_, nth) => nth + 1),
  );
  const refused = outcomes.filter((outcome) => "error" in outcome);
  assert.deepEqual(
    refused.map(({ line }) => line),
    [2_101],
  );
  const seen = new Set<string>();
  let pages = 0;
  for await (const page of waypost.leads.list({ limit: 100 }).pages()) {
    pages += 1;
    page.data.forEach(({ id }) => seen.add(id));
  }
  assert.deepEqual([seen.size, pages], [2_499, 25]);
});

test("an export tells its progress, and its file is there only when it is whole", async () => {
  const { waypost } = await system.organization();
  const records = Array.from({ length: 1_500 }, (_, nth) => ({
    id: `c-${nth}`,
    name: `Acme & Söhne ${nth}`,
  }));
  for await (const outcome of waypost.companies.import(records)) {
    assert.ok(!("error" in outcome));
  }
  const progress: Progress[] = [];
  const folder = await mkdtemp(join(tmpdir(), "waypost-client-"));
  try {
    const path = join(folder, "companies.csv");
    const file = waypost.companies.export({ onProgress: (one) => progress.push(one) });
    const bytes = await saveExport(file, path);
    const text = await readFile(path, "utf8");
    assert.equal(text.trimEnd().split("\n").length, 1_501);
    assert.equal(Buffer.byteLength(text), bytes);
    assert.equal(progress.at(-1)?.received, bytes);
    assert.deepEqual(await readdir(folder), ["companies.csv"]);
  } finally {
    await rm(folder, { recursive: true });
  }
  const { filename, contentType } = await waypost.companies.export({ format: "excel" }).open();
  assert.match(filename ?? "", /^companies-\d{4}-\d\d-\d\d\.xlsx$/);
  assert.match(contentType ?? "", /spreadsheetml/);
});

test("errors say what the server said", async () => {
  const { waypost, url, orgId } = await system.organization();
  const missing: unknown = await waypost.runs.get("nothing").catch((error: unknown) => error);
  assert.ok(missing instanceof NotFoundError);
  assert.match(missing.traceId ?? "", /^[0-9a-f]{32}$/);
  const { key } = await system.ask<{ key: string }>("/key", { orgId, scopes: ["read:leads"] });
  await assert.rejects(waypost.as(key).orders.page(), (error: unknown) => {
    return error instanceof ForbiddenError && error.message.includes("read:orders");
  });
  await assert.rejects(waypost.as("wp_nonsense").orders.page(), UnauthorizedError);
  const limited = await system.ask<{ key: string }>("/key", { orgId, rateLimit: 2 });
  const few = waypost.as(limited.key);
  await few.workflows.list().toArray({ limit: 1 });
  await few.workflows.list().toArray({ limit: 1 });
  await assert.rejects(few.workflows.list().toArray({ limit: 1 }), (error: unknown) => {
    return error instanceof RateLimitedError && (error.retryAfterMs ?? 0) > 3_000_000;
  });
  assert.ok(url);
});

test("a webhook that arrives is verified, once for each event", async () => {
  const { waypost } = await system.organization();
  let secret = "";
  const heard: WebhookEvent[] = [];
  const receiver = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) {
      parts.push(part as Buffer);
    }
    try {
      heard.push(
        await verifyWebhook({ secret, headers: request.headers, body: Buffer.concat(parts) }),
      );
      response.writeHead(204).end();
    } catch (error) {
      response.writeHead(400).end(String(error));
    }
  });
  await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
  try {
    const { port } = receiver.address() as AddressInfo;
    const made = await waypost.webhooks.create({
      url: `http://127.0.0.1:${port}/`,
      events: ["lead.*"],
    });
    ({ secret } = made);
    await waypost.leads.create({ id: "l-1", name: "Ada" });
    await until("the webhook", () => heard.length > 0);
    assert.deepEqual([heard[0]?.type, heard[0]?.data["name"]], ["lead.created", "Ada"]);
    ({ secret } = await waypost.webhooks.rotateSecret(made.id));
    const { deliveryId } = await waypost.webhooks.test(made.id);
    await until("the test", () => heard.some(({ id }) => id === deliveryId));
    const deliveries = await waypost.webhooks.deliveries(made.id).toArray({ limit: 10 });
    assert.deepEqual(new Set(deliveries.map(({ id }) => id)), new Set(heard.map(({ id }) => id)));
    const changed = await waypost.webhooks.update(made.id, { status: "DISABLED" });
    assert.equal(changed.status, "DISABLED");
  } finally {
    receiver.close();
  }
});

test("a feed is read to its end, and followed from there", async () => {
  const { waypost } = await system.organization();
  await waypost.leads.create({ id: "l-1", name: "Ada" });
  await waypost.leads.create({ id: "l-2", name: "Grace" });
  const before: Event[] = [];
  for await (const event of waypost.events.read({ types: ["lead.*"] })) {
    before.push(event);
  }
  assert.deepEqual(
    before.map(({ data }) => data["id"]),
    ["l-1", "l-2"],
  );
  const feed = waypost.events.follow({ after: before[0]?.position, types: ["lead.*"] });
  assert.equal((await feed.next()).value?.data["id"], "l-2");
  await waypost.leads.delete("l-1");
  assert.equal((await feed.next()).value?.type, "lead.deleted");
  await feed.return();
});

test("keys are made, listed and ended with what they gave", async () => {
  const { waypost } = await system.organization();
  const { keyId, key } = await waypost.keys.create({
    name: "shop",
    scopes: ["keys:manage", "read:leads"],
  });
  const shop = waypost.as(key);
  const given = await until("the key to be known", () =>
    shop.keys.create({ name: "till", scopes: ["read:leads"] }).catch(() => undefined),
  );
  // Another client wrote the second: its position is not known here.
  await until("both to be listed", async () => {
    const names = (await waypost.keys.list().toArray({ limit: 10 })).map(({ name }) => name);
    return names.includes("shop") && names.includes("till");
  });
  await waypost.keys.revoke(keyId, { given: true });
  await until("the given key to end", () =>
    waypost
      .as(given.key)
      .leads.page()
      .then(
        () => false,
        (error) => error instanceof UnauthorizedError,
      ),
  );
});

test("persons share where they are, and call for help", async () => {
  const grace = await system.person();
  const ada = await system.person({}, { name: "Ada" });
  const { id } = await grace.waypost.circles.create({ name: "Family" });
  const { code } = await grace.waypost.circles.invite(id);
  assert.deepEqual(await ada.waypost.circles.join({ code }), { circle_id: id });
  const place = await grace.waypost.circles.addPlace(id, {
    name: "School",
    lat: 53.55,
    lng: 9.99,
    radius_m: 150,
  });
  // Ada's client waits for what Ada has written, not for Grace's place.
  const theirs = await until("the place", async () => (await ada.waypost.circles.places(id))[0]);
  assert.equal(theirs.id, place.id);
  const taken = await ada.waypost.location.updateMany([
    { lat: 53.5, lng: 9.9, recorded_at: new Date(Date.now() - 60_000).toISOString() },
    { lat: 53.6, lng: 10, accuracy: 12 },
  ]);
  assert.equal(taken.length, 2);
  assert.equal((await ada.waypost.location.latest())[0]?.lat, 53.6);
  const seen = await until("Ada's position", async () =>
    (await grace.waypost.location.latest()).find(({ user_id }) => user_id === ada.user.id),
  );
  assert.equal(seen.lng, 10);
  assert.equal((await ada.waypost.location.history({ userId: ada.user.id, limit: 5 })).length, 2);
  const { sos_id, audience } = await ada.waypost.sos.trigger({ message: "flat tyre" });
  assert.deepEqual(
    audience.map((one) => one.id),
    [grace.user.id],
  );
  const open = await until("the call", async () => (await grace.waypost.sos.open())[0]);
  assert.deepEqual([open.sos_id, open.name, open.acknowledged], [sos_id, "Ada", false]);
  assert.equal((await grace.waypost.sos.acknowledge(sos_id)).status, "acknowledged");
  assert.equal((await ada.waypost.sos.resolve(sos_id)).status, "resolved");
  await ada.waypost.location.pause({ until: new Date(Date.now() + 60_000).toISOString() });
  await ada.waypost.location.resume();
  await grace.waypost.circles.removePlace(id, place.id);
  await ada.waypost.circles.leave(id);
  assert.deepEqual(await ada.waypost.circles.list().toArray({ limit: 5 }), []);
});

test("an account is opened, signed in by code, and signed out", async () => {
  const { url } = await system.organization();
  const phone = `+49151${String(Date.now()).slice(-8)}`;
  const person = await system.person({}, { phone });
  const anonymous = person.waypost.as();
  const code = async (nth: number): Promise<string> => {
    const codes = await until("a code", async () => {
      const sent = await fetch(`${system.control}/codes?phone=${encodeURIComponent(phone)}`);
      const all = (await sent.json()) as { code: string }[];
      return all.length > nth && all;
    });
    return codes[nth]?.code ?? "";
  };
  await anonymous.auth.sendCode({ phone });
  await person.waypost.auth.verifyCode({ phone, code: await code(0) });
  await anonymous.auth.sendCode({ phone });
  const session = await anonymous.auth.verifyCode({ phone, code: await code(1) });
  assert.equal(session.user.id, person.user.id);
  const changed = await person.waypost.auth.changePassword({
    old: person.password,
    new: "a longer password",
  });
  const { waypost } = person;
  await waypost.as(changed).auth.logout();
  await assert.rejects(waypost.as(changed).location.latest(), UnauthorizedError);
  // A function is called for another token after the first has expired.
  let asked = 0;
  const renewing = waypost.as(() => {
    asked += 1;
    const credentials = { email: person.email, password: "a longer password" };
    return asked === 1 ? changed : anonymous.auth.login(credentials);
  });
  assert.deepEqual(await renewing.location.latest(), []);
  assert.equal(asked, 2);
  assert.ok(url);
});

test("a call ends when its signal does", async () => {
  const { waypost } = await system.organization();
  const controller = new AbortController();
  const position = waypost.position;
  assert.equal(position, undefined);
  const reason = new Error("enough");
  const feed = waypost.events.follow({}, { signal: controller.signal });
  const next = feed.next();
  setTimeout(() => controller.abort(reason), 100);
  await assert.rejects(next, reason);
  await assert.rejects(waypost.leads.page({}, { signal: controller.signal }), reason);
});
