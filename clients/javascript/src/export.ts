import { ApiError } from "./errors.js";
import type { Call, Http, RequestOptions } from "./http.js";
import { platform, type ResponseLike } from "./platform.js";
import { chunksOf } from "./stream.js";

/** The progress of an export. */
export interface Progress {
  /** Bytes received. */
  received: number;
  /** Total bytes, if the server says so. */
  total: number | undefined;
}

/** Options of an export. */
export interface ExportOptions<Format extends string> extends Pick<
  RequestOptions,
  "signal" | "maxRetries" | "timeoutMs" | "minPosition"
> {
  /** `csv` unless given. */
  format?: Format | undefined;
  /** Only what was written or deleted since then (RFC 3339), with a last column `deletedAt`. */
  updatedSince?: string | undefined;
  /** The `etag` of a file that you have: if nothing changed since, `NotModifiedError` is thrown. */
  ifNoneMatch?: string | undefined;
  /** Called with the progress after each chunk. */
  onProgress?: ((progress: Progress) => void) | undefined;
}

/** Nothing changed since the file with that `etag`. */
export class NotModifiedError extends ApiError {
  override readonly name: string = "NotModifiedError";
}

/** A file while it arrives. */
export interface OpenFile {
  /** The name from the server, such as `companies-2026-11-21.csv`. */
  filename: string | undefined;
  contentType: string | undefined;
  /** Total bytes, if the server says so. */
  size: number | undefined;
  etag: string | undefined;
  lastModified: string | undefined;
  /** Its chunks. Throws if the file breaks off, so that no part passes for the whole. */
  chunks: AsyncIterable<Uint8Array>;
}

/**
 * All records of a kind as one file. Nothing is requested before it is read. `text` and `bytes`
 * start over if the connection breaks; iterating over the chunks throws.
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

  /** Reads the whole file. */
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

  /** Reads the whole file as text, for CSV. */
  async text(): Promise<string> {
    return this.#request(() =>
      this.#http.send(this.#call, async (response, attempt) => {
        attempt.rest();
        if (!response.body) {
          // Older React Native versions return text, not bytes.
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

  /** Its chunks as they arrive. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    const { chunks } = await this.open();
    yield* chunks;
  }

  /** Requests it: its name and its chunks. */
  async open(): Promise<OpenFile> {
    return this.#request(async () => {
      const { response, attempt } = await this.#http.open(this.#call);
      const chunks = chunksOf(response, attempt);
      return this.#file(response, chunks, () => attempt.end());
    });
  }

  /** Reads it with your own function, which is called again, from the beginning, after a break. */
  async read<T>(consume: (file: OpenFile) => Promise<T>): Promise<T> {
    return this.#request(() =>
      this.#http.send(this.#call, (response, attempt) => {
        attempt.rest();
        return consume(this.#file(response, chunksOf(response, attempt), NOTHING));
      }),
    );
  }

  #file(response: ResponseLike, chunks: AsyncIterable<Uint8Array>, end: () => void): OpenFile {
    const header = (name: string): string | undefined => response.headers.get(name) ?? undefined;
    // A compressed length says nothing about the file.
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

  async #request<T>(ask: () => Promise<T>): Promise<T> {
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
