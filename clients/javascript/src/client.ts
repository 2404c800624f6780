import { Credential, type TokenSource } from "./credential.js";
import { InvalidArgumentError, UnavailableError } from "./errors.js";
import { Feed } from "./feeds.js";
import { Http, type RequestOptions } from "./http.js";
import { operations } from "./operations.js";
import {
  AnalyticsResource,
  Keys,
  OrganizationCircles,
  Runs,
  Webhooks,
  Workflows,
} from "./organization.js";
import { Auth, Circles, Location, Sos } from "./person.js";
import { LocationQueue, type QueueOptions } from "./queue.js";
import { ExportedRecords, ListedRecords, type ListQuery } from "./records.js";
import { settle, type WaypostOptions } from "./settings.js";
import { Socket, type SocketOptions } from "./socket.js";
import type * as types from "./types.js";

/**
 * A client of Waypost, for an API key (`key`), for a person (`token`), or anonymous.
 *
 * It keeps the newest position that its commands returned, so that its own reads see what it
 * wrote. It has no connections or timers of its own that would have to be closed.
 */
export class Waypost {
  readonly workflows: Workflows;
  readonly runs: Runs;
  readonly companies: ExportedRecords<
    types.CompanyRecord,
    types.StoredCompany,
    types.ExportFormat | "crm"
  >;
  readonly deals: ExportedRecords<types.DealRecord, types.StoredDeal, types.ExportFormat>;
  readonly contacts: ExportedRecords<types.ContactRecord, types.StoredContact, types.ExportFormat>;
  readonly orders: ListedRecords<
    types.OrderRecord,
    types.StoredOrder,
    types.Order,
    ListQuery & { status?: types.OrderRecord["status"] | undefined }
  >;
  readonly leads: ListedRecords<
    types.LeadRecord,
    types.StoredLead,
    types.Lead,
    ListQuery & { status?: string | undefined }
  >;
  readonly clients: ListedRecords<
    types.ClientRecord,
    types.StoredClient,
    types.Client,
    ListQuery & { city?: string | undefined; isActive?: boolean | undefined }
  >;
  readonly analytics: AnalyticsResource;
  readonly keys: Keys;
  readonly webhooks: Webhooks;
  /** Everything that happened, except people's positions. */
  readonly events: Feed;
  /** The positions of people in the organization's circles. */
  readonly locations: Feed;
  readonly organizationCircles: OrganizationCircles;
  readonly auth: Auth;
  readonly location: Location;
  readonly circles: Circles;
  readonly sos: Sos;
  readonly #http: Http;
  readonly #options: WaypostOptions;

  constructor(options: WaypostOptions) {
    if (options.key !== undefined && options.token !== undefined) {
      throw new InvalidArgumentError("give either a key or a token: a client is one caller");
    }
    const settings = settle(options);
    const credential = new Credential(options.key ?? options.token, settings.clock);
    const http = new Http(settings, credential);
    this.#http = http;
    this.#options = options;
    this.workflows = new Workflows(http);
    this.runs = new Runs(http);
    this.companies = new ExportedRecords(http, "companies");
    this.deals = new ExportedRecords(http, "deals");
    this.contacts = new ExportedRecords(http, "contacts");
    this.orders = new ListedRecords(http, "orders", operations.listOrders);
    this.leads = new ListedRecords(http, "leads", operations.listLeads);
    this.clients = new ListedRecords(http, "clients", operations.listClients);
    this.analytics = new AnalyticsResource(http);
    this.keys = new Keys(http);
    this.webhooks = new Webhooks(http);
    this.events = new Feed(http, operations.readEvents);
    this.locations = new Feed(http, operations.readLocations);
    this.organizationCircles = new OrganizationCircles(http);
    this.auth = new Auth(http);
    this.location = new Location(http);
    this.circles = new Circles(http);
    this.sos = new Sos(http);
  }

  /** The newest position that this client's commands returned, which its reads wait for. */
  get position(): string | undefined {
    return this.#http.positions.wanted("log");
  }

  /** Returns a client with the same settings for this token, or an anonymous one without it. */
  as(token?: TokenSource): Waypost {
    return new Waypost({ ...this.#options, key: undefined, token });
  }

  /** A socket for subscriptions; it connects with the first one. */
  socket(options: SocketOptions = {}): Socket {
    return new Socket(this.#http.settings, this.#http.credential, options);
  }

  /** Opens a queue that keeps fixes while there is no connection. */
  async locationQueue(options: QueueOptions): Promise<LocationQueue> {
    return LocationQueue.open(this.#http, options);
  }

  /** Returns whether Waypost is ready, and what is not. */
  async readiness(options?: RequestOptions): Promise<types.Readiness> {
    try {
      const call = { operation: operations.isReady, options: { maxRetries: 0, ...options } };
      return await this.#http.json(call);
    } catch (error) {
      if (error instanceof UnavailableError && error.body.includes('"checks"')) {
        return JSON.parse(error.body) as types.Readiness;
      }
      throw error;
    }
  }
}
