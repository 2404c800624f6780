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

/** A socket's status. `paused`: the app is in the background. */
export type SocketStatus = "idle" | "connecting" | "open" | "waiting" | "paused" | "closed";

/** Options of a socket. */
export interface SocketOptions {
  /** React Native's `AppState`: the socket closes in the background and returns with the app. */
  appState?: AppStateLike | undefined;
  /** After how much silence the connection is probed, in milliseconds: 25,000. */
  pingMs?: number | undefined;
  /** How long the reply to that may take, in milliseconds: 10,000. */
  pongMs?: number | undefined;
  /** Called with each new status. */
  onStatus?: ((status: SocketStatus) => void) | undefined;
  /** Called with what callbacks throw and with errors from the server. The console unless given. */
  onError?: ((error: unknown) => void) | undefined;
}

/** The longest wait between two connections. */
const MOST_MS = 20_000;
/** How long a reply may take when the app is back: a frozen socket looks open. */
const BACK_MS = 2_000;
const TOKEN_CODES = [3500, 3501];

/**
 * A connection that reconnects after any break, for up to 16 subscriptions. It is open while there
 * are subscriptions, renews its token before it expires, and notices a silently dead connection.
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

  /** The current status. */
  get status(): SocketStatus {
    return this.#status;
  }

  /** Subscribes to a channel. */
  subscribe(channel: Channel, options: SubscribeOptions = {}): Subscription {
    if (this.#status === "closed") {
      throw new InvalidArgumentError("the socket was closed: make another one");
    }
    const host = {
      subscribe: (one: Subscription) => this.#send(one.frame()),
      unsubscribe: (one: Subscription) => this.#sendUnsubscribe(one),
      leave: (one: Subscription) => this.#leave(one),
      report: (error: unknown) => this.#report(error),
    };
    this.#named += 1;
    const subscription = new Subscription(host, `s${this.#named}`, channel, options);
    if (options.signal?.aborted) {
      subscription.unsubscribe();
      return subscription;
    }
    this.#subscriptions.set(subscription.id, subscription);
    this.#send(subscription.frame());
    this.#start();
    return subscription;
  }

  /** Closes it and ends all subscriptions. */
  close(): void {
    for (const subscription of [...this.#subscriptions.values()]) {
      subscription.unsubscribe();
    }
    this.#stop("closed");
  }

  /** Probes the connection, and replaces it if no reply arrives in time. */
  check(timeoutMs = this.#options.pongMs ?? 10_000): void {
    if (this.#connection) {
      this.#connection.check(timeoutMs);
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

  /** Stays connected while there are subscriptions. */
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
        // The app left and is back already, or there is a new subscription.
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
    this.#setStatus("connecting");
    const connection = new Connection(this.#settings, this.#credential, this.#options, {
      ready: () => {
        this.#setStatus("open");
        this.#subscribeAll();
      },
      frame: (frame) => this.#receive(frame),
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
    this.#setStatus("waiting");
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

  #receive(frame: Frame): void {
    const subscription = frame.id === undefined ? undefined : this.#subscriptions.get(frame.id);
    if (frame.type !== "error") {
      subscription?.receive(frame);
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

  #sendUnsubscribe({ id }: Subscription): void {
    this.#send(JSON.stringify({ type: "unsubscribe", id }));
  }

  #leave(subscription: Subscription): void {
    if (this.#subscriptions.delete(subscription.id)) {
      this.#sendUnsubscribe(subscription);
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
      this.#setStatus(status);
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
      this.#setStatus("paused");
      this.#wait?.abort();
      this.#connection?.end();
    } else {
      this.#start();
    }
  }

  #setStatus(status: SocketStatus): void {
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
      // Reporting an error of the reporter would never end.
    }
  }
}

/** The reason not to reconnect, if any. */
function fatal({ code, reason, error }: Ended): unknown {
  if (error !== undefined) {
    return passes(error) ? undefined : error;
  }
  return code >= 3500 && code < 4000 ? new SocketClosedError(code, reason) : undefined;
}
