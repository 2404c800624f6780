import 'credential.dart';
import 'feeds.dart';
import 'live.dart';
import 'operations.dart';
import 'organization.dart';
import 'person.dart';
import 'positions.dart';
import 'queue.dart';
import 'records.dart';
import 'settings.dart';
import 'transport.dart';

/// A client of one Waypost, for an organization (with its key) or a person (with an access token).
///
/// ```dart
/// final waypost = Waypost.withKey(
///   'wp_…',
///   Settings(url: 'https://waypost.example', client: http.Client()),
/// );
/// final run = await waypost.workflows.trigger('welcome', payload: {'name': 'Ada'});
/// ```
class Waypost {
  final Transport _transport;

  /// With an API key. Use it only on servers: anyone who has an app also has its key.
  Waypost.withKey(String key, Settings settings)
      : _transport = Transport(settings, Credential.fixed(key, settings.clock));

  /// With a fixed access token of a person.
  Waypost.withToken(String token, Settings settings)
      : _transport = Transport(settings, Credential.fixed(token, settings.clock));

  /// With a function that returns an access token, called when first needed and again after expiry.
  Waypost.withTokens(TokenSource source, Settings settings)
      : _transport = Transport(settings, Credential.from(source, settings.clock));

  /// Without a credential, to register and sign in.
  Waypost.anonymous(Settings settings)
      : _transport = Transport(settings, Credential.fixed(null, settings.clock));

  late final Workflows workflows = Workflows(_transport);
  late final Runs runs = Runs(_transport);
  late final Analytics analytics = Analytics(_transport);
  late final Keys keys = Keys(_transport);
  late final Webhooks webhooks = Webhooks(_transport);
  late final OrganizationCircles organizationCircles = OrganizationCircles(_transport);

  late final ExportedRecords companies = ExportedRecords(_transport, 'companies');
  late final ExportedRecords deals = ExportedRecords(_transport, 'deals');
  late final ExportedRecords contacts = ExportedRecords(_transport, 'contacts');
  late final ListedRecords orders = ListedRecords(_transport, 'orders', Operations.listOrders);
  late final ListedRecords leads = ListedRecords(_transport, 'leads', Operations.listLeads);
  late final ListedRecords clients = ListedRecords(_transport, 'clients', Operations.listClients);

  /// The feed of everything but positions.
  late final Feed events = Feed(_transport, Operations.readEvents);

  /// The feed of positions of people in the organization's circles.
  late final Feed locations = Feed(_transport, Operations.readLocations);

  late final Auth auth = Auth(_transport);
  late final Location location = Location(_transport);
  late final Circles circles = Circles(_transport);
  late final Sos sos = Sos(_transport);

  /// The position of this client's last command, which its reads wait for.
  String? get position => _transport.positions.wanted(Log.either);

  /// Live updates of a channel: `locations`, `places` and `sos`; with a key also `runs` and
  /// `events`. Starts with a [Snapshot], or after the position [after]. After any break it resumes
  /// after the last event, without gaps or duplicates, and sends [Reset] if it cannot. It ends when
  /// the listener cancels, or with an error that no retry can fix.
  Stream<SubscriptionItem> subscribe(String channel, {String? after}) =>
      subscribeTo(_transport.settings, _transport.credential, channel, after: after);

  /// Opens the location queue in [storage] under [name]; one for each person.
  Future<LocationQueue> locationQueue(
    QueueStorage storage, {
    String name = 'waypost.fixes',
    int capacity = 10000,
    int batch = 100,
  }) =>
      LocationQueue.open(_transport, storage, name: name, capacity: capacity, batch: batch);

  /// Returns Waypost's readiness, check by check. Throws if it is not ready.
  Future<Json> readiness({RequestOptions? options}) =>
      _transport.json(Call(Operations.isReady, options: options));
}

