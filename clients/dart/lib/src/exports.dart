import 'dart:convert';
import 'dart:typed_data';

import 'transport.dart';

/// The progress of an export.
class ExportProgress {
  /// Bytes so far.
  final int received;

  /// Total bytes, if the server says so.
  final int? total;

  const ExportProgress(this.received, this.total);
}

/// All records of a kind as one file. Nothing is requested before it is read.
class ExportedFile {
  final Transport _transport;
  final Call _call;
  final void Function(ExportProgress progress)? _onProgress;

  ExportedFile(this._transport, this._call, this._onProgress);

  /// Reads the whole file; starts over if the connection breaks.
  Future<Uint8List> bytes() => _transport.send(_call, (answer) async {
        final builder = BytesBuilder(copy: false);
        await for (final part in _watched(answer)) {
          builder.add(part);
        }
        return builder.takeBytes();
      });

  /// Reads the whole file as text, for CSV.
  Future<String> text() async => utf8.decode(await bytes());

  /// Its chunks as they arrive. A break is an error: no part passes for the whole.
  Stream<List<int>> chunks() async* {
    yield* _watched(await _transport.open(_call));
  }

  Stream<List<int>> _watched(Answer answer) async* {
    final length = answer.headers.containsKey('content-encoding')
        ? null
        : int.tryParse(answer.headers['content-length'] ?? '');
    var received = 0;
    await for (final part in answer.chunks(_transport.settings.attemptTimeout)) {
      received += part.length;
      _onProgress?.call(ExportProgress(received, length));
      yield part;
    }
  }
}
