import { isBehind } from "./positions.js";
import type { AbortSignalLike } from "./platform.js";

/** A channel to subscribe to. People have `locations`, `places` and `sos`; keys have all. */
export type Channel = "locations" | "places" | "sos" | "runs" | "events";

/** An item of a subscription. */
export type SubscriptionItem =
  /** The current state; the first of a subscription without `after`, and after a `reset`. */
  | { kind: "snapshot"; data: Record<string, unknown>[] }
  /** Something happened. */
  | { kind: "event"; position: string; type: string; time: string; data: Record<string, unknown> }
  /** This client was too slow: of the positions between, only each person's newest follow. */
  | { kind: "conflated"; from: string; to: string }
  /** Missed events are no longer available: a snapshot follows, and what was known must be read again. */
  | { kind: "reset" };

/** Options of a subscription. */
export interface SubscribeOptions {
  /** The position to resume after. Without it a snapshot comes first. */
  after?: string | undefined;
  /** Ends the subscription. */
  signal?: AbortSignalLike | undefined;
  /** Called with each item, instead of iteration. What it throws goes to the socket's `onError`. */
  onItem?: ((item: SubscriptionItem) => unknown) | undefined;
  /** Called once if the subscription ends with an error. */
  onEnd?: ((error: unknown) => void) | undefined;
}

/** A frame from the server. */
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

/** At how many unread items no more are requested, and at how many they are again. */
const MOST = 1_000;
const FEW = 100;

/** What a subscription needs of its socket. */
export interface SubscriptionHost {
  subscribe(subscription: Subscription): void;
  unsubscribe(subscription: Subscription): void;
  leave(subscription: Subscription): void;
  report(error: unknown): void;
}

/** A channel's events, resumed from the last one after any break. Iterate over it or pass `onItem`. */
export class Subscription implements AsyncIterable<SubscriptionItem> {
  readonly channel: Channel;
  /** @internal */
  readonly id: string;
  readonly #host: SubscriptionHost;
  readonly #options: SubscribeOptions;
  readonly #waiting: { item: SubscriptionItem; place: string | undefined }[] = [];
  #place: string | undefined;
  #begun: string | undefined;
  #position: string | undefined;
  #wake: (() => void) | undefined;
  #ended = false;
  #error: unknown;
  #paused = false;

  /** @internal */
  constructor(host: SubscriptionHost, id: string, channel: Channel, options: SubscribeOptions) {
    this.#host = host;
    this.id = id;
    this.channel = channel;
    this.#options = options;
    this.#place = this.#position = options.after;
    options.signal?.addEventListener("abort", this.#aborted);
  }

  /** The position up to which all was read: pass it as `after` next time. */
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
      this.#host.leave(this);
    }
  }

  /** Iterates over it; stopping ends it. */
  async *[Symbol.asyncIterator](): AsyncGenerator<SubscriptionItem, void, undefined> {
    try {
      for (;;) {
        const next = this.#waiting.shift();
        if (next) {
          this.#advance(next.place);
          yield next.item;
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

  /** @internal The frame that requests it, or what follows. */
  frame(): string {
    this.#begun = undefined;
    const { id, channel } = this;
    return JSON.stringify({ type: "subscribe", id, channel, after: this.#place });
  }

  /** @internal Whether it wants events now. */
  get wanted(): boolean {
    return !this.#ended && !this.#paused;
  }

  /** @internal Handles a frame for it. */
  receive(frame: Frame): void {
    const { type, position, event } = frame;
    if (!this.wanted) {
      return;
    }
    if (type === "subscribed" && position !== undefined) {
      this.#begun = position;
    } else if (type === "reset") {
      // What was known is void: after a break before the snapshot it starts over.
      this.#place = undefined;
      this.#emit({ kind: "reset" });
    } else if (this.#begun === undefined) {
      // Still from the subscription with this id that just ended.
    } else if (type === "snapshot") {
      this.#place = this.#begun;
      this.#emit({ kind: "snapshot", data: frame.data ?? [] });
    } else if (type === "event" && event && position !== undefined && this.#isNew(position)) {
      this.#place = position;
      this.#emit({ kind: "event", position, type: event.type, time: event.time, data: event.data });
    } else if (type === "conflated") {
      this.#emit({ kind: "conflated", from: frame.from ?? "", to: frame.to ?? "" });
    }
  }

  /** @internal Ends it with an error. */
  fail(error: unknown): void {
    if (!this.#ended) {
      this.#end(error);
      if (this.#options.onEnd) {
        this.#guard(() => this.#options.onEnd?.(error));
      } else if (this.#options.onItem) {
        this.#host.report(error);
      }
    }
  }

  #isNew(position: string): boolean {
    const place = this.#place;
    return place === undefined || (position !== place && isBehind(position, place) !== false);
  }

  #emit(item: SubscriptionItem): void {
    const { onItem } = this.#options;
    if (onItem) {
      this.#guard(() => onItem(item));
      this.#advance(this.#place);
      return;
    }
    this.#waiting.push({ item, place: this.#place });
    this.#wake?.();
    if (this.#waiting.length >= MOST && !this.#paused) {
      // A WebSocket has no backpressure: nothing more is requested until this was read.
      this.#paused = true;
      this.#host.unsubscribe(this);
    }
  }

  #advance(place: string | undefined): void {
    this.#position = place ?? this.#position;
    if (this.#paused && this.#waiting.length <= FEW && !this.#ended) {
      this.#paused = false;
      this.#host.subscribe(this);
    }
  }

  #guard(call: () => unknown): void {
    try {
      const done = call();
      if (done instanceof Promise) {
        done.catch((error: unknown) => this.#host.report(error));
      }
    } catch (error) {
      this.#host.report(error);
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
