// An organization's resources, with a key: workflows and runs, keys, webhooks, analytics, circles.
import type { Http, RequestOptions } from "./http.js";
import {
  List,
  type Page,
  type PageQuery,
  readPage,
  type SearchQuery,
  type ShortQuery,
} from "./list.js";
import { operations } from "./operations.js";
import type {
  Analytics,
  AnalyticsQuery,
  ChangedWebhook,
  Delivery,
  Key,
  KeyRequest,
  NewCircle,
  NewKey,
  NewWebhook,
  Replay,
  Run,
  SavedWorkflow,
  Webhook,
  WebhookChange,
  WebhookRequest,
  Workflow,
  WorkflowDefinition,
  WorkflowSummary,
} from "./types.js";

/** A part of the API. */
export class Resource {
  protected readonly http: Http;

  /** @internal */
  constructor(http: Http) {
    this.http = http;
  }

  protected listOf<T>(
    operation: Parameters<typeof readPage>[1]["operation"],
    path: string[],
    query: object | undefined,
    options: RequestOptions | undefined,
  ): List<T> {
    return new List<T>({ ...query }, (at): Promise<Page<T>> =>
      readPage(this.http, { operation, path, query: at, options }),
    );
  }
}

/** Workflow definitions. */
export class Workflows extends Resource {
  /** Starts a run; returns once it is on disk. */
  async trigger(
    workflowId: string,
    payload?: Record<string, unknown>,
    options?: RequestOptions,
  ): Promise<{ runId: string }> {
    const operation = operations.triggerWorkflow;
    return this.http.json({ operation, path: [workflowId], body: payload, options });
  }

  /** Creates or replaces a workflow. */
  async put(
    workflowId: string,
    definition: WorkflowDefinition,
    options?: RequestOptions,
  ): Promise<SavedWorkflow> {
    const operation = operations.putWorkflow;
    return this.http.json({ operation, path: [workflowId], body: definition, options });
  }

  /** One workflow, with its steps. */
  async get(workflowId: string, options?: RequestOptions): Promise<Workflow> {
    return this.http.json({ operation: operations.getWorkflow, path: [workflowId], options });
  }

  /** All workflows; with `q` those whose name or id contains it. */
  list(query?: ShortQuery, options?: RequestOptions): List<WorkflowSummary> {
    return this.listOf(operations.listWorkflows, [], query, options);
  }

  /** The runs of a workflow. */
  runs(
    workflowId: string,
    query?: PageQuery & { state?: Run["state"] | undefined },
    options?: RequestOptions,
  ): List<Run> {
    return this.listOf(operations.listRuns, [workflowId], query, options);
  }
}

/** Runs of workflows. */
export class Runs extends Resource {
  /** One run, with its steps. */
  async get(runId: string, options?: RequestOptions): Promise<Run> {
    return this.http.json({ operation: operations.getRun, path: [runId], options });
  }

  /** Cancels a run that has not ended. */
  async cancel(runId: string, options?: RequestOptions): Promise<{ runId: string }> {
    return this.http.json({ operation: operations.cancelRun, path: [runId], options });
  }

  /** Retries a failed or cancelled run; steps that succeeded are not done again. */
  async retry(runId: string, options?: RequestOptions): Promise<{ runId: string }> {
    return this.http.json({ operation: operations.retryRun, path: [runId], options });
  }
}

/** Business analytics. */
export class AnalyticsResource extends Resource {
  /** Totals and the revenue of twelve months; with `from` and `to` a series too. */
  async get(query?: AnalyticsQuery, options?: RequestOptions): Promise<Analytics> {
    return this.http.json({ operation: operations.getAnalytics, query: { ...query }, options });
  }
}

/** API keys. */
export class Keys extends Resource {
  /** Creates a key, shown only now. It can allow no more than the key that creates it. */
  async create(key: KeyRequest, options?: RequestOptions): Promise<NewKey> {
    return this.http.json({ operation: operations.createKey, body: key, options });
  }

  /** All keys, or with `q` those whose name or id contains it. */
  list(query?: ShortQuery, options?: RequestOptions): List<Key> {
    return this.listOf(operations.listKeys, [], query, options);
  }

  /** Revokes a key; with `given` also those that it created. */
  async revoke(keyId: string, options?: RequestOptions & { given?: boolean }): Promise<void> {
    const query = { given: options?.given };
    return this.http.json({ operation: operations.revokeKey, path: [keyId], query, options });
  }
}

/** Endpoints that receive events. */
export class Webhooks extends Resource {
  /** Creates one. Its secret is returned only here and on rotation. */
  async create(webhook: WebhookRequest, options?: RequestOptions): Promise<NewWebhook> {
    return this.http.json({ operation: operations.createWebhook, body: webhook, options });
  }

  /** All endpoints, or with `q` those whose address, description or id contains it. */
  list(query?: ShortQuery<"createdAt">, options?: RequestOptions): List<Webhook> {
    return this.listOf(operations.listWebhooks, [], query, options);
  }

  /** One endpoint. */
  async get(id: string, options?: RequestOptions): Promise<Webhook> {
    return this.http.json({ operation: operations.getWebhook, path: [id], options });
  }

  /** Updates the given fields: `null` clears one, an absent one stays. */
  async update(
    id: string,
    change: WebhookChange,
    options?: RequestOptions,
  ): Promise<ChangedWebhook> {
    const operation = operations.changeWebhook;
    return this.http.json({ operation, path: [id], body: change, options });
  }

  /** Deletes an endpoint. */
  async delete(id: string, options?: RequestOptions): Promise<void> {
    return this.http.json({ operation: operations.deleteWebhook, path: [id], options });
  }

  /**
   * Its deliveries, with its responses. `q` is part of an event type, or the whole id of an event
   * or a delivery.
   */
  deliveries(id: string, query?: SearchQuery, options?: RequestOptions): List<Delivery> {
    return this.listOf(operations.listDeliveries, [id], query, options);
  }

  /** Replays deliveries: one, all after a position, or all that failed. */
  async replay(id: string, which: Replay, options?: RequestOptions): Promise<{ replayed: number }> {
    const operation = operations.replayWebhook;
    return this.http.json({ operation, path: [id], body: which, options });
  }

  /** Rotates its secret; for a day the old one also signs. */
  async rotateSecret(id: string, options?: RequestOptions): Promise<{ secret: string }> {
    return this.http.json({ operation: operations.rotateWebhookSecret, path: [id], options });
  }

  /** Sends it a `webhook.test`. */
  async test(id: string, options?: RequestOptions): Promise<{ deliveryId: string }> {
    return this.http.json({ operation: operations.testWebhook, path: [id], options });
  }
}

/** Circles of the organization: people who join one share their position with it. */
export class OrganizationCircles extends Resource {
  /** Creates a circle. */
  async create(circle: { name: string }, options?: RequestOptions): Promise<NewCircle> {
    const operation = operations.createCircleOfOrganization;
    return this.http.json({ operation, body: circle, options });
  }

  /** Creates a code for a person to join it. */
  async invite(id: string, options?: RequestOptions): Promise<{ code: string; expiresAt: string }> {
    const operation = operations.inviteToCircleOfOrganization;
    return this.http.json({ operation, path: [id], options });
  }
}
