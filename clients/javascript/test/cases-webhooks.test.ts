// clients/cases: webhooks.json.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { InvalidWebhookError, verifyWebhook } from "../dist/index.js";
import { casesOf } from "./support/cases.js";

interface WebhookCase {
  id: string;
  title: string;
  secrets: string[];
  now: number;
  toleranceSeconds?: number;
  headers: Record<string, string>;
  body: string;
  expect: { valid?: object; invalid?: string };
}

describe("webhooks.json", () => {
  for (const one of casesOf<WebhookCase>("webhooks")) {
    test(`${one.id} ${one.title}`, async () => {
      const { secrets: secret, headers, body, toleranceSeconds } = one;
      for (const form of [headers, new Headers(headers)]) {
        for (const content of [body, new TextEncoder().encode(body)]) {
          const received = { secret, headers: form, body: content, toleranceSeconds };
          const done = await verifyWebhook({ ...received, now: one.now * 1000 }).catch(
            (error: unknown) => error,
          );
          if (one.expect.valid) {
            assert.deepEqual(done, one.expect.valid);
          } else {
            assert.ok(done instanceof InvalidWebhookError, String(done));
            assert.equal(done.reason, one.expect.invalid);
          }
        }
      }
    });
  }
});
