import type { HeadersLike } from "./platform.js";

/** The base of all errors of this client. */
export class WaypostError extends Error {
  override readonly name: string = "WaypostError";
}

/** An argument is invalid; nothing was sent. */
export class InvalidArgumentError extends WaypostError {
  override readonly name: string = "InvalidArgumentError";
}

/** No response, or an incomplete one. The server may have carried out the request anyway. */
export class ConnectionFailedError extends WaypostError {
  override readonly name: string = "ConnectionFailedError";
}

/** No response in time. */
export class TimedOutError extends ConnectionFailedError {
  override readonly name: string = "TimedOutError";
}

/** The platform cannot do this; the message says what to use instead. */
export class UnsupportedError extends WaypostError {
  override readonly name: string = "UnsupportedError";
}

/** The response behind an error. */
export interface ErrorResponse {
  status: number;
  body: string;
  headers: HeadersLike;
  /** When it arrived, in milliseconds since 1970. */
  at: number;
}

/** An error response. Common statuses have their own classes below; this one is for the others. */
export class ApiError extends WaypostError {
  override readonly name: string = "ApiError";
  /** The status of the response. */
  readonly status: number;
  /** The raw response body, which is not always JSON: proxies respond too. */
  readonly body: string;
  /** The id of the request in the server's log, from the header `traceparent`. */
  readonly traceId: string | undefined;
  /** When to retry at the earliest, in milliseconds from the response, from `Retry-After`. */
  readonly retryAfterMs: number | undefined;
  /** The position in the response, from `Waypost-Position`. */
  readonly position: string | undefined;
  /** The response headers. */
  readonly headers: HeadersLike;

  constructor(response: ErrorResponse, message = messageOf(response)) {
    super(message);
    const { headers } = response;
    this.status = response.status;
    this.body = response.body;
    this.headers = headers;
    this.traceId = headers.get("traceparent")?.split("-")[1];
    this.retryAfterMs = retryAfter(headers.get("retry-after"), response.at);
    this.position = headers.get("waypost-position") ?? undefined;
  }
}

/** 400: something in the request is wrong; the message names the field. */
export class BadRequestError extends ApiError {
  override readonly name: string = "BadRequestError";
}
/** 401: the key or token is missing or not in force. */
export class UnauthorizedError extends ApiError {
  override readonly name: string = "UnauthorizedError";
}
/** 403: the caller may not do this; for a key, the message names the missing scope. */
export class ForbiddenError extends ApiError {
  override readonly name: string = "ForbiddenError";
}
/** 404: not found, or not visible to this caller. */
export class NotFoundError extends ApiError {
  override readonly name: string = "NotFoundError";
}
/** 409: in conflict with what exists already. */
export class ConflictError extends ApiError {
  override readonly name: string = "ConflictError";
}
/** 410: no longer available, such as a position from before a restore. */
export class GoneError extends ApiError {
  override readonly name: string = "GoneError";
}
/** 413: the body is too large. */
export class TooLargeError extends ApiError {
  override readonly name: string = "TooLargeError";
}
/** 415: the body is of a type that is not accepted. */
export class UnsupportedTypeError extends ApiError {
  override readonly name: string = "UnsupportedTypeError";
}
/** 429: the limit is exceeded; `retryAfterMs` says for how long. */
export class RateLimitedError extends ApiError {
  override readonly name: string = "RateLimitedError";
}
/** 5xx: an internal error. */
export class ServerError extends ApiError {
  override readonly name: string = "ServerError";
}
/** 503: a dependency is temporarily unavailable. */
export class UnavailableError extends ApiError {
  override readonly name: string = "UnavailableError";
}
/** A success with an unexpected body: usually a proxy's page. */
export class InvalidResponseError extends ApiError {
  override readonly name: string = "InvalidResponseError";
}

/** A socket ended permanently. */
export class SocketClosedError extends WaypostError {
  override readonly name: string = "SocketClosedError";
  /** The close code: 3500 to 3999. */
  readonly code: number;

  constructor(code: number, reason: string) {
    super(reason || `the server ended the socket (${code})`);
    this.code = code;
  }
}

/** The server refused a subscription. */
export class SubscriptionRefusedError extends WaypostError {
  override readonly name: string = "SubscriptionRefusedError";
}

/** What is wrong with a webhook. */
export type WebhookFault = "secret" | "header" | "time" | "signature" | "body";

/** A webhook that must not be trusted. */
export class InvalidWebhookError extends WaypostError {
  override readonly name: string = "InvalidWebhookError";
  /** What is wrong with it. */
  readonly reason: WebhookFault;

  constructor(reason: WebhookFault, message: string) {
    super(message);
    this.reason = reason;
  }
}

const BY_STATUS: Record<number, typeof ApiError> = {
  400: BadRequestError,
  401: UnauthorizedError,
  403: ForbiddenError,
  404: NotFoundError,
  409: ConflictError,
  410: GoneError,
  413: TooLargeError,
  415: UnsupportedTypeError,
  429: RateLimitedError,
  503: UnavailableError,
};

/** Returns the error for a response. */
export function errorOf(response: ErrorResponse): ApiError {
  const { status } = response;
  const Class = BY_STATUS[status] ?? (status >= 500 ? ServerError : ApiError);
  return new Class(response);
}

function messageOf({ status, body }: ErrorResponse): string {
  try {
    const parsed = JSON.parse(body) as { error?: unknown } | null;
    if (typeof parsed?.error === "string" && parsed.error) {
      return parsed.error;
    }
  } catch {
    // Not from Waypost itself: the body has the raw text.
  }
  return status
    ? `the server answered with status ${status}`
    : "the server answered with a redirect";
}

/** The milliseconds to wait from `now`, given seconds or a date. */
function retryAfter(text: string | null, now: number): number | undefined {
  if (text === null) {
    return undefined;
  }
  if (/^\s*\d+\s*$/.test(text)) {
    return Number(text) * 1000;
  }
  const date = /[a-z]{3}.*\d/i.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}
