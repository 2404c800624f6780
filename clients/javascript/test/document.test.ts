// Client and document part ways: docs/openapi.json, src/schema.ts and src/operations.ts.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { exportOperation, type Operation, operations, recordOperations } from "../dist/operations.js";

interface Described {
  operationId: string;
  security?: object[];
  parameters?: { $ref?: string; name?: string; in?: string }[];
}

const document = JSON.parse(
  readFileSync(new URL("../../../docs/openapi.json", import.meta.url), "utf8"),
) as { paths: Record<string, Record<string, Described>> };

const described = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({
    method: method.toUpperCase(),
    path,
    ...operation,
  })),
);

/** Operations that a client has no use for. */
const LEFT_OUT = ["openSocket", "isAlive", "readMetrics", "readOpenApi", "readAsyncApi"];
/** Operations of the contract that the document does not describe yet. */
const AHEAD = ["exportAccount", "deleteAccount"];

const SINGULAR: Record<string, string> = {
  companies: "Company",
  deals: "Deal",
  contacts: "Contact",
  orders: "Order",
  leads: "Lead",
  clients: "Client",
};

/** All operations of the client, by the names of the document. */
function ours(): Map<string, Operation> {
  const all = new Map<string, Operation>(Object.entries(operations));
  for (const [kind, name] of Object.entries(SINGULAR)) {
    for (const [verb, operation] of Object.entries(recordOperations(kind))) {
      all.set(`${verb}${name}`, operation);
    }
  }
  for (const kind of ["companies", "deals", "contacts"]) {
    all.set(`export${kind[0]?.toUpperCase()}${kind.slice(1)}`, exportOperation(kind));
  }
  return all;
}

const has = (operation: Described, parameter: string): boolean =>
  (operation.parameters ?? []).some(({ $ref }) => $ref?.endsWith(`/${parameter}`));

test("every operation of the document is an operation of the client", () => {
  const client = ours();
  const missing = described.filter(
    ({ operationId }) => !client.has(operationId) && !LEFT_OUT.includes(operationId),
  );
  assert.deepEqual(missing.map(({ operationId }) => operationId), []);
});

test("every operation of the client is in the document as the client sends it", () => {
  for (const [name, operation] of ours()) {
    const found = described.find(({ operationId }) => operationId === name);
    if (!found) {
      assert.ok(AHEAD.includes(name), `${name} is not in the document`);
      continue;
    }
    assert.equal(`${operation.method} ${operation.path}`, `${found.method} ${found.path}`, name);
    assert.equal(operation.once ?? false, has(found, "IdempotencyKey"), `${name}: Idempotency-Key`);
    assert.equal(operation.waits !== undefined, has(found, "MinPosition"), `${name}: position`);
    if (operation.open) {
      const anonymous = found.security?.length === 0 || found.security?.some((one) => Object.keys(one).length === 0);
      assert.ok(anonymous, `${name} may go without a credential`);
    }
  }
});

test("the types are those that the document describes", () => {
  const script = fileURLToPath(new URL("../scripts/generate.js", import.meta.url));
  const { status, stderr } = spawnSync(process.execPath, [script, "--check"], { encoding: "utf8" });
  assert.equal(status, 0, stderr);
});
