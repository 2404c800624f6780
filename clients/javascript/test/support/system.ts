// A Waypost for the tests, which takes requests and can be killed: clients/system.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { Waypost, type WaypostOptions } from "../../dist/index.js";

export interface Organization {
  orgId: string;
  key: string;
  url: string;
}

export interface Account {
  access_token: string;
  expires_in: number;
  user: { id: number; name: string; email: string };
  email: string;
  password: string;
  url: string;
}

const WAIT_LIMIT_MS = 60_000;

/** The system: a running one, named by WAYPOST_TEST_CONTROL, or its own. */
export class System {
  readonly #control: string;
  readonly #process: ChildProcess | undefined;

  private constructor(control: string, process: ChildProcess | undefined) {
    this.#control = control;
    this.#process = process;
  }

  static async start(...settings: string[]): Promise<System> {
    const running = process.env["WAYPOST_TEST_CONTROL"];
    if (running && settings.length === 0) {
      return new System(running, undefined);
    }
    const program = fileURLToPath(new URL("../../../system/start", import.meta.url));
    const set = settings.flatMap((setting) => ["--set", setting]);
    const child = spawn(program, ["--until-eof", ...set], { stdio: ["pipe", "pipe", "inherit"] });
    const lines = createInterface({ input: child.stdout });
    const [line] = (await Promise.race([
      once(lines, "line"),
      once(child, "exit").then(() => Promise.reject(new Error("the system did not start"))),
    ])) as [string];
    return new System((JSON.parse(line) as { control: string }).control, child);
  }

  /** Releases it. */
  async close(): Promise<void> {
    if (this.#process) {
      const ended = once(this.#process, "exit");
      this.#process.stdin?.end();
      await ended;
    }
  }

  /** Its control address. */
  get control(): string {
    return this.#control;
  }

  /** Sends it a request. */
  async ask<T>(path: string, body: object = {}): Promise<T> {
    const answer = await fetch(this.#control + path, {
      method: "POST",
      body: JSON.stringify(body),
    });
    const value = (await answer.json()) as T & { error?: string };
    if (!answer.ok) {
      throw new Error(`${path}: ${value.error}`);
    }
    return value;
  }

  /** An organization, and a client with its key. */
  async organization(
    options: Partial<WaypostOptions> = {},
    asked: object = {},
  ): Promise<Organization & { waypost: Waypost }> {
    const organization = await this.ask<Organization>("/organization", asked);
    const { url, key } = organization;
    return { ...organization, waypost: new Waypost({ url, key, ...options }) };
  }

  /** A person, and a client with their token. */
  async person(
    options: Partial<WaypostOptions> = {},
    asked: object = {},
  ): Promise<Account & { waypost: Waypost }> {
    const account = await this.ask<Account>("/account", asked);
    return { ...account, waypost: new Waypost({ url: account.url, token: account, ...options }) };
  }

  /** kill -9, and a start. */
  async killAndStart(settings?: Record<string, string>): Promise<void> {
    await this.ask("/waypost/kill");
    await this.ask("/waypost/start", { settings });
  }
}

/** Waits for a condition. */
export async function until<T>(
  what: string,
  found: () => T | Promise<T>,
): Promise<Exclude<T, false | null | undefined>> {
  const end = Date.now() + WAIT_LIMIT_MS;
  for (;;) {
    const value = await found();
    if (value) {
      return value as Exclude<T, false | null | undefined>;
    }
    if (Date.now() > end) {
      throw new Error(`waited ${WAIT_LIMIT_MS / 1000} s for ${what}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
