import { Connection, type Ended } from "./connection.js";
import type { Credential } from "./credential.js";
import {
  InvalidArgumentError,
  SocketClosedError,
  SubscriptionRefusedError,
  UnsupportedError,
} from "./errors.js";
import { type AppStateLike, platform } from "./platform.js";
import { watchPlatform } from "./presence.js";
import { backoff, passes } from "./retry.js";
import type { Settings } from "./settings.js";
import { type Channel, type Frame, type SubscribeOptions, Subscription } from "./subscription.js";

/** How a socket stands. `paused`: the app is in the background. */
export type SocketStatus = "idle" | "connecting" | "open" | "waiting" | "paused" | "closed";

/** How a socket is made. */
export interface SocketOptions {
  /** React Native's `AppState`: the socket closes in the background and is back when the app is. */
  appState?: AppStateLike | undefined;
  /** After how much silence the connection is tried, in milliseconds: 25,000. */
  pingMs?: number | undefined;
  /** How long an answer to that may take, in milliseconds: 10,000. */
  pongMs?: number | undefined;
  /** Is told how it stands. */
  onStatus?: ((status: SocketStatus) => void) | undefined;
  /** Is told of what callbacks throw and of what the server complains about. The console unless given. */
  onError?: ((error: unknown) => void) | undefined;
}

/** The longest wait between two connections. */
const MOST_MS = 20_000;
/** How long an answer may take when the app comes back: a frozen socket looks open. */
const BACK_MS = 2_000;
const TOKEN_CODES = [3500, 3501];

/**
 * A connection that comes back after any break, for up to 16 subscriptions. It is there while there
 * are subscriptions, renews its token before it ends, and notices a connection that died in silence.
 */
export class Socket {
  readonly #settings: Settings;
  readonly #credential: Credential;
  readonly #options: SocketOptions;
  readonly #subscriptions = new Map<string, Subscription>();
  #status: SocketStatus = "idle";
  #connection: Connection | undefined;
  #running = false;
  #wait: { abort(): void } | undefined;
  #inBackground = false;
  #unwatch: (() => void) | undefined;
  #named = 0;

  /** @internal */
  constructor(settings: Settings, credential: Credential, options: SocketOptions) {
    if (!settings.WebSocket) {
      throw new UnsupportedError(
        "this platform has no WebSocket: pass one in `WebSocket`, on Node before version 22 that of the package ws",
      );
    }
    this.#settings = settings;
    this.#credential = credential;
    this.#options = options;
  }

  /** How it stands. */
  get status(): SocketStatus {
    return this.#status;
  }

  /** Subscribes to a channel. */
  subscribe(channel: Channel, options: SubscribeOptions = {}): Subscription {
    if (this.#status === "closed") {
      throw new InvalidArgumentError("the socket was closed: make another one");
    }
    const line = {
      subscribe: (one: Subscription) => this.#send(one.frame()),
      unsubscribe: (one: Subscription) => this.#sayNoMore(one),
      leave: (one: Subscription) => this.#leave(one),
      report: (error: unknown) => this.#report(error),
    };
    this.#named += 1;
    const subscription = new Subscription(line, `s${this.#named}`, channel, options);
    if (options.signal?.aborted) {
      subscription.unsubscribe();
      return subscription;
    }
    this.#subscriptions.set(subscription.id, subscription);
    this.#send(subscription.frame());
    this.#start();
    return subscription;
  }

  /** Ends it and all subscriptions. */
  close(): void {
    for (const subscription of [...this.#subscriptions.values()]) {
      subscription.unsubscribe();
    }
    this.#stop("closed");
  }

  /** Tries whether the connection lives; one that says nothing in time is replaced. */
  check(patienceMs = this.#options.pongMs ?? 10_000): void {
    if (this.#connection) {
      this.#connection.check(patienceMs);
    } else {
      this.#wait?.abort();
    }
  }

  #start(): void {
    this.#unwatch ??= watchPlatform(this.#options.appState, {
      away: () => this.#background(true),
      back: () => this.#background(false),
      changed: () => this.check(BACK_MS),
    });
    if (!this.#running && !this.#inBackground) {
      this.#running = true;
      void this.#run();
    }
  }

  /** Connects for as long as somebody wants to hear something. */
  async #run(): Promise<void> {
    let failed = 0;
    let renewed = false;
    while (this.#subscriptions.size > 0 && !this.#inBackground) {
      const ended = await this.#connectOnce();
      if (ended.wasReady) {
        failed = 0;
        renewed = false;
      }
      if (this.#subscriptions.size === 0 || this.#inBackground) {
        break;
      }
      if (ended.ours) {
        // The app went away and is back already, or somebody else subscribes.
        continue;
      }
      if (ended.token !== undefined && TOKEN_CODES.includes(ended.code) && !renewed) {
        renewed = true;
        if (await this.#renew(ended.token)) {
          continue;
        }
      }
      const error = fatal(ended);
      if (error !== undefined) {
        this.#failAll(error);
        break;
      }
      await this.#pause(failed);
      failed += 1;
    }
    this.#running = false;
    if (this.#subscriptions.size === 0) {
      this.#stop("idle");
    }
  }

  async #connectOnce(): Promise<Ended> {
    this.#say("connecting");
    const connection = new Connection(this.#settings, this.#credential, this.#options, {
      ready: () => {
        this.#say("open");
        this.#subscribeAll();
      },
      frame: (frame) => this.#hear(frame),
      report: (error) => this.#report(error),
    });
    this.#connection = connection;
    const ended = await connection.ended;
    this.#connection = undefined;
    return ended;
  }

  async #renew(stale: string): Promise<boolean> {
    if (!this.#credential.renewable) {
      return false;
    }
    try {
      return (await this.#credential.renew(stale)) !== stale;
    } catch (error) {
      this.#report(error);
      return false;
    }
  }

  async #pause(failed: number): Promise<void> {
    const { clock } = this.#settings;
    const waiting = new platform.AbortController();
    this.#wait = waiting;
    this.#say("waiting");
    await clock.sleep(backoff(failed, clock, MOST_MS), waiting.signal);
    this.#wait = undefined;
  }

  #subscribeAll(): void {
    for (const subscription of this.#subscriptions.values()) {
      if (subscription.wanted) {
        this.#send(subscription.frame());
      }
    }
  }

  #hear(frame: Frame): void {
    const subscription = frame.id === undefined ? undefined : this.#subscriptions.get(frame.id);
    if (frame.type !== "error") {
      subscription?.hear(frame);
    } else if (subscription?.wanted) {
      this.#subscriptions.delete(subscription.id);
      subscription.fail(new SubscriptionRefusedError(frame.error));
      this.#leaveIfIdle();
    } else if (frame.id === undefined) {
      this.#report(new Error(`the server says of the socket: ${frame.error}`));
    }
  }

  #send(frame: string): void {
    if (this.#connection?.isReady) {
      this.#connection.send(frame);
    }
  }

  #sayNoMore({ id }: Subscription): void {
    this.#send(JSON.stringify({ type: "unsubscribe", id }));
  }

  #leave(subscription: Subscription): void {
    if (this.#subscriptions.delete(subscription.id)) {
      this.#sayNoMore(subscription);
      this.#leaveIfIdle();
    }
  }

  #leaveIfIdle(): void {
    if (this.#subscriptions.size === 0) {
      this.#stop("idle");
    }
  }

  #failAll(error: unknown): void {
    const all = [...this.#subscriptions.values()];
    this.#subscriptions.clear();
    for (const subscription of all) {
      subscription.fail(error);
    }
  }

  #stop(status: SocketStatus): void {
    this.#unwatch?.();
    this.#unwatch = undefined;
    this.#inBackground = false;
    this.#wait?.abort();
    this.#connection?.end();
    if (this.#status !== "closed") {
      this.#say(status);
    }
  }

  #background(away: boolean): void {
    if (this.#inBackground === away) {
      if (!away) {
        this.check(BACK_MS);
      }
      return;
    }
    this.#inBackground = away;
    if (away) {
      this.#say("paused");
      this.#wait?.abort();
      this.#connection?.end();
    } else {
      this.#start();
    }
  }

  #say(status: SocketStatus): void {
    if (this.#status !== status) {
      this.#status = status;
      try {
        this.#options.onStatus?.(status);
      } catch (error) {
        this.#report(error);
      }
    }
  }

  #report(error: unknown): void {
    try {
      (this.#options.onError ?? ((what) => platform.console.error("waypost:", what)))(error);
    } catch {
      // A report of what a report threw would not end.
    }
  }
}

/** Why no other connection is to be made, if so. */
function fatal({ code, reason, error }: Ended): unknown {
  if (error !== undefined) {
    return passes(error) ? undefined : error;
  }
  return code >= 3500 && code < 4000 ? new SocketClosedError(code, reason) : undefined;
}
