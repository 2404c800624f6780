/// Client for Waypost: all three APIs, live updates, exports, a location queue for phones and the
/// verification of webhooks. Pure Dart, for servers, command lines, Flutter and browsers.
library;

export 'src/client.dart' show Waypost;
export 'src/errors.dart';
export 'src/exports.dart' show ExportedFile, ExportProgress;
export 'src/feeds.dart' show Feed;
export 'src/live.dart' show Conflated, LiveEvent, Reset, Snapshot, SubscriptionItem;
export 'src/organization.dart';
export 'src/pages.dart' show ListPage;
export 'src/person.dart';
export 'src/queue.dart' show FlushResult, LocationQueue, ParkedFix, QueueStorage;
export 'src/records.dart';
export 'src/settings.dart' show Clock, RequestOptions, Settings, TokenSource;
export 'src/transport.dart' show Json;
export 'src/webhooks.dart';
