import { isBehind } from "./positions.js";
import type { AbortSignalLike } from "./platform.js";

/** What can be subscribed to. People have `locations`, `places` and `sos`; keys have all. */
export type Channel = "locations" | "places" | "sos" | "runs" | "events";

/** What a subscription tells. */
export type Told =
  /** What is latest; the first of a subscription without `after`, and after a `reset`. */
  | { kind: "snapshot"; data: Record<string, unknown>[] }
  /** Something happened. */
  | { kind: "event"; position: string; type: string; time: string; data: Record<string, unknown> }
  /** Of the positions between, only the newest of each person follow: this client was too slow. */
  | { kind: "conflated"; from: string; to: string }
  /** What was missed cannot be told any more: a snapshot follows, and what was known is to be read anew. */
  | { kind: "reset" };

/** How a subscription is made. */
export interface SubscribeOptions {
  /** The position behind which to go on. Without it a snapshot comes first. */
  after?: string | undefined;
  /** Ends the subscription. */
  signal?: AbortSignalLike | undefined;
  /** Is told, in place of whoever walks the subscription. What it throws goes to the socket's `onError`. */
  onTold?: ((told: Told) => unknown) | undefined;
  /** Is told once if the subscription ends with an error. */
  onEnd?: ((error: unknown) => void) | undefined;
}

/** A frame of the server's. */
export interface Frame {
  type?: string;
  id?: string;
  position?: string;
  data?: Record<string, unknown>[];
  event?: { type: string; time: string; data: Record<string, unknown> };
  from?: string;
  to?: string;
  error?: string;
}

/** What waits to be taken before no more is asked for, and when it is asked for again. */
const MOST = 1_000;
const FEW = 100;

/** What a subscription needs of its socket. */
export interface Line {
  subscribe(subscription: Subscription): void;
  unsubscribe(subscription: Subscription): void;
  leave(subscription: Subscription): void;
  report(error: unknown): void;
}

/** A channel's events, resumed behind the last one after any break. Walk it, or give it `onTold`. */
export class Subscription implements AsyncIterable<Told> {
  readonly channel: Channel;
  /** @internal */
  readonly id: string;
  readonly #line: Line;
  readonly #options: SubscribeOptions;
  readonly #waiting: { told: Told; place: string | undefined }[] = [];
  #place: string | undefined;
  #begun: string | undefined;
  #position: string | undefined;
  #wake: (() => void) | undefined;
  #ended = false;
  #error: unknown;
  #paused = false;

  /** @internal */
  constructor(line: Line, id: string, channel: Channel, options: SubscribeOptions) {
    this.#line = line;
    this.id = id;
    this.channel = channel;
    this.#options = options;
    this.#place = this.#position = options.after;
    options.signal?.addEventListener("abort", this.#aborted);
  }

  /** The position up to which all was taken: what to give as `after` next time. */
  get position(): string | undefined {
    return this.#position;
  }

  /** Whether it is over. */
  get ended(): boolean {
    return this.#ended;
  }

  /** Ends it. */
  unsubscribe(): void {
    if (!this.#ended) {
      this.#end(undefined);
      this.#line.leave(this);
    }
  }

  /** Walks it; whoever stops walking ends it. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Told, void, undefined> {
    try {
      for (;;) {
        const next = this.#waiting.shift();
        if (next) {
          this.#took(next.place);
          yield next.told;
        } else if (this.#ended) {
          break;
        } else {
          await new Promise<void>((resolve) => (this.#wake = resolve));
        }
      }
      if (this.#error !== undefined) {
        throw this.#error;
      }
    } finally {
      this.unsubscribe();
    }
  }

  /** @internal The frame that asks for it, or for what follows. */
  frame(): string {
    this.#begun = undefined;
    const { id, channel } = this;
    return JSON.stringify({ type: "subscribe", id, channel, after: this.#place });
  }

  /** @internal Whether it wants events now. */
  get wanted(): boolean {
    return !this.#ended && !this.#paused;
  }

  /** @internal What the server says of it. */
  hear(frame: Frame): void {
    const { type, position, event } = frame;
    if (!this.wanted) {
      return;
    }
    if (type === "subscribed" && position !== undefined) {
      this.#begun = position;
    } else if (type === "reset") {
      // What was known is worth nothing: after a break before the snapshot it begins anew.
      this.#place = undefined;
      this.#tell({ kind: "reset" });
    } else if (this.#begun === undefined) {
      // Still of the subscription of this name that was ended a moment ago.
    } else if (type === "snapshot") {
      this.#place = this.#begun;
      this.#tell({ kind: "snapshot", data: frame.data ?? [] });
    } else if (type === "event" && event && position !== undefined && this.#isNew(position)) {
      this.#place = position;
      this.#tell({ kind: "event", position, type: event.type, time: event.time, data: event.data });
    } else if (type === "conflated") {
      this.#tell({ kind: "conflated", from: frame.from ?? "", to: frame.to ?? "" });
    }
  }

  /** @internal Ends it with an error. */
  fail(error: unknown): void {
    if (!this.#ended) {
      this.#end(error);
      if (this.#options.onEnd) {
        this.#guard(() => this.#options.onEnd?.(error));
      } else if (this.#options.onTold) {
        this.#line.report(error);
      }
    }
  }

  #isNew(position: string): boolean {
    const place = this.#place;
    return place === undefined || (position !== place && isBehind(position, place) !== false);
  }

  #tell(told: Told): void {
    const { onTold } = this.#options;
    if (onTold) {
      this.#guard(() => onTold(told));
      this.#took(this.#place);
      return;
    }
    this.#waiting.push({ told, place: this.#place });
    this.#wake?.();
    if (this.#waiting.length >= MOST && !this.#paused) {
      // Nothing holds a WebSocket back: it is asked for nothing more until this was taken.
      this.#paused = true;
      this.#line.unsubscribe(this);
    }
  }

  #took(place: string | undefined): void {
    this.#position = place ?? this.#position;
    if (this.#paused && this.#waiting.length <= FEW && !this.#ended) {
      this.#paused = false;
      this.#line.subscribe(this);
    }
  }

  #guard(call: () => unknown): void {
    try {
      const done = call();
      if (done instanceof Promise) {
        done.catch((error: unknown) => this.#line.report(error));
      }
    } catch (error) {
      this.#line.report(error);
    }
  }

  #end(error: unknown): void {
    this.#ended = true;
    this.#error = error;
    this.#options.signal?.removeEventListener("abort", this.#aborted);
    this.#wake?.();
  }

  readonly #aborted = (): void => this.unsubscribe();
}
