// Calls by name, as the cases make them: `workflows.trigger` with named arguments.
import { Export, type RequestOptions, type Waypost } from "../../dist/index.js";

type Arguments = Record<string, never> & { [name: string]: unknown };

/** The names of the arguments that come before the rest, by call. */
const BEFORE: Record<string, string[]> = {
  "workflows.trigger": ["workflowId", "payload"],
  "workflows.put": ["workflowId", "definition"],
  "workflows.get": ["workflowId"],
  "workflows.runs": ["workflowId"],
  "runs.get": ["runId"],
  "runs.cancel": ["runId"],
  "runs.retry": ["runId"],
  "webhooks.update": ["id"],
  "webhooks.replay": ["id"],
  "webhooks.get": ["id"],
  "webhooks.delete": ["id"],
  "webhooks.deliveries": ["id"],
  "webhooks.rotateSecret": ["id"],
  "webhooks.test": ["id"],
  "organizationCircles.invite": ["id"],
  "circles.invite": ["id"],
  "circles.leave": ["id"],
  "circles.addPlace": ["id"],
  "circles.places": ["id"],
  "circles.removePlace": ["id", "placeId"],
  "sos.acknowledge": ["id"],
  "sos.resolve": ["id"],
  "location.updateMany": ["fixes"],
};
const OF_RECORDS: Record<string, string[]> = {
  create: ["record"],
  put: ["id", "record"],
  get: ["id"],
  delete: ["id"],
  import: ["records"],
};
const RECORDS = ["companies", "deals", "contacts", "orders", "leads", "clients"];
/** Calls whose other arguments are one object, even where it would be empty. */
const WITH_REST =
  /^(?:\w+\.(?:list|page|read|follow|export|runs|deliveries|update|replay|create|register|login|sendCode|verifyCode|changePassword|delete|pause|history|join|addPlace|trigger)|analytics\.get)$/;

/** Calls; collects the first `take` items of lists, lines, feeds and imports. */
export async function call(
  client: Waypost,
  name: string,
  given: Record<string, unknown>,
  options?: RequestOptions,
  take = Infinity,
): Promise<unknown> {
  const result = await invoke(client, name, given as Arguments, options);
  if (result instanceof Export) {
    return result.text();
  }
  if (typeof result === "object" && result !== null && Symbol.asyncIterator in result) {
    return collect(result as AsyncIterable<unknown>, take);
  }
  return result;
}

function invoke(
  client: Waypost,
  name: string,
  given: Arguments,
  options: RequestOptions | undefined,
): unknown {
  const [resource = "", verb = ""] = name.split(".");
  const target = (verb ? Reflect.get(client, resource) : client) as Record<string, unknown>;
  const method = (target[verb || resource] as (...all: unknown[]) => unknown).bind(target);
  const before = (RECORDS.includes(resource) ? OF_RECORDS[verb] : undefined) ?? BEFORE[name] ?? [];
  const ordered = before.map((one) => given[one]);
  const rest = Object.entries(given).filter(([one]) => !before.includes(one));
  if (name === "keys.revoke") {
    return method(given["keyId"], { ...options, given: given["given"] });
  }
  if (name === "circles.addPlace") {
    const { id, radiusM, ...place } = given;
    return method(id, { ...place, radius_m: radiusM }, options);
  }
  if (resource === "auth" && (verb === "export" || verb === "logout")) {
    return method(options);
  }
  const full = RECORDS.includes(resource) && OF_RECORDS[verb] !== undefined;
  const takesRest = !full && name !== "workflows.trigger" && WITH_REST.test(name);
  const empty = name === "sos.trigger" && rest.length === 0;
  return method(
    ...ordered,
    ...(takesRest ? [empty ? undefined : Object.fromEntries(rest)] : []),
    options,
  );
}

async function collect(items: AsyncIterable<unknown>, take: number): Promise<unknown[]> {
  const collected: unknown[] = [];
  for await (const item of items) {
    collected.push(item);
    if (collected.length >= take) {
      break;
    }
  }
  return collected;
}
