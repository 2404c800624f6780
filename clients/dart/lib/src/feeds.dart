import 'dart:async';
import 'dart:convert';

import 'errors.dart';
import 'operations.dart';
import 'outlet.dart';
import 'positions.dart';
import 'settings.dart';
import 'transport.dart';

/// The longest wait between two connections of a feed.
const _most = Duration(seconds: 20);

/// After this silence a followed feed is dead: the server sends something every 15 s.
const _silence = Duration(seconds: 45);

/// Everything that happened in the organization, in order.
class Feed {
  final Transport _transport;
  final Operation _operation;

  Feed(this._transport, this._operation);

  /// The events up to the current end of the log, from the first one or after the position [after].
  ///
  /// [types] are names such as `lead.created` or patterns such as `run.*`.
  Stream<Json> read({String? after, List<String>? types, int? limit, RequestOptions? options}) {
    final place = _Place(after, types, limit);
    final retries = options?.maxRetries ?? _transport.settings.maxRetries;
    return Outlet<Json>((outlet) => _walk(outlet, place, live: false, maxRetries: retries)).stream;
  }

  /// The events from now on, or after [after], as they happen. After a break it resumes after the
  /// last one, for as long as it takes. It ends when the listener cancels, or with an error that
  /// no retry can fix.
  Stream<Json> follow({String? after, List<String>? types, int? limit}) {
    final place = _Place(after, types, limit);
    return Outlet<Json>((outlet) => _walk(outlet, place, live: true)).stream;
  }

  Future<void> _walk(
    Outlet<Json> outlet,
    _Place place, {
    required bool live,
    int? maxRetries,
  }) async {
    final settings = _transport.settings;
    var failed = 0;
    while (!outlet.stopped && !place.full) {
      Duration? asked;
      try {
        await _readOnce(outlet, place, live, () => failed = 0);
        if (!live) return;
      } on WaypostException catch (error) {
        if (!passes(error) || (maxRetries != null && failed >= maxRetries)) rethrow;
        asked = error is ApiException ? error.retryAfter : null;
      }
      if (outlet.stopped || place.full) return;
      final wait = asked ?? settings.backoff(failed, most: _most);
      await outlet.sleep(settings.clock.sleep(wait));
      failed += 1;
    }
  }

  Future<void> _readOnce(
    Outlet<Json> outlet,
    _Place place,
    bool live,
    void Function() came,
  ) async {
    final answer = await _transport.open(_call(place, live));
    final lines = StreamIterator(
      answer.lines(live ? _silence : _transport.settings.attemptTimeout),
    );
    outlet.onStop = () => unawaited(lines.cancel());
    final frame = _Frame(place);
    try {
      while (!outlet.stopped && !place.full && await lines.moveNext()) {
        final text = live ? frame.line(lines.current) : lines.current;
        if (text == null || text.isEmpty) continue;
        final event = jsonDecode(text) as Json;
        if (place.take(event['position'] as String)) {
          came();
          await outlet.add(event);
        }
      }
    } finally {
      outlet.onStop = null;
      await lines.cancel();
    }
  }

  Call _call(_Place place, bool live) {
    final position = place.position;
    return Call(
      _operation,
      accept: live ? 'text/event-stream' : 'application/x-ndjson',
      query: {
        'after': live ? place.after : position ?? place.after,
        'types': place.types?.join(','),
        'limit': place.left,
      },
      headers: {if (live && position != null) 'last-event-id': position},
      // Retries are counted above, where the outcome of each is known.
      options: const RequestOptions(maxRetries: 0),
    );
  }
}

/// A server-sent event, line by line. An incomplete event when the stream ends does not count.
class _Frame {
  final _Place _place;
  final _data = <String>[];
  String? _id;

  _Frame(this._place);

  /// The data of the event that this line ends; null within one. An id without data is not an
  /// event: it marks where the feed begins.
  String? line(String line) {
    if (line.startsWith('data:')) {
      _data.add(line.substring(line.startsWith('data: ') ? 6 : 5));
    } else if (line.startsWith('id: ')) {
      _id = line.substring(4);
    } else if (line.isEmpty) {
      final text = _data.isEmpty ? null : _data.join('\n');
      final id = _id;
      if (text == null && id != null) _place.begin(id);
      _data.clear();
      _id = null;
      return text;
    }
    return null;
  }
}

/// A reader's progress.
class _Place {
  final String? after;
  final List<String>? types;
  final int? limit;
  String? position;
  int _delivered = 0;

  _Place(this.after, List<String>? types, this.limit)
      : types = types == null || types.isEmpty ? null : types;

  bool get full => limit != null && _delivered >= limit!;

  int? get left => limit == null ? null : limit! - _delivered;

  /// Records where the feed begins, so that a break before the first event loses nothing.
  void begin(String start) => position ??= start;

  /// Advances to an event; false if it was delivered before.
  bool take(String next) {
    final known = position;
    if (known != null && (next == known || isBehind(next, known) == false)) return false;
    position = next;
    _delivered += 1;
    return true;
  }
}
