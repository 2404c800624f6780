// Bundles a program with React Native's own modules: their Flow types are stripped, and their iOS
// files come before the rest. None of them is replaced: the native half is native.js.
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const require = createRequire(import.meta.url);
const babel = require("@babel/core");
const PLUGINS = ["babel-plugin-syntax-hermes-parser", "@babel/plugin-transform-flow-strip-types"];

const flow = {
  name: "flow",
  setup({ onLoad }) {
    onLoad({ filter: /node_modules\/(@?react-native)\/.*\.js$/ }, async ({ path }) => {
      const { code } = await babel.transformAsync(await readFile(path, "utf8"), {
        filename: path,
        babelrc: false,
        configFile: false,
        plugins: PLUGINS.map((name) => require.resolve(name)),
      });
      return { contents: code, loader: "jsx" };
    });
  },
};

/** Returns the program as one script, for a scope without Node's own fetch and WebSocket. */
export async function bundle() {
  const entry = fileURLToPath(new URL("app.js", import.meta.url));
  const result = await build({
    entryPoints: [entry],
    bundle: true,
    write: false,
    format: "iife",
    // What Metro and Hermes make of the package: modules, and no optional chaining left undone.
    target: "es2020",
    platform: "neutral",
    mainFields: ["browser", "module", "main"],
    conditions: ["react-native", "import", "default"],
    resolveExtensions: [".ios.js", ".native.js", ".js", ".json"],
    define: { __DEV__: "false", global: "globalThis", "process.env.NODE_ENV": '"production"' },
    plugins: [flow],
    logLevel: "error",
  });
  return result.outputFiles[0].text;
}
