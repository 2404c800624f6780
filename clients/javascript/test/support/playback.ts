// An HTTP server that plays a script: each request is compared with the next one expected.
import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { assertHas, type Answer, type Exchange, type Match, type Wanted } from "./cases.js";

export class Playback {
  readonly #server: Server;
  #script: Exchange[] = [];
  #exact = false;
  #bound = new Map<string, string>();
  #wrong: unknown;
  #played = 0;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(): Promise<Playback> {
    const server = createServer();
    const playback = new Playback(server);
    server.on("request", (request, response) => void playback.#answer(request, response));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return playback;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Starts a script; `exact` also requires that nothing unnamed is sent. */
  play(script: Exchange[], { exact = false, anew = true } = {}): void {
    this.#script = script;
    this.#exact = exact;
    this.#played = 0;
    this.#wrong = undefined;
    if (anew) {
      this.#bound = new Map();
    }
  }

  /** Fails if something differed or did not arrive. */
  finish(): void {
    if (this.#wrong !== undefined) {
      throw this.#wrong;
    }
    assert.equal(this.#played, this.#script.length, "all requests of the script came");
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await bodyOf(request);
    const next = this.#script[this.#played];
    this.#played += 1;
    try {
      assert.ok(next, `one request too many: ${request.method} ${request.url}`);
      this.#compare(next.request, request, body);
    } catch (error) {
      this.#wrong ??= error;
      // An answer that no client retries, so that the case ends here.
      response.writeHead(418).end(JSON.stringify({ error: String(error) }));
      return;
    }
    give(next.answer, response);
  }

  #compare(wanted: Wanted, request: IncomingMessage, body: string): void {
    const [path, search = ""] = (request.url ?? "").split("?");
    assert.equal(request.method, wanted.method);
    assert.equal(path, wanted.path);
    const query = Object.fromEntries(new URLSearchParams(search));
    if (wanted.query || this.#exact) {
      assert.deepEqual(query, wanted.query ?? {}, "query");
    }
    for (const [name, value] of Object.entries(wanted.headers ?? {})) {
      this.#match(name, value, request.headers[name] as string | undefined);
    }
    if (wanted.body !== undefined) {
      assertHas(JSON.parse(body), wanted.body, "body");
      assert.deepEqual(sizes(JSON.parse(body)), sizes(wanted.body), "nothing more in the body");
    } else if (wanted.lines) {
      const lines = body.trimEnd().split("\n");
      assert.deepEqual(
        lines.map((line) => JSON.parse(line)),
        wanted.lines,
        "lines",
      );
    } else if (this.#exact) {
      assert.equal(body, "", "no body");
    }
  }

  #match(name: string, wanted: string | Match, actual: string | undefined): void {
    if (typeof wanted === "string") {
      assert.equal(actual, wanted, name);
      return;
    }
    if (wanted.absent) {
      assert.equal(actual, undefined, name);
      return;
    }
    assert.ok(actual !== undefined, `${name} is missing`);
    if (wanted.contains !== undefined) {
      assert.ok(actual.includes(wanted.contains), `${name}: ${actual}`);
    }
    if (wanted.matches !== undefined) {
      assert.match(actual, new RegExp(wanted.matches));
    }
    if (wanted.bind !== undefined) {
      this.#bound.set(wanted.bind, actual);
    }
    if (wanted.same !== undefined) {
      assert.equal(actual, this.#bound.get(wanted.same), `${name} is the same`);
    }
    if (wanted.not !== undefined) {
      assert.notEqual(actual, this.#bound.get(wanted.not), `${name} is another`);
    }
  }
}

function sizes(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.map(sizes);
  }
  return typeof value === "object" && value !== null ? Object.keys(value).sort() : undefined;
}

function give(answer: Answer, response: ServerResponse): void {
  if (answer.hang) {
    return;
  }
  if (answer.status === undefined) {
    response.destroy();
    return;
  }
  const text = answer.text ?? (answer.body === undefined ? "" : JSON.stringify(answer.body));
  const json = answer.body === undefined ? {} : { "content-type": "application/json" };
  response.writeHead(answer.status, { ...json, ...answer.headers });
  if (!answer.cut && !answer.hold) {
    response.end(text);
    return;
  }
  response.write(text, () => {
    if (answer.cut) {
      // What was written arrives before the connection breaks.
      setTimeout(() => response.destroy(), 20);
    }
  });
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of request) {
    parts.push(part as Buffer);
  }
  return Buffer.concat(parts).toString("utf8");
}
