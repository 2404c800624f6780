import 'dart:async';
import 'dart:convert';

import 'package:web_socket_channel/web_socket_channel.dart';

import 'credential.dart';
import 'errors.dart';
import 'outlet.dart';
import 'positions.dart';
import 'settings.dart';
import 'transport.dart';

/// An item of a subscription.
sealed class SubscriptionItem {
  const SubscriptionItem();
}

/// The current state of the channel: first without `after`, and after a [Reset].
final class Snapshot extends SubscriptionItem {
  final List<Json> data;

  /// The position to resume after.
  final String position;

  const Snapshot(this.data, this.position);
}

/// Something happened.
final class LiveEvent extends SubscriptionItem {
  /// The position to resume after.
  final String position;
  final String type;

  /// When, as RFC 3339 in UTC.
  final String time;
  final Json data;

  const LiveEvent(this.position, this.type, this.time, this.data);
}

/// This client was too slow: of the positions between, only each person's newest follow.
final class Conflated extends SubscriptionItem {
  final String from;
  final String to;

  const Conflated(this.from, this.to);
}

/// Missed events are no longer available: a [Snapshot] follows.
final class Reset extends SubscriptionItem {
  const Reset();
}

const _most = Duration(seconds: 20);
const _ready = Duration(seconds: 15);
const _ping = Duration(seconds: 25);
const _pong = Duration(seconds: 10);
const _broken = 1006;
const _tokenCodes = {3500, 3501};

/// How a connection ended.
class _Ended {
  final int code;
  final String reason;
  final bool wasReady;
  final String? token;

  const _Ended(this.code, this.reason, this.wasReady, this.token);
}

/// A subscription's position.
class _Place {
  String? position;

  _Place(this.position);

  bool isNew(String next) {
    final known = position;
    return known == null || (next != known && isBehind(next, known) != false);
  }
}

/// Subscribes to a channel of `/ws`, on its own connection, and reconnects after any break.
Stream<SubscriptionItem> subscribeTo(
  Settings settings,
  Credential credential,
  String channel, {
  String? after,
}) =>
    Outlet<SubscriptionItem>(
      (outlet) => _run(outlet, settings, credential, channel, _Place(after)),
    ).stream;

Future<void> _run(
  Outlet<SubscriptionItem> outlet,
  Settings settings,
  Credential credential,
  String channel,
  _Place place,
) async {
  var failed = 0;
  var renewed = false;
  while (!outlet.stopped) {
    final ended = await _Connection(outlet, settings, credential, channel, place).run();
    if (outlet.stopped) return;
    if (ended.wasReady) {
      failed = 0;
      renewed = false;
    }
    final token = ended.token;
    if (_tokenCodes.contains(ended.code) && credential.renewable && token != null && !renewed) {
      renewed = true;
      if (await credential.renew(token) != token) continue;
    }
    if (ended.code >= 3500 && ended.code < 4000) {
      final reason = ended.reason.isEmpty ? 'the server closed the socket' : ended.reason;
      throw SocketClosedException(ended.code, reason);
    }
    await outlet.sleep(settings.clock.sleep(settings.backoff(failed, most: _most)));
    failed += 1;
  }
}

/// One connection, from its first frame to its end.
class _Connection {
  final Outlet<SubscriptionItem> _outlet;
  final Settings _settings;
  final Credential _credential;
  final String _channel;
  final _Place _place;
  WebSocketChannel? _socket;
  String? _token;
  bool _isReady = false;
  String? _begun;
  Timer? _renewal;

  _Connection(this._outlet, this._settings, this._credential, this._channel, this._place);

  Future<_Ended> run() async {
    _token = await _credential.get();
    final address = Uri.parse('${_settings.url.replaceFirst('http', 'ws')}/ws');
    StreamIterator<Object?>? frames;
    try {
      final socket = _socket = _settings.connect(address);
      // Cancelling ends the connection, even while it is silent.
      _outlet.onStop = () => socket.sink.close(1000).ignore();
      await socket.ready.timeout(_ready);
      frames = StreamIterator<Object?>(socket.stream);
      _send({'type': 'auth', 'token': _token ?? ''});
      while (await _next(frames)) {
        await _receive(frames.current);
        if (_outlet.stopped) break;
      }
      return _Ended(socket.closeCode ?? _broken, socket.closeReason ?? '', _isReady, _token);
    } on WaypostException {
      rethrow;
    } on Exception catch (error) {
      // It failed to open, broke, or was silent for too long.
      return _Ended(_broken, '$error', _isReady, _token);
    } finally {
      _renewal?.cancel();
      _outlet.onStop = null;
      // Not awaited: a dead connection would never report that it is closed.
      frames?.cancel().ignore();
      _socket?.sink.close(1000).ignore();
    }
  }

  /// Waits for a frame. After some silence it probes the server by sending the same token again,
  /// which `ready` answers; no other frame is answered free of cost.
  Future<bool> _next(StreamIterator<Object?> frames) async {
    final next = frames.moveNext();
    try {
      return await next.timeout(_isReady ? _ping : _ready);
    } on TimeoutException {
      if (!_isReady) rethrow;
      _send({'type': 'auth', 'token': _token ?? ''});
      return next.timeout(_pong);
    }
  }

  Future<void> _receive(Object? text) async {
    final Object? frame;
    try {
      frame = text is String ? jsonDecode(text) : null;
    } on FormatException {
      return;
    }
    if (frame is! Json) return;
    if (frame['type'] == 'ready') {
      _planRenewal();
      if (!_isReady) {
        _isReady = true;
        final after = _place.position;
        _send({'type': 'subscribe', 'id': 's1', 'channel': _channel, if (after != null) 'after': after});
      }
    } else if (frame['id'] == 's1') {
      await _deliver(frame);
    }
  }

  Future<void> _deliver(Json frame) async {
    final begun = _begun;
    switch (frame) {
      case {'type': 'error', 'error': final String error}:
        throw SubscriptionRefusedException(error);
      case {'type': 'subscribed', 'position': final String position}:
        _begun = position;
      case {'type': 'reset'}:
        _place.position = null;
        await _outlet.add(const Reset());
      case {'type': 'snapshot', 'data': final Object? data} when begun != null:
        _place.position = begun;
        final items = data is List<Object?> ? data.whereType<Json>().toList() : <Json>[];
        await _outlet.add(Snapshot(items, begun));
      case {
          'type': 'event',
          'position': final String position,
          'event': {
            'type': final String type,
            'time': final String time,
            'data': final Json data,
          },
        } when begun != null && _place.isNew(position):
        _place.position = position;
        await _outlet.add(LiveEvent(position, type, time, data));
      case {'type': 'conflated', 'from': final String from, 'to': final String to}:
        await _outlet.add(Conflated(from, to));
    }
  }

  /// Replaces the token before it expires, over the open socket.
  void _planRenewal() {
    _renewal?.cancel();
    final renewAt = _credential.renewAt;
    if (renewAt == null) return;
    final wait = renewAt.difference(_settings.clock.now());
    _renewal = Timer(wait.isNegative ? Duration.zero : wait, () => unawaited(_renew()));
  }

  Future<void> _renew() async {
    try {
      final token = await _credential.renew(_token);
      if (token == _token) return;
      _token = token;
      _send({'type': 'auth', 'token': token});
    } catch (_) {
      // The current one is still valid; if it expires, the server closes the socket, and the next
      // connection requests another, where an error is reported.
    }
  }

  void _send(Json frame) => _socket?.sink.add(jsonEncode(frame));
}
