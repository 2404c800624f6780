import 'dart:convert';

import 'package:crypto/crypto.dart';

import 'errors.dart';
import 'transport.dart';

/// Verifies a webhook's signature according to Standard Webhooks, and returns its JSON with `id`,
/// the delivery's `webhook-id`, which is the same for all attempts and replays: store it to do
/// nothing twice.
///
/// [body] is the body exactly as received, never re-encoded JSON. [secrets] are the endpoint's
/// (`whsec_…`), several during a rotation. [tolerance] is how far the sender's clock may be off.
///
/// Throws [InvalidWebhookException] if it must not be trusted.
Json verifyWebhook(
  List<int> body,
  Map<String, String> headers, {
  required List<String> secrets,
  Duration tolerance = const Duration(minutes: 5),
  DateTime? now,
}) {
  final keys = secrets.map(_keyOf).nonNulls.toList();
  if (keys.isEmpty) {
    throw const InvalidWebhookException(WebhookFault.secret, 'there is no usable secret: whsec_ and base64');
  }
  final named = {for (final MapEntry(:key, :value) in headers.entries) key.toLowerCase(): value};
  String header(String name) =>
      named[name] ??
      (throw InvalidWebhookException(WebhookFault.header, 'the header $name is missing'));
  final id = header('webhook-id');
  final timestamp = header('webhook-timestamp');
  final signatures = header('webhook-signature').split(' ');

  final seconds = RegExp(r'^\d+$').hasMatch(timestamp) ? int.tryParse(timestamp) : null;
  final present = (now ?? DateTime.now()).millisecondsSinceEpoch ~/ 1000;
  if (seconds == null || (present - seconds).abs() > tolerance.inSeconds) {
    throw const InvalidWebhookException(WebhookFault.time, 'the time of sending is too far from now');
  }

  final content = [...utf8.encode('$id.$timestamp.'), ...body];
  final wanted = [for (final key in keys) Hmac(sha256, key).convert(content).bytes];
  final fits = signatures.any((signature) {
    final given = signature.startsWith('v1,') ? _bytesOf(signature.substring(3)) : null;
    return given != null && wanted.any((one) => _equal(one, given));
  });
  if (!fits) {
    throw const InvalidWebhookException(WebhookFault.signature, 'no signature fits the body and the secret');
  }

  try {
    if (jsonDecode(utf8.decode(body)) case final Json event) return {...event, 'id': id};
  } on FormatException {
    // Reported below.
  }
  throw const InvalidWebhookException(WebhookFault.body, 'the body is signed, but not a JSON object');
}

List<int>? _keyOf(String secret) {
  final key = _bytesOf(secret.startsWith('whsec_') ? secret.substring(6) : secret);
  return key == null || key.isEmpty ? null : key;
}

/// Decodes base64; null if it is invalid.
List<int>? _bytesOf(String text) {
  try {
    return base64.decode(base64.normalize(text));
  } on FormatException {
    return null;
  }
}

/// Takes the same time whatever differs.
bool _equal(List<int> one, List<int> two) {
  if (one.length != two.length) return false;
  var differing = 0;
  for (var at = 0; at < one.length; at += 1) {
    differing |= one[at] ^ two[at];
  }
  return differing == 0;
}
