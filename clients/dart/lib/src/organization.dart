// An organization's resources, with a key: workflows, runs, analytics, keys, webhooks, circles.
import 'operations.dart';
import 'pages.dart';
import 'settings.dart';
import 'transport.dart';

/// Workflow definitions.
class Workflows {
  final Transport _transport;

  Workflows(this._transport);

  /// Starts a run: `{runId}`. Returns once the run is on disk.
  Future<Json> trigger(String workflowId, {Json? payload, RequestOptions? options}) =>
      _transport.json(
        Call(Operations.triggerWorkflow, path: [workflowId], body: payload, options: options),
      );

  /// Creates or replaces a workflow: `{workflowId, version}`.
  Future<Json> put(String workflowId, Json definition, {RequestOptions? options}) =>
      _transport.json(
        Call(Operations.putWorkflow, path: [workflowId], body: definition, options: options),
      );

  /// One workflow, with its steps.
  Future<Json> get(String workflowId, {RequestOptions? options}) =>
      _transport.json(Call(Operations.getWorkflow, path: [workflowId], options: options));

  /// All workflows; with [q] those whose name or id contains it. [sort] is `createdAt` or `name`,
  /// with `-` to descend.
  Stream<Json> list({String? q, String? sort, int? limit, RequestOptions? options}) =>
      walk(
        _transport,
        Call(
          Operations.listWorkflows,
          query: {'q': q, 'sort': sort, 'limit': limit},
          options: options,
        ),
      );

  /// The runs of a workflow, newest first; with [state] only those in it, such as `FAILED`.
  Stream<Json> runs(String workflowId, {String? state, int? limit, RequestOptions? options}) =>
      walk(
        _transport,
        Call(
          Operations.listRuns,
          path: [workflowId],
          query: {'state': state, 'limit': limit},
          options: options,
        ),
      );
}

/// Runs of workflows.
class Runs {
  final Transport _transport;

  Runs(this._transport);

  /// One run, with its steps.
  Future<Json> get(String runId, {RequestOptions? options}) =>
      _transport.json(Call(Operations.getRun, path: [runId], options: options));

  /// Cancels a run that has not ended.
  Future<Json> cancel(String runId, {RequestOptions? options}) =>
      _transport.json(Call(Operations.cancelRun, path: [runId], options: options));

  /// Retries a failed or cancelled run; steps that succeeded are not done again.
  Future<Json> retry(String runId, {RequestOptions? options}) =>
      _transport.json(Call(Operations.retryRun, path: [runId], options: options));
}

/// Business analytics.
class Analytics {
  final Transport _transport;

  Analytics(this._transport);

  /// Totals and the revenue of twelve months; with [from] and [to] (dates), [by] (`day`, `week`,
  /// `month`) and [timezone] (IANA) a `series` too, each step divided by the values of [groupBy]
  /// (`status`, `plan`, `source`, `city`).
  Future<Json> get({
    String? from,
    String? to,
    String? by,
    String? timezone,
    String? groupBy,
    RequestOptions? options,
  }) =>
      _transport.json(
        Call(
          Operations.getAnalytics,
          query: {'from': from, 'to': to, 'by': by, 'timezone': timezone, 'groupBy': groupBy},
          options: options,
        ),
      );
}

/// API keys.
class Keys {
  final Transport _transport;

  Keys(this._transport);

  /// Creates a key: `{keyId, key}`, shown only now. It can allow no more than the key that creates it.
  Future<Json> create({
    required String name,
    required List<String> scopes,
    int? rateLimit,
    String? expiresAt,
    RequestOptions? options,
  }) =>
      _transport.json(
        Call(
          Operations.createKey,
          body: {
            'name': name,
            'scopes': scopes,
            if (rateLimit != null) 'rateLimit': rateLimit,
            if (expiresAt != null) 'expiresAt': expiresAt,
          },
          options: options,
        ),
      );

  /// All keys; with [q] those whose name or id contains it. [sort] is `createdAt` or `name`, with
  /// `-` to descend.
  Stream<Json> list({String? q, String? sort, int? limit, RequestOptions? options}) =>
      walk(
        _transport,
        Call(
          Operations.listKeys,
          query: {'q': q, 'sort': sort, 'limit': limit},
          options: options,
        ),
      );

  /// Revokes a key; with [given] also those that it created.
  Future<void> revoke(String keyId, {bool? given, RequestOptions? options}) =>
      _transport.done(
        Call(Operations.revokeKey, path: [keyId], query: {'given': given}, options: options),
      );
}

/// Webhook endpoints.
class Webhooks {
  final Transport _transport;

  Webhooks(this._transport);

  /// Creates an endpoint. Its secret is returned only here and after a rotation.
  Future<Json> create({
    required String url,
    List<String>? events,
    String? description,
    RequestOptions? options,
  }) =>
      _transport.json(
        Call(
          Operations.createWebhook,
          body: {
            'url': url,
            if (events != null) 'events': events,
            if (description != null) 'description': description,
          },
          options: options,
        ),
      );

  /// All endpoints; with [q] those whose address, description or id contains it. [sort] is
  /// `createdAt`, with `-` to descend.
  Stream<Json> list({String? q, String? sort, int? limit, RequestOptions? options}) =>
      walk(
        _transport,
        Call(
          Operations.listWebhooks,
          query: {'q': q, 'sort': sort, 'limit': limit},
          options: options,
        ),
      );

  /// One endpoint.
  Future<Json> get(String id, {RequestOptions? options}) =>
      _transport.json(Call(Operations.getWebhook, path: [id], options: options));

  /// Updates the fields of [change] (`url`, `events`, `description`, `status`): null clears one, an
  /// absent one stays.
  Future<Json> update(String id, Json change, {RequestOptions? options}) =>
      _transport.json(Call(Operations.changeWebhook, path: [id], body: change, options: options));

  /// Deletes an endpoint.
  Future<void> delete(String id, {RequestOptions? options}) =>
      _transport.done(Call(Operations.deleteWebhook, path: [id], options: options));

  /// Its deliveries, with every attempt. [q] is part of an event type, or the whole id of an event
  /// or a delivery.
  Stream<Json> deliveries(String id, {String? q, int? limit, RequestOptions? options}) =>
      walk(
        _transport,
        Call(
          Operations.listDeliveries,
          path: [id],
          query: {'q': q, 'limit': limit},
          options: options,
        ),
      );

  /// Replays deliveries: one ([deliveryId]), all after a position ([after]), or all that failed
  /// ([failed]). Give exactly one. `{replayed}`.
  Future<Json> replay(String id, {
    String? deliveryId,
    String? after,
    bool? failed,
    RequestOptions? options,
  }) =>
      _transport.json(
        Call(
          Operations.replayWebhook,
          path: [id],
          body: {
            if (deliveryId != null) 'deliveryId': deliveryId,
            if (after != null) 'after': after,
            if (failed != null) 'failed': failed,
          },
          options: options,
        ),
      );

  /// Rotates its secret: `{secret}`. For a day, deliveries are also signed with the old one.
  Future<Json> rotateSecret(String id, {RequestOptions? options}) =>
      _transport.json(Call(Operations.rotateWebhookSecret, path: [id], options: options));

  /// Sends it a `webhook.test`: `{deliveryId}`.
  Future<Json> test(String id, {RequestOptions? options}) =>
      _transport.json(Call(Operations.testWebhook, path: [id], options: options));
}

/// Circles of the organization: people who join one share their position with it.
class OrganizationCircles {
  final Transport _transport;

  OrganizationCircles(this._transport);

  /// Creates a circle: `{id, name}`.
  Future<Json> create({required String name, RequestOptions? options}) =>
      _transport.json(
        Call(Operations.createCircleOfOrganization, body: {'name': name}, options: options),
      );

  /// Creates a code for a person to join it: `{code, expiresAt}`.
  Future<Json> invite(String id, {RequestOptions? options}) =>
      _transport.json(Call(Operations.inviteToCircleOfOrganization, path: [id], options: options));
}
