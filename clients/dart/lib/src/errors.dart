import 'dart:convert';

/// Every exception of this package.
sealed class WaypostException implements Exception {
  /// What went wrong, for people; never empty.
  final String message;

  const WaypostException(this.message);

  @override
  String toString() => '$runtimeType: $message';
}

/// An argument is invalid; nothing was sent.
final class InvalidArgumentException extends WaypostException {
  const InvalidArgumentException(super.message);
}

/// No response, or an incomplete one. The server may have carried out the request anyway.
base class ConnectionFailedException extends WaypostException {
  const ConnectionFailedException(super.message);
}

/// No response in time.
final class TimedOutException extends ConnectionFailedException {
  const TimedOutException(super.message);
}

/// A socket ended permanently.
final class SocketClosedException extends WaypostException {
  /// The close code, 3500 to 3999.
  final int code;

  const SocketClosedException(this.code, super.message);
}

/// The server refused a subscription.
final class SubscriptionRefusedException extends WaypostException {
  const SubscriptionRefusedException(super.message);
}

/// Why a webhook must not be trusted.
enum WebhookFault { secret, header, time, signature, body }

/// A webhook must not be trusted.
final class InvalidWebhookException extends WaypostException {
  final WebhookFault reason;

  const InvalidWebhookException(this.reason, super.message);
}

/// The server returned an error. Common statuses have their own classes.
base class ApiException extends WaypostException {
  final int status;

  /// The raw response body. Not always JSON: proxies respond too.
  final String body;

  /// The response headers, with lower-case names.
  final Map<String, String> headers;

  /// How long to wait before a retry, from `Retry-After`.
  final Duration? retryAfter;

  const ApiException._(this.status, this.body, this.headers, this.retryAfter, super.message);

  /// The exception for a response received at [now].
  factory ApiException.of(int status, String body, Map<String, String> headers, DateTime now) {
    final retryAfter = parseRetryAfter(headers['retry-after'], now);
    final message = _messageOf(status, body);
    return switch (status) {
      400 => BadRequestException._(status, body, headers, retryAfter, message),
      401 => UnauthorizedException._(status, body, headers, retryAfter, message),
      403 => ForbiddenException._(status, body, headers, retryAfter, message),
      404 => NotFoundException._(status, body, headers, retryAfter, message),
      409 => ConflictException._(status, body, headers, retryAfter, message),
      410 => GoneException._(status, body, headers, retryAfter, message),
      413 => TooLargeException._(status, body, headers, retryAfter, message),
      415 => UnsupportedTypeException._(status, body, headers, retryAfter, message),
      429 => RateLimitedException._(status, body, headers, retryAfter, message),
      503 => UnavailableException._(status, body, headers, retryAfter, message),
      >= 500 => ServerException._(status, body, headers, retryAfter, message),
      _ => ApiException._(status, body, headers, retryAfter, message),
    };
  }

  /// The id under which the server logged the request.
  String? get traceId {
    final parts = headers['traceparent']?.split('-');
    return parts == null || parts.length < 2 ? null : parts[1];
  }

  /// The position in the response.
  String? get position => headers['waypost-position'];
}

/// 400: the request is malformed; the message names the field.
final class BadRequestException extends ApiException {
  const BadRequestException._(super.status, super.body, super.headers, super.retryAfter, super.message)
      : super._();
}

/// 401: no key or token was sent, or it is wrong, revoked or expired.
final class UnauthorizedException extends ApiException {
  const UnauthorizedException._(super.status, super.body, super.headers, super.retryAfter, super.message)
      : super._();
}

/// 403: not allowed; for a key, the message names the missing scope.
final class ForbiddenException extends ApiException {
  const ForbiddenException._(super.status, super.body, super.headers, super.retryAfter, super.message)
      : super._();
}

/// 404: not found, or not visible to this caller.
final class NotFoundException extends ApiException {
  const NotFoundException._(super.status, super.body, super.headers, super.retryAfter, super.message)
      : super._();
}

/// 409: in conflict with the current state.
final class ConflictException extends ApiException {
  const ConflictException._(super.status, super.body, super.headers, super.retryAfter, super.message)
      : super._();
}

/// 410: no longer available, such as a position from before a restore.
final class GoneException extends ApiException {
  const GoneException._(super.status, super.body, super.headers, super.retryAfter, super.message)
      : super._();
}

/// 413: the body is too large.
final class TooLargeException extends ApiException {
  const TooLargeException._(super.status, super.body, super.headers, super.retryAfter, super.message)
      : super._();
}

/// 415: the body is of a type that is not accepted.
final class UnsupportedTypeException extends ApiException {
  const UnsupportedTypeException._(super.status, super.body, super.headers, super.retryAfter, super.message)
      : super._();
}

/// 429: a limit is exceeded; [retryAfter] says for how long.
final class RateLimitedException extends ApiException {
  const RateLimitedException._(super.status, super.body, super.headers, super.retryAfter, super.message)
      : super._();
}

/// 5xx: an internal error.
final class ServerException extends ApiException {
  const ServerException._(super.status, super.body, super.headers, super.retryAfter, super.message)
      : super._();
}

/// 503: a dependency is temporarily unavailable.
final class UnavailableException extends ApiException {
  const UnavailableException._(super.status, super.body, super.headers, super.retryAfter, super.message)
      : super._();
}

/// A success with an unexpected body, usually a proxy's page.
final class InvalidResponseException extends ApiException {
  const InvalidResponseException(int status, String body, Map<String, String> headers)
      : super._(status, body, headers, null, 'the answer is not the JSON that was expected');
}

String _messageOf(int status, String body) {
  try {
    if (jsonDecode(body) case {'error': final String message} when message.isNotEmpty) {
      return message;
    }
  } on FormatException {
    // Not from Waypost itself: `body` has the raw text.
  }
  return 'the server answered with status $status';
}

const _months = [
  'jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec', //
];
final _httpDate = RegExp(r'^\w{3}, (\d\d) (\w{3}) (\d{4}) (\d\d):(\d\d):(\d\d) GMT$');

/// Parses the wait in a `Retry-After`, in seconds or as a date; null if it is invalid.
Duration? parseRetryAfter(String? text, DateTime now) {
  if (text == null) return null;
  final seconds = int.tryParse(text.trim());
  if (seconds != null) return seconds < 0 ? null : Duration(seconds: seconds);
  final date = _httpDate.firstMatch(text.trim());
  final month = date == null ? -1 : _months.indexOf(date[2]!.toLowerCase());
  if (date == null || month < 0) return null;
  int part(int nth) => int.parse(date[nth]!);
  final at = DateTime.utc(part(3), month + 1, part(1), part(4), part(5), part(6));
  final wait = at.difference(now);
  return wait.isNegative ? Duration.zero : wait;
}
