import { type Clock, platform } from "./platform.js";

/** An access token, or the session that a sign-in returned, which also has its lifetime. */
export type Token = string | { access_token: string; expires_in?: number };

/** A token, or a function that returns one, called when first needed and again after expiry. */
export type TokenSource = Token | (() => Token | Promise<Token>);

/** How long before its expiry a token is replaced: a fifth of its lifetime, at most a minute. */
const MARGIN_MS = 60_000;

/** Credential for requests. */
export class Credential {
  /** Whether another token can be requested after this one expires. */
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

  /** When to replace the token, in milliseconds since 1970, if known. */
  get renewAt(): number | undefined {
    return this.renewable ? this.#renewAt : undefined;
  }

  /** Returns the current token, or undefined if nobody is signed in. */
  async get(): Promise<string | undefined> {
    const ended = this.renewable && (this.#expiresAt ?? Infinity) <= this.#clock.now();
    if (this.#token !== undefined && !ended) {
      return this.#token;
    }
    return this.renewable ? this.renew(this.#token) : undefined;
  }

  /** Returns a token other than `stale`. Concurrent callers share one request. */
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

/** The remaining lifetime of a JSON Web Token; infinite if it does not say. */
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
