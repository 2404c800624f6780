import { Export, type ExportOptions } from "./export.js";
import type { Http, RequestOptions } from "./http.js";
import { List, type Page, type PageQuery, readPage } from "./list.js";
import { exportOperation, type Operation, recordOperations } from "./operations.js";
import { linesOf } from "./stream.js";
import type { ImportOutcome, RecordId, Sort } from "./types.js";

/** Lines of one request of an import: few enough to resend, many enough to be fast. */
const LINES = 2_000;
const NDJSON = "application/x-ndjson";

/** Records of a kind: `In` is how they are written, `Stored` how they are read back. */
export class Records<In extends object, Stored> {
  protected readonly http: Http;
  readonly #operations: ReturnType<typeof recordOperations>;

  /** @internal */
  constructor(http: Http, kind: string) {
    this.http = http;
    this.#operations = recordOperations(kind);
  }

  /** Creates a record that must be new, with the caller's id or a new one. */
  async create(record: In, options?: RequestOptions): Promise<RecordId> {
    return this.http.json({ operation: this.#operations.create, body: record, options });
  }

  /** Creates or replaces a record. Omitted fields are empty afterwards. */
  async put(id: string, record: In, options?: RequestOptions): Promise<RecordId> {
    return this.http.json({ operation: this.#operations.put, path: [id], body: record, options });
  }

  /** One record. */
  async get(id: string, options?: RequestOptions): Promise<Stored> {
    return this.http.json({ operation: this.#operations.get, path: [id], options });
  }

  /** Deletes a record. */
  async delete(id: string, options?: RequestOptions): Promise<void> {
    return this.http.json({ operation: this.#operations.delete, path: [id], options });
  }

  /**
   * Creates or replaces many, and yields the outcome of each, by its line from 1. Sends a few
   * thousand at a time while the outcomes are read; each request is retried on its own and writes
   * nothing twice.
   */
  async *import(
    records: Iterable<In> | AsyncIterable<In>,
    options: RequestOptions = {},
  ): AsyncGenerator<ImportOutcome, void, undefined> {
    let before = 0;
    let lines: string[] = [];
    for await (const record of records) {
      lines.push(JSON.stringify(record));
      if (lines.length === LINES) {
        yield* this.#send(NDJSON, lines.join("\n"), before, options);
        before += lines.length;
        lines = [];
      }
    }
    if (lines.length > 0) {
      yield* this.#send(NDJSON, lines.join("\n"), before, options);
    }
  }

  /** The same for a CSV, whose first row names the fields, nested ones dotted (`client.name`). */
  importCsv(
    csv: string,
    options: RequestOptions = {},
  ): AsyncGenerator<ImportOutcome, void, undefined> {
    return this.#send("text/csv", csv, 0, options);
  }

  async *#send(
    type: string,
    content: string,
    before: number,
    options: RequestOptions,
  ): AsyncGenerator<ImportOutcome, void, undefined> {
    // A key is for one body: each part of an import has its own.
    const { idempotencyKey } = options;
    const key = idempotencyKey && before > 0 ? `${idempotencyKey}-${before}` : idempotencyKey;
    const call = {
      operation: this.#operations.create,
      accept: NDJSON,
      text: { type, content: content.endsWith("\n") ? content : `${content}\n` },
      options: { ...options, idempotencyKey: key },
    };
    yield* await this.http.send(call, async (response, attempt) => {
      const outcomes: ImportOutcome[] = [];
      for await (const line of linesOf(response, attempt)) {
        if (line !== "") {
          const outcome = JSON.parse(line) as ImportOutcome;
          outcomes.push({ ...outcome, line: outcome.line + before });
        }
      }
      return outcomes;
    });
  }
}

/** Records that can be exported. */
export class ExportedRecords<In extends object, Stored, Format extends string> extends Records<
  In,
  Stored
> {
  readonly #export: Operation;

  /** @internal */
  constructor(http: Http, kind: string) {
    super(http, kind);
    this.#export = exportOperation(kind);
  }

  /** Exports all as a file, newest first. Nothing is requested before it is read. */
  export(options: ExportOptions<Format> = {}): Export {
    const { format = "csv", updatedSince, ifNoneMatch, onProgress, ...rest } = options;
    const call = {
      operation: this.#export,
      accept: "*/*",
      query: { format, updatedSince },
      headers: ifNoneMatch === undefined ? undefined : { "if-none-match": ifNoneMatch },
      options: rest,
    };
    return new Export(this.http, call, onProgress);
  }
}

/** Selects a page of a list, and filters it. */
export interface ListQuery extends PageQuery {
  /** Part of a name, an e-mail address or a number. */
  q?: string | undefined;
  /** Newest first unless given. */
  sort?: Sort | undefined;
  /** Only those created at this time or later: RFC 3339, or a date. */
  createdFrom?: string | undefined;
  /** Only those created before this time. */
  createdBefore?: string | undefined;
}

/** Records that can be listed. */
export class ListedRecords<
  In extends object,
  Stored,
  Listed,
  Query extends ListQuery = ListQuery,
> extends Records<In, Stored> {
  readonly #list: Operation;

  /** @internal */
  constructor(http: Http, kind: string, list: Operation) {
    super(http, kind);
    this.#list = list;
  }

  /** All records, page by page during iteration. */
  list(query?: Query, options?: RequestOptions): List<Listed> {
    return new List({ ...query }, (at) => this.#read(at, options));
  }

  /** One page. */
  async page(query?: Query, options?: RequestOptions): Promise<Page<Listed>> {
    return this.#read({ ...query }, options);
  }

  async #read(query: Record<string, unknown>, options?: RequestOptions): Promise<Page<Listed>> {
    return readPage(this.http, { operation: this.#list, query: query as never, options });
  }
}
