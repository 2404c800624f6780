// Headless Chromium over the DevTools protocol: enough of it to run a program in a page.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { WebSocket } from "ws";
import { until } from "./system.js";

/** Where Chromium is, if it is installed. */
export const CHROMIUM = [
  process.env["CHROMIUM"],
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
].find((path) => path !== undefined && existsSync(path));

interface Answer {
  id?: number;
  method?: string;
  params?: {
    type?: string;
    args?: { value?: unknown; description?: string }[];
    exceptionDetails?: object;
  };
  result?: Record<string, unknown>;
  error?: { message: string };
}

/** A browser with one page. */
export class Chromium {
  /** What the page logged to its console as an error, and what it threw. */
  readonly complaints: string[] = [];
  readonly #process: ChildProcess;
  readonly #folder: string;
  readonly #socket: WebSocket;
  readonly #waiting = new Map<number, (answer: Answer) => void>();
  #session: string | undefined;
  #last = 0;

  private constructor(process: ChildProcess, folder: string, socket: WebSocket) {
    this.#process = process;
    this.#folder = folder;
    this.#socket = socket;
    socket.on("message", (data: Buffer) => this.#hear(JSON.parse(data.toString("utf8")) as Answer));
  }

  static async start(): Promise<Chromium> {
    const folder = await mkdtemp(join(tmpdir(), "waypost-chromium-"));
    const args = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0"];
    const child = spawn(
      CHROMIUM ?? "chromium",
      [...args, `--user-data-dir=${folder}`, "about:blank"],
      {
        stdio: ["ignore", "ignore", "pipe"],
      },
    );
    let address = "";
    for await (const line of createInterface({ input: child.stderr })) {
      address = /DevTools listening on (ws:\S+)/.exec(line)?.[1] ?? "";
      if (address) {
        break;
      }
    }
    child.stderr.resume();
    const socket = new WebSocket(address);
    await once(socket, "open");
    const browser = new Chromium(child, folder, socket);
    const { targetId } = await browser.#send("Target.createTarget", { url: "about:blank" });
    const attached = await browser.#send("Target.attachToTarget", { targetId, flatten: true });
    browser.#session = attached["sessionId"] as string;
    await browser.#send("Runtime.enable");
    await browser.#send("Page.enable");
    return browser;
  }

  /** Goes to an address and waits for its page. */
  async open(url: string): Promise<void> {
    await this.#send("Page.navigate", { url });
    await until(`the page ${url}`, async () => {
      return (await this.run("document.readyState + location.href")) === `complete${url}`;
    });
  }

  /** Runs a program in the page; its result must be JSON. */
  async run(expression: string): Promise<unknown> {
    const done = await this.#send("Runtime.evaluate", {
      expression,
      awaitPromise: true,
      returnByValue: true,
    });
    const thrown = done["exceptionDetails"] as
      { exception?: { description?: string }; text?: string } | undefined;
    if (thrown) {
      throw new Error(thrown.exception?.description ?? thrown.text);
    }
    return (done["result"] as { value?: unknown }).value;
  }

  async close(): Promise<void> {
    const ended = once(this.#process, "exit");
    this.#socket.close();
    this.#process.kill();
    await ended;
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }

  async #send(method: string, params: object = {}): Promise<Record<string, unknown>> {
    this.#last += 1;
    const id = this.#last;
    const answer = new Promise<Answer>((resolve) => this.#waiting.set(id, resolve));
    this.#socket.send(JSON.stringify({ id, method, params, sessionId: this.#session }));
    const { result, error } = await answer;
    if (error) {
      throw new Error(`${method}: ${error.message}`);
    }
    return result ?? {};
  }

  #hear(answer: Answer): void {
    if (answer.id !== undefined) {
      this.#waiting.get(answer.id)?.(answer);
      this.#waiting.delete(answer.id);
    } else if (answer.method === "Runtime.exceptionThrown") {
      this.complaints.push(JSON.stringify(answer.params));
    } else if (answer.method === "Runtime.consoleAPICalled" && answer.params?.type === "error") {
      const said = answer.params.args?.map((one) => one.value ?? one.description);
      this.complaints.push(JSON.stringify(said));
    }
  }
}
