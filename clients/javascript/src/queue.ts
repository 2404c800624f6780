import {
  ApiError,
  ConnectionFailedError,
  InvalidArgumentError,
  UnauthorizedError,
} from "./errors.js";
import type { Http } from "./http.js";
import { operations } from "./operations.js";
import {
  type AbortSignalLike,
  abortReason,
  type HeadersLike,
  platform,
  unique,
} from "./platform.js";
import { backoff, passes } from "./retry.js";
import { type Item, type ParkedFix, type QueueStorage, type State, Store } from "./store.js";
import type { Fix } from "./types.js";

/** Options of a queue. */
export interface QueueOptions {
  /** Where fixes are kept until they arrive. */
  storage: QueueStorage;
  /** Its name, one queue for each person: `waypost.fixes`. */
  name?: string | undefined;
  /** How many fixes are kept before the oldest are dropped: 10,000. */
  capacity?: number | undefined;
  /** How many are sent at a time: 100, the maximum accepted. */
  batch?: number | undefined;
  /** Called with the error that ended a round of `start`. The console unless given. */
  onError?: ((error: unknown) => void) | undefined;
  /** Called with the result of each round of `start`. */
  onFlush?: ((result: FlushResult) => void) | undefined;
}

/** The result of a round. */
export interface FlushResult {
  /** How many arrived this time. */
  sent: number;
  /** How many fixes wait. */
  waiting: number;
  /** How many were rejected and are parked. */
  parked: number;
  /** The milliseconds before the next attempt; absent if none are needed. */
  retryAfterMs?: number;
}

const FIRST_MS = 1_000;
const MOST_MS = 300_000;

/**
 * Keeps a phone's fixes until they arrive, and sends them in arrays, oldest first. They survive
 * the app's end with the same times and keys, so that none is lost or accepted twice. The queue
 * waits out the hourly limit, and parks rejected fixes, which block nothing else.
 */
export class LocationQueue {
  readonly #http: Http;
  readonly #options: QueueOptions;
  readonly #store: Store;
  readonly #state: State;
  readonly #items: Item[];
  #next: number;
  #savedHead: number;
  #flushing: Promise<FlushResult> | undefined;
  /** For a batch rejected without naming a fix: how many of it are left, and how many to send at a time. */
  #suspects = { left: 0, atOnce: Infinity };
  #timer: unknown;
  #started = false;

  private constructor(http: Http, options: QueueOptions, store: Store, loaded: Loaded) {
    this.#http = http;
    this.#options = options;
    this.#store = store;
    this.#state = loaded.state;
    this.#items = loaded.items;
    this.#next = loaded.next;
    this.#savedHead = loaded.state.head;
  }

  /** @internal */
  static async open(http: Http, options: QueueOptions): Promise<LocationQueue> {
    const store = new Store(options.storage, options.name ?? "waypost.fixes");
    return new LocationQueue(http, options, store, await store.load());
  }

  /** How many fixes wait. */
  get waiting(): number {
    return this.#items.length;
  }

  /** How many were dropped because the queue was full. */
  get dropped(): number {
    return this.#state.dropped;
  }

  /** The rejected fixes, oldest first. */
  get parked(): readonly ParkedFix[] {
    return this.#state.parked;
  }

  /** Adds a fix; it is on disk when this resolves. `recorded_at` defaults to now. */
  async add(fix: Fix): Promise<void> {
    if (!Number.isFinite(fix.lat) || !Number.isFinite(fix.lng)) {
      throw new InvalidArgumentError("lat and lng must be finite numbers");
    }
    const recorded_at = this.#ownInstant(fix.recorded_at);
    const seq = this.#next;
    this.#next += 1;
    this.#items.push({ seq, fix: { ...fix, recorded_at } });
    const known = new Map(this.#items.map((item) => [item.seq, item.fix]));
    await this.#store.saveFix(seq, (at) => known.get(at) ?? null);
    const surplus = this.#items.length - (this.#options.capacity ?? 10_000);
    if (surplus > 0) {
      this.#state.dropped += surplus;
      await this.#remove(this.#items.slice(0, surplus));
    }
    this.#schedule();
  }

  /**
   * Sends what may be sent. Also resolves if nothing could be: `retryAfterMs` then says when to
   * try again. Rejects with `UnauthorizedError` if a new token did not help either.
   */
  async flush(options: { signal?: AbortSignalLike | undefined } = {}): Promise<FlushResult> {
    this.#flushing ??= this.#flush(options.signal).finally(() => (this.#flushing = undefined));
    return this.#flushing;
  }

  /** Sends automatically from now on: soon after each fix, and when a wait is over. */
  start(): void {
    this.#started = true;
    this.#schedule();
  }

  /** Stops sending automatically. */
  stop(): void {
    this.#started = false;
    platform.clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** Queues a parked fix again, as the last one. */
  async retryParked(index: number): Promise<void> {
    const [parked] = this.#state.parked.splice(index, 1);
    if (parked) {
      await this.add(parked.fix);
      await this.#save();
    }
  }

  /** Discards a parked fix. */
  async dropParked(index: number): Promise<void> {
    this.#state.parked.splice(index, 1);
    await this.#save();
  }

  async #flush(signal: AbortSignalLike | undefined): Promise<FlushResult> {
    const state = this.#state;
    let sent = 0;
    while (this.#items.length > 0 && this.#now() >= state.until) {
      if (signal?.aborted) {
        throw abortReason(signal);
      }
      const { key, items } = await this.#batch();
      try {
        await this.#send(key, items, signal);
        sent += items.length;
        state.failed = 0;
        await this.#remove(items);
      } catch (error) {
        await this.#refused(error, items, signal);
      }
    }
    const leftMs = state.until - this.#now();
    return {
      sent,
      waiting: this.#items.length,
      parked: state.parked.length,
      ...(this.#items.length > 0 && leftMs > 0 ? { retryAfterMs: leftMs } : {}),
    };
  }

  /** The next batch: the one that may have arrived, unchanged, or the oldest that may be sent. On disk first. */
  async #batch(): Promise<{ key: string; items: Item[] }> {
    const state = this.#state;
    const before = state.batch;
    if (before) {
      const seqs = new Set(before.seqs);
      const items = this.#items.filter((item) => seqs.has(item.seq));
      if (items.length === before.seqs.length) {
        return { key: before.key, items };
      }
    }
    const { left } = state;
    const allowed = left && left.until > this.#now() && left.fixes > 0 ? left.fixes : Infinity;
    const most = Math.min(this.#options.batch ?? 100, 100, allowed, this.#suspects.atOnce);
    const items = this.#items.slice(0, most);
    state.batch = { key: unique(), seqs: items.map((item) => item.seq) };
    await this.#save();
    return { key: state.batch.key, items };
  }

  async #send(key: string, items: Item[], signal: AbortSignalLike | undefined): Promise<void> {
    const call = {
      operation: operations.updateLocation,
      body: items.map((item) => item.fix),
      options: { signal, idempotencyKey: key, maxRetries: 0 },
    };
    await this.#http.json(call, (headers) => this.#learn(headers));
  }

  /** Records what is left of the hourly limit; if nothing is, when it resets. */
  #learn(headers: HeadersLike): void {
    const limit = rateLimit(headers);
    if (limit) {
      const until = this.#now() + limit.resetMs;
      this.#state.left = { fixes: limit.remaining, until };
      this.#state.until = limit.remaining === 0 ? until : 0;
    } else {
      this.#state.left = undefined;
      this.#state.until = 0;
    }
  }

  async #refused(
    error: unknown,
    items: Item[],
    signal: AbortSignalLike | undefined,
  ): Promise<void> {
    if (signal?.aborted) {
      throw abortReason(signal);
    }
    if (error instanceof UnauthorizedError) {
      throw error;
    }
    if (error instanceof ApiError && error.status === 429) {
      await this.#limited(error, items);
    } else if (passes(error) || (error instanceof ApiError && error.status >= 500)) {
      await this.#later(error);
    } else if (error instanceof ApiError && error.status >= 400) {
      await this.#narrow(error, items);
    } else {
      // A bug in this program, or an invalid response: nothing is lost by trying later.
      await this.#later(error);
      throw error;
    }
  }

  /** The hourly limit is reached: uses what is left of it, or waits for more. */
  async #limited(error: ApiError, items: Item[]): Promise<void> {
    const limit = rateLimit(error.headers);
    if (limit && limit.remaining > 0 && limit.remaining < items.length) {
      this.#learn(error.headers);
      this.#state.batch = undefined;
      await this.#save();
    } else {
      await this.#later(error, limit?.resetMs);
    }
  }

  async #later(error: unknown, otherwiseMs?: number): Promise<void> {
    const state = this.#state;
    const asked = error instanceof ApiError ? error.retryAfterMs : undefined;
    const { clock } = this.#http.settings;
    state.until =
      this.#now() + (asked ?? otherwiseMs ?? backoff(state.failed, clock, MOST_MS, FIRST_MS));
    state.failed += error instanceof ConnectionFailedError || asked === undefined ? 1 : 0;
    await this.#save();
  }

  /** Finds out which fix is at fault, and parks it. */
  async #narrow(error: ApiError, items: Item[]): Promise<void> {
    const named = namedIndices(error.message).flatMap((index) => items[index] ?? []);
    const quota = policyQuota(error.headers);
    if (named.length > 0 || items.length === 1) {
      const at = named.length > 0 ? named : items;
      const { status, message } = error;
      this.#state.parked.push(...at.map(({ fix }) => ({ fix, status, message })));
      await this.#remove(at);
    } else {
      const tooMany = quota !== undefined && quota > 0 && quota < items.length;
      const atOnce = tooMany ? quota : Math.ceil(items.length / 2);
      this.#suspects = { left: items.length, atOnce };
      this.#state.batch = undefined;
      await this.#save();
    }
  }

  /** Removes done or parked fixes from the queue. */
  async #remove(items: Item[]): Promise<void> {
    const state = this.#state;
    const gone = new Set(items.map((item) => item.seq));
    state.batch = undefined;
    const kept = this.#items.filter((item) => !gone.has(item.seq));
    this.#items.splice(0, this.#items.length, ...kept);
    const waiting = new Set(kept.map((item) => item.seq));
    state.head = kept[0]?.seq ?? this.#next;
    const done = [...state.done, ...gone].filter((seq) => seq >= state.head && !waiting.has(seq));
    state.done = [...new Set(done)];
    this.#suspects.left -= items.length;
    if (this.#suspects.left <= 0) {
      this.#suspects.atOnce = Infinity;
    }
    await this.#save();
  }

  async #save(): Promise<void> {
    const before = this.#savedHead;
    this.#savedHead = this.#state.head;
    await this.#store.saveState(this.#state, before);
  }

  /** A time that no other waiting fix has: a person has one fix for each instant. */
  #ownInstant(given: string | null | undefined): string {
    const taken = new Set(this.#items.map((item) => Date.parse(item.fix.recorded_at)));
    const wished = given ? Date.parse(given) : this.#now();
    let instant = wished;
    while (taken.has(instant)) {
      instant += 1;
    }
    return given && instant === wished ? given : new Date(instant).toISOString();
  }

  #schedule(): void {
    if (!this.#started || this.#timer !== undefined || this.#items.length === 0) {
      return;
    }
    // Fixes added together are sent together.
    const inMs = Math.max(SOON_MS, this.#state.until - this.#now());
    this.#timer = platform.setTimeout(() => void this.#round(), Math.min(inMs, 2 ** 31 - 1));
  }

  async #round(): Promise<void> {
    try {
      this.#options.onFlush?.(await this.flush());
    } catch (error) {
      // A rejected token is not requested over and over: the next fix tries.
      this.stop();
      this.#started = true;
      this.#report(error);
      return;
    }
    this.#timer = undefined;
    this.#schedule();
  }

  #report(error: unknown): void {
    (this.#options.onError ?? ((what) => platform.console.error("waypost:", what)))(error);
  }

  #now(): number {
    return this.#http.settings.clock.now();
  }
}

type Loaded = Awaited<ReturnType<Store["load"]>>;

const SOON_MS = 50;

/** What is left of the hourly limit, and in how many milliseconds it resets. */
function rateLimit(headers: HeadersLike): { remaining: number; resetMs: number } | undefined {
  const found = /"locations"\s*;\s*r=(\d+)\s*;\s*t=(\d+)/.exec(headers.get("ratelimit") ?? "");
  return found ? { remaining: Number(found[1]), resetMs: Number(found[2]) * 1000 } : undefined;
}

/** The hourly limit of positions. */
function policyQuota(headers: HeadersLike): number | undefined {
  const found = /"locations"\s*;\s*q=(\d+)/.exec(headers.get("ratelimit-policy") ?? "");
  return found ? Number(found[1]) : undefined;
}

/** The indices that a rejection names: `[2].lat: must be …; [4].lng: …`. */
function namedIndices(message: string): number[] {
  const named = message.matchAll(/(?:^|; )\[(\d+)\]/g);
  return [...new Set(Array.from(named, (match) => Number(match[1])))];
}
