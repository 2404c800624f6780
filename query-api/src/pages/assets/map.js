"use strict";

/** How far a coast that crosses the edge of the world reaches beyond it, in worlds. */
const OVERHANG = 0.1;

/**
 * A map on a canvas: the world's outlines, and on them places, trails and persons. It is moved by
 * finger, mouse, wheel and keys. What it shows stands in a list beside it too.
 */
class WaypostMap {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.center = [0.5, 0.4];
    this.zoom = 1;
    this.persons = new Map();
    this.trails = new Map();
    this.places = [];
    this.calls = [];
    this.world = { land: [], borders: [] };
    this.pointers = new Map();
    this.listen();
    new ResizeObserver(() => this.draw()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    this.load();
  }

  async load() {
    try {
      const answer = await fetch("/dashboard/assets/world.json");
      if (!answer.ok) return;
      const world = await answer.json();
      this.world = { land: world.land.map(WaypostMap.line), borders: world.borders.map(WaypostMap.line) };
      this.draw();
    } catch {
      // Without outlines the map shows the rest.
    }
  }

  /**
   * The points of a line, as shares of the world's width and height. A line that leaves the world on
   * one side and comes back on the other goes on beyond the edge instead, except along the poles.
   */
  static line(deltas) {
    const points = [];
    let [x, y, turn] = [0, 0, 0];
    for (let at = 0; at < deltas.length; at += 2) {
      x += deltas[at];
      y += deltas[at + 1];
      const [across, down] = WaypostMap.project(y / 100, x / 100);
      const jump = across + turn - (points.at(-1)?.[0] ?? across);
      if (Math.abs(jump) > 0.5 && Math.abs(y) < 8_500) turn -= Math.sign(jump);
      points.push([across + turn, down]);
    }
    return points;
  }

  /** Web Mercator, from 0 to 1. */
  static project(lat, lng) {
    const bounded = Math.max(-85.05, Math.min(85.05, lat)) * Math.PI / 180;
    const y = 0.5 - Math.log(Math.tan(Math.PI / 4 + bounded / 2)) / (2 * Math.PI);
    return [(lng + 180) / 360, y];
  }

  /** How many pixels the world is wide. */
  get scale() {
    return 256 * 2 ** this.zoom;
  }

  show(what) {
    Object.assign(this, what);
    this.draw();
  }

  move(dx, dy) {
    this.center[0] -= dx / this.scale;
    this.center[1] = Math.max(0, Math.min(1, this.center[1] - dy / this.scale));
    this.center[0] -= Math.floor(this.center[0]);
    this.draw();
  }

  /** Zooms by so many steps; what lies at a point of the canvas stays there. */
  zoomBy(steps, at) {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const [dx, dy] = at ? [at[0] - width / 2, at[1] - height / 2] : [0, 0];
    const before = this.scale;
    this.zoom = Math.max(0, Math.min(18, this.zoom + steps));
    this.center[0] += dx / before - dx / this.scale;
    this.center[1] += dy / before - dy / this.scale;
    this.draw();
  }

  /** Moves to where all of these are: `[lat, lng]` each. */
  fit(points = this.everything()) {
    if (!points.length) return;
    const [xs, ys] = [0, 1].map((axis) => points.map((point) => WaypostMap.project(...point)[axis]));
    const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const room = (pixels, span) => Math.log2(Math.max(40, pixels - 80) / 256 / Math.max(span, 1e-6));
    this.center = [(left + right) / 2, (top + bottom) / 2];
    this.zoom = Math.max(0, Math.min(points.length > 1 ? 15 : 8, room(width, right - left), room(height, bottom - top)));
    this.draw();
  }

  everything() {
    const persons = [...this.persons.values()].map(({ lat, lng }) => [lat, lng]);
    return [...persons, ...this.places.map(({ lat, lng }) => [lat, lng])];
  }

  listen() {
    const { canvas, pointers } = this;
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      pointers.set(event.pointerId, [event.offsetX, event.offsetY]);
    });
    canvas.addEventListener("pointermove", (event) => this.dragged(event));
    for (const end of ["pointerup", "pointercancel"]) {
      canvas.addEventListener(end, (event) => pointers.delete(event.pointerId));
    }
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoomBy(-event.deltaY / 300, [event.offsetX, event.offsetY]);
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => {
      const step = 60;
      const does = {
        ArrowLeft: () => this.move(step, 0), ArrowRight: () => this.move(-step, 0),
        ArrowUp: () => this.move(0, step), ArrowDown: () => this.move(0, -step),
        "+": () => this.zoomBy(1), "=": () => this.zoomBy(1), "-": () => this.zoomBy(-1), 0: () => this.fit(),
      }[event.key];
      if (!does || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      does();
    });
  }

  dragged(event) {
    const { pointers } = this;
    const before = pointers.get(event.pointerId);
    if (!before) return;
    const now = [event.offsetX, event.offsetY];
    const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1];
    pointers.set(event.pointerId, now);
    if (!other) return this.move(now[0] - before[0], now[1] - before[1]);
    const apart = ([x, y]) => Math.max(1, Math.hypot(x - other[0], y - other[1]));
    const middle = [(now[0] + other[0]) / 2, (now[1] + other[1]) / 2];
    this.zoomBy(Math.log2(apart(now) / apart(before)), middle);
  }

  /** Draws once for all that changes within a frame. */
  draw() {
    this.drawing ??= requestAnimationFrame(() => {
      this.drawing = undefined;
      this.paint();
    });
  }

  paint() {
    const { canvas, context } = this;
    const { clientWidth: width, clientHeight: height } = canvas;
    if (!width || !height) return;
    const ratio = Math.min(devicePixelRatio || 1, 2);
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const style = getComputedStyle(canvas);
    this.color = (name) => style.getPropertyValue(`--${name}`).trim();
    context.fillStyle = this.color("tint");
    context.fillRect(0, 0, width, height);
    for (const turn of [-1, 0, 1]) this.paintWorld(turn);
    this.paintPlaces();
    this.paintTrails();
    this.paintPersons();
  }

  /** Where a point of the world lies on the canvas. */
  at([x, y], turn = 0) {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    return [(x + turn - this.center[0]) * this.scale + width / 2, (y - this.center[1]) * this.scale + height / 2];
  }

  /** The same for a coordinate, on the turn of the world that is nearest. */
  spot({ lat, lng }) {
    const [x, y] = WaypostMap.project(lat, lng);
    return this.at([x, y], Math.round(this.center[0] - x));
  }

  paintWorld(turn) {
    const { context } = this;
    const [left] = this.at([0, 0], turn);
    const beyond = OVERHANG * this.scale;
    if (left - beyond > this.canvas.clientWidth || left + this.scale + beyond < 0) return;
    const trace = (line) => line.forEach((point, nth) => {
      context[nth ? "lineTo" : "moveTo"](...this.at(point, turn));
    });
    context.beginPath();
    this.world.land.forEach(trace);
    context.fillStyle = this.color("card");
    context.fill("evenodd");
    // The edge along a pole is no coast.
    const draw = (line) => line.forEach((point, nth) => {
      const near = nth && Math.abs(point[0] - line[nth - 1][0]) < 0.5;
      context[near ? "lineTo" : "moveTo"](...this.at(point, turn));
    });
    context.beginPath();
    this.world.land.forEach(draw);
    context.lineWidth = 1;
    context.strokeStyle = this.color("quiet");
    context.stroke();
    context.beginPath();
    this.world.borders.forEach(draw);
    context.strokeStyle = this.color("line");
    context.stroke();
  }

  /** How many pixels so many metres are at a latitude. */
  pixels(metres, lat) {
    return metres / (40_075_017 * Math.cos(lat * Math.PI / 180)) * this.scale;
  }

  paintPlaces() {
    const { context } = this;
    for (const place of this.places) {
      const [x, y] = this.spot(place);
      context.beginPath();
      context.arc(x, y, Math.max(4, this.pixels(place.radius_m ?? 0, place.lat)), 0, 2 * Math.PI);
      context.strokeStyle = this.color("info");
      context.lineWidth = 2;
      context.stroke();
      this.label(place.name, x, y + 18, this.color("info"));
    }
  }

  paintTrails() {
    const { context } = this;
    context.lineWidth = 3;
    context.strokeStyle = this.color("accent");
    context.globalAlpha = 0.5;
    for (const trail of this.trails.values()) {
      context.beginPath();
      trail.forEach((fix, nth) => context[nth ? "lineTo" : "moveTo"](...this.spot(fix)));
      context.stroke();
    }
    context.globalAlpha = 1;
  }

  paintPersons() {
    const { context } = this;
    const inNeed = new Set(this.calls.map((call) => call.user_id));
    const fixes = [...this.persons].map(([id, fix]) => [fix, inNeed.has(id)]);
    const alone = this.calls.filter((call) => call.lat != null && !this.persons.has(call.user_id));
    for (const [fix, sos] of [...fixes, ...alone.map((call) => [call, true])]) {
      const [x, y] = this.spot(fix);
      const color = this.color(sos ? "bad" : "accent");
      context.beginPath();
      context.arc(x, y, sos ? 11 : 7, 0, 2 * Math.PI);
      context.fillStyle = color;
      context.fill();
      context.lineWidth = 2;
      context.strokeStyle = this.color("card");
      context.stroke();
      this.label(sos ? `SOS: ${fix.name ?? ""}` : fix.name, x, y - 14, color);
    }
  }

  label(text, x, y, color) {
    if (!text) return;
    const { context } = this;
    context.font = "600 13px system-ui, sans-serif";
    context.textAlign = "center";
    context.lineWidth = 4;
    context.strokeStyle = this.color("card");
    context.strokeText(text, x, y);
    context.fillStyle = color;
    context.fillText(text, x, y);
  }
}

/** Follows channels of a socket, and goes on after a break where it stopped. */
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
      this.state("live");
      for (const channel of this.channels) {
        this.say({ type: "subscribe", id: channel, channel, after: this.positions.get(channel) });
      }
    }
    if (frame.position) this.positions.set(id, frame.position);
    if (type === "snapshot") this.heard(id, undefined, frame.data);
    if (type === "event") this.heard(id, frame.event);
    if (type === "reset") this.positions.delete(id);
    // A place in the log that is no more: from now on, then.
    if (type === "error" && id && this.positions.delete(id)) {
      this.say({ type: "subscribe", id, channel: id });
    }
  }

  close() {
    this.closed = true;
    clearTimeout(this.again);
    this.socket.close();
  }
}
