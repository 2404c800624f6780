/** Which feed a command writes to. People's positions have one of their own. */
export type Feed = "log" | "fixes";

/** Whether `position` is after `other`; undefined if only the server knows. */
export function isBehind(position: string, other: string): boolean | undefined {
  const [one, two] = [/^(.*-)(\d+)$/.exec(position), /^(.*-)(\d+)$/.exec(other)];
  if (!one || !two || one[1] !== two[1]) {
    return undefined;
  }
  return Number(one[2]) > Number(two[2]);
}

/** The newest positions that this client's commands returned. */
export class Positions {
  readonly #of: Partial<Record<Feed, string>> = {};
  #last: Feed = "log";

  /** Records the position from a command. */
  note(feed: Feed, position: string): void {
    const known = this.#of[feed];
    this.#last = feed;
    if (known === undefined || isBehind(position, known) !== false) {
      this.#of[feed] = position;
    }
  }

  /** The position that a read of this client waits for. */
  wanted(reads: Feed | "either"): string | undefined {
    return this.#of[reads === "either" ? this.#last : reads];
  }

  /** Forgets a position that the server no longer knows. */
  forget(position: string): void {
    for (const feed of ["log", "fixes"] as const) {
      if (this.#of[feed] === position) {
        delete this.#of[feed];
      }
    }
  }
}
