import type { Credential } from "./credential.js";
import { platform, type WebSocketLike } from "./platform.js";
import type { Settings } from "./settings.js";
import type { SocketOptions } from "./socket.js";
import type { Frame } from "./subscription.js";

/** How a connection ended. */
export interface Ended {
  /** The close code; 1006 if it broke. */
  code: number;
  reason: string;
  /** Whether this side closed it. */
  ours: boolean;
  /** Whether the server had accepted it. */
  wasReady: boolean;
  /** The token that it started with or renewed to. */
  token: string | undefined;
  /** Why it could not start, such as a rejected sign-in. */
  error?: unknown;
}

/** Receives what happens on a connection. */
export interface Listener {
  ready(): void;
  frame(frame: Frame): void;
  report(error: unknown): void;
}

/** How long the server may take to accept it. */
const READY_MS = 15_000;
const RENEW_AGAIN_MS = 10_000;
const BROKEN = 1006;

/** One connection, from its first frame to its end. */
export class Connection {
  /** Resolves at its end; never rejects. */
  readonly ended: Promise<Ended>;
  readonly #settings: Settings;
  readonly #credential: Credential;
  readonly #options: SocketOptions;
  readonly #listener: Listener;
  #socket: WebSocketLike | undefined;
  #resolve: ((ended: Ended) => void) | undefined;
  #token: string | undefined;
  #ready = false;
  #ours = false;
  #watch: unknown;
  #renewal: unknown;

  constructor(
    settings: Settings,
    credential: Credential,
    options: SocketOptions,
    listener: Listener,
  ) {
    this.#settings = settings;
    this.#credential = credential;
    this.#options = options;
    this.#listener = listener;
    this.ended = new Promise((resolve) => (this.#resolve = resolve));
    this.#expect(READY_MS);
    void this.#open();
  }

  /** Whether the server has accepted it. */
  get isReady(): boolean {
    return this.#ready;
  }

  /** Sends a frame. */
  send(frame: string): void {
    try {
      this.#socket?.send(frame);
    } catch (error) {
      // Already closing: what is missing is requested on the next connection.
      this.#finish(BROKEN, String(error));
    }
  }

  /** Closes it. */
  end(): void {
    this.#ours = true;
    this.#finish(1000, "");
  }

  /** Probes the server; without a reply in time the connection counts as broken. */
  check(timeoutMs: number): void {
    if (this.#ready && this.#token !== undefined) {
      // Sends the same token again, which `ready` answers; any other frame has a cost.
      this.send(JSON.stringify({ type: "auth", token: this.#token }));
      this.#expect(timeoutMs);
    }
  }

  async #open(): Promise<void> {
    try {
      this.#token = await this.#credential.get();
    } catch (error) {
      this.#finish(BROKEN, "", error);
      return;
    }
    const { WebSocket, url } = this.#settings;
    if (!WebSocket || !this.#resolve) {
      return;
    }
    try {
      this.#listen(new WebSocket(`${url.replace(/^http/i, "ws")}/ws`));
    } catch (error) {
      this.#finish(BROKEN, "", error);
    }
  }

  #listen(socket: WebSocketLike): void {
    this.#socket = socket;
    socket.onopen = () => this.send(JSON.stringify({ type: "auth", token: this.#token ?? "" }));
    socket.onmessage = ({ data }: { data: unknown }) => this.#receive(data);
    // Some platforms report an error without closing.
    socket.onerror = () => platform.setTimeout(() => this.#finish(BROKEN, ""), 0);
    socket.onclose = ({ code, reason }: { code?: number; reason?: string }) =>
      this.#finish(code ?? BROKEN, reason ?? "");
  }

  #receive(data: unknown): void {
    if (!this.#resolve) {
      return;
    }
    this.#expectLater();
    const frame = parse(data);
    if (frame?.type !== "ready") {
      if (frame) {
        this.#listener.frame(frame);
      }
      return;
    }
    this.#planRenewal();
    if (!this.#ready) {
      this.#ready = true;
      this.#listener.ready();
    }
  }

  /** Gives the connection up unless something arrives within that time. */
  #expect(ms: number): void {
    platform.clearTimeout(this.#watch);
    this.#watch = platform.setTimeout(() => this.#finish(BROKEN, "the server is silent"), ms);
  }

  /** Something arrived: probes again only after some silence. */
  #expectLater(): void {
    platform.clearTimeout(this.#watch);
    const { pingMs = 25_000, pongMs = 10_000 } = this.#options;
    this.#watch = platform.setTimeout(() => this.check(pongMs), pingMs);
  }

  #planRenewal(): void {
    const { renewAt } = this.#credential;
    platform.clearTimeout(this.#renewal);
    if (renewAt !== undefined) {
      const inMs = Math.max(0, renewAt - this.#settings.clock.now());
      // Timers of more than 24 days fire at once.
      this.#renewal = platform.setTimeout(() => void this.#renew(), Math.min(inMs, 2 ** 31 - 1));
    }
  }

  async #renew(): Promise<void> {
    try {
      const token = await this.#credential.renew(this.#token);
      if (this.#resolve && token !== this.#token) {
        this.#token = token;
        this.send(JSON.stringify({ type: "auth", token }));
      }
    } catch (error) {
      this.#listener.report(error);
      this.#renewal = platform.setTimeout(() => void this.#renew(), RENEW_AGAIN_MS);
    }
  }

  #finish(code: number, reason: string, error?: unknown): void {
    const resolve = this.#resolve;
    if (!resolve) {
      return;
    }
    this.#resolve = undefined;
    platform.clearTimeout(this.#watch);
    platform.clearTimeout(this.#renewal);
    const socket = this.#socket;
    if (socket) {
      // Later events are ignored. An error without a listener ends a Node process.
      socket.onopen = socket.onmessage = socket.onclose = null;
      socket.onerror = () => undefined;
      hangUp(socket);
    }
    const wasReady = this.#ready;
    this.#ready = false;
    resolve({ code, reason, ours: this.#ours, wasReady, token: this.#token, error });
  }
}

function hangUp(socket: WebSocketLike): void {
  try {
    socket.close(1000);
  } catch {
    // Closed already, or never open.
  }
}

function parse(data: unknown): Frame | undefined {
  try {
    const frame: unknown = typeof data === "string" ? JSON.parse(data) : undefined;
    return typeof frame === "object" && frame !== null ? (frame as Frame) : undefined;
  } catch {
    return undefined;
  }
}
