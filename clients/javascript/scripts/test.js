// Builds the client and its tests, and runs them with Node's own runner.
//
//   npm test                     all
//   npm test -- cases document   files with these prefixes
import { spawnSync } from "node:child_process";
import { readdirSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";

const folder = fileURLToPath(new URL("..", import.meta.url));
const wanted = process.argv.slice(2).filter((word) => !word.startsWith("-"));
const options = process.argv.slice(2).filter((word) => word.startsWith("-"));

function run(args) {
  const { status } = spawnSync(process.execPath, args, { cwd: folder, stdio: "inherit" });
  if (status !== 0) {
    process.exit(status ?? 1);
  }
}

rmSync(`${folder}/.build`, { recursive: true, force: true });
for (const project of ["tsconfig.json", "tsconfig.test.json"]) {
  run(["node_modules/typescript/bin/tsc", "-p", project]);
}
const files = readdirSync(`${folder}/.build`)
  .filter((name) => name.endsWith(".test.js"))
  .filter((name) => wanted.length === 0 || wanted.some((word) => name.startsWith(word)));
// Node 22 and later have a built-in WebSocket.
const more = Number(process.versions.node.split(".")[0]) < 22 ? ["--experimental-websocket"] : [];
run([
  ...more,
  "--test",
  "--test-concurrency=1",
  ...options,
  ...files.map((name) => `.build/${name}`),
]);
