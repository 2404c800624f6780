// A person's resources, with an access token: account, positions, circles, SOS.
import 'operations.dart';
import 'pages.dart';
import 'settings.dart';
import 'transport.dart';

/// Accounts. Storing a returned session (`{access_token, expires_in, user, …}`) is up to you.
class Auth {
  final Transport _transport;

  Auth(this._transport);

  /// Registers an account. [phone] is an E.164 number.
  Future<Json> register({
    required String name,
    required String email,
    required String password,
    String? phone,
    RequestOptions? options,
  }) =>
      _transport.json(
        Call(
          Operations.registerAccount,
          body: {
            'name': name,
            'email': email,
            'password': password,
            if (phone != null) 'phone': phone,
          },
          options: options,
        ),
      );

  /// Signs in with a password.
  Future<Json> login({required String email, required String password, RequestOptions? options}) =>
      _transport.json(
        Call(Operations.signIn, body: {'email': email, 'password': password}, options: options),
      );

  /// Sends a one-time code to a phone, whether or not an account has it: `{expires_in}` in seconds.
  Future<Json> sendCode({required String phone, RequestOptions? options}) =>
      _transport.json(Call(Operations.sendCode, body: {'phone': phone}, options: options));

  /// Signs in with a one-time code; with a token, attaches the phone to that account.
  Future<Json> verifyCode({required String phone, required String code, RequestOptions? options}) =>
      _transport.json(
        Call(Operations.verifyCode, body: {'phone': phone, 'code': code}, options: options),
      );

  /// Signs out: the token is revoked.
  Future<void> logout({RequestOptions? options}) =>
      _transport.done(Call(Operations.signOut, options: options));

  /// Changes the password, which revokes all other tokens.
  Future<Json> changePassword({
    required String oldPassword,
    required String newPassword,
    RequestOptions? options,
  }) =>
      _transport.json(
        Call(
          Operations.changePassword,
          body: {'old': oldPassword, 'new': newPassword},
          options: options,
        ),
      );

  /// All data stored about this person.
  Future<Json> exportData({RequestOptions? options}) =>
      _transport.json(Call(Operations.exportAccount, options: options));

  /// Deletes the account: the person is forgotten.
  Future<void> deleteAccount({required String password, RequestOptions? options}) =>
      _transport.done(
        Call(Operations.deleteAccount, body: {'password': password}, options: options),
      );
}

/// People's positions. A fix is `{lat, lng, accuracy?, speed?, place_name?, recorded_at?, battery?}`:
/// degrees, metres, metres a second, up to 200 characters, RFC 3339, percent.
class Location {
  final Transport _transport;

  Location(this._transport);

  /// Reports where the person is or was: `{id, recorded_at}`.
  Future<Json> update(Json fix, {RequestOptions? options}) =>
      _transport.json(Call(Operations.updateLocation, body: fix, options: options));

  /// Reports 1 to 100 fixes, all or none.
  Future<List<Json>> updateMany(List<Json> fixes, {RequestOptions? options}) async {
    final call = Call(Operations.updateLocation, body: fixes, options: options);
    return objects((await _transport.json(call))['accepted']);
  }

  /// Hides the person's position until [until] (RFC 3339).
  Future<void> pause({required String until, RequestOptions? options}) =>
      _transport.done(Call(Operations.pauseSharing, body: {'until': until}, options: options));

  /// Shows it again.
  Future<void> resume({RequestOptions? options}) =>
      _transport.done(Call(Operations.resumeSharing, options: options));

  /// The newest position of everybody visible to the person.
  Future<List<Json>> latest({RequestOptions? options}) async {
    final call = Call(Operations.readLatest, options: options);
    return objects((await _transport.json(call))['data']);
  }

  /// Where everybody visible to the person went within the last hour.
  Future<List<Json>> trails({RequestOptions? options}) async {
    final call = Call(Operations.readTrails, options: options);
    return objects((await _transport.json(call))['data']);
  }

  /// Past positions, newest first; one's own without [userId]. [from] and [to] are RFC 3339,
  /// [limit] is 1 to 1,000.
  Future<List<Json>> history({
    int? userId,
    String? from,
    String? to,
    int? limit,
    RequestOptions? options,
  }) async {
    final call = Call(
      Operations.readHistory,
      query: {'user_id': userId, 'from': from, 'to': to, 'limit': limit},
      options: options,
    );
    return objects((await _transport.json(call))['data']);
  }
}

/// People who see each other, and the places that are watched for them.
class Circles {
  final Transport _transport;

  Circles(this._transport);

  /// Creates a circle: `{id, name}`.
  Future<Json> create({required String name, RequestOptions? options}) =>
      _transport.json(Call(Operations.createCircle, body: {'name': name}, options: options));

  /// The person's circles; with [q] those whose name contains it. [sort] is `createdAt` or `name`,
  /// with `-` to descend.
  Stream<Json> list({String? q, String? sort, int? limit, RequestOptions? options}) =>
      walk(
        _transport,
        Call(
          Operations.listCircles,
          query: {'q': q, 'sort': sort, 'limit': limit},
          options: options,
        ),
      );

  /// Creates a code for joining it: `{code, expires_at}`.
  Future<Json> invite(String id, {RequestOptions? options}) =>
      _transport.json(Call(Operations.inviteToCircle, path: [id], options: options));

  /// Joins a circle: `{circle_id}`.
  Future<Json> join({required String code, RequestOptions? options}) =>
      _transport.json(Call(Operations.joinCircle, body: {'code': code}, options: options));

  /// Leaves a circle.
  Future<void> leave(String id, {RequestOptions? options}) =>
      _transport.done(Call(Operations.leaveCircle, path: [id], options: options));

  /// Adds a place; [radiusM] is in metres.
  Future<Json> addPlace(String id, {
    required String name,
    required double lat,
    required double lng,
    required double radiusM,
    RequestOptions? options,
  }) =>
      _transport.json(
        Call(
          Operations.addPlace,
          path: [id],
          body: {'name': name, 'lat': lat, 'lng': lng, 'radius_m': radiusM},
          options: options,
        ),
      );

  /// Its places.
  Future<List<Json>> places(String id, {RequestOptions? options}) async {
    final call = Call(Operations.listPlaces, path: [id], options: options);
    return objects((await _transport.json(call))['data']);
  }

  /// Removes a place.
  Future<void> removePlace(String id, String placeId, {RequestOptions? options}) =>
      _transport.done(Call(Operations.removePlace, path: [id, placeId], options: options));
}

/// SOS calls, which have no rate limit.
class Sos {
  final Transport _transport;

  Sos(this._transport);

  /// Triggers an SOS, and returns who was alerted: `{sos_id, audience}`. [call] is
  /// `{lat?, lng?, message?, recorded_at?}`.
  Future<Json> trigger({Json? call, RequestOptions? options}) =>
      _transport.json(Call(Operations.triggerSos, body: call, options: options));

  /// The open calls of the person and of those who alerted them, newest first.
  Future<List<Json>> open({RequestOptions? options}) async {
    final call = Call(Operations.listOpenSos, options: options);
    return objects((await _transport.json(call))['data']);
  }

  /// Acknowledges it as seen.
  Future<Json> acknowledge(String id, {RequestOptions? options}) =>
      _transport.json(Call(Operations.acknowledgeSos, path: [id], options: options));

  /// Marks it as over.
  Future<Json> resolve(String id, {RequestOptions? options}) =>
      _transport.json(Call(Operations.resolveSos, path: [id], options: options));
}
