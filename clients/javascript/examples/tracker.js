// A phone's tracker: fixes go into a queue that survives the program's end, and from there to Waypost.
//   WAYPOST_URL=… EMAIL=… PASSWORD=… node examples/tracker.js fixes.json
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { Waypost } from "@waypost/client";

const {
  WAYPOST_URL: url = "http://127.0.0.1:8080",
  EMAIL: email,
  PASSWORD: password,
} = process.env;
const [path = "fixes.json"] = process.argv.slice(2);

/** A storage in one file; a phone has AsyncStorage, a page localStorage. */
function fileStorage() {
  const kept = new Map(existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : []);
  const save = () => {
    writeFileSync(`${path}.new`, JSON.stringify([...kept]));
    renameSync(`${path}.new`, path);
  };
  return {
    getItem: (key) => kept.get(key) ?? null,
    setItem: (key, value) => (kept.set(key, value), save()),
    removeItem: (key) => (kept.delete(key), save()),
  };
}

const anonymous = new Waypost({ url });
const waypost = anonymous.as(() => anonymous.auth.login({ email, password }));
const queue = await waypost.locationQueue({ storage: fileStorage(), name: `fixes-of-${email}` });

// A walk along the harbour, a fix for each second of the last minute.
const now = Date.now();
for (let second = 60; second > 0; second -= 1) {
  await queue.add({
    lat: 53.5436 + second / 10_000,
    lng: 9.9665,
    accuracy: 8,
    recorded_at: new Date(now - second * 1000).toISOString(),
  });
}
console.log(JSON.stringify(await queue.flush()));
const [last] = await waypost.location.latest();
console.log(last.lat, last.lng, last.recorded_at);
