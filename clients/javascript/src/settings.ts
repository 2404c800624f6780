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

/** A failed attempt that is retried. */
export interface Retry {
  /** The path of the operation, with its `{names}`. */
  operation: string;
  error: unknown;
  /** Which retry begins now, from 1. */
  tries: number;
  /** The wait before it, in milliseconds. */
  waitMs: number;
}

/** Options of a client. */
export interface WaypostOptions {
  /** Waypost's URL, such as `https://waypost.example`. */
  url: string;
  /** An API key (`wp_…`). Only on servers: anyone who has a page or an app also has its key. */
  key?: string | undefined;
  /** A person's access token, the session that has it, or a function that returns one when called. */
  token?: TokenSource | undefined;
  /** How often a call is retried: 2. */
  maxRetries?: number | undefined;
  /** How long a call may take with all its attempts and waits, in milliseconds: 120,000. */
  timeoutMs?: number | undefined;
  /** How long one attempt may take, or a long response may be silent, in milliseconds: 30,000. */
  attemptTimeoutMs?: number | undefined;
  /** The longest `Retry-After` to wait for, in milliseconds: 120,000. A longer one is reported. */
  maxRetryAfterMs?: number | undefined;
  /** Whether reads wait for what this client wrote: true. */
  readYourWrites?: boolean | undefined;
  /** A `fetch` in place of the platform's. */
  fetch?: Fetch | undefined;
  /** A `WebSocket` in place of the platform's. Node has one from version 22 on. */
  WebSocket?: WebSocketClass | undefined;
  /** Whether responses of that `fetch` can be read as they arrive. Detected unless given. */
  streaming?: boolean | undefined;
  /** Called for each retry. */
  onRetry?: ((retry: Retry) => void) | undefined;
  /** Time and randomness in place of the platform's, for tests. */
  clock?: Clock | undefined;
}

/** The same with defaults applied. */
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

/** The version that this client reports. */
export const VERSION = "0.1.0";

/** Applies the defaults. */
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
    // A browser sends its own.
    userAgent: page ? undefined : `waypost-javascript/${VERSION}`,
  };
}
