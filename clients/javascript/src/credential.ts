import { type Clock, platform } from "./platform.js";

/** An access token, or the session that a sign-in answered with, which also says how long it holds. */
export type Token = string | { access_token: string; expires_in?: number };

/** A token, or where to get one: asked when first needed, and again when the current one has expired. */
export type TokenSource = Token | (() => Token | Promise<Token>);

/** When a token is replaced before its end: a fifth of its life, and at most a minute. */
const MARGIN_MS = 60_000;

/** Whose requests these are. */
export class Credential {
  /** Whether another token can be had when this one has expired. */
  readonly renewable: boolean;
  readonly #source: TokenSource | undefined;
  readonly #clock: Clock;
  #token: string | undefined;
  #asked: Promise<string> | undefined;
  #expiresAt: number | undefined;
  #renewAt: number | undefined;

  constructor(source: TokenSource | undefined, clock: Clock) {
    this.#source = source;
    this.#clock = clock;
    this.renewable = typeof source === "function";
    if (source !== undefined && typeof source !== "function") {
      this.#keep(source);
    }
  }

  /** When the token is to be replaced by another, in milliseconds since 1970, where that is known. */
  get renewAt(): number | undefined {
    return this.renewable ? this.#renewAt : undefined;
  }

  /** The present token, or undefined where nobody is signed in. */
  async get(): Promise<string | undefined> {
    const ended = this.renewable && (this.#expiresAt ?? Infinity) <= this.#clock.now();
    if (this.#token !== undefined && !ended) {
      return this.#token;
    }
    return this.renewable ? this.renew(this.#token) : undefined;
  }

  /** Another token than `stale`. Callers at the same time share one question. */
  async renew(stale: string | undefined): Promise<string> {
    if (this.#token !== undefined && this.#token !== stale) {
      return this.#token;
    }
    const source = this.#source;
    if (typeof source !== "function") {
      throw new Error("a fixed token cannot be renewed");
    }
    this.#asked ??= Promise.resolve()
      .then(source)
      .then((token) => this.#keep(token))
      .finally(() => (this.#asked = undefined));
    return this.#asked;
  }

  #keep(token: Token): string {
    const now = this.#clock.now();
    const text = typeof token === "string" ? token : token.access_token;
    const lifeMs =
      typeof token === "string" ? lifeOf(text, now) : (token.expires_in ?? Infinity) * 1000;
    this.#token = text;
    this.#expiresAt = now + lifeMs;
    this.#renewAt = Number.isFinite(lifeMs)
      ? this.#expiresAt - Math.min(MARGIN_MS, lifeMs / 5)
      : undefined;
    return text;
  }
}

/** How long a JSON Web Token still holds; for ever where it does not say. */
function lifeOf(token: string, now: number): number {
  const payload = token.split(".")[1];
  if (payload === undefined) {
    return Infinity;
  }
  try {
    const text = platform.atob(payload.replace(/-/g, "+").replace(/_/g, "/"));
    const { exp } = JSON.parse(text) as { exp?: unknown };
    return typeof exp === "number" ? exp * 1000 - now : Infinity;
  } catch {
    return Infinity;
  }
}
