export { Waypost } from "./client.js";
export type { Token, TokenSource } from "./credential.js";
export * from "./errors.js";
export {
  Export,
  type ExportOptions,
  NotModifiedError,
  type OpenFile,
  type Progress,
} from "./export.js";
export type { Feed, FeedOptions, FeedQuery } from "./feeds.js";
export type { RequestOptions } from "./http.js";
export type { List, Page, PageQuery, SearchQuery, ShortQuery } from "./list.js";
export type {
  AnalyticsResource,
  Keys,
  OrganizationCircles,
  Runs,
  Webhooks,
  Workflows,
} from "./organization.js";
export type { Auth, Circles, Location, Sos } from "./person.js";
export type {
  AbortSignalLike,
  AppStateLike,
  Clock,
  CryptoLike,
  Fetch,
  ResponseLike,
  WebSocketClass,
  WebSocketLike,
} from "./platform.js";
export type { FlushResult, LocationQueue, QueueOptions } from "./queue.js";
export type { ExportedRecords, ListedRecords, ListQuery, Records } from "./records.js";
export { type Retry, VERSION, type WaypostOptions } from "./settings.js";
export type { Socket, SocketOptions, SocketStatus } from "./socket.js";
export type { ParkedFix, QueueStorage } from "./store.js";
export type { Channel, SubscribeOptions, Subscription, SubscriptionItem } from "./subscription.js";
export type * from "./types.js";
export { type ReceivedWebhook, verifyWebhook, type WebhookEvent } from "./webhook.js";
