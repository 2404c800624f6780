import 'dart:async';
import 'dart:convert';

import 'exports.dart';
import 'operations.dart';
import 'pages.dart';
import 'settings.dart';
import 'transport.dart';

/// Lines of one request of an import: few enough to resend, many enough to be fast.
const _lines = 2000;
const _ndjson = 'application/x-ndjson';

/// Records of a kind: companies, deals, contacts, orders, leads or clients.
class Records {
  final Transport _transport;

  /// The kind, such as `orders`.
  final String kind;

  Records(this._transport, this.kind);

  /// Creates a record, with an `id` of your own or a new one: `{id}`.
  Future<Json> create(Json record, {RequestOptions? options}) =>
      _transport.json(Call(Operations.create(kind), body: record, options: options));

  /// Creates or replaces a record: `{id}`. Omitted fields are empty afterwards.
  Future<Json> put(String id, Json record, {RequestOptions? options}) =>
      _transport.json(Call(Operations.put(kind), path: [id], body: record, options: options));

  /// One record.
  Future<Json> get(String id, {RequestOptions? options}) =>
      _transport.json(Call(Operations.get(kind), path: [id], options: options));

  /// Deletes a record.
  Future<void> delete(String id, {RequestOptions? options}) =>
      _transport.done(Call(Operations.delete(kind), path: [id], options: options));

  /// Creates or replaces many records, and yields the outcome of each, by its line from 1:
  /// `{line, id, status}` or `{line, error}`. Sends a few thousand at a time; each request is
  /// retried on its own and writes nothing twice.
  Stream<Json> importAll(Stream<Json> records, {RequestOptions? options}) async* {
    var before = 0;
    final lines = <String>[];
    await for (final record in records) {
      lines.add(jsonEncode(record));
      if (lines.length == _lines) {
        yield* _send(lines, before, options);
        before += lines.length;
        lines.clear();
      }
    }
    if (lines.isNotEmpty) yield* _send(lines, before, options);
  }

  Stream<Json> _send(List<String> lines, int before, RequestOptions? options) async* {
    // A key is for one body: each part of an import has its own.
    final key = options?.idempotencyKey;
    final call = Call(
      Operations.create(kind),
      accept: _ndjson,
      text: '${lines.join('\n')}\n',
      textType: _ndjson,
      options: RequestOptions(
        idempotencyKey: key == null || before == 0 ? key : '$key-$before',
        cause: options?.cause,
        maxRetries: options?.maxRetries,
        timeout: options?.timeout,
      ),
    );
    final outcomes = await _transport.send(call, (answer) async {
      final outcomes = <Json>[];
      await for (final line in answer.lines(_transport.settings.attemptTimeout)) {
        if (line.isEmpty) continue;
        final outcome = jsonDecode(line) as Json;
        outcomes.add({...outcome, 'line': (outcome['line'] as int) + before});
      }
      return outcomes;
    });
    yield* Stream.fromIterable(outcomes);
  }
}

/// Records that can be exported: companies, deals and contacts.
class ExportedRecords extends Records {
  ExportedRecords(super.transport, super.kind);

  /// Exports all as a file: `csv`, `excel` or `pdf`, for companies also `crm`. With [updatedSince]
  /// (RFC 3339) only what was written or deleted since then.
  ExportedFile export({
    String format = 'csv',
    String? updatedSince,
    void Function(ExportProgress progress)? onProgress,
    RequestOptions? options,
  }) {
    final query = {'format': format, 'updatedSince': updatedSince};
    final call = Call(Operations.export(kind), query: query, accept: '*/*', options: options);
    return ExportedFile(_transport, call, onProgress);
  }
}

/// Records that can be listed: orders, leads and clients.
class ListedRecords extends Records {
  final Operation _list;

  ListedRecords(super.transport, super.kind, this._list);

  /// All of them, page by page while the stream is listened to. [q] is part of a name, an e-mail
  /// address or a number; [sort] `createdAt`, `name`, `email`, `amount`, `number`, `status`, `city`
  /// or `isActive` where they have it, with `-` to descend; [createdFrom] and [createdBefore] are
  /// times or dates; [status] is for orders and leads, [city] and [isActive] for clients.
  Stream<Json> list({
    String? status,
    String? q,
    String? sort,
    String? createdFrom,
    String? createdBefore,
    String? city,
    bool? isActive,
    int? limit,
    RequestOptions? options,
  }) {
    final query = {
      'status': status,
      'q': q,
      'sort': sort,
      'createdFrom': createdFrom,
      'createdBefore': createdBefore,
      'city': city,
      'isActive': isActive,
      'limit': limit,
    };
    return walk(_transport, Call(_list, query: query, options: options));
  }

  /// One page of up to [limit] (1 to 100) records: the one with number [page], or at [cursor].
  Future<ListPage> page({
    int? page,
    String? cursor,
    int? limit,
    String? status,
    String? q,
    String? sort,
    String? createdFrom,
    String? createdBefore,
    String? city,
    bool? isActive,
    RequestOptions? options,
  }) {
    final query = {
      'status': status,
      'q': q,
      'sort': sort,
      'createdFrom': createdFrom,
      'createdBefore': createdBefore,
      'city': city,
      'isActive': isActive,
      'page': page,
      'cursor': cursor,
      'limit': limit,
    };
    return readPage(_transport, Call(_list, query: query, options: options));
  }
}
