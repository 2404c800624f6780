// clients/cases: queue.json.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Fix, FlushResult, LocationQueue } from "../dist/index.js";
import {
  assertError,
  assertHas,
  casesOf,
  type ClientSettings,
  clientOf,
  type Exchange,
  type Json,
  TestClock,
  type WantedError,
} from "./support/cases.js";
import { Memory } from "./support/memory.js";
import { Playback } from "./support/playback.js";

interface Step {
  do:
    | "add"
    | "addMany"
    | "flush"
    | "clock"
    | "restart"
    | "parked"
    | "retryParked"
    | "dropParked"
    | "dropped";
  fix?: Fix;
  count?: number;
  from?: number;
  exchange?: Exchange[];
  expect?: Json;
  error?: WantedError;
  advanceSeconds?: number;
  index?: number;
}

interface QueueCase {
  id: string;
  title: string;
  client?: ClientSettings;
  steps: Step[];
}

interface WantedFlush {
  sent: number;
  waiting: number;
  parked: number;
  retryAfterSeconds?: number;
}

let server: Playback;
before(async () => void (server = await Playback.start()));
after(() => server.close());

describe("queue.json", () => {
  for (const one of casesOf<QueueCase>("queue")) {
    test(`${one.id} ${one.title}`, async () => {
      const clock = new TestClock(1);
      const client = clientOf(server.url, one.client, clock, "account");
      const storage = new Memory();
      const { batch, capacity } = one.client ?? {};
      const open = (): Promise<LocationQueue> => client.locationQueue({ storage, batch, capacity });
      let queue = await open();
      for (const [nth, step] of one.steps.entries()) {
        if (step.do === "restart") {
          queue = await open();
        } else if (step.do === "clock") {
          clock.advance(step.advanceSeconds ?? 0);
        } else if (step.do === "flush") {
          server.play(step.exchange ?? [], { anew: nth === 0 });
          await flush(queue, step);
          server.finish();
        } else {
          await simple(queue, step);
        }
      }
    });
  }
});

async function flush(queue: LocationQueue, step: Step): Promise<void> {
  const done: unknown = await queue.flush().catch((error: unknown) => error);
  const wanted = step.expect as unknown as WantedFlush;
  if (step.error) {
    assertError(done, step.error);
    assert.deepEqual([queue.waiting, queue.parked.length], [wanted.waiting, wanted.parked]);
    return;
  }
  const { retryAfterMs, ...counts } = done as FlushResult;
  const { retryAfterSeconds, ...expected } = wanted;
  assert.deepEqual(counts, expected, String(done));
  assert.equal(
    retryAfterMs,
    retryAfterSeconds === undefined ? undefined : retryAfterSeconds * 1000,
  );
}

async function simple(queue: LocationQueue, step: Step): Promise<void> {
  switch (step.do) {
    case "add":
      return queue.add(step.fix as Fix);
    case "addMany":
      for (let nth = step.from ?? 0; nth < (step.from ?? 0) + (step.count ?? 0); nth += 1) {
        const recorded_at = new Date(Date.parse("2026-11-22T12:00:00Z") + nth * 1000).toISOString();
        await queue.add({ lat: nth, lng: 0.5, recorded_at });
      }
      return;
    case "parked":
      return assertHas([...queue.parked], step.expect ?? []);
    case "dropped":
      return assert.equal(queue.dropped, step.expect);
    case "retryParked":
      return queue.retryParked(step.index ?? 0);
    case "dropParked":
      return queue.dropParked(step.index ?? 0);
    default:
      assert.fail(`a step that nobody knows: ${step.do}`);
  }
}
