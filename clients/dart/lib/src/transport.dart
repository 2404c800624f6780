import 'dart:async';
import 'dart:convert';

import 'package:http/http.dart' as http;

import 'credential.dart';
import 'errors.dart';
import 'operations.dart';
import 'positions.dart';
import 'settings.dart';

/// A JSON object.
typedef Json = Map<String, Object?>;

/// The version that this client reports.
const version = '0.1.0';

/// One call of an operation.
class Call {
  final Operation operation;

  /// The values for the path's `{names}`, in order.
  final List<String> path;

  /// Null values are omitted.
  final Map<String, Object?> query;

  /// Sent as JSON; null: no body.
  final Object? body;

  /// Sent unchanged, instead of [body], as [textType].
  final String? text;
  final String? textType;

  final String accept;
  final Map<String, String> headers;
  final RequestOptions options;

  const Call(
    this.operation, {
    this.path = const [],
    this.query = const {},
    this.body,
    this.text,
    this.textType,
    this.accept = 'application/json',
    this.headers = const {},
    RequestOptions? options,
  }) : options = options ?? const RequestOptions();
}

/// A success whose body has not been read.
class Answer {
  final int status;

  /// With lower-case names.
  final Map<String, String> headers;

  final Stream<List<int>> _body;

  Answer(this.status, this.headers, this._body);

  /// The body's chunks. Throws [ConnectionFailedException] if it breaks off or is silent for too long.
  Stream<List<int>> chunks(Duration timeout) => _body.timeout(timeout).handleError(
        (Object error) => throw _asWire(error),
        test: (error) => error is Exception && error is! WaypostException,
      );

  /// The whole body as text.
  Future<String> text(Duration timeout) =>
      const Utf8Decoder(allowMalformed: true).bind(chunks(timeout)).join();

  /// The body's lines, without line endings.
  Stream<String> lines(Duration timeout) => const LineSplitter()
      .bind(const Utf8Decoder(allowMalformed: true).bind(chunks(timeout)));
}

/// Sends requests: with a credential, keys, positions and retries.
class Transport {
  final Settings settings;
  final Credential credential;
  final Positions positions = Positions();

  Transport(this.settings, this.credential);

  /// Sends a call and returns the JSON object of the response.
  Future<Json> json(Call call, {void Function(Map<String, String> headers)? look}) =>
      send(call, (answer) async {
        look?.call(answer.headers);
        final body = await answer.text(settings.attemptTimeout);
        try {
          if (jsonDecode(body) case final Json object) return object;
        } on FormatException {
          // Reported below.
        }
        throw InvalidResponseException(answer.status, body, answer.headers);
      });

  /// Sends a call and ignores the response body.
  Future<void> done(Call call) =>
      send<void>(call, (answer) => answer.chunks(settings.attemptTimeout).drain<void>());

  /// Sends a call and leaves the response body to the caller.
  Future<Answer> open(Call call) => send(call, (answer) async => answer);

  /// Sends a call and reads the response with [read], which is called again after a retry.
  Future<T> send<T>(Call call, Future<T> Function(Answer answer) read) async {
    final address = _address(call);
    final maxRetries = call.options.maxRetries ?? settings.maxRetries;
    final deadline = settings.clock.now().add(call.options.timeout ?? settings.timeout);
    final state = _State(call.operation.once ? call.options.idempotencyKey ?? uniqueKey() : null);
    var failed = 0;
    while (true) {
      try {
        return await _attempt(call, address, state, deadline, read);
      } on WaypostException catch (error) {
        if (await _repaired(error, state)) continue;
        if (error is NotFoundException && call.operation.method == 'DELETE' && state.mayHaveArrived) {
          // An earlier attempt, whose response was lost, has deleted it. Deletions have no result.
          return null as T;
        }
        final asked = error is ApiException ? error.retryAfter : null;
        final wait = asked ?? settings.backoff(failed);
        final tooLong = (asked ?? Duration.zero) > settings.maxRetryAfter ||
            settings.clock.now().add(wait).isAfter(deadline);
        if (failed >= maxRetries || tooLong || !_isWorthARetry(error, call.operation)) rethrow;
        if (error is! RateLimitedException) state.mayHaveArrived = true;
        failed += 1;
        await settings.clock.sleep(wait);
      }
    }
  }

  Future<T> _attempt<T>(
    Call call,
    Uri address,
    _State state,
    DateTime deadline,
    Future<T> Function(Answer answer) read,
  ) async {
    // Errors of a token source go to its caller.
    state.token = call.operation.open ? null : await credential.get();
    state.position = _minPosition(call);
    final left = deadline.difference(settings.clock.now());
    final timeout = left < settings.attemptTimeout ? left : settings.attemptTimeout;
    try {
      final response = await settings.client.send(_request(call, address, state)).timeout(timeout);
      final headers = response.headers;
      final answer = Answer(response.statusCode, headers, response.stream);
      if (answer.status >= 200 && answer.status < 300) {
        final value = await read(answer);
        _note(call.operation, headers);
        return value;
      }
      final body = await answer.text(timeout);
      _note(call.operation, headers);
      throw ApiException.of(answer.status, body, headers, settings.clock.now());
    } on WaypostException {
      rethrow;
    } on Exception catch (error) {
      throw _asWire(error);
    }
  }

  http.Request _request(Call call, Uri address, _State state) {
    final request = http.Request(call.operation.method, address)..followRedirects = false;
    request.headers['accept'] = call.accept;
    request.headers['user-agent'] = 'waypost-dart/$version';
    request.headers.addAll(call.headers);
    final text = call.text ?? (call.body == null ? null : jsonEncode(call.body));
    if (text != null) {
      request.headers['content-type'] = call.textType ?? 'application/json';
      request.bodyBytes = utf8.encode(text);
    }
    final key = state.key;
    if (key != null) request.headers['idempotency-key'] = key;
    final cause = call.options.cause;
    if (cause != null) request.headers['waypost-cause'] = cause;
    final token = state.token;
    if (token != null) request.headers['authorization'] = 'Bearer $token';
    final position = state.position;
    if (position != null) request.headers['waypost-min-position'] = position;
    return request;
  }

  String? _minPosition(Call call) {
    final log = call.operation.waits;
    if (log == null || !call.options.waitForPosition) return null;
    return call.options.minPosition ?? (settings.readYourWrites ? positions.wanted(log) : null);
  }

  void _note(Operation operation, Map<String, String> headers) {
    final position = headers['waypost-position'];
    if (position != null && operation.method != 'GET') positions.note(operation.writes, position);
  }

  /// Whether the cause of an error is fixed, so that the call may be retried at once.
  Future<bool> _repaired(WaypostException error, _State state) async {
    final token = state.token;
    if (error is UnauthorizedException && token != null && credential.renewable && !state.renewed) {
      state.renewed = true;
      return await credential.renew(token) != token;
    }
    final position = state.position;
    if (error is BadRequestException &&
        position != null &&
        error.message.startsWith('Waypost-Min-Position')) {
      // After a restore the server has another log, and earlier positions mean nothing.
      return positions.forget(position);
    }
    return false;
  }

  Uri _address(Call call) {
    var nth = 0;
    final path = call.operation.path.replaceAllMapped(RegExp(r'\{\w+\}'), (name) {
      final value = call.path[nth++];
      // These would address something else.
      if (value.isEmpty || value == '.' || value == '..') {
        throw InvalidArgumentException('${name[0]} must not be ${value.isEmpty ? 'empty' : value}');
      }
      return Uri.encodeComponent(value);
    });
    final pairs = [
      for (final MapEntry(:key, :value) in call.query.entries)
        if (value != null) '$key=${Uri.encodeComponent('$value')}',
    ];
    return Uri.parse(settings.url + path + (pairs.isEmpty ? '' : '?${pairs.join('&')}'));
  }
}

class _State {
  final String? key;
  String? token;
  String? position;
  bool renewed = false;
  bool mayHaveArrived = false;

  _State(this.key);
}

const _again = {408, 429, 502, 503, 504};

bool _isWorthARetry(WaypostException error, Operation operation) =>
    error is ConnectionFailedException ||
    (error is ApiException &&
        (_again.contains(error.status) || (error.status == 500 && operation.again)));

/// Whether a stream may reconnect after this: as above, and after any internal error.
bool passes(Object error) =>
    error is ConnectionFailedException ||
    (error is ApiException && (_again.contains(error.status) || error.status == 500));

WaypostException _asWire(Object error) => error is TimeoutException
    ? const TimedOutException('no answer came in time')
    : ConnectionFailedException('no whole answer came: $error');
