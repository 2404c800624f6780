// Client and document agree: docs/openapi.json, src/schema.ts and src/operations.ts.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import type { Waypost } from "../dist/index.js";
import {
  exportOperation,
  type Operation,
  operations,
  recordOperations,
} from "../dist/operations.js";

interface Described {
  operationId: string;
  security?: object[];
  parameters?: Parameter[];
}

interface Parameter {
  $ref?: string;
  name?: string;
  in?: string;
}

const document = JSON.parse(
  readFileSync(new URL("../../../docs/openapi.json", import.meta.url), "utf8"),
) as {
  paths: Record<string, Record<string, Described>>;
  components: { parameters: Record<string, Parameter> };
};

const described = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({
    method: method.toUpperCase(),
    path,
    ...operation,
  })),
);

/** Operations that a client has no use for. */
const LEFT_OUT = ["openSocket", "isAlive", "readMetrics", "readOpenApi", "readAsyncApi"];

/** Operations that read the log itself, which already has what this client wrote. */
const FEEDS = ["readEvents", "readLocations"];

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
  assert.deepEqual(
    missing.map(({ operationId }) => operationId),
    [],
  );
});

test("every operation of the client is in the document as the client sends it", () => {
  for (const [name, operation] of ours()) {
    const found = described.find(({ operationId }) => operationId === name);
    assert.ok(found, `${name} is not in the document`);
    assert.equal(`${operation.method} ${operation.path}`, `${found.method} ${found.path}`, name);
    assert.equal(operation.once ?? false, has(found, "IdempotencyKey"), `${name}: Idempotency-Key`);
    const waits = has(found, "MinPosition") && !FEEDS.includes(name);
    assert.equal(operation.waits !== undefined, waits, `${name}: position`);
    if (operation.open) {
      const anonymous =
        found.security?.length === 0 ||
        found.security?.some((one) => Object.keys(one).length === 0);
      assert.ok(anonymous, `${name} may go without a credential`);
    }
  }
});

test("the types are those that the document describes", () => {
  const script = fileURLToPath(new URL("../scripts/generate.js", import.meta.url));
  const { status, stderr } = spawnSync(process.execPath, [script, "--check"], { encoding: "utf8" });
  assert.equal(status, 0, stderr);
});

/** The names that a method's query takes: those of its type, as the compiler checks. */
type Asked<Method> = Method extends (query?: infer Query, ...rest: never[]) => unknown
  ? (keyof NonNullable<Query>)[]
  : Method extends (id: string, query?: infer Query, ...rest: never[]) => unknown
    ? (keyof NonNullable<Query>)[]
    : never;

const page = ["limit", "page", "cursor"] as const;
const workflows: Asked<Waypost["workflows"]["list"]> = [...page, "q", "sort"];
const runs: Asked<Waypost["workflows"]["runs"]> = [...page, "state"];
const listed = [...page, "q", "sort", "createdFrom", "createdBefore"] as const;
const orders: Asked<Waypost["orders"]["list"]> = [...listed, "status"];
const leads: Asked<Waypost["leads"]["list"]> = [...listed, "status"];
const clients: Asked<Waypost["clients"]["list"]> = [...listed, "city", "isActive"];
const keys: Asked<Waypost["keys"]["list"]> = [...page, "q", "sort"];
const webhooks: Asked<Waypost["webhooks"]["list"]> = [...page, "q", "sort"];
const deliveries: Asked<Waypost["webhooks"]["deliveries"]> = [...page, "q"];
const circles: Asked<Waypost["circles"]["list"]> = [...page, "q", "sort"];
const analytics: Asked<Waypost["analytics"]["get"]> = ["from", "to", "by", "timezone", "groupBy"];
const companies: Asked<Waypost["companies"]["export"]> = ["format", "updatedSince"];
const events: Asked<Waypost["events"]["read"]> = ["after", "types", "limit"];
const history: Asked<Waypost["location"]["history"]> = ["userId", "from", "to", "limit"];

const QUERY: Record<string, readonly string[]> = {
  listWorkflows: workflows,
  listRuns: runs,
  listOrders: orders,
  listLeads: leads,
  listClients: clients,
  listKeys: keys,
  listWebhooks: webhooks,
  listDeliveries: deliveries,
  listCircles: circles,
  getAnalytics: analytics,
  exportCompanies: companies,
  exportDeals: companies,
  exportContacts: companies,
  readEvents: events,
  readLocations: events,
  readHistory: history,
  revokeKey: ["given"],
};

test("every query parameter of the document can be given", () => {
  for (const { operationId, parameters = [] } of described) {
    const named = parameters
      .map(({ $ref, ...own }) =>
        $ref ? document.components.parameters[$ref.split("/").at(-1) ?? ""] : own,
      )
      .filter((one) => one?.in === "query")
      .map(
        (one) => one?.name?.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase()) ?? "",
      );
    const missing = named.filter((name) => !QUERY[operationId]?.includes(name));
    assert.deepEqual(missing, [], operationId);
  }
});
