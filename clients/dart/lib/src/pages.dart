import 'transport.dart';

/// A page of a list.
class ListPage {
  final List<Json> data;

  /// How many match in total.
  final int total;

  /// This page's number, from 1.
  final int page;

  /// The maximum items on a page.
  final int limit;

  /// The cursor of the next page; null on the last one.
  final String? next;

  const ListPage(this.data, {required this.total, required this.page, required this.limit, this.next});
}

/// Reads one page.
Future<ListPage> readPage(Transport transport, Call call) async {
  String? next;
  final page = await transport.json(call, look: (headers) => next = cursorOf(headers['link']));
  return ListPage(
    objects(page['data']),
    total: page['total'] as int? ?? 0,
    page: page['page'] as int? ?? 1,
    limit: page['limit'] as int? ?? 0,
    next: next,
  );
}

/// Reads a list to its end, page by page while it is listened to. Each page is retried on its own.
Stream<Json> walk(Transport transport, Call call) async* {
  var query = call.query;
  while (true) {
    final page = await readPage(
      transport,
      Call(call.operation, path: call.path, query: query, options: call.options),
    );
    for (final item in page.data) {
      yield item;
    }
    final next = page.next;
    if (next == null) return;
    query = {...call.query, 'page': null, 'cursor': next};
  }
}

/// The JSON objects of an array.
List<Json> objects(Object? array) =>
    array is List<Object?> ? array.whereType<Json>().toList() : const [];

final _link = RegExp(r'<([^>]*)>([^<]*)');
final _cursor = RegExp(r'[?&]cursor=([^&#]*)');
final _next = RegExp(r';\s*rel="?next"?', caseSensitive: false);

/// The cursor in a `Link` header. The rest of the address is ignored: the server stays the same.
String? cursorOf(String? header) {
  if (header == null) return null;
  for (final link in _link.allMatches(header)) {
    final cursor = _cursor.firstMatch(link[1]!);
    if (cursor != null && _next.hasMatch(link[2]!)) return Uri.decodeComponent(cursor[1]!);
  }
  return null;
}
