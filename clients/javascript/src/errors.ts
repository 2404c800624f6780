import type { HeadersLike } from "./platform.js";

/** What all errors of this client are. */
export class WaypostError extends Error {
  override readonly name: string = "WaypostError";
}

/** What was given makes no sense; nothing was sent. */
export class InvalidArgumentError extends WaypostError {
  override readonly name: string = "InvalidArgumentError";
}

/** No answer came, or not all of it. What was asked may have been done nevertheless. */
export class ConnectionFailedError extends WaypostError {
  override readonly name: string = "ConnectionFailedError";
}

/** No answer came in time. */
export class TimedOutError extends ConnectionFailedError {
  override readonly name: string = "TimedOutError";
}

/** The platform cannot do this; the message says what to use instead. */
export class UnsupportedError extends WaypostError {
  override readonly name: string = "UnsupportedError";
}

/** An answer, as an error carries it. */
export interface Answer {
  status: number;
  body: string;
  headers: HeadersLike;
  /** When it came, in milliseconds since 1970. */
  at: number;
}

/** An answer that says no. Statuses have classes of their own below; this is what the others are. */
export class ApiError extends WaypostError {
  override readonly name: string = "ApiError";
  /** The status of the answer. */
  readonly status: number;
  /** The answer's body as it came, which is not always JSON: proxies answer too. */
  readonly body: string;
  /** Under which the server logged the request, of the header `traceparent`. */
  readonly traceId: string | undefined;
  /** When to come again at the earliest, in milliseconds from the answer, of `Retry-After`. */
  readonly retryAfterMs: number | undefined;
  /** The position that the answer named, of `Waypost-Position`. */
  readonly position: string | undefined;
  /** The answer's headers. */
  readonly headers: HeadersLike;

  constructor(answer: Answer, message = messageOf(answer)) {
    super(message);
    const { headers } = answer;
    this.status = answer.status;
    this.body = answer.body;
    this.headers = headers;
    this.traceId = headers.get("traceparent")?.split("-")[1];
    this.retryAfterMs = retryAfter(headers.get("retry-after"), answer.at);
    this.position = headers.get("waypost-position") ?? undefined;
  }
}

/** 400: something in the request is wrong; the message names the field. */
export class BadRequestError extends ApiError {
  override readonly name: string = "BadRequestError";
}
/** 401: no key or token came along, or it is not in force. */
export class UnauthorizedError extends ApiError {
  override readonly name: string = "UnauthorizedError";
}
/** 403: the caller may not do this; of a key the message names the scope that it lacks. */
export class ForbiddenError extends ApiError {
  override readonly name: string = "ForbiddenError";
}
/** 404: there is no such thing for this caller. */
export class NotFoundError extends ApiError {
  override readonly name: string = "NotFoundError";
}
/** 409: at odds with what is there already. */
export class ConflictError extends ApiError {
  override readonly name: string = "ConflictError";
}
/** 410: what was named is gone for good, such as a position from before a restore. */
export class GoneError extends ApiError {
  override readonly name: string = "GoneError";
}
/** 413: the body is too large. */
export class TooLargeError extends ApiError {
  override readonly name: string = "TooLargeError";
}
/** 415: the body is of a type that is not taken here. */
export class UnsupportedTypeError extends ApiError {
  override readonly name: string = "UnsupportedTypeError";
}
/** 429: the limit is used up; `retryAfterMs` says until when. */
export class RateLimitedError extends ApiError {
  override readonly name: string = "RateLimitedError";
}
/** 5xx: something failed inside. */
export class ServerError extends ApiError {
  override readonly name: string = "ServerError";
}
/** 503: something that is needed is away for the moment. */
export class UnavailableError extends ApiError {
  override readonly name: string = "UnavailableError";
}
/** A success whose body is not what it should be: a proxy's page, mostly. */
export class BadAnswerError extends ApiError {
  override readonly name: string = "BadAnswerError";
}

/** A socket ended for good. */
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

/** A webhook that must not be believed. */
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

/** The error that an answer is. */
export function errorOf(answer: Answer): ApiError {
  const { status } = answer;
  const Class = BY_STATUS[status] ?? (status >= 500 ? ServerError : ApiError);
  return new Class(answer);
}

function messageOf({ status, body }: Answer): string {
  try {
    const parsed = JSON.parse(body) as { error?: unknown } | null;
    if (typeof parsed?.error === "string" && parsed.error) {
      return parsed.error;
    }
  } catch {
    // Not from Waypost itself: the body says it as it came.
  }
  return status
    ? `the server answered with status ${status}`
    : "the server answered with a redirect";
}

/** Milliseconds to wait from `now`, of seconds or a date. */
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
