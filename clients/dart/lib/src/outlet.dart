import 'dart:async';

/// A stream whose producer learns at once that the listener cancelled, even while it waits. (An
/// `async*` function would learn it only at its next `yield`.)
class Outlet<T> {
  late final StreamController<T> _controller;
  final Completer<void> _stopped = Completer<void>();
  Completer<void>? _resumed;

  /// Called when the listener cancels: ends what the producer waits for.
  void Function()? onStop;

  Outlet(Future<void> Function(Outlet<T> outlet) produce) {
    _controller = StreamController<T>(
      onListen: () => unawaited(_run(produce)),
      onResume: () => _wake(),
      onCancel: () {
        if (!_stopped.isCompleted) _stopped.complete();
        _wake();
        onStop?.call();
      },
    );
  }

  Stream<T> get stream => _controller.stream;

  /// Whether the listener cancelled.
  bool get stopped => _stopped.isCompleted;

  /// Sends an item to the listener, and waits while it is paused.
  Future<void> add(T item) async {
    if (stopped) return;
    _controller.add(item);
    while (_controller.isPaused && !stopped) {
      await (_resumed ??= Completer<void>()).future;
    }
  }

  /// Waits, but only while there is a listener.
  Future<void> sleep(Future<void> waiting) => Future.any([waiting, _stopped.future]);

  Future<void> _run(Future<void> Function(Outlet<T> outlet) produce) async {
    try {
      await produce(this);
    } catch (error, trace) {
      if (!stopped) _controller.addError(error, trace);
    }
    await _controller.close();
  }

  void _wake() {
    _resumed?.complete();
    _resumed = null;
  }
}
