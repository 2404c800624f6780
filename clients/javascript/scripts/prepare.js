// Builds dist/ when the package is installed from its folder or packed. Somebody who installs the
// folder into another project has none of its development dependencies: they are fetched then.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, statSync } from "node:fs";
import { fileURLToPath } from "node:url";

const folder = fileURLToPath(new URL("..", import.meta.url));

/** Returns when a file of a folder last changed, in milliseconds; 0 if there is none. */
function newest(name) {
  const files = existsSync(`${folder}/${name}`) ? readdirSync(`${folder}/${name}`) : [];
  return Math.max(0, ...files.map((file) => statSync(`${folder}/${name}/${file}`).mtimeMs));
}

function run(command, args) {
  // npm's own settings of the outer installation would mislead the inner one.
  const env = Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) => !/^npm_(config_(global|prefix|local_prefix)|package_|lifecycle_)/.test(name),
    ),
  );
  const { status } = spawnSync(command, args, { cwd: folder, stdio: ["ignore", 2, 2], env });
  if (status !== 0) {
    process.exit(status ?? 1);
  }
}

if (newest("dist") <= newest("src")) {
  if (!existsSync(`${folder}/node_modules/typescript`)) {
    run("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"]);
  }
  run(process.execPath, ["node_modules/typescript/bin/tsc", "-p", "tsconfig.json"]);
}
