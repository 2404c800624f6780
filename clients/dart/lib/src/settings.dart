import 'dart:async';
import 'dart:math';

import 'package:http/http.dart' as http;
import 'package:web_socket_channel/web_socket_channel.dart';

import 'errors.dart';

/// Where an access token comes from: asked when first needed, and again when the current one has expired.
typedef TokenSource = FutureOr<String> Function();

/// Time and chance. Tests pass their own.
class Clock {
  const Clock();

  /// The present.
  DateTime now() => DateTime.now();

  /// Waits.
  Future<void> sleep(Duration duration) => Future<void>.delayed(duration);

  /// A random number from 0 up to, but not including, 1.
  double random() => Random().nextDouble();
}

/// How a client is made.
class Settings {
  /// Where Waypost is, such as `https://waypost.example`, without a slash at the end.
  final String url;

  /// Sends requests.
  final http.Client client;

  /// Opens WebSockets.
  final WebSocketChannel Function(Uri address) connect;

  /// How often a call is retried: 2.
  final int maxRetries;

  /// How long a call may take with all its attempts and waits: 120 s.
  final Duration timeout;

  /// How long one attempt may take, or a long answer may be silent: 30 s.
  final Duration attemptTimeout;

  /// The longest `Retry-After` that is waited for: 120 s. A longer one is thrown instead.
  final Duration maxRetryAfter;

  /// Whether reads wait for what this client wrote: true.
  final bool readYourWrites;

  final Clock clock;

  Settings({
    required String url,
    required this.client,
    WebSocketChannel Function(Uri address)? connect,
    this.maxRetries = 2,
    this.timeout = const Duration(seconds: 120),
    this.attemptTimeout = const Duration(seconds: 30),
    this.maxRetryAfter = const Duration(seconds: 120),
    this.readYourWrites = true,
    this.clock = const Clock(),
  })  : url = url.replaceFirst(RegExp(r'/+$'), ''),
        connect = connect ?? WebSocketChannel.connect {
    if (!RegExp(r'^https?://[^/]').hasMatch(url)) {
      throw InvalidArgumentException('url must begin with http:// or https://, not $url');
    }
  }

  /// The wait before a retry after [failed] failures: full jitter below a bound that doubles.
  Duration backoff(
    int failed, {
    Duration first = const Duration(milliseconds: 500),
    Duration most = const Duration(seconds: 8),
  }) {
    final bound = min(most.inMilliseconds, first.inMilliseconds * pow(2, min(failed, 30)));
    return Duration(milliseconds: (clock.random() * bound).round());
  }
}

/// What every method takes besides its own arguments.
class RequestOptions {
  /// Of a POST: the key under which it is done once. One of the client's own unless given.
  final String? idempotencyKey;

  /// Of a read: the position that it waits for. That of this client's last command unless given.
  final String? minPosition;

  /// Of a read: whether it waits for a position at all.
  final bool waits;

  /// The `Waypost-Cause` of the webhook, or of the HTTP step's call, that this call follows from:
  /// workflows that trigger each other this way come to an end.
  final String? cause;

  /// In place of the client's own.
  final int? maxRetries;

  /// In place of the client's own.
  final Duration? timeout;

  const RequestOptions({
    this.idempotencyKey,
    this.minPosition,
    this.waits = true,
    this.cause,
    this.maxRetries,
    this.timeout,
  });
}

final _random = Random.secure();

/// A key that nobody else makes: 128 random bits in hexadecimal.
String uniqueKey() =>
    List.generate(16, (_) => _random.nextInt(256).toRadixString(16).padLeft(2, '0')).join();
