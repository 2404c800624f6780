"use strict";

/**
 * The tiles of a map, from a server that the operator has named. Only what is seen is asked for, a
 * few at a time and from the middle outwards; what is on its way and no longer seen is given up.
 */
class MapTiles {
  /** From this zoom on: above it, the outlines of the world say as much. */
  static FROM = 4.5;
  /** The most detailed tiles that servers have as a rule. */
  static DEEPEST = 19;
  static AT_ONCE = 6;
  static KEPT = 300;
  /** After how long a tile that failed is asked for again. */
  static AGAIN = 60_000;

  constructor(template, arrived) {
    this.template = template;
    this.arrived = arrived;
    this.tiles = new Map();
    this.loading = new Set();
    this.asked = 0;
    this.wanted = [];
    this.keys = new Set();
  }

  /** Draws what is there, and asks for what is not. */
  paint(map, context, ratio) {
    if (map.zoom < MapTiles.FROM) return this.want([]);
    // On a fine screen the tiles of the next zoom at half their size.
    const zoom = Math.min(MapTiles.DEEPEST, Math.round(map.zoom + Math.log2(ratio)));
    const across = 2 ** zoom;
    const { clientWidth: width, clientHeight: height } = map.canvas;
    const [left, top] = [map.center[0] - width / 2 / map.scale, map.center[1] - height / 2 / map.scale];
    const [right, bottom] = [left + width / map.scale, top + height / map.scale];
    const wanted = [];
    for (let y = Math.max(0, Math.floor(top * across)); y <= Math.min(across - 1, Math.floor(bottom * across)); y++) {
      for (let x = Math.floor(left * across); x <= Math.floor(right * across); x++) {
        const tile = { zoom, x: ((x % across) + across) % across, y };
        this.paintOne(context, tile, this.box(map, x, y, across, ratio));
        const off = Math.hypot((x + 0.5) / across - map.center[0], (y + 0.5) / across - map.center[1]);
        wanted.push({ ...this.instead(tile), off });
      }
    }
    this.want(wanted.sort((one, other) => one.off - other.off));
  }

  /** Where a tile lies, on whole pixels of the screen: neighbours meet without a gap. */
  box(map, x, y, across, ratio) {
    const whole = (value) => Math.round(value * ratio) / ratio;
    const [left, top] = map.at([x / across, y / across]).map(whole);
    const [right, bottom] = map.at([(x + 1) / across, (y + 1) / across]).map(whole);
    return [left, top, right - left, bottom - top];
  }

  /** The tile itself, or as long as it is not there the part of a coarser one, or finer ones. */
  paintOne(context, tile, [left, top, width, height]) {
    if (this.ready(tile)) return context.drawImage(this.ready(tile), left, top, width, height);
    for (let up = 1; up <= Math.min(5, tile.zoom); up++) {
      const parts = 2 ** up;
      const image = this.ready({ zoom: tile.zoom - up, x: Math.floor(tile.x / parts), y: Math.floor(tile.y / parts) });
      if (!image) continue;
      const size = image.naturalWidth / parts;
      context.drawImage(image, (tile.x % parts) * size, (tile.y % parts) * size, size, size, left, top, width, height);
      break;
    }
    for (const nth of [0, 1, 2, 3]) {
      const [right, below] = [nth % 2, nth >> 1];
      const image = this.ready({ zoom: tile.zoom + 1, x: tile.x * 2 + right, y: tile.y * 2 + below });
      if (image) context.drawImage(image, left + right * width / 2, top + below * height / 2, width / 2, height / 2);
    }
  }

  /** The tile, or a coarser one where the server has it not. */
  instead(tile) {
    let asked = tile;
    while (this.tiles.get(MapTiles.key(asked))?.state === "failed" && asked.zoom > tile.zoom - 3) {
      asked = { zoom: asked.zoom - 1, x: asked.x >> 1, y: asked.y >> 1 };
    }
    return asked;
  }

  static key({ zoom, x, y }) {
    return `${zoom}/${x}/${y}`;
  }

  ready(tile) {
    const known = this.tiles.get(MapTiles.key(tile));
    return known?.state === "ready" ? known.image : undefined;
  }

  want(wanted) {
    const keys = new Set(wanted.map(MapTiles.key));
    this.wanted = wanted;
    if (keys.size === this.keys.size && [...keys].every((key) => this.keys.has(key))) return;
    for (const key of this.loading) if (!keys.has(key)) this.giveUp(key);
    this.keys = keys;
    clearTimeout(this.resting);
    // While the map is still moving, what is seen now may be gone with the next frame.
    this.resting = setTimeout(() => this.ask(), this.asked ? 80 : 0);
  }

  ask() {
    for (const tile of this.wanted) {
      if (this.loading.size >= MapTiles.AT_ONCE) return;
      const key = MapTiles.key(tile);
      const known = this.tiles.get(key);
      if (known && (known.state !== "failed" || Date.now() - known.at < MapTiles.AGAIN)) continue;
      this.load(key, tile);
    }
  }

  load(key, { zoom, x, y }) {
    const image = new Image();
    // Tile servers want to know for whom; that page's address is none of their business.
    image.referrerPolicy = "origin";
    image.decoding = "async";
    const known = { image, state: "loading", at: Date.now() };
    const done = (state) => {
      if (this.tiles.get(key) !== known) return;
      Object.assign(known, { state, at: Date.now() });
      this.loading.delete(key);
      this.ask();
      this.arrived();
    };
    image.addEventListener("load", () => done("ready"));
    image.addEventListener("error", () => done("failed"));
    this.tiles.delete(key);
    this.tiles.set(key, known);
    this.loading.add(key);
    this.asked += 1;
    image.src = this.template.replace("{z}", zoom).replace("{x}", x).replace("{y}", y);
    this.drop();
  }

  giveUp(key) {
    const known = this.tiles.get(key);
    this.tiles.delete(key);
    this.loading.delete(key);
    if (known) known.image.src = "";
  }

  /** Forgets the oldest, but nothing that is seen. */
  drop() {
    for (const key of this.tiles.keys()) {
      if (this.tiles.size <= MapTiles.KEPT) return;
      if (!this.keys.has(key) && !this.loading.has(key)) this.tiles.delete(key);
    }
  }
}
