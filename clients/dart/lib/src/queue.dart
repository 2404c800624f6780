import 'dart:async';
import 'dart:math';

import 'errors.dart';
import 'operations.dart';
import 'settings.dart';
import 'store.dart';
import 'transport.dart';

/// The storage of a queue; on a phone a few lines over `shared_preferences`.
abstract interface class QueueStorage {
  Future<String?> read(String key);
  Future<void> write(String key, String value);
  Future<void> remove(String key);
}

/// A fix that the server rejected, and why. It is not resent automatically.
class ParkedFix {
  final Json fix;
  final int status;
  final String message;

  const ParkedFix(this.fix, this.status, this.message);
}

/// The result of a [LocationQueue.flush].
class FlushResult {
  /// How many arrived this time.
  final int sent;

  /// How many wait in total.
  final int waiting;

  /// How many are parked in total.
  final int parked;

  /// The wait before the next attempt; null if none is needed.
  final Duration? retryAfter;

  const FlushResult({
    required this.sent,
    required this.waiting,
    required this.parked,
    this.retryAfter,
  });
}

const _first = Duration(seconds: 1);
const _most = Duration(minutes: 5);

/// Keeps a phone's fixes until they have arrived, and sends them in arrays, oldest first. They
/// survive the end of the app with the same times and keys, so that none is lost or accepted
/// twice. The queue waits out the hourly limit, and parks rejected fixes, which block nothing.
class LocationQueue {
  final Transport _transport;
  final Store _store;
  final QueueState _state;
  final List<Item> _items;
  final int _capacity;
  final int _batch;
  int _next;
  int _savedHead;
  Future<FlushResult>? _flushing;

  /// For a batch that was rejected without naming a fix: how many of it are left, and how many to
  /// send at a time.
  int _suspects = 0;
  int? _atOnce;

  LocationQueue._(
    this._transport,
    this._store,
    this._state,
    this._items,
    this._next,
    this._capacity,
    this._batch,
  ) : _savedHead = _state.head;

  /// Opens the queue in [storage] under [name].
  static Future<LocationQueue> open(
    Transport transport,
    QueueStorage storage, {
    required String name,
    required int capacity,
    required int batch,
  }) async {
    final store = Store(storage, name);
    final (state, items, next) = await store.load();
    return LocationQueue._(transport, store, state, items, next, capacity, batch);
  }

  /// How many fixes wait.
  int get waiting => _items.length;

  /// How many were dropped because the queue was full.
  int get dropped => _state.dropped;

  /// The rejected fixes, oldest first.
  List<ParkedFix> get parked => List.unmodifiable(_state.parked);

  /// Adds a fix; it is on disk when this completes. `recorded_at` defaults to now.
  Future<void> add(Json fix) async {
    final seq = _next++;
    final given = fix['recorded_at'];
    _items.add(Item(seq, {...fix, 'recorded_at': _ownInstant(given is String ? given : null)}));
    await _store.saveFix(seq, _items);
    final surplus = _items.length - _capacity;
    if (surplus > 0) {
      _state.dropped += surplus;
      await _remove(_items.sublist(0, surplus));
    }
  }

  /// Sends what may be sent. Also completes if nothing could be: [FlushResult.retryAfter] then says
  /// when to try again. Throws [UnauthorizedException] if a new token did not help either.
  ///
  /// Call it after [add], when the app is started, and when the network is back.
  Future<FlushResult> flush() {
    final flushing = _flushing;
    if (flushing != null) return flushing;
    return _flushing = _flush().whenComplete(() => _flushing = null);
  }

  /// Queues a parked fix again, as the last one.
  Future<void> retryParked(int index) async {
    final parked = _state.parked.removeAt(index);
    await add(parked.fix);
    await _save();
  }

  /// Discards a parked fix.
  Future<void> dropParked(int index) async {
    _state.parked.removeAt(index);
    await _save();
  }

  Future<FlushResult> _flush() async {
    var sent = 0;
    while (_items.isNotEmpty && _now() >= _state.until) {
      final items = await _nextBatch();
      try {
        await _transport.json(
          Call(
            Operations.updateLocation,
            body: [for (final item in items) item.fix],
            options: RequestOptions(idempotencyKey: _state.batchKey, maxRetries: 0),
          ),
          look: _learn,
        );
        sent += items.length;
        _state.failed = 0;
        await _remove(items);
      } on WaypostException catch (error) {
        await _refused(error, items);
      }
    }
    final left = _state.until - _now();
    return FlushResult(
      sent: sent,
      waiting: _items.length,
      parked: _state.parked.length,
      retryAfter: _items.isNotEmpty && left > 0 ? Duration(milliseconds: left) : null,
    );
  }

  /// The next batch: the one that may have arrived, unchanged, or the oldest that may be sent. On
  /// disk before it is sent.
  Future<List<Item>> _nextBatch() async {
    if (_state.batchKey != null) {
      final items = _items.where((item) => _state.batch.contains(item.seq)).toList();
      if (items.length == _state.batch.length) return items;
    }
    var most = min(_batch, 100);
    final left = _state.left;
    if (left != null && left > 0 && _state.leftUntil > _now()) most = min(most, left);
    most = min(most, _atOnce ?? most);
    final items = _items.take(most).toList();
    _state.batchKey = uniqueKey();
    _state.batch = [for (final item in items) item.seq];
    await _save();
    return items;
  }

  /// Records what is left of the hourly limit; if nothing is, when it resets.
  void _learn(Map<String, String> headers) {
    final limit = _limitOf(headers);
    _state.left = limit?.left;
    _state.leftUntil = limit == null ? 0 : _now() + limit.resetMs;
    _state.until = limit != null && limit.left == 0 ? _state.leftUntil : 0;
  }

  Future<void> _refused(WaypostException error, List<Item> items) async {
    if (error is UnauthorizedException) throw error;
    if (error is RateLimitedException) {
      await _limited(error, items);
    } else if (error is InvalidResponseException) {
      // A proxy's page: nothing is lost by trying later.
      await _later(error);
      throw error;
    } else if (passes(error) || (error is ApiException && error.status >= 500)) {
      await _later(error);
    } else if (error is ApiException && error.status >= 400) {
      await _narrow(error, items);
    } else {
      await _later(error);
      throw error;
    }
  }

  /// The hourly limit is reached: uses what is left of it, or waits for more.
  Future<void> _limited(ApiException error, List<Item> items) async {
    final limit = _limitOf(error.headers);
    if (limit != null && limit.left > 0 && limit.left < items.length) {
      _learn(error.headers);
      _state.batchKey = null;
      await _save();
    } else {
      await _later(error, otherwiseMs: limit?.resetMs);
    }
  }

  Future<void> _later(WaypostException error, {int? otherwiseMs}) async {
    final asked = error is ApiException ? error.retryAfter?.inMilliseconds : null;
    final backoff = _transport.settings.backoff(_state.failed, first: _first, most: _most);
    _state.until = _now() + (asked ?? otherwiseMs ?? backoff.inMilliseconds);
    if (error is ConnectionFailedException || asked == null) _state.failed += 1;
    await _save();
  }

  /// Finds out which fix is at fault, and parks it.
  Future<void> _narrow(ApiException error, List<Item> items) async {
    final named = _named(error.message).where((index) => index < items.length);
    if (named.isEmpty && items.length > 1) {
      // A batch above the hourly limit is cut to that limit, any other halved.
      final quota = int.tryParse(_quota.firstMatch(error.headers['ratelimit-policy'] ?? '')?[1] ?? '');
      final tooMany = quota != null && quota > 0 && quota < items.length;
      _suspects = items.length;
      _atOnce = tooMany ? quota : (items.length / 2).ceil();
      _state.batchKey = null;
      await _save();
      return;
    }
    final faulty = named.isEmpty ? items : [for (final index in named) items[index]];
    for (final item in faulty) {
      _state.parked.add(ParkedFix(item.fix, error.status, error.message));
    }
    await _remove(faulty);
  }

  /// Removes done or parked fixes from the queue.
  Future<void> _remove(List<Item> items) async {
    final gone = {for (final item in items) item.seq};
    _items.removeWhere((item) => gone.contains(item.seq));
    _state.batchKey = null;
    _state.head = _items.isEmpty ? _next : _items.first.seq;
    final waiting = {for (final item in _items) item.seq};
    _state.done = {..._state.done, ...gone}
      ..removeWhere((seq) => seq < _state.head || waiting.contains(seq));
    _suspects -= items.length;
    if (_suspects <= 0) _atOnce = null;
    await _save();
  }

  Future<void> _save() {
    final before = _savedHead;
    _savedHead = _state.head;
    return _store.saveState(_state, before);
  }

  /// A time that no other waiting fix has: a person has one fix for each instant.
  String _ownInstant(String? given) {
    final taken = {
      for (final item in _items) _instant(item.fix['recorded_at'] as String? ?? ''),
    };
    final wished = given == null ? _now() : _instant(given);
    // The server rejects an invalid time.
    if (wished == null) return given!;
    var instant = wished;
    while (taken.contains(instant)) {
      instant += 1;
    }
    if (given != null && instant == wished) return given;
    return DateTime.fromMillisecondsSinceEpoch(instant, isUtc: true).toIso8601String();
  }

  int? _instant(String time) => DateTime.tryParse(time)?.millisecondsSinceEpoch;

  int _now() => _transport.settings.clock.now().millisecondsSinceEpoch;
}

final _limit = RegExp(r'"locations"\s*;\s*r=(\d+)\s*;\s*t=(\d+)');
final _quota = RegExp(r'"locations"\s*;\s*q=(\d+)');
final _index = RegExp(r'(?:^|; )\[(\d+)\]');

/// What is left of the hourly limit, and in how many milliseconds it resets.
({int left, int resetMs})? _limitOf(Map<String, String> headers) {
  final found = _limit.firstMatch(headers['ratelimit'] ?? '');
  if (found == null) return null;
  return (left: int.parse(found[1]!), resetMs: int.parse(found[2]!) * 1000);
}

/// The indices that a rejection names: `[2].lat: must be …; [4].lng: …`.
Set<int> _named(String message) =>
    {for (final match in _index.allMatches(message)) int.parse(match[1]!)};
