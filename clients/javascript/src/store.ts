import type { Fix } from "./types.js";

/** The storage of a queue: React Native's AsyncStorage and a page's localStorage have this form. */
export interface QueueStorage {
  getItem(key: string): string | null | Promise<string | null>;
  setItem(key: string, value: string): void | Promise<void>;
  removeItem(key: string): void | Promise<void>;
}

/** A waiting fix, with its own number. */
export interface Item {
  seq: number;
  fix: Fix & { recorded_at: string };
}

/** A fix that the server rejected, and why. It is not resent automatically. */
export interface ParkedFix {
  fix: Fix & { recorded_at: string };
  status: number;
  message: string;
}

/** A queue's state besides the fixes themselves. */
export interface State {
  /** The number of the first fix that may wait; those before are done. */
  head: number;
  /** Fixes after the first that are done too. */
  done: number[];
  /** The batch that was sent and may have arrived: it is resent under the same key. */
  batch: { key: string; seqs: number[] } | undefined;
  /** Nothing is sent before this time, in milliseconds since 1970. */
  until: number;
  /** What the last response left of the hour, and until when that holds. */
  left: { fixes: number; until: number } | undefined;
  /** Consecutive failures. */
  failed: number;
  parked: ParkedFix[];
  /** How many were dropped because the queue was full. */
  dropped: number;
}

/** Fixes under one key of the storage: adding one writes no more than these. */
const TOGETHER = 50;

/**
 * The fixes and the state of a queue in a storage. Fixes are stored in groups; the state, which is
 * one write, says which are done: after a crash at any moment nothing is lost.
 */
export class Store {
  readonly #storage: QueueStorage;
  readonly #name: string;
  #writing: Promise<void> = Promise.resolve();

  constructor(storage: QueueStorage, name: string) {
    this.#storage = storage;
    this.#name = name;
  }

  /** Loads the state and the waiting fixes. */
  async load(): Promise<{ state: State; items: Item[]; next: number }> {
    const text = await this.#storage.getItem(this.#name);
    const state: State = { ...EMPTY(), ...(text === null ? {} : (JSON.parse(text) as State)) };
    const done = new Set(state.done);
    const items: Item[] = [];
    let next = state.head;
    for (let nth = Math.floor(state.head / TOGETHER); ; nth += 1) {
      const stored = await this.#storage.getItem(this.#key(nth));
      if (stored === null) {
        break;
      }
      const fixes = JSON.parse(stored) as (Item["fix"] | null)[];
      fixes.forEach((fix, at) => {
        const seq = nth * TOGETHER + at;
        next = Math.max(next, seq + 1);
        if (fix && seq >= state.head && !done.has(seq)) {
          items.push({ seq, fix });
        }
      });
    }
    return { state, items, next };
  }

  /** Writes the fixes stored together with number `seq`, which `of` returns. */
  saveFix(seq: number, of: (seq: number) => Item["fix"] | null): Promise<void> {
    return this.#write(() => {
      const nth = Math.floor(seq / TOGETHER);
      const fixes: (Item["fix"] | null)[] = [];
      for (let at = nth * TOGETHER; at <= seq; at += 1) {
        fixes.push(of(at));
      }
      return this.#storage.setItem(this.#key(nth), JSON.stringify(fixes));
    });
  }

  /** Writes the state, and removes fixes that are done since `head` was `before`. */
  saveState(state: State, before: number): Promise<void> {
    return this.#write(async () => {
      await this.#storage.setItem(this.#name, JSON.stringify(state));
      const [first, last] = [before, state.head].map((seq) => Math.floor(seq / TOGETHER));
      for (let nth = first ?? 0; nth < (last ?? 0); nth += 1) {
        await this.#storage.removeItem(this.#key(nth));
      }
    });
  }

  /** Writes one after another: of two at once, either could win. */
  #write(write: () => void | Promise<void>): Promise<void> {
    const written = this.#writing.then(write);
    this.#writing = written.catch(() => undefined);
    return written;
  }

  #key(nth: number): string {
    return `${this.#name}.${nth}`;
  }
}

const EMPTY = (): State => ({
  head: 0,
  done: [],
  batch: undefined,
  until: 0,
  left: undefined,
  failed: 0,
  parked: [],
  dropped: 0,
});
