/// Which feed an operation reads or writes. People's positions have one of their own.
enum Log { events, locations, either }

final _shape = RegExp(r'^(.*-)(\d+)$');

/// Whether [position] is after [other]; null if only the server knows.
bool? isBehind(String position, String other) {
  final one = _shape.firstMatch(position);
  final two = _shape.firstMatch(other);
  if (one == null || two == null || one[1] != two[1]) return null;
  return int.parse(one[2]!) > int.parse(two[2]!);
}

/// The newest positions that this client's commands returned.
class Positions {
  final Map<Log, String> _of = {};
  Log _last = Log.events;

  /// Records the position from a command.
  void note(Log log, String position) {
    _last = log;
    final known = _of[log];
    // Of positions that cannot be compared, the last one returned counts.
    if (known == null || isBehind(position, known) != false) _of[log] = position;
  }

  /// The position that a read waits for.
  String? wanted(Log log) => _of[log == Log.either ? _last : log];

  /// Forgets a position that the server no longer knows. False if it is not ours.
  bool forget(String position) {
    final before = _of.length;
    _of.removeWhere((_, known) => known == position);
    return _of.length < before;
  }
}
