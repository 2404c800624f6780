// Makes query-api/src/pages/assets/world.json of Natural Earth's 1:110m countries as TopoJSON
// (npm package world-atlas, file countries-110m.json):
//
//   node scripts/world-outlines.mjs countries-110m.json > query-api/src/pages/assets/world.json
//
// The result: land as rings, borders and coast as lines, each [x, y, dx, dy, …] in hundredths of
// a degree.
import { readFileSync } from "node:fs";

const world = JSON.parse(readFileSync(process.argv[2], "utf8"));
const { scale, translate } = world.transform;
const hundredths = (value) => Math.round(value * 100);

const arcs = world.arcs.map((arc) => {
  let [x, y] = [0, 0];
  return arc.map(([dx, dy]) => {
    x += dx;
    y += dy;
    return [hundredths(x * scale[0] + translate[0]), hundredths(y * scale[1] + translate[1])];
  });
});

function deltas(points) {
  const flat = [];
  let [x, y] = [0, 0];
  for (const [px, py] of points) {
    if (flat.length && px === x && py === y) continue;
    flat.push(px - x, py - y);
    [x, y] = [px, py];
  }
  return flat;
}

const used = new Map();
function ringsOf(geometry) {
  const polygons = geometry.type === "Polygon" ? [geometry.arcs] : geometry.arcs;
  return polygons.flat();
}
for (const country of world.objects.countries.geometries) {
  for (const arc of ringsOf(country).flat()) {
    const index = arc < 0 ? ~arc : arc;
    used.set(index, (used.get(index) ?? 0) + 1);
  }
}
const ringOf = (indices) =>
  indices.flatMap((index) => (index < 0 ? arcs[~index].toReversed() : arcs[index]));
const land = world.objects.land.geometries.flatMap(ringsOf).map((ring) => deltas(ringOf(ring)));
const borders = [...used].filter(([, times]) => times > 1).map(([index]) => deltas(arcs[index]));
process.stdout.write(JSON.stringify({ land, borders }) + "\n");
