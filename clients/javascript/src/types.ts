// The public types: those of the API's document, and those that it describes inline.
import type { Analytics as Totals } from "./schema.js";

export type {
  Call,
  Circle,
  Client,
  ClientRecord,
  CompanyRecord,
  ContactRecord,
  ChangedWebhook,
  DealRecord,
  Delivery,
  Event,
  Fix,
  Key,
  KeyRequest,
  Lead,
  LeadRecord,
  NewCircle,
  NewKey,
  NewWebhook,
  OpenCall,
  Order,
  OrderRecord,
  Place,
  PlaceRequest,
  Position,
  Readiness,
  RecordId,
  Registration,
  Run,
  RunStep,
  SavedWorkflow,
  Session,
  StoredClient,
  StoredCompany,
  StoredContact,
  StoredDeal,
  StoredLead,
  StoredOrder,
  Trail,
  Webhook,
  WebhookChange,
  WebhookRequest,
  Workflow,
  WorkflowDefinition,
  WorkflowSummary,
} from "./schema.js";

/** A value in a response: those known today, and any added later. */
export type OpenEnum<T extends string> = T | (string & {});

/** How a list is sorted; `-` before it descends. */
export type Sort = SortedBy | `-${SortedBy}`;
type SortedBy =
  "createdAt" | "name" | "amount" | "email" | "number" | "city" | "status" | "isActive";

/** The span of an analytics summary: all fields, only `from` and `to`, or none for the whole. */
export interface AnalyticsQuery {
  /** The first day, `2026-01-31`. */
  from?: string | undefined;
  /** The last day. */
  to?: string | undefined;
  /** The step of the series. */
  by?: "day" | "week" | "month" | undefined;
  /** The days' time zone, such as `Europe/Berlin`. */
  timezone?: string | undefined;
  /** The field by whose values each step of the series is divided. */
  groupBy?: "status" | "plan" | "source" | "city" | undefined;
}

/** What a step of the series counts for one value of the field given as `groupBy`. */
export interface SeriesGroup {
  /** The first 100 characters of the value; null for records without one. */
  value: string | null;
  revenue: number;
  orders: number;
  leads: number;
  clients: number;
}

/** Business analytics. Money is in minor units. */
export type Analytics = Totals & {
  /** By day, week or month, if requested. */
  series?: {
    start: string;
    revenue: number;
    orders: number;
    leads: number;
    /** By value, only with `groupBy`. */
    groups?: SeriesGroup[];
  }[];
};

/** The outcome of one line of an import. */
export type ImportOutcome =
  | { line: number; id: string; status: OpenEnum<"created" | "updated" | "unchanged"> }
  | { line: number; error: string };

/** A position that was accepted. */
export interface AcceptedFix {
  id: string;
  recorded_at: string;
}

/** An SOS, and who was alerted. */
export interface TriggeredSos {
  sos_id: string;
  audience: { id: number; name: string | null }[];
}

/** The status of an SOS. */
export interface SosState {
  sos_id: string;
  status: OpenEnum<"acknowledged" | "resolved">;
}

/** What to replay: exactly one of these. */
export type Replay = { deliveryId: string } | { after: string } | { failed: true };

/** Export formats. `crm`, for companies only, has the labels that other CRMs map automatically. */
export type ExportFormat = "csv" | "excel" | "pdf";

/** Selects positions. */
export interface HistoryQuery {
  /** Whose; the person's own unless given. */
  userId?: number | undefined;
  from?: string | undefined;
  to?: string | undefined;
  /** 1 to 1,000: 100. */
  limit?: number | undefined;
}
