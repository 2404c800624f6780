// Plays clients/cases/webhooks.json. Never run so far, see README.md.
import 'dart:convert';
import 'dart:io';

import 'package:test/test.dart';
import 'package:waypost/waypost.dart';

void main() {
  final file = jsonDecode(File('../cases/webhooks.json').readAsStringSync()) as Json;
  for (final item in file['cases']! as List<Object?>) {
    final given = item! as Json;
    final expected = given['expect']! as Json;
    test('${given['id']} ${given['title']}', () {
      Json verify() => verifyWebhook(
            utf8.encode(given['body']! as String),
            (given['headers']! as Json).cast<String, String>(),
            secrets: (given['secrets']! as List<Object?>).cast<String>(),
            tolerance: Duration(seconds: given['toleranceSeconds'] as int? ?? 300),
            now: DateTime.fromMillisecondsSinceEpoch((given['now']! as int) * 1000, isUtc: true),
          );
      if (expected['invalid'] case final String reason) {
        final wrong = isA<InvalidWebhookException>().having((e) => e.reason.name, 'reason', reason);
        expect(verify, throwsA(wrong));
      } else {
        expect(verify(), expected['valid']);
      }
    });
  }
}
