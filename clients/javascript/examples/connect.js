// Client for the examples, from WAYPOST_URL and WAYPOST_KEY.
import { Waypost } from "@waypost/client";

export async function waypost() {
  const { WAYPOST_URL: url = "http://127.0.0.1:8080", WAYPOST_KEY: key } = process.env;
  if (!key) {
    console.error("Set WAYPOST_KEY to an API key; `waypost demo` prints one.");
    process.exit(2);
  }
  // Node 22 and later have a built-in WebSocket.
  const { WebSocket } = globalThis.WebSocket ? globalThis : await import("ws");
  return new Waypost({ url, key, WebSocket });
}
