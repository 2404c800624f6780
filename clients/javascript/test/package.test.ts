// The package as users install it: the tarball's contents, its types, and its size.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const root = fileURLToPath(new URL("..", import.meta.url));
/** The most that a page loads, minified and gzipped. */
const CEILING = 14 * 1024;
let folder: string;
let tarball: string;
let packed: string[];

const bin = (name: string, ...args: string[]): string =>
  execFileSync(process.execPath, [join(root, "node_modules", name), ...args], {
    cwd: folder,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
  });

/** Runs a program and reports its output if it failed. */
function passes(run: () => string): void {
  try {
    run();
  } catch (error) {
    const { stdout, stderr } = error as { stdout?: string; stderr?: string };
    assert.fail(`${stdout ?? ""}\n${stderr ?? String(error)}`);
  }
}

before(() => {
  folder = mkdtempSync(join(tmpdir(), "waypost-package-"));
  const said = execFileSync("npm", ["pack", "--json", "--pack-destination", folder], {
    cwd: root,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  });
  const [made] = JSON.parse(said.slice(said.indexOf("["))) as [
    { filename: string; files: { path: string }[] },
  ];
  tarball = join(folder, made.filename.replace("@", "").replace("/", "-"));
  packed = made.files.map(({ path }) => path);
  const installed = join(folder, "node_modules/@waypost/client");
  mkdirSync(installed, { recursive: true });
  execFileSync("tar", ["xzf", tarball, "--strip-components=1", "-C", installed]);
});
after(() => rmSync(folder, { recursive: true, force: true }));

test("the tarball has what runs, its types and its sources, and nothing else", () => {
  const others = packed.filter(
    (path) => !/^(dist\/[\w-]+\.(js|d\.ts)(\.map)?|src\/[\w-]+\.ts)$/.test(path),
  );
  assert.deepEqual(others.sort(), ["LICENSE", "README.md", "package.json"]);
  assert.ok(packed.includes("dist/index.js") && packed.includes("dist/node.d.ts"));
});

test("publint finds nothing", () => {
  passes(() => bin("publint/src/cli.js", tarball, "--strict"));
});

test("are the types wrong? They are not", () => {
  passes(() => bin("@arethetypeswrong/cli/dist/index.js", tarball, "--profile", "esm-only"));
});

test("it is imported from the tarball in Node", () => {
  writeFileSync(
    join(folder, "run.mjs"),
    `import { Waypost, VERSION } from "@waypost/client";
     import { saveExport } from "@waypost/client/node";
     import metadata from "@waypost/client/package.json" with { type: "json" };
     const waypost = new Waypost({ url: "http://127.0.0.1:9", key: "wp_x" });
     console.log(typeof waypost.runs.get, typeof saveExport, VERSION === metadata.version);`,
  );
  const said = execFileSync(process.execPath, ["--no-warnings", join(folder, "run.mjs")], {
    encoding: "utf8",
  });
  assert.equal(said.trim(), "function function true");
});

const CONSUMER = `
import { RateLimitedError, verifyWebhook, Waypost, type Lead, type SubscriptionItem } from "@waypost/client";
import { saveExport } from "@waypost/client/node";

export async function use(signal: AbortSignal): Promise<Lead | undefined> {
  const waypost = new Waypost({ url: "https://waypost.example", key: "wp_…" });
  for await (const order of waypost.orders.list({ status: "ACTIVE" }, { signal })) {
    const amount: number = order.amount;
    // @ts-expect-error what is not there is a mistake
    order.nothing;
    void amount;
  }
  // @ts-expect-error a status that nobody knows cannot be asked for
  waypost.orders.list({ status: "DREAMING" });
  // @ts-expect-error a lead needs a name
  await waypost.leads.create({ score: 1 });
  // @ts-expect-error deals have no such format
  waypost.deals.export({ format: "crm" });
  await saveExport(waypost.companies.export({ format: "crm" }), "companies.csv");
  const socket = waypost.socket();
  socket.subscribe("runs", { onItem: (item: SubscriptionItem) => (item.kind === "event" ? item.position : item.kind) });
  const run = await waypost.runs.get("r");
  // Answers may have values that come later: no case is missing, and none is forbidden.
  if (run.state === "SUCCEEDED" || run.state === "DREAMING") void run.steps;
  await waypost.webhooks.update("h", { description: null });
  await verifyWebhook({ secret: "whsec_", headers: {}, body: "" }).catch((error: unknown) => {
    if (error instanceof RateLimitedError) void error.retryAfterMs;
  });
  return (await waypost.leads.page()).data[0];
}
`;

/** The platform's own fetch, WebSocket and storage fit as they are. */
const OF_PAGES = `
export const inPage = new Waypost({ url: "https://waypost.example", fetch, WebSocket });
export const queue = inPage.locationQueue({ storage: localStorage });
`;
const OF_NODE = `
import { WebSocket } from "ws";
export const inNode = new Waypost({ url: "https://waypost.example", fetch, WebSocket });
`;

const PLATFORMS: Record<
  string,
  { lib: string[]; types: string[]; module?: string; moduleResolution?: string }
> = {
  "a page": { lib: ["ES2022", "DOM"], types: [] },
  Node: { lib: ["ES2022"], types: ["node"] },
  "a bundler": { lib: ["ES2022", "DOM"], types: [], module: "ESNext", moduleResolution: "Bundler" },
};
for (const [kind, options] of Object.entries(PLATFORMS)) {
  test(`its types are right for ${kind}, with every check of TypeScript on`, () => {
    writeFileSync(
      join(folder, "use.ts"),
      CONSUMER + (options.types.length > 0 ? OF_NODE : OF_PAGES),
    );
    writeFileSync(join(folder, "package.json"), '{"type":"module"}');
    const compilerOptions = {
      target: "ES2022",
      module: "NodeNext",
      strict: true,
      exactOptionalPropertyTypes: true,
      noUncheckedIndexedAccess: true,
      skipLibCheck: options.types.includes("node"),
      noEmit: true,
      typeRoots: [join(root, "node_modules/@types")],
      paths: { ws: [join(root, "node_modules/@types/ws/index.d.ts")] },
      ...options,
    };
    writeFileSync(
      join(folder, "tsconfig.json"),
      JSON.stringify({ compilerOptions, files: ["use.ts"] }),
    );
    passes(() => bin("typescript/bin/tsc", "-p", folder));
  });
}

test(`a page loads no more than ${CEILING} bytes of it`, async () => {
  const bundle = async (contents: string): Promise<number> => {
    const { outputFiles } = await build({
      stdin: { contents, resolveDir: folder },
      bundle: true,
      minify: true,
      write: false,
      format: "esm",
      platform: "browser",
    });
    return gzipSync(outputFiles[0]?.contents ?? "", { level: 9 }).length;
  };
  const whole = await bundle('export * from "@waypost/client";');
  assert.ok(whole <= CEILING, `${whole} bytes`);
  const part = await bundle('export { verifyWebhook } from "@waypost/client";');
  assert.ok(part <= 2 * 1024, `${part} bytes for the verification of webhooks alone`);
});
