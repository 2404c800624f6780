// clients/cases: requests.json and wire.json.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import {
  assertError,
  assertHas,
  casesOf,
  type Answer,
  type ClientSettings,
  clientOf,
  type Exchange,
  type Json,
  TestClock,
  type Wanted,
  type WantedError,
} from "./support/cases.js";
import { call } from "./support/calls.js";
import { Playback } from "./support/playback.js";

interface RequestCase {
  id: string;
  title?: string;
  operation: string;
  call: string;
  arguments: Record<string, unknown>;
  as: string;
  request: Wanted;
  answer: Answer;
  result: Json;
}

interface WireCase {
  id: string;
  title: string;
  client?: ClientSettings;
  calls: {
    call: string;
    arguments: Record<string, unknown>;
    options?: { idempotencyKey?: string; minPosition?: string | null };
    take?: number;
    expect: { result?: Json; error?: WantedError };
  }[];
  exchange: Exchange[];
  waits: number[];
}

let server: Playback;
before(async () => void (server = await Playback.start()));
after(() => server.close());

describe("requests.json", () => {
  for (const one of casesOf<RequestCase>("requests")) {
    test(`${one.id} ${one.call}${one.title ? `: ${one.title}` : ""}`, async () => {
      server.play([{ request: one.request, answer: one.answer }], { exact: true });
      const client = clientOf(server.url, {}, new TestClock(), one.as);
      const result = await call(client, one.call, one.arguments).catch((error: unknown) => error);
      server.finish();
      assertHas(result, one.result);
    });
  }
});

describe("wire.json", () => {
  for (const one of casesOf<WireCase>("wire")) {
    test(`${one.id} ${one.title}`, async () => {
      const clock = new TestClock();
      server.play(one.exchange);
      const client = clientOf(server.url, one.client, clock);
      for (const { call: name, arguments: given, options, take, expect } of one.calls) {
        const done = await call(client, name, given, options, take).then(
          (result) => ({ result }),
          (error: unknown) => ({ error }),
        );
        if (expect.error) {
          assertError("error" in done ? done.error : done.result, expect.error);
        } else if ("error" in done) {
          throw done.error;
        } else {
          assertHas(done.result, expect.result ?? null);
        }
      }
      server.finish();
      assert.deepEqual(clock.waits, one.waits, "waits");
    });
  }
});
