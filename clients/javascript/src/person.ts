// A person's resources, with an access token: account, positions, circles, SOS.
import type { RequestOptions } from "./http.js";
import type { List, ShortQuery } from "./list.js";
import { operations } from "./operations.js";
import { Resource } from "./organization.js";
import type {
  AcceptedFix,
  Call,
  Circle,
  Fix,
  HistoryQuery,
  NewCircle,
  OpenCall,
  Place,
  PlaceRequest,
  Position,
  Registration,
  Session,
  SosState,
  Trail,
  TriggeredSos,
} from "./types.js";

/** People's accounts. Storing the returned session is up to the caller. */
export class Auth extends Resource {
  /** Registers an account. */
  async register(account: Registration, options?: RequestOptions): Promise<Session> {
    return this.http.json({ operation: operations.registerAccount, body: account, options });
  }

  /** Signs in with a password. */
  async login(
    credentials: { email: string; password: string },
    options?: RequestOptions,
  ): Promise<Session> {
    return this.http.json({ operation: operations.signIn, body: credentials, options });
  }

  /** Sends a code to a phone, whether or not it is known; `expires_in` is in seconds. */
  async sendCode(
    phone: { phone: string },
    options?: RequestOptions,
  ): Promise<{ expires_in: number }> {
    return this.http.json({ operation: operations.sendCode, body: phone, options });
  }

  /** Signs in with a code; with a token, attaches the phone to this account. */
  async verifyCode(
    code: { phone: string; code: string },
    options?: RequestOptions,
  ): Promise<Session> {
    return this.http.json({ operation: operations.verifyCode, body: code, options });
  }

  /** Revokes the token. */
  async logout(options?: RequestOptions): Promise<void> {
    return this.http.json({ operation: operations.signOut, options });
  }

  /** Changes the password, which revokes all other tokens. */
  async changePassword(
    passwords: { old: string; new: string },
    options?: RequestOptions,
  ): Promise<Session> {
    return this.http.json({ operation: operations.changePassword, body: passwords, options });
  }

  /** All data stored about this person. */
  async export(options?: RequestOptions): Promise<Record<string, unknown>> {
    return this.http.json({ operation: operations.exportAccount, options });
  }

  /** Deletes the account: the person is forgotten. */
  async delete(account: { password: string }, options?: RequestOptions): Promise<void> {
    return this.http.json({ operation: operations.deleteAccount, body: account, options });
  }
}

/** People's positions. */
export class Location extends Resource {
  /** Reports where the person is or was. `recorded_at` defaults to now. */
  async update(fix: Fix, options?: RequestOptions): Promise<AcceptedFix> {
    return this.http.json({ operation: operations.updateLocation, body: fix, options });
  }

  /** Reports 1 to 100 fixes, all or none. */
  async updateMany(fixes: readonly Fix[], options?: RequestOptions): Promise<AcceptedFix[]> {
    const call = { operation: operations.updateLocation, body: fixes, options };
    return (await this.http.json<{ accepted: AcceptedFix[] }>(call)).accepted;
  }

  /** Hides the person's position until then. */
  async pause(pause: { until: string }, options?: RequestOptions): Promise<void> {
    return this.http.json({ operation: operations.pauseSharing, body: pause, options });
  }

  /** Shows it again. */
  async resume(options?: RequestOptions): Promise<void> {
    return this.http.json({ operation: operations.resumeSharing, options });
  }

  /** The positions of everybody visible to the person, newest first. */
  async latest(options?: RequestOptions): Promise<Position[]> {
    const call = { operation: operations.readLatest, options };
    return (await this.http.json<{ data: Position[] }>(call)).data;
  }

  /** Where everybody visible to the person went within the last hour. */
  async trails(options?: RequestOptions): Promise<Trail[]> {
    const call = { operation: operations.readTrails, options };
    return (await this.http.json<{ data: Trail[] }>(call)).data;
  }

  /** A person's past positions, newest first. */
  async history(query: HistoryQuery = {}, options?: RequestOptions): Promise<Position[]> {
    const { userId, ...rest } = query;
    const call = {
      operation: operations.readHistory,
      query: { user_id: userId, ...rest },
      options,
    };
    return (await this.http.json<{ data: Position[] }>(call)).data;
  }
}

/** People who see each other's positions, and the places watched for them. */
export class Circles extends Resource {
  /** Creates a circle. */
  async create(circle: { name: string }, options?: RequestOptions): Promise<NewCircle> {
    return this.http.json({ operation: operations.createCircle, body: circle, options });
  }

  /** The person's circles; with `q` those whose name contains it. */
  list(query?: ShortQuery, options?: RequestOptions): List<Circle> {
    return this.listOf(operations.listCircles, [], query, options);
  }

  /** Creates a code for joining it. */
  async invite(
    id: string,
    options?: RequestOptions,
  ): Promise<{ code: string; expires_at: string }> {
    return this.http.json({ operation: operations.inviteToCircle, path: [id], options });
  }

  /** Joins with a code. */
  async join(invite: { code: string }, options?: RequestOptions): Promise<{ circle_id: string }> {
    return this.http.json({ operation: operations.joinCircle, body: invite, options });
  }

  /** Leaves it. */
  async leave(id: string, options?: RequestOptions): Promise<void> {
    return this.http.json({ operation: operations.leaveCircle, path: [id], options });
  }

  /** Adds a place; `radius_m` is in metres, 10 to 100,000. */
  async addPlace(
    id: string,
    place: PlaceRequest,
    options?: RequestOptions,
  ): Promise<Omit<Place, "created_at">> {
    return this.http.json({ operation: operations.addPlace, path: [id], body: place, options });
  }

  /** Its places. */
  async places(id: string, options?: RequestOptions): Promise<Place[]> {
    const call = { operation: operations.listPlaces, path: [id], options };
    return (await this.http.json<{ data: Place[] }>(call)).data;
  }

  /** Removes a place. */
  async removePlace(id: string, placeId: string, options?: RequestOptions): Promise<void> {
    return this.http.json({ operation: operations.removePlace, path: [id, placeId], options });
  }
}

/** SOS calls; no rate limit applies to them. */
export class Sos extends Resource {
  /** Triggers an SOS, and returns who was alerted. */
  async trigger(call?: Call, options?: RequestOptions): Promise<TriggeredSos> {
    return this.http.json({ operation: operations.triggerSos, body: call, options });
  }

  /** The open calls of the person and of those who alerted them, newest first. */
  async open(options?: RequestOptions): Promise<OpenCall[]> {
    const call = { operation: operations.listOpenSos, options };
    return (await this.http.json<{ data: OpenCall[] }>(call)).data;
  }

  /** Acknowledges it as seen. */
  async acknowledge(id: string, options?: RequestOptions): Promise<SosState> {
    return this.http.json({ operation: operations.acknowledgeSos, path: [id], options });
  }

  /** Marks it as over. */
  async resolve(id: string, options?: RequestOptions): Promise<SosState> {
    return this.http.json({ operation: operations.resolveSos, path: [id], options });
  }
}
