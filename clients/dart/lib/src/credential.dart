import 'dart:async';
import 'dart:convert';

import 'settings.dart';

/// Credential for requests.
class Credential {
  final TokenSource? _source;
  final Clock _clock;
  String? _token;
  Future<String>? _asked;
  DateTime? _expiresAt;
  DateTime? _renewAt;

  /// A fixed API key or token, or none.
  Credential.fixed(this._token, this._clock) : _source = null;

  /// A token from a function.
  Credential.from(TokenSource this._source, this._clock);

  /// Whether a new token can be requested after this one expires.
  bool get renewable => _source != null;

  /// When to replace the token, if known: a fifth of its lifetime before it expires, and at most a
  /// minute.
  DateTime? get renewAt => renewable ? _renewAt : null;

  /// Returns the current token; null if nobody is signed in.
  Future<String?> get() async {
    final expiresAt = _expiresAt;
    final ended = renewable && expiresAt != null && !expiresAt.isAfter(_clock.now());
    if (_token != null && !ended) return _token;
    return renewable ? renew(_token) : null;
  }

  /// Returns a token other than [stale]. Concurrent callers share one request.
  Future<String> renew(String? stale) async {
    final present = _token;
    if (present != null && present != stale) return present;
    final asked = _asked;
    if (asked != null) return asked;
    final asking = _ask(_source!);
    _asked = asking;
    try {
      return await asking;
    } finally {
      _asked = null;
    }
  }

  Future<String> _ask(TokenSource source) async {
    final token = await source();
    final now = _clock.now();
    final life = _lifeOf(token, now);
    _token = token;
    _expiresAt = life == null ? null : now.add(life);
    if (life == null) {
      _renewAt = null;
    } else {
      final fifth = life ~/ 5;
      const minute = Duration(minutes: 1);
      _renewAt = now.add(life - (fifth < minute ? fifth : minute));
    }
    return token;
  }
}

/// The remaining lifetime of a JSON Web Token; null if it does not say.
Duration? _lifeOf(String token, DateTime now) {
  final parts = token.split('.');
  if (parts.length != 3) return null;
  try {
    final payload = utf8.decode(base64Url.decode(base64Url.normalize(parts[1])));
    if (jsonDecode(payload) case {'exp': final num seconds}) {
      final end = DateTime.fromMillisecondsSinceEpoch((seconds * 1000).round(), isUtc: true);
      return end.difference(now);
    }
  } on FormatException {
    // Not a JSON Web Token.
  }
  return null;
}
