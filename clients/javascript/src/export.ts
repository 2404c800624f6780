import { ApiError } from "./errors.js";
import type { Call, Http, RequestOptions } from "./http.js";
import { platform, type ResponseLike } from "./platform.js";
import { chunksOf } from "./stream.js";

/** How far a file is. */
export interface Progress {
  /** Bytes that came. */
  received: number;
  /** Bytes of the whole, where the server says so. */
  total: number | undefined;
}

/** What an export takes. */
export interface ExportOptions<Format extends string> extends Pick<
  RequestOptions,
  "signal" | "maxRetries" | "timeoutMs" | "minPosition"
> {
  /** `csv` unless given. */
  format?: Format | undefined;
  /** Only what was written or deleted since then (RFC 3339), with a last column `deletedAt`. */
  updatedSince?: string | undefined;
  /** The `etag` of a file that one has: if nothing changed since, `NotModifiedError` is thrown. */
  ifNoneMatch?: string | undefined;
  /** Is told how far it is, after each part. */
  onProgress?: ((progress: Progress) => void) | undefined;
}

/** Nothing changed since the file with that `etag`. */
export class NotModifiedError extends ApiError {
  override readonly name: string = "NotModifiedError";
}

/** A file that is coming. */
export interface OpenFile {
  /** What the server calls it, such as `companies-2026-11-21.csv`. */
  filename: string | undefined;
  contentType: string | undefined;
  /** Bytes of the whole, where the server says so. */
  size: number | undefined;
  etag: string | undefined;
  lastModified: string | undefined;
  /** Its parts. One that breaks off throws, so that no part is taken for the whole. */
  chunks: AsyncIterable<Uint8Array>;
}

/**
 * All records of a kind as one file. Nothing is asked before it is read. `text` and `bytes` begin
 * anew where the connection breaks; whoever walks the parts is told of the break.
 */
export class Export implements AsyncIterable<Uint8Array> {
  readonly #http: Http;
  readonly #call: Call;
  readonly #onProgress: ((progress: Progress) => void) | undefined;

  /** @internal */
  constructor(http: Http, call: Call, onProgress: ((progress: Progress) => void) | undefined) {
    this.#http = http;
    this.#call = call;
    this.#onProgress = onProgress;
  }

  /** The whole file. */
  async bytes(): Promise<Uint8Array> {
    return this.read(async ({ chunks }) => {
      const parts: Uint8Array[] = [];
      let length = 0;
      for await (const part of chunks) {
        parts.push(part);
        length += part.length;
      }
      const whole = new Uint8Array(length);
      let at = 0;
      for (const part of parts) {
        whole.set(part, at);
        at += part.length;
      }
      return whole;
    });
  }

  /** The whole file as text, of a CSV. */
  async text(): Promise<string> {
    return this.#told(() =>
      this.#http.send(this.#call, async (response, attempt) => {
        attempt.rest();
        if (!response.body) {
          // Older React Natives can give a text, and no bytes.
          const text = await attempt.net(response.text());
          this.#onProgress?.({ received: text.length, total: text.length });
          return text;
        }
        const decoder = new platform.TextDecoder();
        let text = "";
        for await (const chunk of this.#file(response, chunksOf(response, attempt), NOTHING)
          .chunks) {
          text += decoder.decode(chunk, { stream: true });
        }
        return text + decoder.decode();
      }),
    );
  }

  /** Its parts as they come. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    const { chunks } = await this.open();
    yield* chunks;
  }

  /** Asks for it: what it is called, and its parts. */
  async open(): Promise<OpenFile> {
    return this.#told(async () => {
      const { response, attempt } = await this.#http.open(this.#call);
      const chunks = chunksOf(response, attempt);
      return this.#file(response, chunks, () => attempt.end());
    });
  }

  /** Reads it with a function of one's own, which is called again, from the beginning, after a break. */
  async read<T>(consume: (file: OpenFile) => Promise<T>): Promise<T> {
    return this.#told(() =>
      this.#http.send(this.#call, (response, attempt) => {
        attempt.rest();
        return consume(this.#file(response, chunksOf(response, attempt), NOTHING));
      }),
    );
  }

  #file(response: ResponseLike, chunks: AsyncIterable<Uint8Array>, end: () => void): OpenFile {
    const header = (name: string): string | undefined => response.headers.get(name) ?? undefined;
    // The length of what is packed says nothing of the file.
    const length = header("content-encoding") ? undefined : header("content-length");
    const size = length === undefined ? undefined : Number(length);
    return {
      filename: /filename="([^"]+)"/.exec(header("content-disposition") ?? "")?.[1],
      contentType: header("content-type"),
      size,
      etag: header("etag"),
      lastModified: header("last-modified"),
      chunks: watched(chunks, size, this.#onProgress, end),
    };
  }

  async #told<T>(ask: () => Promise<T>): Promise<T> {
    try {
      return await ask();
    } catch (error) {
      if (error instanceof ApiError && error.status === 304) {
        const { status, body, headers } = error;
        throw new NotModifiedError({ status, body, headers, at: 0 }, "nothing changed since");
      }
      throw error;
    }
  }
}

const NOTHING = (): void => undefined;

async function* watched(
  chunks: AsyncIterable<Uint8Array>,
  total: number | undefined,
  onProgress: ((progress: Progress) => void) | undefined,
  end: () => void,
): AsyncGenerator<Uint8Array, void, undefined> {
  let received = 0;
  try {
    for await (const chunk of chunks) {
      received += chunk.length;
      onProgress?.({ received, total });
      yield chunk;
    }
  } finally {
    end();
  }
}
