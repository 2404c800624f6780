// clients/cases: sockets.json, against a server that plays a script for each connection.
import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { after, afterEach, before, describe, test } from "node:test";
import { WebSocket, WebSocketServer } from "ws";
import type { Channel, SubscriptionItem, WebSocketClass } from "../dist/index.js";
import {
  assertError,
  assertHas,
  casesOf,
  type ClientSettings,
  clientOf,
  type Json,
  TestClock,
  type WantedError,
} from "./support/cases.js";

interface Step {
  handshake?: { path: string; query: object; headers: Record<string, { absent?: boolean }> };
  client?: { [key: string]: Json };
  server?: { [key: string]: Json };
  text?: string;
  close?: number;
  reason?: string;
  cut?: boolean;
  refuse?: number;
}

interface SocketCase {
  id: string;
  title: string;
  client?: ClientSettings;
  subscribe: { channel: Channel; after?: string };
  connections: Step[][];
  items: Json[];
  ends?: WantedError;
  waits: number[];
}

const PLATFORM: Record<string, string> = {
  "SOCK-022": "no platform's WebSocket reveals the status of a handshake: it is tried again",
};

/** Plays a script for each connection. */
class Script {
  readonly #frames = new WebSocketServer({ noServer: true });
  #connections: Step[][] = [];
  #begun = 0;
  wrong: unknown;
  /** Resolves when a connection of this number has ended. */
  readonly closed: Promise<void>[] = [];

  constructor(server: Server) {
    server.on("upgrade", (request, socket, head) => this.#upgrade(request, socket, head));
  }

  play(connections: Step[][]): void {
    this.#connections = connections;
    this.#begun = 0;
    this.wrong = undefined;
    this.closed.length = 0;
  }

  finish(): void {
    if (this.wrong !== undefined) {
      throw this.wrong;
    }
    assert.equal(this.#begun, this.#connections.length, "all connections of the script were made");
  }

  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const steps = this.#connections[this.#begun];
    this.#begun += 1;
    const first = steps?.[0];
    if (!steps || first?.cut || first?.refuse) {
      this.wrong ??= steps ? undefined : new Error("one connection too many");
      const status = first?.refuse;
      socket.end(status ? `HTTP/1.1 ${status} No\r\nContent-Length: 0\r\n\r\n` : undefined);
      socket.once("finish", () => socket.destroy());
      return;
    }
    this.#frames.handleUpgrade(request, socket, head, (connection) => {
      this.closed.push(new Promise((resolve) => connection.once("close", () => resolve())));
      void this.#play(connection, request, steps).catch((error: unknown) => {
        this.wrong ??= error;
        connection.close(3999, String(error).slice(0, 100));
      });
    });
  }

  async #play(connection: WebSocket, request: IncomingMessage, steps: Step[]): Promise<void> {
    const heard: string[] = [];
    let wake = (): void => undefined;
    connection.on("message", (data: Buffer) => {
      heard.push(data.toString("utf8"));
      wake();
    });
    let name = "";
    const named = (value: object): string =>
      JSON.stringify(value).replaceAll('"$s"', JSON.stringify(name));
    for (const step of steps) {
      if (step.handshake) {
        assert.equal(request.url, step.handshake.path);
        for (const header of Object.keys(step.handshake.headers)) {
          assert.equal(request.headers[header], undefined, header);
        }
      } else if (step.client) {
        while (heard.length === 0) {
          await new Promise<void>((resolve) => (wake = resolve));
        }
        const frame = JSON.parse(heard.shift() ?? "") as Record<string, string>;
        name = frame["id"] ?? name;
        assert.deepEqual(frame, JSON.parse(named(step.client)));
      } else if (step.server) {
        connection.send(named(step.server));
      } else if (step.text !== undefined) {
        connection.send(step.text);
      } else if (step.close !== undefined) {
        connection.close(step.close, step.reason);
      } else if (step.cut) {
        // What was sent arrives before the connection breaks.
        await new Promise((resolve) => connection.ping("", undefined, resolve));
        await new Promise((resolve) => connection.once("pong", resolve));
        connection.terminate();
      }
    }
  }
}

const own = (globalThis as { WebSocket?: unknown }).WebSocket as WebSocketClass | undefined;
const classes: Record<string, WebSocketClass | undefined> = {
  ws: WebSocket,
  "the platform's": own,
};

for (const [kind, Class] of Object.entries(classes)) {
  describe(`sockets.json with ${kind} WebSocket`, { skip: !Class && "from Node 22 on" }, () => {
    let server: Server;
    let script: Script;
    before(async () => {
      server = createServer();
      script = new Script(server);
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    });
    afterEach(() => server.closeAllConnections());
    after(() => server.close());

    for (const one of casesOf<SocketCase>("sockets")) {
      test(`${one.id} ${one.title}`, { skip: PLATFORM[one.id], timeout: 10_000 }, async () => {
        const clock = new TestClock();
        script.play(one.connections);
        const { port } = server.address() as AddressInfo;
        const client = clientOf(`http://127.0.0.1:${port}`, one.client, clock, "key", {
          WebSocket: Class,
        });
        const socket = client.socket({ onError: () => undefined });
        const { channel, after: behind } = one.subscribe;
        const items: SubscriptionItem[] = [];
        let error: unknown;
        const done = (): boolean => !one.ends && items.length === one.items.length;
        try {
          for await (const item of socket.subscribe(channel, { after: behind })) {
            items.push(item);
            if (done()) {
              break;
            }
          }
        } catch (caught) {
          error = caught;
        }
        await Promise.all(script.closed);
        script.finish();
        assertHas(items, one.items);
        if (one.ends) {
          assertError(error, one.ends);
        } else {
          assert.equal(error, undefined);
          assert.equal(socket.status, "idle");
        }
        assert.deepEqual(clock.waits, one.waits, "waits");
      });
    }
  });
}
