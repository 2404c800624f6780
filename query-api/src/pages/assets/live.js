"use strict";

/** Follows channels of a socket, and resumes after a break where it stopped. */
class LiveChannels {
  constructor(path, channels, { token, heard, state }) {
    Object.assign(this, { path, channels, token, heard, state, tries: 0, positions: new Map() });
    this.open();
  }

  open() {
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(`${scheme}//${location.host}${this.path}`);
    this.socket = socket;
    socket.addEventListener("open", () => {
      if (this.token) this.say({ type: "auth", token: this.token });
    });
    socket.addEventListener("message", ({ data }) => this.take(JSON.parse(data)));
    socket.addEventListener("close", ({ code }) => {
      if (this.closed) return;
      const ends = code >= 3500 && code < 4000;
      this.state(ends ? "ended" : "away");
      if (ends) return;
      const wait = Math.min(30_000, 500 * 2 ** this.tries++) * (0.5 + Math.random() / 2);
      this.again = setTimeout(() => this.open(), wait);
    });
  }

  say(frame) {
    this.socket.send(JSON.stringify(frame));
  }

  take(frame) {
    const { type, id } = frame;
    if (type === "ready") {
      this.tries = 0;
      this.awaited = new Set(this.channels);
      for (const channel of this.channels) {
        this.say({ type: "subscribe", id: channel, channel, after: this.positions.get(channel) });
      }
    }
    // Events before a channel is subscribed are not received.
    if (type === "subscribed" && this.awaited.delete(id) && !this.awaited.size) this.state("live");
    if (frame.position) this.positions.set(id, frame.position);
    if (type === "snapshot") this.heard(id, undefined, frame.data);
    if (type === "event") this.heard(id, frame.event);
    if (type === "reset") this.positions.delete(id);
    // The position is gone from the log: start from now.
    if (type === "error" && id && this.positions.delete(id)) {
      this.awaited.add(id);
      this.say({ type: "subscribe", id, channel: id });
    }
  }

  close() {
    this.closed = true;
    clearTimeout(this.again);
    this.socket.close();
  }
}
