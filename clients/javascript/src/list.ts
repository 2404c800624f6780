import type { Call, Http, Query } from "./http.js";

/** A page of a list, with the list's size. */
export interface Page<T> {
  data: T[];
  /** Total matches. */
  total: number;
  /** This page's number, from 1. */
  page: number;
  /** The maximum items on a page. */
  limit: number;
  /** The cursor of the next page; absent on the last one. */
  next?: string;
}

/** Selects a page of a list. */
export interface PageQuery {
  /** Items on a page, 1 to 100: 20. */
  limit?: number | undefined;
  /** The page's number, from 1. */
  page?: number | undefined;
  /** The cursor from an earlier page, instead of `page`. */
  cursor?: string | undefined;
}

/** Selects a page of search results. */
export interface SearchQuery extends PageQuery {
  /** Part of an identifying field. */
  q?: string | undefined;
}

/** Selects a page of a short list, filters it and sorts it. */
export interface ShortQuery<By extends string = "createdAt" | "name"> extends SearchQuery {
  /** Newest first unless given; `-` before it descends. */
  sort?: By | `-${By}` | undefined;
}

/** A list, fetched page by page during iteration; each page is a request that is retried on its own. */
export class List<T> implements AsyncIterable<T> {
  readonly #page: (query: Query) => Promise<Page<T>>;
  readonly #query: Query;

  /** @internal */
  constructor(query: Query, page: (query: Query) => Promise<Page<T>>) {
    this.#query = query;
    this.#page = page;
  }

  /** Its items, one by one, to the end. */
  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    for await (const page of this.pages()) {
      yield* page.data;
    }
  }

  /** Its pages. */
  async *pages(): AsyncGenerator<Page<T>, void, undefined> {
    let query: Query = this.#query;
    for (;;) {
      const page = await this.#page(query);
      yield page;
      if (page.next === undefined) {
        return;
      }
      query = { ...this.#query, page: undefined, cursor: page.next };
    }
  }

  /** Its first items as an array, at most `limit`: lists can exceed memory. */
  async toArray({ limit }: { limit: number }): Promise<T[]> {
    const items: T[] = [];
    if (limit > 0) {
      for await (const item of this) {
        items.push(item);
        if (items.length >= limit) {
          break;
        }
      }
    }
    return items;
  }
}

/** One page of a list. */
export async function readPage<T>(http: Http, call: Call): Promise<Page<T>> {
  let next: string | undefined;
  const page = await http.json<Page<T>>(call, (headers) => (next = cursorOf(headers.get("link"))));
  return next === undefined ? page : { ...page, next };
}

/** The cursor of the next page. The rest of its address is ignored: the server stays the same. */
function cursorOf(link: string | null): string | undefined {
  for (const part of link?.split(/,(?=\s*<)/) ?? []) {
    const [, address, parameters] = /^\s*<([^>]*)>(.*)$/.exec(part) ?? [];
    const cursor = /[?&]cursor=([^&#]*)/.exec(address ?? "")?.[1];
    if (cursor !== undefined && /;\s*rel="?next"?/i.test(parameters ?? "")) {
      return decodeURIComponent(cursor);
    }
  }
  return undefined;
}
