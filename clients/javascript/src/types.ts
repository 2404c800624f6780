// The types that users meet: those of the API's document, and what it describes in place.
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

/** A value that an answer may have: those known today, and any that comes later. */
export type Open<T extends string> = T | (string & {});

/** How a list is sorted; `-` before it descends. */
export type Sort = SortedBy | `-${SortedBy}`;
type SortedBy =
  "createdAt" | "name" | "amount" | "email" | "number" | "city" | "status" | "isActive";

/** Of what an analytics summary is asked. All or the first two together, else the whole. */
export interface AnalyticsQuery {
  /** The first day, `2026-01-31`. */
  from?: string | undefined;
  /** The last day. */
  to?: string | undefined;
  /** What the series counts by. */
  by?: "day" | "week" | "month" | undefined;
  /** Where days begin, such as `Europe/Berlin`. */
  timezone?: string | undefined;
}

/** The business in numbers. Money is in minor units. */
export type Analytics = Totals & {
  /** By day, week or month, where it was asked for. */
  series?: { start: string; revenue: number; orders: number; leads: number }[];
};

/** What became of one line of many. */
export type Outcome =
  | { line: number; id: string; status: Open<"created" | "updated" | "unchanged"> }
  | { line: number; error: string };

/** A position that was taken. */
export interface Accepted {
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
  status: Open<"acknowledged" | "resolved">;
}

/** What to send again: exactly one of these. */
export type Replay = { deliveryId: string } | { after: string } | { failed: true };

/** The formats of exports. `crm`, of companies only, has the labels that other CRMs map by themselves. */
export type ExportFormat = "csv" | "excel" | "pdf";

/** Which positions. */
export interface HistoryQuery {
  /** Whose; one's own unless given. */
  userId?: number | undefined;
  from?: string | undefined;
  to?: string | undefined;
  /** 1 to 1,000: 100. */
  limit?: number | undefined;
}
