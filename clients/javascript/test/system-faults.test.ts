// Waypost is killed and NATS is stopped while requests, sockets, feeds and queues are active:
// nothing is lost, nothing arrives twice, nothing is done twice.
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { WebSocket } from "ws";
import {
  type Event,
  type Retry,
  type SocketStatus,
  type SubscriptionItem,
  Waypost,
  type WaypostOptions,
} from "../dist/index.js";
import { Memory } from "./support/memory.js";
import { System, until } from "./support/system.js";

const PATIENT: Partial<WaypostOptions> = {
  maxRetries: 20,
  WebSocket,
};

let system: System;
before(async () => void (system = await System.start()));
after(() => system.close());
beforeEach(() => system.ask("/nats/start"));

/** The faults of all tests below, each while something is in progress. */
const faults: Record<string, () => Promise<unknown>> = {
  "kill -9 of Waypost": () => system.killAndStart(),
  "a stop of NATS": async () => {
    await system.ask("/nats/stop");
    // Longer than the server waits for NATS before it reports a failure.
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    await system.ask("/nats/start");
    await system.ask("/waypost/start");
  },
};

for (const [name, hurt] of Object.entries(faults)) {
  describe(`amid ${name}`, { timeout: 300_000 }, () => {
    test("every trigger that was answered began one run, and no other began", async () => {
      const retries: Retry[] = [];
      const onRetry = (retry: Retry): void => void retries.push(retry);
      const { waypost } = await system.organization({ ...PATIENT, onRetry });
      await waypost.workflows.put("w", {
        name: "W",
        status: "ACTIVE",
        steps: [{ id: "start", type: "TRIGGER" }],
      });
      const fault = new Fault(hurt);
      const runs: string[] = [];
      const trigger = async (): Promise<void> => {
        while (!fault.over) {
          runs.push((await waypost.workflows.trigger("w", { nth: runs.length })).runId);
          fault.begin(runs.length > 40);
        }
      };
      await Promise.all([1, 2, 3, 4].map(trigger));
      await fault.done;
      assert.ok(retries.length > 0, "the fault was met");
      assert.equal(new Set(runs).size, runs.length);
      const begun: Event[] = [];
      for await (const event of waypost.events.read({ types: ["workflow.triggered"] })) {
        begun.push(event);
      }
      assert.deepEqual(begun.map(({ data }) => data["runId"]).sort(), [...runs].sort());
    });

    test("a socket delivers each event once, in order", async () => {
      const { waypost } = await system.organization(PATIENT);
      const statuses: SocketStatus[] = [];
      const socket = waypost.socket({ onStatus: (status) => statuses.push(status) });
      const items: SubscriptionItem[] = [];
      const subscription = socket.subscribe("events", { onItem: (item) => items.push(item) });
      await until("the subscription", () => items.length > 0);
      const written = await writeLeads(waypost, hurt);
      await until("all events", () => leadsOf(items).length >= written.length);
      assert.deepEqual(leadsOf(items), written);
      assert.ok(items.every(({ kind }) => kind !== "reset"));
      // A new subscription after the first half receives the other one.
      const events = items.filter((one) => one.kind === "event");
      const half = Math.floor(events.length / 2);
      const rest: SubscriptionItem[] = [];
      const again = socket.subscribe("events", {
        after: events[half - 1]?.position,
        onItem: (item) => rest.push(item),
      });
      await until("the other half", () => rest.length >= events.length - half);
      assert.deepEqual(rest, events.slice(half));
      again.unsubscribe();
      subscription.unsubscribe();
      assert.equal(socket.status, "idle");
    });

    test("a feed delivers each event once, in order", async () => {
      const { waypost } = await system.organization(PATIENT);
      const { id } = await waypost.leads.create({ name: "first" });
      const items: unknown[] = [];
      const controller = new AbortController();
      const following = (async () => {
        const feed = waypost.events.follow({ after: undefined, types: ["lead.*"] }, controller);
        // The feed begins with what happens from now on: wait until it does.
        for await (const event of feed) {
          items.push(event.data["id"]);
        }
      })();
      let nth = 0;
      await until("the feed", async () => {
        await waypost.leads.put(id, { name: `again ${(nth += 1)}` });
        return items.length > 0;
      });
      const written = await writeLeads(waypost, hurt);
      await until("all events", () => items.filter((one) => one !== id).length >= written.length);
      assert.deepEqual(
        items.filter((one) => one !== id),
        written,
      );
      controller.abort();
      await assert.rejects(following, { name: "AbortError" });
    });

    test("a queue delivers each fix once, over the app's end too", async () => {
      const person = await system.person(PATIENT);
      const storage = new Memory();
      const errors: unknown[] = [];
      const open = (): ReturnType<Waypost["locationQueue"]> =>
        person.waypost.locationQueue({ storage, batch: 7, onError: (error) => errors.push(error) });
      let queue = await open();
      const start = Date.now() - 3_600_000;
      const times: number[] = [];
      const add = async (): Promise<void> => {
        const instant = start + times.length * 1000;
        times.push(instant);
        const recorded_at = new Date(instant).toISOString();
        await queue.add({ lat: 53, lng: times.length / 100, recorded_at });
      };
      const fault = new Fault(hurt);
      for (let nth = 0; nth < 100; nth += 1) {
        await add();
        if (nth % 5 === 0) {
          await queue.flush();
        }
        if (nth === 40) {
          fault.begin(true);
          await until("the fault to be met", async () => {
            await add();
            return (await queue.flush()).retryAfterMs !== undefined;
          });
          queue = await open();
        }
      }
      await fault.done;
      await until("the queue to be empty", async () => (await queue.flush()).waiting === 0);
      const history = await person.waypost.location.history({
        userId: person.user.id,
        limit: 1000,
      });
      const kept = history.map(({ recorded_at }) => Date.parse(recorded_at)).reverse();
      assert.deepEqual(kept, times);
      assert.deepEqual([queue.parked.length, queue.dropped, errors], [0, 0, []]);
    });

    test("an export and an import end whole", async () => {
      const { waypost } = await system.organization(PATIENT);
      let records = Array.from({ length: 6_000 }, (_, nth) => ({ id: `p-${nth}`, firstName: `Person ${nth}` }));
      let hurting: Promise<unknown> | undefined;
      while (records.length > 0) {
        const again: typeof records = [];
        let outcomes = 0;
        for await (const outcome of waypost.contacts.import(records)) {
          outcomes += 1;
          hurting ??= hurt();
          if ("error" in outcome) {
            // A line whose outcome the log did not report in time must be resent; no other may fail.
            assert.match(outcome.error ?? "", /send it again/);
            again.push(records[outcome.line - 1] as (typeof records)[number]);
          }
        }
        assert.equal(outcomes, records.length);
        records = again;
      }
      await hurting;
      const exporting = waypost.contacts.export().text();
      await Promise.all([hurt(), exporting]);
      const lines = (await exporting).trimEnd().split("\n");
      assert.equal(lines.length, 6_001);
    });
  });
}

test("a token is renewed over the open socket before it ends", async () => {
  await system.killAndStart({ WAYPOST_TOKEN_SECONDS: "8" });
  try {
    const { url, email, password } = await system.person();
    const anonymous = new Waypost({ url, ...PATIENT });
    let asked = 0;
    const token = (): Promise<{ access_token: string }> => {
      asked += 1;
      return anonymous.auth.login({ email, password });
    };
    const waypost = new Waypost({ url, token, ...PATIENT });
    const statuses: SocketStatus[] = [];
    const socket = waypost.socket({ onStatus: (status) => statuses.push(status) });
    const items: SubscriptionItem[] = [];
    socket.subscribe("locations", { onItem: (item) => items.push(item) });
    await until("a renewal", () => asked === 2);
    // After the first token expires.
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    const { recorded_at } = await waypost.location.update({ lat: 1, lng: 2 });
    await until("the position", () =>
      items.some((one) => one.kind === "event" && one.data["recorded_at"] === recorded_at),
    );
    assert.deepEqual(statuses, ["connecting", "open"]);
    socket.close();
  } finally {
    await system.killAndStart({ WAYPOST_TOKEN_SECONDS: "3600" });
  }
});

/** Writes leads one after another, with a fault in between; returns their ids. */
async function writeLeads(waypost: Waypost, hurt: () => Promise<unknown>): Promise<string[]> {
  const written: string[] = [];
  const fault = new Fault(hurt);
  for (let nth = 0; nth < 60 || !fault.over; nth += 1) {
    const { id } = await waypost.leads.create({ id: `l-${nth}`, name: `Lead ${nth}` });
    written.push(id);
    fault.begin(nth >= 20);
  }
  await fault.done;
  return written;
}

/** A fault that is started once, and whether it is over: the work continues until then. */
class Fault {
  done: Promise<unknown> | undefined;
  over = false;
  readonly #hurt: () => Promise<unknown>;

  constructor(hurt: () => Promise<unknown>) {
    this.#hurt = hurt;
  }

  begin(now: boolean): void {
    if (now) {
      this.done ??= this.#hurt().finally(() => (this.over = true));
    }
  }
}

function leadsOf(items: SubscriptionItem[]): unknown[] {
  const events = items.filter((one) => one.kind === "event");
  return events.filter(({ type }) => type === "lead.created").map(({ data }) => data["id"]);
}
