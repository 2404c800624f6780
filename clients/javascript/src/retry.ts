import { ApiError, ConnectionFailedError } from "./errors.js";
import type { Operation } from "./operations.js";
import type { Clock } from "./platform.js";

const FIRST_MS = 500;
const MOST_MS = 8_000;
const AGAIN = new Set([408, 429, 502, 503, 504]);

/** The wait before the next attempt, after `failed` failures: full jitter under a growing bound. */
export function backoff(
  failed: number,
  clock: Clock,
  mostMs = MOST_MS,
  firstMs = FIRST_MS,
): number {
  return clock.random() * Math.min(mostMs, firstMs * 2 ** failed);
}

/** Whether the same request may get another response. */
export function isWorthARetry(error: unknown, operation: Operation): boolean {
  if (error instanceof ConnectionFailedError) {
    return true;
  }
  if (!(error instanceof ApiError)) {
    return false;
  }
  // The trigger and the exports have no 503: their 500 also means that something is unavailable.
  return AGAIN.has(error.status) || (error.status === 500 && operation.again === true);
}

/** Whether a stream may reconnect after this: as above, and after any internal error. */
export function passes(error: unknown): boolean {
  return (
    error instanceof ConnectionFailedError ||
    (error instanceof ApiError && (AGAIN.has(error.status) || error.status === 500))
  );
}
