import { InvalidArgumentError, UnsupportedError } from "./errors.js";
import {
  type Clock,
  type Fetch,
  isPage,
  platform,
  streams,
  systemClock,
  type WebSocketClass,
} from "./platform.js";
import type { TokenSource } from "./credential.js";

/** A try that failed and is repeated. */
export interface Retry {
  /** The path of the operation, with its `{names}`. */
  operation: string;
  error: unknown;
  /** Which retry begins now, from 1. */
  tries: number;
  /** How long is waited before, in milliseconds. */
  waitMs: number;
}

/** How a client is made. */
export interface WaypostOptions {
  /** Where Waypost is, such as `https://waypost.example`. */
  url: string;
  /** An API key (`wp_…`). Of a server: whoever has a page or an app has the key in it too. */
  key?: string | undefined;
  /** A person's access token, the session that has it, or a function that gives one whenever it is asked. */
  token?: TokenSource | undefined;
  /** How often a call is tried again: 2. */
  maxRetries?: number | undefined;
  /** How long a call may take with all its tries and waits, in milliseconds: 120,000. */
  timeoutMs?: number | undefined;
  /** How long one try may take, or anything to come of a long answer, in milliseconds: 30,000. */
  attemptTimeoutMs?: number | undefined;
  /** The longest `Retry-After` that is waited for, in milliseconds: 120,000. A longer one is told. */
  maxRetryAfterMs?: number | undefined;
  /** Whether reads wait for what this client wrote: true. */
  readYourWrites?: boolean | undefined;
  /** A `fetch` in place of the platform's. */
  fetch?: Fetch | undefined;
  /** A `WebSocket` in place of the platform's. Node has one from version 22 on. */
  WebSocket?: WebSocketClass | undefined;
  /** Whether answers of that `fetch` can be read while they come. Found out unless said. */
  streaming?: boolean | undefined;
  /** Is told of each retry. */
  onRetry?: ((retry: Retry) => void) | undefined;
  /** Time and chance in place of the platform's, for tests. */
  clock?: Clock | undefined;
}

/** The same with everything settled. */
export interface Settings {
  url: string;
  maxRetries: number;
  timeoutMs: number;
  attemptTimeoutMs: number;
  maxRetryAfterMs: number;
  readYourWrites: boolean;
  fetch: Fetch;
  WebSocket: WebSocketClass | undefined;
  streaming: boolean;
  onRetry: ((retry: Retry) => void) | undefined;
  clock: Clock;
  userAgent: string | undefined;
  page: boolean;
}

/** The version that this client says it is. */
export const VERSION = "0.1.0";

/** Settles what was left open. */
export function settle(options: WaypostOptions): Settings {
  const url = options.url.replace(/\/+$/, "");
  if (!/^https?:\/\/[^/]/i.test(url)) {
    throw new InvalidArgumentError(
      `url must begin with http:// or https://, which ${options.url} does not`,
    );
  }
  const own = platform.fetch;
  const fetch = options.fetch ?? (own && ((address, init) => own.call(platform, address, init)));
  if (!fetch) {
    throw new UnsupportedError("this platform has no fetch: pass one in `fetch`");
  }
  const page = isPage();
  return {
    url,
    fetch,
    page,
    maxRetries: options.maxRetries ?? 2,
    timeoutMs: options.timeoutMs ?? 120_000,
    attemptTimeoutMs: options.attemptTimeoutMs ?? 30_000,
    maxRetryAfterMs: options.maxRetryAfterMs ?? 120_000,
    readYourWrites: options.readYourWrites ?? true,
    WebSocket: options.WebSocket ?? platform.WebSocket,
    streaming: options.streaming ?? streams(),
    onRetry: options.onRetry,
    clock: options.clock ?? systemClock,
    // A page's browser says which one it is.
    userAgent: page ? undefined : `waypost-javascript/${VERSION}`,
  };
}
