import 'positions.dart';

/// An operation of the API. `./check` compares these with the API's document and the cases.
class Operation {
  final String method;

  /// The path, with `{names}` in it.
  final String path;

  /// Takes an `Idempotency-Key`: done once, however often it is sent.
  final bool once;

  /// Takes a position to wait for, of the feed that it reads.
  final Log? waits;

  /// The feed that it writes to.
  final Log writes;

  /// Its 500 is worth a retry: it has no 503.
  final bool again;

  /// Sent without a credential.
  final bool open;

  const Operation(
    this.method,
    this.path, {
    this.once = false,
    this.waits,
    this.writes = Log.events,
    this.again = false,
    this.open = false,
  });

  /// Reads from the read models.
  const Operation.read(String path, {Log waits = Log.events, bool again = false})
      : this('GET', path, waits: waits, again: again);

  /// Reads without waiting for a position.
  const Operation.plain(String path, {bool open = false}) : this('GET', path, open: open);

  /// A command that takes a key.
  const Operation.post(
    String path, {
    Log writes = Log.events,
    bool again = false,
    bool open = false,
  }) : this('POST', path, once: true, writes: writes, again: again, open: open);
}

/// All operations, by their names in the API's document.
abstract final class Operations {
  static const triggerWorkflow =
      Operation.post('/api/v1/workflows/{workflowId}/trigger', again: true);
  static const putWorkflow = Operation('PUT', '/api/v1/workflows/{workflowId}');
  static const getWorkflow = Operation.read('/api/v1/workflows/{workflowId}');
  static const listWorkflows = Operation.read('/api/v1/workflows');
  static const listRuns = Operation.read('/api/v1/workflows/{workflowId}/runs');
  static const getRun = Operation.read('/api/v1/runs/{runId}');
  static const cancelRun = Operation.post('/api/v1/runs/{runId}/cancel');
  static const retryRun = Operation.post('/api/v1/runs/{runId}/retry');
  static const listOrders = Operation.read('/api/v1/orders');
  static const listLeads = Operation.read('/api/v1/leads');
  static const listClients = Operation.read('/api/v1/clients');
  static const getAnalytics = Operation.read('/api/v1/analytics');
  static const createKey = Operation.post('/api/v1/keys');
  static const listKeys = Operation.read('/api/v1/keys');
  static const revokeKey = Operation('DELETE', '/api/v1/keys/{keyId}');
  static const createWebhook = Operation.post('/api/v1/webhooks');
  static const listWebhooks = Operation.read('/api/v1/webhooks');
  static const getWebhook = Operation.read('/api/v1/webhooks/{id}');
  static const changeWebhook = Operation('PATCH', '/api/v1/webhooks/{id}');
  static const deleteWebhook = Operation('DELETE', '/api/v1/webhooks/{id}');
  static const listDeliveries = Operation.read('/api/v1/webhooks/{id}/deliveries');
  static const replayWebhook = Operation.post('/api/v1/webhooks/{id}/replay');
  static const rotateWebhookSecret = Operation.post('/api/v1/webhooks/{id}/rotate-secret');
  static const testWebhook = Operation.post('/api/v1/webhooks/{id}/test');
  static const readEvents = Operation.plain('/api/v1/events');
  static const readLocations = Operation.plain('/api/v1/locations');
  static const createCircleOfOrganization = Operation.post('/api/v1/circles');
  static const inviteToCircleOfOrganization = Operation.post('/api/v1/circles/{id}/invites');
  static const registerAccount = Operation.post('/auth/register', open: true);
  static const signIn = Operation.post('/auth/login', open: true);
  static const sendCode = Operation.post('/auth/otp/send', open: true);
  static const verifyCode = Operation.post('/auth/otp/verify');
  static const signOut = Operation.post('/auth/logout');
  static const changePassword = Operation.post('/auth/password');
  static const exportAccount = Operation.read('/auth/export', waits: Log.either);
  static const deleteAccount = Operation.post('/auth/delete');
  static const updateLocation = Operation.post('/location/update', writes: Log.locations);
  static const pauseSharing = Operation.post('/location/pause');
  static const resumeSharing = Operation.post('/location/resume');
  static const readLatest = Operation.read('/location/latest', waits: Log.either);
  static const readTrails = Operation.read('/location/trails', waits: Log.either);
  static const readHistory = Operation.read('/location/history', waits: Log.either);
  static const createCircle = Operation.post('/circles');
  static const listCircles = Operation.read('/circles');
  static const inviteToCircle = Operation.post('/circles/{id}/invites');
  static const joinCircle = Operation.post('/circles/join');
  static const leaveCircle = Operation('DELETE', '/circles/{id}/members/me');
  static const addPlace = Operation.post('/circles/{id}/places');
  static const listPlaces = Operation.read('/circles/{id}/places');
  static const removePlace = Operation('DELETE', '/circles/{id}/places/{placeId}');
  static const listOpenSos = Operation.read('/sos');
  static const triggerSos = Operation.post('/sos/trigger');
  static const acknowledgeSos = Operation.post('/sos/{id}/acknowledge');
  static const resolveSos = Operation.post('/sos/{id}/resolve');
  static const isReady = Operation.plain('/readyz', open: true);

  /// Operations on records of a kind, such as `orders`.
  static Operation create(String kind) => Operation.post('/api/v1/records/$kind');
  static Operation get(String kind) => Operation.read('/api/v1/records/$kind/{id}');
  static Operation put(String kind) => Operation('PUT', '/api/v1/records/$kind/{id}');
  static Operation delete(String kind) => Operation('DELETE', '/api/v1/records/$kind/{id}');
  static Operation export(String kind) => Operation.read('/api/export/$kind', again: true);
}
