// What the client asks of the platform it runs on, stated by shape, so that its types need neither
// the browser's nor Node's. Node 20+, browsers and React Native have all of it, or take it passed in.

/** Headers of an answer. */
export interface HeadersLike {
  get(name: string): string | null;
}

/** A part of a stream of bytes. */
export interface ReaderLike {
  read(): Promise<{ done: boolean; value?: Uint8Array | undefined }>;
  cancel(reason?: unknown): Promise<void>;
}

/** The answer of a `fetch`. On React Native `body` is not there. */
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

/** What a `fetch` is given. */
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
// The second argument is of any type: platforms describe theirs each in another way.
export type Fetch = (url: string, init?: any) => Promise<ResponseLike>;

/** A connection as `WebSocket` makes it. */
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

/** Web Crypto, as far as it is used. */
export interface CryptoLike {
  randomUUID?(): string;
  getRandomValues?(array: any): any;
  subtle?: any;
}

/** React Native's `AppState`. */
export interface AppStateLike {
  addEventListener(type: "change", listener: (state: string) => void): { remove(): void };
}

/** Time and chance. Tests pass their own. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Waits between tries; ends early, without an error, when the signal is aborted. */
  sleep(ms: number, signal: AbortSignalLike): Promise<void>;
  /** From 0 up to 1. */
  random(): number;
}

interface Timers {
  setTimeout(run: () => void, ms: number): unknown;
  clearTimeout(timer: unknown): void;
}

/** What lies in the global scope. */
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

/** The global scope, whatever the platform calls what is in it. */
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

/** Whether answers can be read while they come. React Native's `fetch` gives them whole, at their end. */
export function streams(): boolean {
  const { Response } = platform;
  return Response !== undefined && "body" in Response.prototype;
}

/** Whether this is a page, which has a cache of its own and may not name itself. */
export const isPage = (): boolean => platform.document !== undefined && !isNode();

const isNode = (): boolean => platform.process?.versions?.node !== undefined;

/** A text that nobody else makes: 128 bits of chance. */
export function unique(): string {
  const { crypto } = platform;
  if (crypto?.randomUUID) {
    return crypto.randomUUID();
  }
  const bytes = new Uint8Array(16);
  if (crypto?.getRandomValues) {
    crypto.getRandomValues(bytes);
  } else {
    // React Native without a polyfill. It only has to differ from others, not to be hard to guess.
    bytes.forEach((_, nth) => (bytes[nth] = Math.floor(Math.random() * 256)));
  }
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** What an aborted signal is thrown as. Older platforms keep no reason. */
export function abortReason(signal: AbortSignalLike): unknown {
  if (signal.reason !== undefined) {
    return signal.reason;
  }
  const error = new Error("the call was aborted");
  error.name = "AbortError";
  return error;
}
