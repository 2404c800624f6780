// What the client needs from its platform, declared here, so that its types need neither the
// browser's nor Node's. Node 20+, browsers and React Native have all of it, or you pass it in.

/** Headers of a response. */
export interface HeadersLike {
  get(name: string): string | null;
}

/** Reads a stream of bytes. */
export interface ReaderLike {
  read(): Promise<{ done: boolean; value?: Uint8Array | undefined }>;
  cancel(reason?: unknown): Promise<void>;
}

/** The response of a `fetch`. On React Native `body` is absent. */
export interface ResponseLike {
  readonly status: number;
  readonly type?: string;
  readonly headers: HeadersLike;
  readonly body?: { getReader(): ReaderLike } | null;
  text(): Promise<string>;
  arrayBuffer(): Promise<ArrayBuffer>;
}

/** The signal of an `AbortController`. */
export interface AbortSignalLike {
  readonly aborted: boolean;
  readonly reason?: unknown;
  addEventListener(type: "abort", listener: () => void): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

/** Options of a `fetch`. */
export interface RequestInitLike {
  method: string;
  headers: Record<string, string>;
  body?: string;
  signal: AbortSignalLike;
  redirect: "manual";
  credentials: "omit";
  cache?: "no-store";
}

/** A `fetch`, the platform's or another. */
// The second argument has any type: platforms declare theirs differently.
export type Fetch = (url: string, init?: any) => Promise<ResponseLike>;

/** A connection made by `WebSocket`. */
export interface WebSocketLike {
  readonly readyState: number;
  onopen: ((event: never) => void) | null;
  onmessage: ((event: never) => void) | null;
  onerror: ((event: never) => void) | null;
  onclose: ((event: never) => void) | null;
  send(data: string): void;
  close(code?: number, reason?: string): void;
}

/** `WebSocket`, the platform's or another. */
export type WebSocketClass = new (url: string) => WebSocketLike;

/** The used part of Web Crypto. */
export interface CryptoLike {
  randomUUID?(): string;
  getRandomValues?(array: any): any;
  subtle?: any;
}

/** React Native's `AppState`. */
export interface AppStateLike {
  addEventListener(type: "change", listener: (state: string) => void): { remove(): void };
}

/** Time and randomness. Tests pass their own. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Waits between attempts; ends early, without an error, when the signal is aborted. */
  sleep(ms: number, signal: AbortSignalLike): Promise<void>;
  /** From 0 up to 1. */
  random(): number;
}

interface Timers {
  setTimeout(run: () => void, ms: number): unknown;
  clearTimeout(timer: unknown): void;
}

/** The contents of the global scope. */
export interface Globals extends Timers {
  fetch?: Fetch;
  WebSocket?: WebSocketClass;
  Response?: { prototype: object };
  crypto?: CryptoLike;
  document?: { readonly visibilityState: string } & EventsLike;
  addEventListener?: EventsLike["addEventListener"];
  removeEventListener?: EventsLike["removeEventListener"];
  process?: { versions?: { node?: string } };
  console: { error(...what: unknown[]): void };
  TextEncoder: new () => { encode(text: string): Uint8Array };
  TextDecoder: new () => { decode(bytes?: Uint8Array, options?: { stream: boolean }): string };
  AbortController: new () => { readonly signal: AbortSignalLike; abort(reason?: unknown): void };
  atob(text: string): string;
}

interface EventsLike {
  addEventListener(type: string, listener: () => void): void;
  removeEventListener(type: string, listener: () => void): void;
}

/** The global scope, whatever the platform calls its contents. */
export const platform = globalThis as unknown as Globals;

/** The clock of the platform. */
export const systemClock: Clock = {
  now: () => Date.now(),
  random: () => Math.random(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal.aborted) {
        resolve();
        return;
      }
      const end = (): void => {
        platform.clearTimeout(timer);
        signal.removeEventListener("abort", end);
        resolve();
      };
      const timer = platform.setTimeout(end, ms);
      signal.addEventListener("abort", end);
    }),
};

/** Whether responses can be read as they arrive. React Native's `fetch` returns them complete. */
export function streams(): boolean {
  const { Response } = platform;
  return Response !== undefined && "body" in Response.prototype;
}

/** Whether this is a page, which has its own cache and may not set its user agent. */
export const isPage = (): boolean => platform.document !== undefined && !isNode();

const isNode = (): boolean => platform.process?.versions?.node !== undefined;

/** A unique string: 128 random bits. */
export function unique(): string {
  const { crypto } = platform;
  if (crypto?.randomUUID) {
    return crypto.randomUUID();
  }
  const bytes = new Uint8Array(16);
  if (crypto?.getRandomValues) {
    crypto.getRandomValues(bytes);
  } else {
    // React Native without a polyfill. It must be unique, not hard to guess.
    bytes.forEach((_, nth) => (bytes[nth] = Math.floor(Math.random() * 256)));
  }
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The error to throw for an aborted signal. Older platforms keep no reason. */
export function abortReason(signal: AbortSignalLike): unknown {
  if (signal.reason !== undefined) {
    return signal.reason;
  }
  const error = new Error("the call was aborted");
  error.name = "AbortError";
  return error;
}
