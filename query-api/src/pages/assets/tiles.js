"use strict";

/**
 * The tiles of a map, from a server that the operator has named. Only visible tiles are requested,
 * a few at a time and from the middle outwards; those that go out of view are cancelled.
 */
class MapTiles {
  /** Smallest zoom with tiles: below, the world's outlines show as much. */
  static FROM = 4.5;
  /** The most detailed zoom that servers usually have. */
  static DEEPEST = 19;
  static AT_ONCE = 6;
  static KEPT = 300;
  /** The delay before a failed tile is requested again. */
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

  /** Draws loaded tiles, and requests missing ones. */
  paint(map, context, ratio) {
    if (map.zoom < MapTiles.FROM) return this.want([]);
    // High-density screens use the next zoom's tiles at half size.
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

  /** Returns a tile's box in whole screen pixels: neighbours meet without a gap. */
  box(map, x, y, across, ratio) {
    const whole = (value) => Math.round(value * ratio) / ratio;
    const [left, top] = map.at([x / across, y / across]).map(whole);
    const [right, bottom] = map.at([(x + 1) / across, (y + 1) / across]).map(whole);
    return [left, top, right - left, bottom - top];
  }

  /** Paints the tile itself, or until it is loaded the part of a coarser one, or finer ones. */
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

  /** Returns the tile, or a coarser one if it has failed. */
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
    // Tile servers want to know the site; the page's address is none of their business.
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

  /** Drops the oldest tiles, but no visible ones. */
  drop() {
    for (const key of this.tiles.keys()) {
      if (this.tiles.size <= MapTiles.KEPT) return;
      if (!this.keys.has(key) && !this.loading.has(key)) this.tiles.delete(key);
    }
  }
}
