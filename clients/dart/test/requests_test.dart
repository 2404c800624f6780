// What is sent with a request, over a transport that plays responses. Never run so far, see
// README.md; check verifies the request that each method makes.
import 'package:http/http.dart' as http;
import 'package:http/testing.dart';
import 'package:test/test.dart';
import 'package:waypost/waypost.dart';

class StillClock extends Clock {
  final List<Duration> waits = [];
  DateTime _now = DateTime.utc(2026, 11, 22, 12);

  @override
  DateTime now() => _now;

  @override
  Future<void> sleep(Duration duration) async {
    waits.add(duration);
    _now = _now.add(duration);
  }

  @override
  double random() => 0.5;
}

void main() {
  late List<http.Request> sent;
  late StillClock clock;

  Waypost playing(List<http.Response> answers) {
    sent = [];
    clock = StillClock();
    final client = MockClient((request) async {
      sent.add(request);
      return answers[sent.length - 1];
    });
    return Waypost.withKey('wp_test', Settings(url: 'http://w', client: client, clock: clock));
  }

  test('the same key goes along with each attempt, after Retry-After', () async {
    final waypost = playing([
      http.Response('{"error":"away"}', 503, headers: {'retry-after': '3'}),
      http.Response('{"runId":"r-1"}', 202),
    ]);
    expect(await waypost.workflows.trigger('w'), {'runId': 'r-1'});
    expect(sent[0].headers['idempotency-key'], isNotEmpty);
    expect(sent[0].headers['idempotency-key'], sent[1].headers['idempotency-key']);
    expect(clock.waits, [const Duration(seconds: 3)]);
  });

  test('a read waits for what this client wrote', () async {
    final waypost = playing([
      http.Response('{"id":"c-1"}', 201, headers: {'waypost-position': 'e1-7'}),
      http.Response('{"id":"c-1"}', 200),
    ]);
    await waypost.contacts.create({'id': 'c-1', 'firstName': 'Ada'});
    await waypost.contacts.get('c-1');
    expect(sent[1].headers['waypost-min-position'], 'e1-7');
  });

  test('404 to a DELETE whose first attempt may have arrived means done', () async {
    final waypost = playing([
      http.Response('{"error":"away"}', 503),
      http.Response('{"error":"not found"}', 404),
    ]);
    await waypost.contacts.delete('c-1');
    expect(sent, hasLength(2));
  });

  test('an empty id would name something else: nothing is sent', () {
    final waypost = playing([]);
    expect(waypost.runs.get(''), throwsA(isA<InvalidArgumentException>()));
  });
}
