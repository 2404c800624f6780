import type { Feed } from "./positions.js";

/** An operation of the API. A test compares these with docs/openapi.json. */
export interface Operation {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  /** Takes an `Idempotency-Key`: done once, however often it is sent. */
  readonly once?: true;
  /** Takes a position to wait for, of the feed that it reads. */
  readonly waits?: Feed | "either";
  /** Which feed it writes to, if not to the log. */
  readonly writes?: Feed;
  /** Its 500 is worth a retry. */
  readonly again?: true;
  /** Sent without a credential. */
  readonly open?: true;
}

type Extra = Omit<Operation, "method" | "path">;

const get = (path: string, extra: Extra = { waits: "log" }): Operation => ({
  method: "GET",
  path,
  ...extra,
});
const post = (path: string, extra?: Extra): Operation => ({
  method: "POST",
  path,
  once: true,
  ...extra,
});
const put = (path: string): Operation => ({ method: "PUT", path });
const remove = (path: string): Operation => ({ method: "DELETE", path });

/** The operations on records of a kind. */
export function recordOperations(
  kind: string,
): Record<"create" | "get" | "put" | "delete", Operation> {
  const all = `/api/v1/records/${kind}`;
  const one = `${all}/{id}`;
  return { create: post(all), get: get(one), put: put(one), delete: remove(one) };
}

/** The export of records of a kind. */
export const exportOperation = (kind: string): Operation =>
  get(`/api/export/${kind}`, { waits: "log", again: true });

const ORGANIZATION_CIRCLES = "/api/v1/circles";
const WORKFLOW = "/api/v1/workflows/{workflowId}";
const RUN = "/api/v1/runs/{runId}";
const WEBHOOK = "/api/v1/webhooks/{id}";
const CIRCLE = "/circles/{id}";

/** All other operations, by their names in the API's document. */
export const operations = {
  triggerWorkflow: post(`${WORKFLOW}/trigger`, { again: true }),
  putWorkflow: put(WORKFLOW),
  getWorkflow: get(WORKFLOW),
  listWorkflows: get("/api/v1/workflows"),
  listRuns: get(`${WORKFLOW}/runs`),
  getRun: get(RUN),
  cancelRun: post(`${RUN}/cancel`),
  retryRun: post(`${RUN}/retry`),
  listOrders: get("/api/v1/orders"),
  listLeads: get("/api/v1/leads"),
  listClients: get("/api/v1/clients"),
  getAnalytics: get("/api/v1/analytics"),
  createKey: post("/api/v1/keys"),
  listKeys: get("/api/v1/keys"),
  revokeKey: remove("/api/v1/keys/{keyId}"),
  createWebhook: post("/api/v1/webhooks"),
  listWebhooks: get("/api/v1/webhooks"),
  getWebhook: get(WEBHOOK),
  changeWebhook: { method: "PATCH", path: WEBHOOK },
  deleteWebhook: remove(WEBHOOK),
  listDeliveries: get(`${WEBHOOK}/deliveries`),
  replayWebhook: post(`${WEBHOOK}/replay`),
  rotateWebhookSecret: post(`${WEBHOOK}/rotate-secret`),
  testWebhook: post(`${WEBHOOK}/test`),
  readEvents: get("/api/v1/events", {}),
  readLocations: get("/api/v1/locations", {}),
  createCircleOfOrganization: post(ORGANIZATION_CIRCLES),
  inviteToCircleOfOrganization: post(`${ORGANIZATION_CIRCLES}/{id}/invites`),
  registerAccount: post("/auth/register", { open: true }),
  signIn: post("/auth/login", { open: true }),
  sendCode: post("/auth/otp/send", { open: true }),
  verifyCode: post("/auth/otp/verify"),
  signOut: post("/auth/logout"),
  changePassword: post("/auth/password"),
  exportAccount: get("/auth/export", { waits: "either" }),
  deleteAccount: post("/auth/delete"),
  updateLocation: post("/location/update", { writes: "fixes" }),
  pauseSharing: post("/location/pause"),
  resumeSharing: post("/location/resume"),
  readLatest: get("/location/latest", { waits: "either" }),
  readTrails: get("/location/trails", { waits: "either" }),
  readHistory: get("/location/history", { waits: "either" }),
  createCircle: post("/circles"),
  listCircles: get("/circles"),
  inviteToCircle: post(`${CIRCLE}/invites`),
  joinCircle: post("/circles/join"),
  leaveCircle: remove(`${CIRCLE}/members/me`),
  addPlace: post(`${CIRCLE}/places`),
  listPlaces: get(`${CIRCLE}/places`),
  removePlace: remove(`${CIRCLE}/places/{placeId}`),
  listOpenSos: get("/sos"),
  triggerSos: post("/sos/trigger"),
  acknowledgeSos: post("/sos/{id}/acknowledge"),
  resolveSos: post("/sos/{id}/resolve"),
  isReady: get("/readyz", { open: true }),
} as const satisfies Record<string, Operation>;
