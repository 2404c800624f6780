// The cases that all clients play: their form, and how a value is compared with the expected one.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { Waypost, type WaypostOptions } from "../../dist/index.js";

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

export interface Wanted {
  method: string;
  path: string;
  query?: Record<string, string>;
  headers?: Record<string, string | Match>;
  body?: Json;
  lines?: Json[];
}

export interface Match {
  present?: boolean;
  absent?: boolean;
  contains?: string;
  matches?: string;
  bind?: string;
  same?: string;
  not?: string;
}

export interface Answer {
  status?: number;
  headers?: Record<string, string>;
  body?: Json;
  text?: string;
  cut?: boolean;
  hold?: boolean;
  hang?: boolean;
}

export interface Exchange {
  request: Wanted;
  answer: Answer;
}

export interface ClientSettings {
  maxRetries?: number;
  attemptSeconds?: number;
  deadlineSeconds?: number;
  maxRetryAfterSeconds?: number;
  readYourWrites?: boolean;
  tokens?: string[];
  tokenSeconds?: number[];
  batch?: number;
  capacity?: number;
}

export interface WantedError {
  type: string;
  status?: number;
  message?: string;
  body?: string;
  traceId?: string;
  retryAfterSeconds?: number;
  position?: string;
  code?: number;
}

/** The cases of a file. */
export function casesOf<T>(name: string): T[] {
  const file = new URL(`../../../cases/${name}.json`, import.meta.url);
  return (JSON.parse(readFileSync(file, "utf8")) as { cases: T[] }).cases;
}

const NOON = Date.parse("2026-11-22T12:00:00Z");

/** A clock that advances only by waits, and records them. */
export class TestClock {
  readonly waits: number[] = [];
  #now = NOON;
  readonly #chance: number;

  constructor(chance = 0.5) {
    this.#chance = chance;
  }

  now = (): number => this.#now;
  random = (): number => this.#chance;
  advance = (seconds: number): void => void (this.#now += seconds * 1000);
  sleep = async (ms: number): Promise<void> => {
    this.waits.push(ms / 1000);
    this.#now += ms;
    // Other tasks run, as they would during a wait.
    await new Promise((resolve) => setImmediate(resolve));
  };
}

/** A client as a case specifies it. */
export function clientOf(
  url: string,
  settings: ClientSettings = {},
  clock = new TestClock(),
  as: string = "key",
  more: Partial<WaypostOptions> = {},
): Waypost {
  const seconds = (value: number | undefined): number | undefined =>
    value === undefined ? undefined : value * 1000;
  return new Waypost({
    url,
    clock,
    maxRetries: settings.maxRetries,
    attemptTimeoutMs: seconds(settings.attemptSeconds),
    timeoutMs: seconds(settings.deadlineSeconds),
    maxRetryAfterMs: seconds(settings.maxRetryAfterSeconds),
    readYourWrites: settings.readYourWrites,
    ...credential(settings, as),
    ...more,
  });
}

function credential({ tokens, tokenSeconds }: ClientSettings, as: string): Partial<WaypostOptions> {
  if (tokens) {
    let nth = 0;
    return {
      token: () => {
        const [access_token, expires_in] = [tokens[nth], tokenSeconds?.[nth]];
        nth += 1;
        assert.ok(access_token !== undefined, "the client asked for more tokens than there are");
        return expires_in === undefined ? access_token : { access_token, expires_in };
      },
    };
  }
  return as === "anonymous" ? {} : as === "key" ? { key: "wp_test" } : { token: "wp_test" };
}

/** Compares an answer with the expected one: more fields are allowed. */
export function assertHas(actual: unknown, wanted: Json, at = "result"): void {
  if (Array.isArray(wanted)) {
    assert.ok(Array.isArray(actual), `${at} is a list`);
    assert.equal(actual.length, wanted.length, `${at}: ${JSON.stringify(actual)}`);
    wanted.forEach((one, nth) => assertHas(actual[nth], one, `${at}[${nth}]`));
  } else if (typeof wanted === "object" && wanted !== null) {
    assert.ok(typeof actual === "object" && actual !== null, `${at} is an object`);
    for (const [name, value] of Object.entries(wanted)) {
      assertHas((actual as Record<string, unknown>)[name], value, `${at}.${name}`);
    }
  } else if (wanted === null) {
    // JavaScript's own way to express that there is no answer.
    assert.ok(actual === null || actual === undefined, `${at} is ${String(actual)}`);
  } else if (
    typeof wanted === "string" &&
    typeof actual === "string" &&
    sameInstant(actual, wanted)
  ) {
    return;
  } else {
    assert.deepEqual(actual, wanted, at);
  }
}

function sameInstant(one: string, other: string): boolean {
  return /^\d{4}-\d\d-\d\dT/.test(other) && Date.parse(one) === Date.parse(other);
}

/** Compares an error with the expected one. */
export function assertError(error: unknown, wanted: WantedError): void {
  assert.ok(error instanceof Error, `an error was expected, not ${JSON.stringify(error)}`);
  const { type, retryAfterSeconds, ...fields } = wanted;
  const expected = type.endsWith("Error") ? type : `${type}Error`;
  assert.equal(error.name, expected, error.stack);
  const actual = error as unknown as Record<string, unknown>;
  if (retryAfterSeconds !== undefined) {
    assert.equal(actual["retryAfterMs"], retryAfterSeconds * 1000);
  }
  for (const [name, value] of Object.entries(fields)) {
    assert.equal(actual[name], value, name);
  }
  assert.notEqual(error.message, "");
}
