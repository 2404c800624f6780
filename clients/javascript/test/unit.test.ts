// What the shared cases leave to each language.
import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import {
  ConnectionFailedError,
  type Fix,
  type FlushResult,
  type ImportOutcome,
  InvalidArgumentError,
  NotModifiedError,
  type Progress,
  type Retry,
  UnsupportedError,
  Waypost,
} from "../dist/index.js";
import { saveExport } from "../dist/node.js";
import { clientOf, type Exchange, TestClock } from "./support/cases.js";
import { Memory } from "./support/memory.js";
import { Playback } from "./support/playback.js";
import { until } from "./support/system.js";

let server: Playback;
before(async () => void (server = await Playback.start()));
after(() => server.close());

const EXPORT = { method: "GET", path: "/api/export/companies" };
const UPDATE = { method: "POST", path: "/location/update" };
const BROKEN: Exchange = {
  request: EXPORT,
  answer: { status: 200, headers: { "content-length": "100" }, text: "id\nc-", cut: true },
};
const WHOLE: Exchange = {
  request: EXPORT,
  answer: {
    status: 200,
    headers: {
      "content-disposition": 'attachment; filename="companies-2026-11-22.csv"',
      etag: '"a"',
      "content-length": "7",
    },
    text: "id\nc-1\n",
  },
};

describe("exports", () => {
  test("a file begins anew after a break, and is there only when it is whole", async () => {
    const folder = await mkdtemp(join(tmpdir(), "waypost-unit-"));
    const clock = new TestClock();
    try {
      server.play([BROKEN, BROKEN, WHOLE]);
      const path = join(folder, "companies.csv");
      const progress: Progress[] = [];
      const onProgress = (one: Progress): void => void progress.push(one);
      const bytes = await saveExport(
        clientOf(server.url, {}, clock).companies.export({ onProgress }),
        path,
      );
      server.finish();
      assert.equal(bytes, 7);
      assert.equal(await readFile(path, "utf8"), "id\nc-1\n");
      assert.deepEqual(progress.at(-1), { received: 7, total: 7 });
      assert.deepEqual(clock.waits, [0.25, 0.5]);
      server.play([BROKEN, BROKEN, BROKEN]);
      await assert.rejects(
        saveExport(clientOf(server.url).companies.export(), join(folder, "no.csv")),
        ConnectionFailedError,
      );
      assert.deepEqual(await readdir(folder), ["companies.csv"]);
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  test("iterating over the chunks throws on a break, and never just ends", async () => {
    server.play([BROKEN]);
    let text = "";
    const walk = (async () => {
      for await (const chunk of clientOf(server.url).companies.export()) {
        text += Buffer.from(chunk).toString("utf8");
      }
    })();
    await assert.rejects(walk, ConnectionFailedError);
    assert.equal(text, "id\nc-");
  });

  test("a file says what it is called, and that nothing changed", async () => {
    server.play([
      WHOLE,
      { request: { ...EXPORT, headers: { "if-none-match": '"a"' } }, answer: { status: 304 } },
    ]);
    const { companies } = clientOf(server.url);
    const { filename, etag, size, chunks } = await companies.export().open();
    assert.deepEqual([filename, etag, size], ["companies-2026-11-22.csv", '"a"', 7]);
    for await (const chunk of chunks) {
      assert.ok(chunk.length > 0);
    }
    await assert.rejects(companies.export({ ifNoneMatch: etag }).bytes(), NotModifiedError);
    server.finish();
  });

  test("what a reader of one's own throws is thrown, and nothing is tried again", async () => {
    server.play([WHOLE]);
    const full = new Error("no space left on device");
    const reading = clientOf(server.url)
      .companies.export()
      .read(() => Promise.reject(full));
    await assert.rejects(reading, full);
    server.finish();
  });
});

describe("imports", () => {
  test("each part has a key of its own, which stays over its retries, and lines count on", async () => {
    const path = "/api/v1/records/leads";
    const answer = (count: number): string =>
      Array.from(
        { length: count },
        (_, nth) => `{"line":${nth + 1},"id":"x","status":"created"}\n`,
      ).join("");
    const part = (key: string, count: number): Exchange => ({
      request: { method: "POST", path, headers: { "idempotency-key": key } },
      answer: { status: 200, text: answer(count) },
    });
    const cut = {
      ...part("mine-2000", 0),
      answer: { status: 200, headers: { "content-length": "9000" }, text: answer(1), cut: true },
    };
    server.play([part("mine", 2_000), cut, part("mine-2000", 1)]);
    const outcomes: ImportOutcome[] = [];
    const records = Array.from({ length: 2_001 }, (_, nth) => ({ name: `Lead ${nth}` }));
    for await (const one of clientOf(server.url).leads.import(records, {
      idempotencyKey: "mine",
    })) {
      outcomes.push(one);
    }
    server.finish();
    assert.deepEqual([outcomes.length, outcomes.at(-1)?.line], [2_001, 2_001]);
  });
});

describe("feeds", () => {
  const line = (nth: number): string =>
    `${JSON.stringify({ position: `e1-${nth}`, id: `i${nth}`, type: "x", data: {} })}\n`;
  const events = { method: "GET", path: "/api/v1/events" };

  test("lines that break off are resumed behind the last one", async () => {
    server.play([
      {
        request: { ...events, query: { limit: "3" } },
        answer: {
          status: 200,
          headers: { "content-length": "900" },
          text: line(1) + line(2) + '{"pos',
          cut: true,
        },
      },
      {
        request: { ...events, query: { after: "e1-2", limit: "1" } },
        answer: { status: 200, text: line(3) },
      },
    ]);
    const read: string[] = [];
    for await (const { position } of clientOf(server.url).events.read({ limit: 3 })) {
      read.push(position);
    }
    server.finish();
    assert.deepEqual(read, ["e1-1", "e1-2", "e1-3"]);
  });

  test("a feed resumes at a position that came without an event, before its first one", async () => {
    const head = { "content-type": "text/event-stream" };
    const resumed = { ...events, headers: { "last-event-id": "e1-4" } };
    server.play([
      { request: events, answer: { status: 200, headers: head, text: "id: e1-4\n\n", cut: true } },
      { request: resumed, answer: { status: 200, headers: head, text: `id: e1-5\ndata: ${line(5)}\n`, hold: true } },
    ]);
    for await (const { position } of clientOf(server.url).events.follow()) {
      assert.equal(position, "e1-5");
      break;
    }
    server.finish();
  });

  test("a reader who takes long loses nothing by it", async () => {
    server.play([{ request: events, answer: { status: 200, text: line(1) + line(2) } }]);
    const read: string[] = [];
    for await (const { position } of clientOf(server.url, { attemptSeconds: 1 }).events.read()) {
      read.push(position);
      await new Promise((resolve) => setTimeout(resolve, 1_200));
    }
    server.finish();
    assert.deepEqual(read, ["e1-1", "e1-2"]);
  });

  test("where answers come at their end only, following says so", () => {
    const client = clientOf(server.url, {}, undefined, "key", { streaming: false });
    assert.throws(() => client.events.follow(), UnsupportedError);
  });
});

describe("calls", () => {
  const run = { method: "GET", path: "/api/v1/runs/r" };

  test("a signal ends the wait between two tries", async () => {
    server.play([
      {
        request: run,
        answer: { status: 503, headers: { "retry-after": "60" }, body: { error: "no" } },
      },
    ]);
    const controller = new AbortController();
    const retries: Retry[] = [];
    const onRetry = (retry: Retry): void => {
      retries.push(retry);
      controller.abort();
    };
    const client = new Waypost({ url: server.url, key: "wp_test", onRetry });
    await assert.rejects(client.runs.get("r", { signal: controller.signal }), {
      name: "AbortError",
    });
    server.finish();
    assert.deepEqual(
      [retries[0]?.operation, retries[0]?.tries, retries[0]?.waitMs],
      ["/api/v1/runs/{runId}", 1, 60_000],
    );
  });

  test("a signal that has ended lets nothing out", async () => {
    server.play([]);
    const signal = AbortSignal.abort(new Error("over"));
    await assert.rejects(clientOf(server.url).runs.get("r", { signal }), /over/);
    server.finish();
  });

  test("the cause of a call is passed on", async () => {
    const headers = { "waypost-cause": "c1.x" };
    server.play([{ request: { ...run, headers }, answer: { status: 200, body: {} } }]);
    await clientOf(server.url).runs.get("r", { cause: "c1.x" });
    server.finish();
  });

  test("a token that is about to end is replaced before it is sent", async () => {
    const token = (seconds: number): string => {
      const exp = Math.floor(Date.now() / 1000) + seconds;
      return `e30.${Buffer.from(JSON.stringify({ exp })).toString("base64url")}.x`;
    };
    const tokens = [token(-1), token(3_600)];
    const answer = { status: 200, body: {} };
    const headers = { authorization: `Bearer ${tokens[1]}` };
    server.play([
      { request: { ...run, headers: { authorization: `Bearer ${tokens[0]}` } }, answer },
      { request: { ...run, headers }, answer },
      { request: { ...run, headers }, answer },
    ]);
    let asked = 0;
    const client = new Waypost({ url: server.url, token: () => tokens[asked++] ?? "" });
    await client.runs.get("r");
    await Promise.all([client.runs.get("r"), client.runs.get("r")]);
    server.finish();
    assert.equal(asked, 2);
  });

  test("what makes no sense is said at once", () => {
    assert.throws(() => new Waypost({ url: "waypost.example" }), /http/);
    assert.throws(() => new Waypost({ url: server.url, key: "wp_x", token: "y" }), /either/);
  });

  test("a callback's client is not held up by another caller's positions", async () => {
    const trigger = { method: "POST", path: "/api/v1/workflows/w/trigger" };
    const absent = { headers: { "waypost-min-position": { absent: true } } };
    server.play([
      {
        request: trigger,
        answer: { status: 202, headers: { "waypost-position": "e1-7" }, body: { runId: "r" } },
      },
      { request: { ...run, ...absent }, answer: { status: 200, body: {} } },
    ]);
    const client = clientOf(server.url);
    await client.workflows.trigger("w");
    assert.equal(client.position, "e1-7");
    await client.as("another").runs.get("r");
    server.finish();
  });
});

describe("a queue that was started", () => {
  const clock = {
    ...new TestClock(),
    now: () => Date.now(),
    random: () => 0.02,
    sleep: async () => undefined,
  };

  test("sends what is added together, and tries again by itself", async () => {
    const fix = (nth: number): Fix => ({
      lat: nth,
      lng: 0,
      recorded_at: `2026-11-22T12:00:0${nth}Z`,
    });
    const sent = (fixes: Fix[]): Exchange["request"] => ({ ...UPDATE, body: fixes as never });
    server.play([
      { request: sent([fix(1), fix(2)]), answer: { status: 503, body: { error: "no" } } },
      { request: sent([fix(1), fix(2)]), answer: { status: 202, body: { accepted: [] } } },
    ]);
    const results: FlushResult[] = [];
    const client = clientOf(server.url, {}, clock as never, "account");
    const queue = await client.locationQueue({
      storage: new Memory(),
      onFlush: (result) => results.push(result),
    });
    queue.start();
    await Promise.all([queue.add(fix(1)), queue.add(fix(2))]);
    await until("both to arrive", () => results.some(({ sent: count }) => count === 2));
    queue.stop();
    server.finish();
    assert.equal(queue.waiting, 0);
  });

  test("keeps hundreds of fixes in parts, and finds them again at whatever moment it ended", async () => {
    const storage = new Memory();
    const open = (): ReturnType<Waypost["locationQueue"]> =>
      clientOf(server.url, {}, new TestClock(1)).locationQueue({ storage });
    const queue = await open();
    const snapshots: Map<string, string>[] = [];
    for (let nth = 0; nth < 230; nth += 1) {
      await queue.add({ lat: 1, lng: nth / 10 });
      snapshots.push(new Map(storage.kept));
    }
    for (const [nth, kept] of snapshots.entries()) {
      storage.kept.clear();
      kept.forEach((value, key) => storage.kept.set(key, value));
      assert.equal((await open()).waiting, nth + 1);
    }
    const longest = Math.max(...[...storage.kept.values()].map((value) => value.length));
    assert.ok(longest < 5_000, `adding one writes ${longest} characters`);
  });

  test("refuses what is no position", async () => {
    const queue = await clientOf(server.url).locationQueue({ storage: new Memory() });
    await assert.rejects(queue.add({ lat: Number.NaN, lng: 0 }), InvalidArgumentError);
    assert.equal(queue.waiting, 0);
  });
});
