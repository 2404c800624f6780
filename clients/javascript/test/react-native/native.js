// The native half of React Native's network, over Node's: what its JavaScript calls, and the events
// it receives. It behaves like iOS in RCTNetworking, RCTWebSocketModule, RCTBlobManager and
// RCTFileReaderModule.
import http from "node:http";
import { randomUUID } from "node:crypto";
import WebSocket from "ws";

/** Returns the native modules, by name; `emit` sends events to JavaScript. */
export function nativeModules(emit) {
  const blobs = new Map();
  const requests = new Map();
  const sockets = new Map();
  let last = 0;

  // Native code answers on another thread: never before the call has returned.
  const later = (...event) => setImmediate(() => emit(...event));

  const networking = {
    sendRequest({ method, url, headers, data, responseType }, callback) {
      last += 1;
      const id = last;
      callback(id);
      const request = http.request(url, { method, headers }, (response) => {
        const received = Object.fromEntries(
          Object.entries(response.headers).map(([name, value]) => [name, String(value)]),
        );
        later("didReceiveNetworkResponse", [id, response.statusCode, received, url]);
        const parts = [];
        response.on("data", (part) => parts.push(part));
        response.on("end", () => {
          const body = Buffer.concat(parts);
          if (responseType === "blob") {
            const blobId = randomUUID();
            blobs.set(blobId, body);
            later("didReceiveNetworkData", [
              id,
              { blobId, offset: 0, size: body.length, name: "", type: "" },
            ]);
          } else {
            const encoded =
              responseType === "base64" ? body.toString("base64") : body.toString("utf8");
            later("didReceiveNetworkData", [id, encoded]);
          }
          later("didCompleteNetworkResponse", [id, "", false]);
        });
        response.on("error", (error) =>
          later("didCompleteNetworkResponse", [id, error.message, false]),
        );
      });
      request.on("error", (error) =>
        later("didCompleteNetworkResponse", [id, error.message, false]),
      );
      requests.set(id, request);
      request.end(data.string);
    },
    abortRequest: (id) => requests.get(id)?.destroy(),
    clearCookies: (callback) => callback(true),
    addListener() {},
    removeListeners() {},
  };

  const webSocket = {
    connect(url, protocols, { headers }, id) {
      const socket = new WebSocket(url, protocols ?? [], { headers });
      sockets.set(id, socket);
      let failed = false;
      socket.on("open", () => later("websocketOpen", { id, protocol: socket.protocol }));
      socket.on("message", (bytes) =>
        later("websocketMessage", { id, type: "text", data: bytes.toString("utf8") }),
      );
      socket.on("error", ({ message }) => {
        failed = true;
        later("websocketFailed", { id, message });
      });
      socket.on("close", (code, reason) => {
        // A broken connection is a failure on iOS, with no close event.
        if (!failed && code === 1006) {
          later("websocketFailed", { id, message: "Socket is not connected" });
        } else if (!failed) {
          later("websocketClosed", { id, code, reason: reason.toString("utf8"), clean: true });
        }
      });
    },
    send: (message, id) => sockets.get(id)?.send(message, () => undefined),
    sendBinary() {},
    ping() {},
    close(code, reason, id) {
      const socket = sockets.get(id);
      if (socket?.readyState === WebSocket.CONNECTING) {
        socket.terminate();
      } else {
        socket?.close(code, reason);
      }
    },
    addListener() {},
    removeListeners() {},
  };

  const bytesOf = ({ blobId, offset, size }) => blobs.get(blobId).subarray(offset, offset + size);
  return {
    Networking: networking,
    WebSocketModule: webSocket,
    BlobModule: {
      getConstants: () => ({ BLOB_URI_SCHEME: "blob", BLOB_URI_HOST: null }),
      addNetworkingHandler() {},
      addWebSocketHandler() {},
      removeWebSocketHandler() {},
      sendOverSocket() {},
      createFromParts: (parts, id) =>
        blobs.set(
          id,
          Buffer.concat(
            parts.map((part) =>
              part.type === "string" ? Buffer.from(part.data) : bytesOf(part.data),
            ),
          ),
        ),
      release: (id) => blobs.delete(id),
    },
    FileReaderModule: {
      readAsText: async (blob) => bytesOf(blob).toString("utf8"),
      readAsDataURL: async (blob) =>
        `data:application/octet-stream;base64,${bytesOf(blob).toString("base64")}`,
    },
    PlatformConstants: {
      getConstants: () => ({
        osVersion: "18.0",
        reactNativeVersion: { major: 0, minor: 88, patch: 1 },
        isTesting: true,
      }),
    },
  };
}
