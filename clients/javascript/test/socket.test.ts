// A socket's own behavior, against a server of a few lines, so that timing can be chosen.
import assert from "node:assert/strict";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, test } from "node:test";
import { WebSocket, WebSocketServer } from "ws";
import {
  type Socket,
  type SocketOptions,
  type SocketStatus,
  type SubscriptionItem,
  Waypost,
  type WebSocketClass,
} from "../dist/index.js";
import { until } from "./support/system.js";

/** A server that has events 1, 2, 3 … and sends each subscription those after its place. */
class Server {
  readonly #server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  readonly #places = new Map<WebSocket, Map<string, number>>();
  /** Frames that clients sent, over all connections. */
  readonly frames: Record<string, string>[] = [];
  connections = 0;
  silent = false;
  head = 0;

  constructor() {
    this.#server.on("connection", (socket) => {
      this.connections += 1;
      this.silent = false;
      this.#places.set(socket, new Map());
      socket.on("close", () => this.#places.delete(socket));
      socket.on("message", (data: Buffer) =>
        this.#receive(socket, JSON.parse(data.toString("utf8"))),
      );
    });
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async ready(): Promise<void> {
    if (!this.#server.address()) {
      await once(this.#server, "listening");
    }
  }

  /** Adds `count` more events. */
  happen(count: number): void {
    this.head += count;
    for (const [socket, places] of this.#places) {
      for (const id of places.keys()) {
        this.#sendEvents(socket, id);
      }
    }
  }

  close(): void {
    this.#server.clients.forEach((socket) => socket.terminate());
    this.#server.close();
  }

  #receive(socket: WebSocket, frame: Record<string, string>): void {
    this.frames.push(frame);
    if (this.silent) {
      return;
    }
    const { type, id = "", after } = frame;
    if (type === "auth") {
      socket.send('{"type":"ready"}');
    } else if (type === "unsubscribe") {
      this.#places.get(socket)?.delete(id);
    } else {
      const place = after === undefined ? this.head : Number(after.slice(3));
      this.#places.get(socket)?.set(id, place);
      socket.send(JSON.stringify({ type: "subscribed", id, position: `e1-${place}` }));
      if (after === undefined) {
        socket.send(JSON.stringify({ type: "snapshot", id, data: [] }));
      }
      this.#sendEvents(socket, id);
    }
  }

  #sendEvents(socket: WebSocket, id: string): void {
    const places = this.#places.get(socket);
    for (let nth = (places?.get(id) ?? this.head) + 1; nth <= this.head; nth += 1) {
      places?.set(id, nth);
      const event = { type: "x", time: "2026-11-22T12:00:00Z", data: { nth } };
      socket.send(
        JSON.stringify({ type: "event", id, channel: "events", position: `e1-${nth}`, event }),
      );
    }
  }
}

let server: Server;
let sockets: Socket[];
beforeEach(async () => {
  server = new Server();
  sockets = [];
  await server.ready();
});
afterEach(() => {
  sockets.forEach((socket) => socket.close());
  server.close();
});

function socketOf(options: SocketOptions = {}, Class: unknown = WebSocket): Socket {
  const waypost = new Waypost({ url: server.url, key: "wp_x", WebSocket: Class as WebSocketClass });
  const socket = waypost.socket(options);
  sockets.push(socket);
  return socket;
}

const numbers = (items: SubscriptionItem[]): unknown[] =>
  items.flatMap((one) => (one.kind === "event" ? [one.data["nth"]] : []));
const upTo = (count: number): number[] => Array.from({ length: count }, (_, nth) => nth + 1);

test("a connection that dies in silence is noticed and replaced, one that lives is left alone", async () => {
  const items: SubscriptionItem[] = [];
  socketOf({ pingMs: 40, pongMs: 80 }).subscribe("events", { onItem: (item) => items.push(item) });
  const pings = (): number => server.frames.filter(({ type }) => type === "auth").length;
  await until("three pings", () => pings() > 3);
  assert.equal(server.connections, 1);
  server.silent = true;
  await until("another connection", () => server.connections === 2);
  server.happen(2);
  await until("the events", () => numbers(items).length === 2);
  assert.deepEqual(numbers(items), [1, 2]);
});

test("what a callback throws is reported and harms nothing", async () => {
  const errors: unknown[] = [];
  const items: SubscriptionItem[] = [];
  const socket = socketOf({
    onError: (error) => errors.push(error),
    onStatus: () => assert.fail("a mistake"),
  });
  socket.subscribe("events", {
    onItem: (item) => {
      items.push(item);
      throw new Error("mine");
    },
  });
  socket.subscribe("events", { onItem: () => Promise.reject(new Error("later")) });
  await until("the snapshots", () => items.length === 1);
  server.happen(3);
  await until("the events", () => items.length === 4);
  assert.deepEqual(numbers(items), [1, 2, 3]);
  const messages = errors.map((error) => (error as Error).message);
  assert.equal(messages.filter((message) => message === "mine").length, 4);
  await until("the rejections", () => errors.some((error) => (error as Error).message === "later"));
});

test("a slow iteration requests no more than can be held, and misses nothing", async () => {
  const socket = socketOf();
  const walk = socket.subscribe("events", { after: "e1-0" })[Symbol.asyncIterator]();
  server.happen(2_500);
  assert.deepEqual(numbers([(await walk.next()).value as SubscriptionItem]), [1]);
  await until("the socket to say it is too much", () =>
    server.frames.some(({ type }) => type === "unsubscribe"),
  );
  const items: SubscriptionItem[] = [];
  while (items.length < 2_499) {
    items.push((await walk.next()).value as SubscriptionItem);
  }
  assert.deepEqual(numbers(items), upTo(2_500).slice(1));
  const places = server.frames.filter(({ type }) => type === "subscribe").map(({ after }) => after);
  assert.deepEqual(places.slice(0, 2), ["e1-0", "e1-1001"]);
  await walk.return();
});

test("an app in the background has no connection, and is back where it was", async () => {
  let change = (_: string): void => undefined;
  let removed = 0;
  const appState = {
    addEventListener: (_: "change", listener: (state: string) => void) => {
      change = listener;
      return { remove: () => void (removed += 1) };
    },
  };
  const items: SubscriptionItem[] = [];
  const statuses: SocketStatus[] = [];
  const socket = socketOf({ appState, onStatus: (status) => statuses.push(status) });
  const subscription = socket.subscribe("events", { onItem: (item) => items.push(item) });
  await until("the snapshot", () => items.length === 1);
  change("inactive");
  assert.equal(socket.status, "open");
  change("background");
  assert.equal(socket.status, "paused");
  server.happen(3);
  change("active");
  await until("what was missed", () => numbers(items).length === 3);
  assert.equal(server.connections, 2);
  // iOS freezes a connection silently: it is probed, with a short timeout.
  server.silent = true;
  change("active");
  await until("another connection", () => server.connections === 3);
  server.happen(1);
  await until("the fourth", () => numbers(items).length === 4);
  assert.deepEqual(numbers(items), upTo(4));
  assert.deepEqual(statuses, [
    "connecting",
    "open",
    "paused",
    "connecting",
    "open",
    "waiting",
    "connecting",
    "open",
  ]);
  subscription.unsubscribe();
  assert.deepEqual([socket.status, removed], ["idle", 1]);
});

test("a subscription ends by its signal, and the connection with the last one", async () => {
  const controller = new AbortController();
  const socket = socketOf();
  const items: SubscriptionItem[] = [];
  const walking = (async () => {
    for await (const item of socket.subscribe("events", { signal: controller.signal })) {
      items.push(item);
    }
  })();
  await until("the snapshot", () => items.length === 1);
  controller.abort();
  await walking;
  assert.equal(socket.status, "idle");
  assert.ok(socket.subscribe("events", { signal: controller.signal }).ended);
});

test("a platform that reports an error and never closes is given up too", async () => {
  class Odd {
    static made = 0;
    readyState = 0;
    onopen = null;
    onmessage = null;
    onclose = null;
    onerror: ((event: unknown) => void) | null = null;
    constructor() {
      Odd.made += 1;
      setTimeout(() => this.onerror?.({ message: "no route" }), 5);
    }
    send(): void {
      throw new Error("INVALID_STATE_ERR");
    }
    close(): void {
      throw new Error("closed before it was open");
    }
  }
  socketOf({}, Odd).subscribe("events", { onItem: () => undefined });
  await until("another try", () => Odd.made >= 2);
});
