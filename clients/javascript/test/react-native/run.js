// Runs the body of an async function in a scope that has React Native's globals and none of Node's:
//   node run.js BODY GIVEN    prints its result as JSON
import vm from "node:vm";
import { bundle } from "./bundle.js";
import { nativeModules } from "./native.js";

const [body, given] = process.argv.slice(2);
// From Hermes and React Native's other set-up: timers, console and text encoding.
const scope = vm.createContext({
  console,
  setTimeout,
  clearTimeout,
  setInterval,
  clearInterval,
  setImmediate,
  queueMicrotask,
  atob,
  btoa,
  TextEncoder,
  TextDecoder,
  performance,
});
scope.globalThis = scope;
const modules = nativeModules((name, event) => scope.deviceEvents.emit(name, event));
scope.__turboModuleProxy = (name) => modules[name];
scope.nativeModuleProxy = modules;
vm.runInContext(await bundle(), scope, { filename: "app.js" });
scope.given = JSON.parse(given);
const result = await vm.runInContext(
  `(async () => { ${body} })().then((value) => JSON.stringify(value ?? null))`,
  scope,
);
process.stdout.write(result);
process.exit(0);
