"use strict";

/** Duration of a trail. */
const HOUR = 3_600_000;

/** Pixels within which persons share one point. */
const ONE_POINT = 18;

/** How far a coast that crosses the edge of the world reaches beyond it, in worlds. */
const OVERHANG = 0.1;
/** From this radius on, in pixels, a circle has room for names. */
const WIDE = 48;
/** The sides of a shape for its name, in the order in which they are tried. */
const ABOVE = [[0, -1], [0, 1], [1, 0], [-1, 0]];
const BELOW = [[0, 1], [0, -1], [1, 0], [-1, 0]];

/**
 * A map on a canvas: the world's outlines, and on them places, trails and persons. It is moved by
 * finger, mouse, wheel and keys. What it shows is also in a list next to it.
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
    const template = canvas.dataset.tiles;
    this.tiles = template && new MapTiles(template, () => this.draw());
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
   * Returns the points of a line, as fractions of the world's width and height. A line that leaves
   * the world on one side and returns on the other continues beyond its edge, except along poles.
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

  /** The width of the world in pixels. */
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

  /** Zooms by a number of steps; what is at `at` on the canvas stays there. */
  zoomBy(steps, at) {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const [dx, dy] = at ? [at[0] - width / 2, at[1] - height / 2] : [0, 0];
    const before = this.scale;
    this.zoom = Math.max(0, Math.min(18, this.zoom + steps));
    this.center[0] += dx / before - dx / this.scale;
    this.center[1] += dy / before - dy / this.scale;
    this.draw();
  }

  /** Adds fixes to a trail: one per time, none older than an hour, thinned where there are many. */
  follow(id, fixes) {
    const since = Date.now() - HOUR;
    const byTime = new Map([...(this.trails.get(id) ?? []), ...fixes].map((one) => [Date.parse(one.recorded_at), one]));
    const times = [...byTime.keys()].filter((time) => time >= since).sort((one, other) => one - other);
    const kept = times.length > 720 ? times.filter((_, nth) => nth % 2 === 0 || nth === times.length - 1) : times;
    this.trails.set(id, kept.map((time) => byTime.get(time)));
  }

  /** Moves to fit all these points: `[lat, lng]` each. */
  fit(points = this.everything()) {
    if (!points.length) return;
    const [xs, ys] = [0, 1].map((axis) => points.map((point) => WaypostMap.project(...point)[axis]));
    const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const room = (pixels, span) => Math.log2(Math.max(40, pixels - 80) / 256 / Math.max(span, 1e-6));
    this.center = [(left + right) / 2, (top + bottom) / 2];
    this.zoom = Math.max(0, Math.min(points.length > 1 || this.tiles ? 15 : 8, room(width, right - left), room(height, bottom - top)));
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
      this.pressed = pointers.size === 1 && [event.offsetX, event.offsetY];
    });
    canvas.addEventListener("pointerup", ({ offsetX, offsetY }) => {
      const at = this.pressed;
      if (at && Math.hypot(offsetX - at[0], offsetY - at[1]) < 6) this.pick([offsetX, offsetY]);
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
        Enter: () => this.pick([canvas.clientWidth / 2, canvas.clientHeight / 2]),
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

  /** Draws once for all changes within a frame. */
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
    this.paintTiles(ratio);
    this.labels = [];
    this.paintPlaces();
    this.paintTrails();
    this.paintPersons();
    this.paintLabels();
  }

  /** Maps a point of the world to the canvas. */
  at([x, y], turn = 0) {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    return [(x + turn - this.center[0]) * this.scale + width / 2, (y - this.center[1]) * this.scale + height / 2];
  }

  /** Does the same for a coordinate, on the nearest turn of the world. */
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

  /** Paints over the outlines, too coarse for a city: they show where a tile is missing. */
  paintTiles(ratio) {
    if (!this.tiles) return;
    this.context.save();
    if (matchMedia("(prefers-color-scheme: dark)").matches) this.context.globalAlpha = 0.7;
    this.tiles.paint(this, this.context, ratio);
    this.context.restore();
  }

  /** Converts metres to pixels at a latitude. */
  pixels(metres, lat) {
    return metres / (40_075_017 * Math.cos(lat * Math.PI / 180)) * this.scale;
  }

  paintPlaces() {
    const { context } = this;
    for (const place of this.places) {
      const [x, y] = this.spot(place);
      context.beginPath();
      const radius = Math.max(4, this.pixels(place.radius_m ?? 0, place.lat));
      context.arc(x, y, radius, 0, 2 * Math.PI);
      context.strokeStyle = this.color("info");
      context.lineWidth = 2;
      context.stroke();
      this.labels.push({ text: place.name, x, y, radius, color: this.color("info"), sides: BELOW });
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

  /** Returns everybody on the map and whether they call for help: callers last, to be seen. */
  marks() {
    const inNeed = new Set(this.calls.map((call) => call.user_id));
    const marks = [...this.persons].map(([id, fix]) => ({ fix: { ...fix, user_id: id }, sos: inNeed.has(id) }));
    const alone = this.calls.filter((call) => call.lat != null && !this.persons.has(call.user_id));
    marks.push(...alone.map((call) => ({ fix: call, sos: true })));
    return marks.sort((one, other) => one.sos - other.sos);
  }

  /** Lists persons at a point of the canvas, those who call for help first. */
  pick([x, y]) {
    const isHere = ({ fix }) => {
      const [left, top] = this.spot(fix);
      return Math.hypot(left - x, top - y) <= ONE_POINT;
    };
    const here = this.marks().filter(isHere).reverse();
    const made = (tag, text) => Object.assign(document.createElement(tag), { textContent: text });
    const list = document.createElement("ul");
    list.append(...here.map(({ fix, sos }) => {
      const line = document.createElement("li");
      line.append(made("strong", `${sos ? "SOS: " : ""}${fix.name ?? "Somebody"}`), made("span", local.format(new Date(fix.recorded_at))));
      return line;
    }));
    list.className = "app-list";
    const place = this.canvas.parentElement.querySelector("[data-here]");
    place.replaceChildren(...(here.length ? [made("p", "At this point of the map:"), list] : []));
  }

  paintPersons() {
    const groups = new Map();
    for (const mark of this.marks()) {
      const [x, y] = this.spot(mark.fix);
      const key = `${Math.round(x / ONE_POINT)} ${Math.round(y / ONE_POINT)}`;
      const group = groups.get(key) ?? { names: 0 };
      groups.delete(key);
      groups.set(key, { ...mark, x, y, names: group.names + 1 });
    }
    for (const group of groups.values()) this.paintGroup(group);
  }

  /** Paints one person, or several at one point with their number. */
  paintGroup({ fix, sos, x, y, names }) {
    const { context } = this;
    const color = this.color(sos ? "bad" : "accent");
    context.beginPath();
    const radius = sos || names > 1 ? 11 : 7;
    context.arc(x, y, radius, 0, 2 * Math.PI);
    context.fillStyle = color;
    context.fill();
    context.lineWidth = 2;
    context.strokeStyle = this.color("card");
    context.stroke();
    const others = names > 1 ? ` and ${names - 1} more` : "";
    const text = `${sos ? "SOS: " : ""}${fix.name ?? ""}${others}`;
    this.labels.push({ text, x, y, radius, color, sides: ABOVE, isUrgent: sos });
    if (names === 1) return;
    context.font = "700 11px system-ui, sans-serif";
    context.textAlign = "center";
    context.fillStyle = this.color("card");
    context.fillText(names, x, y + 4);
  }

  /**
   * Names give way to shapes, to callers for help, and to earlier names. A name without room is
   * left out until there is some: it is in the list too.
   */
  paintLabels() {
    const { context } = this;
    context.font = "600 13px system-ui, sans-serif";
    context.textAlign = "center";
    context.lineWidth = 3;
    const taken = this.labels.filter(({ radius }) => radius < WIDE)
      .map(({ x, y, radius }) => [x - radius, y - radius, x + radius, y + radius]);
    const rings = this.labels.filter(({ radius }) => radius >= WIDE);
    const isFree = (box) => !taken.some((other) => meet(box, other)) && !rings.some((ring) => crosses(box, ring));
    const last = this.labels.filter(({ text }) => text).reverse();
    for (const label of last.sort((one, other) => Boolean(other.isUrgent) - Boolean(one.isUrgent))) {
      const boxes = places(label, context.measureText(label.text).width);
      const box = boxes.find(isFree) ?? (label.isUrgent && boxes[0]);
      if (!box) continue;
      taken.push(box);
      const [x, y] = [(box[0] + box[2]) / 2, box[3] - 4];
      context.strokeStyle = this.color("card");
      context.strokeText(label.text, x, y);
      context.fillStyle = label.color;
      context.fillText(label.text, x, y);
    }
  }
}

const meet = (one, other) => one[0] < other[2] && other[0] < one[2] && one[1] < other[3] && other[1] < one[3];

/** Returns whether a box lies on the line of a wide circle, not inside or outside it. */
function crosses([left, top, right, bottom], { x, y, radius }) {
  const within = (value, low, high) => Math.min(Math.max(value, low), high);
  const nearest = Math.hypot(within(x, left, right) - x, within(y, top, bottom) - y);
  const farthest = Math.hypot(Math.max(x - left, right - x), Math.max(y - top, bottom - y));
  return nearest < radius && farthest > radius;
}

/** Returns the places for a name next to its shape, best first: `[left, top, right, bottom]`. */
function places({ x, y, radius, sides }, width) {
  const [half, height] = [width / 2 + 2, 17];
  const at = (dx, dy) => [x + dx - half, y + dy - height / 2, x + dx + half, y + dy + height / 2];
  const beside = [3, 16].flatMap((gap) => {
    const [up, aside] = [radius + gap + height / 2, radius + gap + half];
    return sides.map(([across, down]) => at(across * aside, down * up));
  });
  // In a wide circle there may be room for its name.
  return radius >= WIDE ? [at(0, 18), at(0, -18), at(0, 40), ...beside] : beside;
}
