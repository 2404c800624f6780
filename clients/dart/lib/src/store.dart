import 'dart:convert';

import 'queue.dart';
import 'transport.dart';

/// A waiting fix, with its own number.
class Item {
  final int seq;

  /// With its `recorded_at`.
  final Json fix;

  const Item(this.seq, this.fix);
}

/// A queue's state besides the fixes themselves.
class QueueState {
  /// The number of the first fix that may wait; those before are done.
  int head = 0;

  /// Fixes after the first that are done too.
  Set<int> done = {};

  /// The batch that was sent and may have arrived: it is resent under the same key.
  String? batchKey;
  List<int> batch = [];

  /// Nothing is sent before this time, in milliseconds since 1970.
  int until = 0;

  /// How many positions of the hour the last response left, and until when that holds.
  int? left;
  int leftUntil = 0;

  /// Consecutive failures.
  int failed = 0;

  /// Rejected fixes, as `{fix, status, message}`.
  List<ParkedFix> parked = [];

  /// How many were dropped because the queue was full.
  int dropped = 0;

  QueueState();

  QueueState.of(Json json)
      : head = json['head'] as int,
        done = _ints(json['done']).toSet(),
        batchKey = json['batchKey'] as String?,
        batch = _ints(json['batch']),
        until = json['until'] as int,
        left = json['left'] as int?,
        leftUntil = json['leftUntil'] as int,
        failed = json['failed'] as int,
        parked = [
          for (final one in json['parked'] as List<Object?>)
            if (one case {'fix': final Json fix, 'status': final int status, 'message': final String message})
              ParkedFix(fix, status, message),
        ],
        dropped = json['dropped'] as int;

  Json toJson() => {
        'head': head,
        'done': done.toList(),
        'batchKey': batchKey,
        'batch': batch,
        'until': until,
        'left': left,
        'leftUntil': leftUntil,
        'failed': failed,
        'parked': [
          for (final one in parked) {'fix': one.fix, 'status': one.status, 'message': one.message},
        ],
        'dropped': dropped,
      };
}

List<int> _ints(Object? array) => (array as List<Object?>).cast<int>().toList();

/// Fixes that are written together: adding one writes no more than these.
const _together = 50;

/// The fixes and the state of a queue in a storage. The state, which is one write, says which fixes
/// are done: after a crash at any moment nothing is lost.
class Store {
  final QueueStorage _storage;
  final String _name;
  Future<void> _writing = Future<void>.value();

  Store(this._storage, this._name);

  /// Loads the state, the waiting fixes, and the next number.
  Future<(QueueState, List<Item>, int)> load() async {
    final text = await _storage.read(_name);
    final state = text == null ? QueueState() : QueueState.of(jsonDecode(text) as Json);
    final items = <Item>[];
    var next = state.head;
    for (var nth = state.head ~/ _together;; nth += 1) {
      final stored = await _storage.read('$_name.$nth');
      if (stored == null) return (state, items, next);
      final fixes = jsonDecode(stored) as List<Object?>;
      for (var at = 0; at < fixes.length; at += 1) {
        final seq = nth * _together + at;
        if (seq >= next) next = seq + 1;
        final fix = fixes[at];
        if (fix is Json && seq >= state.head && !state.done.contains(seq)) items.add(Item(seq, fix));
      }
    }
  }

  /// Writes the fixes stored together with number [seq]. Those that are done are null.
  Future<void> saveFix(int seq, List<Item> items) => _write(() {
        final first = seq - seq % _together;
        final fixes = List<Json?>.filled(seq - first + 1, null);
        for (final item in items) {
          if (item.seq >= first && item.seq <= seq) fixes[item.seq - first] = item.fix;
        }
        return _storage.write('$_name.${seq ~/ _together}', jsonEncode(fixes));
      });

  /// Writes the state, and removes fixes that are done since the head was at [before].
  Future<void> saveState(QueueState state, int before) => _write(() async {
        await _storage.write(_name, jsonEncode(state.toJson()));
        for (var nth = before ~/ _together; nth < state.head ~/ _together; nth += 1) {
          await _storage.remove('$_name.$nth');
        }
      });

  /// Writes one after another: of two at once, either could win.
  Future<void> _write(Future<void> Function() write) {
    final written = _writing.then((_) => write());
    _writing = written.catchError((Object _) {});
    return written;
  }
}
