// The examples run, and the README's programs are right.
import assert from "node:assert/strict";
import { execFile, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { type Account, System, until } from "./support/system.js";

const root = fileURLToPath(new URL("..", import.meta.url));
const timeout = 60_000;
let system: System;
let folder: string;
before(async () => {
  folder = mkdtempSync(join(tmpdir(), "waypost-examples-"));
  system = await System.start();
});
after(async () => {
  rmSync(folder, { recursive: true });
  await system.close();
});

/** Runs an example to its end; returns its output. */
async function run(name: string, args: string[], env: object, stdin = ""): Promise<string> {
  const options = { env: { ...process.env, ...env } };
  return new Promise((resolve, reject) => {
    const child = execFile(
      process.execPath,
      [`${root}/examples/${name}.js`, ...args],
      options,
      (error, stdout, stderr) => (error ? reject(new Error(stderr)) : resolve(stdout)),
    );
    child.stdin?.end(stdin);
  });
}

test("trigger.js sees its run to the end", { timeout }, async () => {
  const { waypost, url, key } = await system.organization();
  await waypost.workflows.put("say-hello", {
    name: "Say hello",
    status: "ACTIVE",
    steps: [
      { id: "start", type: "TRIGGER", next: ["notify"] },
      { id: "notify", type: "NOTIFY", event: "hello" },
    ],
  });
  const output = await run("trigger", ["say-hello", "Ada"], { WAYPOST_URL: url, WAYPOST_KEY: key });
  assert.match(output, /^run \S+ of say-hello\n/);
  assert.match(output, /run\.succeeded/);
});

test("import.js and export.js", { timeout }, async () => {
  const { waypost, url, key } = await system.organization();
  const env = { WAYPOST_URL: url, WAYPOST_KEY: key };
  const lines = '{"id":"1","name":"Ada"}\n{"id":"2"}\n{"id":"3","name":"Grace"}\n';
  const output = await run("import", [], env, lines);
  assert.deepEqual(JSON.parse(output), { created: 2, updated: 0, unchanged: 0, refused: 1 });
  await waypost.companies.create({ id: "c-1", name: "Acme" });
  const path = join(folder, "companies.csv");
  await until("the export", async () => {
    await run("export", [path], env);
    return readFileSync(path, "utf8").includes("Acme");
  });
});

test("tracker.js brings a minute's fixes", { timeout }, async () => {
  const {
    url: WAYPOST_URL,
    email: EMAIL,
    password: PASSWORD,
  } = await system.ask<Account>("/account");
  const path = join(folder, "fixes.json");
  const output = await run("tracker", [path], { WAYPOST_URL, EMAIL, PASSWORD });
  assert.deepEqual(JSON.parse(output.split("\n")[0] ?? ""), { sent: 60, waiting: 0, parked: 0 });
});

test("webhooks.js believes what is signed", { timeout }, async () => {
  const { waypost } = await system.organization();
  const made = await waypost.webhooks.create({
    url: "http://127.0.0.1:9/",
    events: ["lead.created"],
  });
  const env = { ...process.env, WAYPOST_SECRET: made.secret, PORT: "0" };
  const child = spawn(process.execPath, [`${root}/examples/webhooks.js`], { env });
  try {
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    const port = /\d+$/.exec(String((await lines.next()).value))?.[0];
    await waypost.webhooks.update(made.id, { url: `http://127.0.0.1:${port}/` });
    await waypost.leads.create({ id: "l-1", name: "Ada" });
    assert.match(String((await lines.next()).value), /^lead\.created .*"name":"Ada"/);
    const forged = await fetch(`http://127.0.0.1:${port}/`, { method: "POST", body: "{}" });
    assert.equal(forged.status, 400);
  } finally {
    const ended = once(child, "exit");
    child.kill();
    await ended;
  }
});

test("the README's programs are right by their types", () => {
  const readme = readFileSync(`${root}/README.md`, "utf8");
  const blocks = [...readme.matchAll(/```ts\n([\s\S]*?)```/g)].map((match) => match[1] ?? "");
  assert.ok(blocks.length > 8);
  const files = blocks.map((block, nth) => {
    const known = ["waypost", "anonymous"].filter((name) => !block.includes(`const ${name} =`));
    const given = known.map((name) => `declare const ${name}: import("@waypost/client").Waypost;`);
    const name = join(root, `.build/readme-${nth}.ts`);
    const run = block.includes("const { runId }") ? "" : "declare const runId: string;";
    const imported = /import .*\bWaypost\b/.test(block)
      ? ""
      : 'import { Waypost } from "@waypost/client";';
    writeFileSync(name, `export {};${imported}\n${given.join("\n")}${run}\n${block}`);
    return name;
  });
  const options =
    "--noEmit --strict --target ES2022 --module NodeNext --lib ES2022,DOM --types node --skipLibCheck";
  const tsc = [`${root}/node_modules/typescript/bin/tsc`, ...options.split(" "), ...files];
  const { status, stdout } = spawnSync(process.execPath, tsc, { cwd: root, encoding: "utf8" });
  assert.equal(status, 0, stdout);
});
