import { Attempt } from "./attempt.js";
import { Credential } from "./credential.js";
import {
  ApiError,
  BadAnswerError,
  BadRequestError,
  errorOf,
  InvalidArgumentError,
  UnauthorizedError,
} from "./errors.js";
import type { Operation } from "./operations.js";
import {
  type AbortSignalLike,
  abortReason,
  type HeadersLike,
  platform,
  type ResponseLike,
  unique,
} from "./platform.js";
import { Positions } from "./positions.js";
import { backoff, isWorthARetry } from "./retry.js";
import type { Settings } from "./settings.js";

/** What every method takes besides its own arguments. */
export interface RequestOptions {
  /** Ends the call, its waits and its retries. */
  signal?: AbortSignalLike | undefined;
  /** How long the call may take with all its tries, in milliseconds. */
  timeoutMs?: number | undefined;
  /** How often it is tried again. */
  maxRetries?: number | undefined;
  /** Of a POST: under which key it is done once. One of the client's own unless given. */
  idempotencyKey?: string | undefined;
  /** Of a read: the position it waits for. `null`: for none. That of this client's last command unless given. */
  minPosition?: string | null | undefined;
  /**
   * The header `Waypost-Cause` of the webhook, or of the HTTP step's call, that this call follows
   * from: so that workflows which set each other off end.
   */
  cause?: string | undefined;
}

/** What a query may hold. */
export type Query = Record<
  string,
  string | number | boolean | readonly string[] | null | undefined
>;

/** One call of an operation. */
export interface Call {
  operation: Operation;
  /** What stands for the path's `{names}`, in their order. */
  path?: readonly string[] | undefined;
  query?: Query | undefined;
  /** Sent as JSON. */
  body?: unknown;
  /** Sent as it is. */
  text?: { type: string; content: string } | undefined;
  accept?: string;
  headers?: Record<string, string> | undefined;
  options?: RequestOptions | undefined;
}

/** Reads an answer, within the try that it came in. */
export type Read<T> = (response: ResponseLike, attempt: Attempt) => Promise<T>;

/** Sends requests: with a credential, positions, keys and retries. */
export class Http {
  readonly positions = new Positions();

  constructor(
    readonly settings: Settings,
    readonly credential: Credential,
  ) {}

  /** Calls, and gives back the JSON of the answer; undefined where it has none. */
  async json<T>(call: Call, look?: (headers: HeadersLike) => void): Promise<T> {
    return this.send(call, async (response, attempt) => {
      look?.(response.headers);
      const body = await attempt.net(response.text());
      if (response.status === 204) {
        return undefined as T;
      }
      try {
        return JSON.parse(body) as T;
      } catch {
        const { status, headers } = response;
        const answer = { status, body, headers, at: this.settings.clock.now() };
        throw new BadAnswerError(answer, `the answer is not JSON: ${body.slice(0, 100)}`);
      }
    });
  }

  /** Calls, and leaves the answer open: whoever reads it ends the attempt. */
  async open(call: Call): Promise<{ response: ResponseLike; attempt: Attempt }> {
    return this.send(call, async (response, attempt) => {
      attempt.kept = true;
      attempt.rest();
      return { response, attempt };
    });
  }

  /** Calls, and reads the answer. Where that fails for want of a whole answer, `read` is called again. */
  async send<T>(call: Call, read: Read<T>): Promise<T> {
    const { clock, maxRetryAfterMs } = this.settings;
    const { signal, maxRetries = this.settings.maxRetries } = call.options ?? {};
    const deadline = clock.now() + (call.options?.timeoutMs ?? this.settings.timeoutMs);
    const state: CallState = {
      key: call.operation.once ? (call.options?.idempotencyKey ?? unique()) : undefined,
      renewed: false,
      mayHaveArrived: false,
    };
    for (let tries = 0; ;) {
      const leftMs = deadline - clock.now();
      const failure = await this.#try(call, state, leftMs, read);
      if (!("error" in failure)) {
        return failure.value;
      }
      const { error } = failure;
      if (signal?.aborted) {
        throw abortReason(signal);
      }
      if (await this.#repaired(error, state)) {
        continue;
      }
      if (isStatus(error, 404) && call.operation.method === "DELETE" && state.mayHaveArrived) {
        return undefined as T;
      }
      const asked = error instanceof ApiError ? error.retryAfterMs : undefined;
      const waitMs = asked ?? backoff(tries, clock);
      const late = (asked ?? 0) > maxRetryAfterMs || clock.now() + waitMs > deadline;
      if (tries >= maxRetries || late || !isWorthARetry(error, call.operation)) {
        throw error;
      }
      state.mayHaveArrived ||= !isStatus(error, 429);
      tries += 1;
      this.settings.onRetry?.({ operation: call.operation.path, error, tries, waitMs });
      await clock.sleep(waitMs, signal ?? NEVER);
    }
  }

  async #try<T>(call: Call, state: CallState, leftMs: number, read: Read<T>): Promise<Outcome<T>> {
    const { settings } = this;
    const attempt = new Attempt(Math.min(settings.attemptTimeoutMs, leftMs), call.options?.signal);
    try {
      const request = await this.#request(call, state);
      const response = await attempt.net(
        settings.fetch(request.url, { ...request.init, signal: attempt.signal }),
      );
      const { status, headers } = response;
      if (status >= 200 && status < 300) {
        const value = await read(response, attempt);
        this.#note(call.operation, headers.get("waypost-position"));
        return { value };
      }
      const body = await attempt.net(response.text());
      this.#note(call.operation, headers.get("waypost-position"));
      return { error: errorOf({ status, body, headers, at: settings.clock.now() }) };
    } catch (error) {
      return { error };
    } finally {
      if (!attempt.kept) {
        attempt.end();
      }
    }
  }

  async #request(call: Call, state: CallState): Promise<Request> {
    const { settings, credential } = this;
    const { operation, options } = call;
    const headers: Record<string, string> = {
      accept: call.accept ?? "application/json",
      ...(settings.userAgent ? { "user-agent": settings.userAgent } : {}),
      ...call.headers,
    };
    state.token = operation.open ? undefined : await credential.get();
    if (state.token !== undefined) {
      headers["authorization"] = `Bearer ${state.token}`;
    }
    if (options?.cause !== undefined) {
      headers["waypost-cause"] = options.cause;
    }
    if (state.key !== undefined) {
      headers["idempotency-key"] = state.key;
    }
    state.position = this.#minPosition(operation, options);
    if (state.position !== undefined) {
      headers["waypost-min-position"] = state.position;
    }
    const init: Record<string, unknown> = {
      method: operation.method,
      headers,
      redirect: "manual",
      credentials: "omit",
      ...(settings.page ? { cache: "no-store" } : {}),
    };
    if (call.text) {
      headers["content-type"] = call.text.type;
      init["body"] = call.text.content;
    } else if (call.body !== undefined) {
      headers["content-type"] = "application/json";
      init["body"] = JSON.stringify(call.body);
    }
    return { url: settings.url + address(call), init };
  }

  #minPosition(operation: Operation, options: RequestOptions | undefined): string | undefined {
    if (!operation.waits) {
      return undefined;
    }
    if (options?.minPosition !== undefined) {
      return options.minPosition ?? undefined;
    }
    return this.settings.readYourWrites ? this.positions.wanted(operation.waits) : undefined;
  }

  #note(operation: Operation, position: string | null): void {
    if (position !== null && operation.method !== "GET") {
      this.positions.note(operation.writes ?? "log", position);
    }
  }

  /** Whether the cause of an error is gone, so that the same may be tried at once. */
  async #repaired(error: unknown, state: CallState): Promise<boolean> {
    const { token, position } = state;
    if (error instanceof UnauthorizedError && token !== undefined && !state.renewed) {
      state.renewed = true;
      return this.credential.renewable && (await this.credential.renew(token)) !== token;
    }
    if (error instanceof BadRequestError && error.message.startsWith("Waypost-Min-Position")) {
      // After a restore the server has another log, and positions of before mean nothing.
      const ours = position !== undefined && position === this.positions.wanted("either");
      if (ours || (position !== undefined && position === this.positions.wanted("log"))) {
        this.positions.forget(position);
        return true;
      }
    }
    return false;
  }
}

interface CallState {
  key: string | undefined;
  renewed: boolean;
  mayHaveArrived: boolean;
  token?: string | undefined;
  position?: string | undefined;
}

interface Request {
  url: string;
  init: Record<string, unknown>;
}

type Outcome<T> = { value: T } | { error: unknown };

const NEVER = new platform.AbortController().signal;

function isStatus(error: unknown, status: number): boolean {
  return error instanceof ApiError && error.status === status;
}

/** A value as one segment of a path. Some would name something else than what was meant. */
function segment(name: string, value: string | undefined): string {
  if (!value || value === "." || value === "..") {
    throw new InvalidArgumentError(`${name} cannot be ${JSON.stringify(value ?? "")}`);
  }
  return encodeURIComponent(value);
}

/** The address of a call, behind the server's. */
function address({ operation, path = [], query = {} }: Call): string {
  let nth = 0;
  const filled = operation.path.replace(/\{(\w+)\}/g, (_, name) =>
    segment(String(name), path[nth++]),
  );
  const pairs = Object.entries(query)
    .filter(([, value]) => value !== undefined && value !== null)
    .map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`);
  return pairs.length > 0 ? `${filled}?${pairs.join("&")}` : filled;
}
