import type { Attempt } from "./attempt.js";
import { ApiError, UnsupportedError } from "./errors.js";
import type { Call, Http, RequestOptions } from "./http.js";
import type { Operation } from "./operations.js";
import { type AbortSignalLike, abortReason, platform, type ResponseLike } from "./platform.js";
import { isBehind } from "./positions.js";
import { backoff, passes } from "./retry.js";
import { linesOf } from "./stream.js";
import type { Event } from "./types.js";

/** Selects events of a feed. */
export interface FeedQuery {
  /** The position to start after. */
  after?: string | undefined;
  /** Types, such as `lead.created`, or all of a kind, such as `run.*`. All unless given. */
  types?: readonly string[] | undefined;
  /** The maximum of events. */
  limit?: number | undefined;
}

/** Other options of a feed. */
export type FeedOptions = Pick<RequestOptions, "signal" | "maxRetries">;

/** The longest wait between two connections of a feed. */
const MOST_MS = 20_000;
/** After this silence a followed feed is dead: the server sends something every 15 s. */
const SILENCE_MS = 45_000;

/** Everything that happened to the organization, in order. */
export class Feed {
  readonly #http: Http;
  readonly #operation: Operation;

  /** @internal */
  constructor(http: Http, operation: Operation) {
    this.#http = http;
    this.#operation = operation;
  }

  /** The events up to the current end, from the first one or after `after`. */
  read(query: FeedQuery = {}, options: FeedOptions = {}): AsyncGenerator<Event, void, undefined> {
    const place = new Place(query);
    const maxRetries = options.maxRetries ?? this.#http.settings.maxRetries;
    const call = (): Call => ({
      ...this.#call(options, "application/x-ndjson"),
      query: place.query({ after: place.position ?? query.after }),
    });
    return this.#walk(place, call, readLines, { ...options, maxRetries, live: false });
  }

  /**
   * The events from now on, or after `after`, as they happen. After a disconnect it resumes after
   * the last one, for as long as it takes; it ends by `break`, by `signal`, or with an error that
   * no retry can fix.
   */
  follow(query: FeedQuery = {}, options: FeedOptions = {}): AsyncGenerator<Event, void, undefined> {
    if (!this.#http.settings.streaming) {
      throw new UnsupportedError(
        "this platform's fetch gives answers at their end only, which a feed has not: " +
          "subscribe to the channel `events` of a socket, or pass a fetch that streams and `streaming: true`",
      );
    }
    const place = new Place(query);
    const call = (): Call => ({
      ...this.#call(options, "text/event-stream"),
      query: place.query({ after: query.after }),
      ...(place.position === undefined ? {} : { headers: { "last-event-id": place.position } }),
    });
    return this.#walk(place, call, readFrames, { ...options, maxRetries: Infinity, live: true });
  }

  #call(options: FeedOptions, accept: string): Call {
    return {
      operation: this.#operation,
      accept,
      // Retries are counted here, where the outcome of each is known.
      options: { signal: options.signal, maxRetries: 0 },
    };
  }

  async *#walk(
    place: Place,
    call: () => Call,
    read: Reader,
    { signal, maxRetries = 0, live }: FeedOptions & { live: boolean },
  ): AsyncGenerator<Event, void, undefined> {
    const { clock } = this.#http.settings;
    let failed = 0;
    while (!place.full) {
      let asked: number | undefined;
      try {
        for await (const event of this.#open(call(), read)) {
          if (place.take(event)) {
            failed = 0;
            yield event as Event;
          }
          if (place.full) {
            return;
          }
        }
        if (!live) {
          return;
        }
      } catch (error) {
        throwIfAborted(signal);
        if (!passes(error) || failed >= maxRetries) {
          throw error;
        }
        asked = error instanceof ApiError ? error.retryAfterMs : undefined;
      }
      await clock.sleep(asked ?? backoff(failed, clock, MOST_MS), signal ?? NEVER);
      throwIfAborted(signal);
      failed += 1;
    }
  }

  async *#open(call: Call, read: Reader): ReturnType<Reader> {
    const opened = await this.#http.open(call);
    opened.attempt.timeoutMs = SILENCE_MS;
    try {
      yield* read(opened.response, opened.attempt);
    } finally {
      opened.attempt.end();
    }
  }
}

/** A position in the feed, sent without an event. */
interface Mark {
  position: string;
}

type Reader = (
  response: ResponseLike,
  attempt: Attempt,
) => AsyncGenerator<Event | Mark, void, undefined>;

/** A reader's progress. */
class Place {
  position: string | undefined;
  #delivered = 0;

  constructor(readonly asked: FeedQuery) {}

  /** Whether all requested events were delivered. */
  get full(): boolean {
    return this.#delivered >= (this.asked.limit ?? Infinity);
  }

  query(more: { after: string | undefined }): Record<string, string | number | undefined> {
    const { types, limit } = this.asked;
    return {
      ...more,
      types: types && types.length > 0 ? types.join(",") : undefined,
      limit: limit === undefined ? undefined : limit - this.#delivered,
    };
  }

  /** Advances to an event; false if it was delivered before. */
  take(item: Event | Mark): boolean {
    const { position } = item;
    if (!("type" in item)) {
      this.position ??= position;
      return false;
    }
    if (this.position !== undefined) {
      if (position === this.position || isBehind(position, this.position) === false) {
        return false;
      }
    }
    this.position = position;
    this.#delivered += 1;
    return true;
  }
}

async function* readLines(response: ResponseLike, attempt: Attempt): AsyncGenerator<Event> {
  for await (const line of linesOf(response, attempt)) {
    if (line !== "") {
      yield JSON.parse(line) as Event;
    }
  }
}

/** Server-sent events. An incomplete event when the stream ends does not count. */
async function* readFrames(
  response: ResponseLike,
  attempt: Attempt,
): AsyncGenerator<Event | Mark> {
  let data: string[] = [];
  let id: string | undefined;
  for await (const line of linesOf(response, attempt)) {
    const [, field, value = ""] = /^([^:]*):? ?(.*)$/.exec(line) ?? [];
    if (field === "data") {
      data.push(value);
    } else if (field === "id") {
      id = value;
    } else if (line === "") {
      if (data.length > 0) {
        yield JSON.parse(data.join("\n")) as Event;
      } else if (id) {
        yield { position: id };
      }
      data = [];
      id = undefined;
    }
  }
}

const NEVER = new platform.AbortController().signal;

function throwIfAborted(signal: AbortSignalLike | undefined): void {
  if (signal?.aborted) {
    throw abortReason(signal);
  }
}
