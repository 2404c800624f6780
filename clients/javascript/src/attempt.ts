import { ConnectionFailedError, TimedOutError, WaypostError } from "./errors.js";
import { type AbortSignalLike, abortReason, platform } from "./platform.js";

/** One attempt of a request: it ends with its response, timeout, or the caller's signal. */
export class Attempt {
  readonly #controller = new platform.AbortController();
  readonly #caller: AbortSignalLike | undefined;
  #ms: number;
  /** Whether a reader continues after the call returned, and ends the attempt. */
  kept = false;
  #timer: unknown;
  #stop: ((error: unknown) => void) | undefined;
  readonly #stopped: Promise<never>;

  constructor(ms: number, caller: AbortSignalLike | undefined) {
    this.#ms = ms;
    this.#caller = caller;
    this.#stopped = new Promise((_, reject) => (this.#stop = reject));
    // Possibly nobody waits when it ends.
    this.#stopped.catch(() => undefined);
    caller?.addEventListener("abort", this.#abort);
    if (caller?.aborted) {
      this.#abort();
    }
    this.alive();
  }

  /** Aborts the request if the platform can. */
  get signal(): AbortSignalLike {
    return this.#controller.signal;
  }

  /** Starts to wait for data, which may take the whole timeout. */
  alive(): void {
    platform.clearTimeout(this.#timer);
    this.#timer = platform.setTimeout(() => this.#fail(new TimedOutError(this.#late())), this.#ms);
  }

  /** Stops the timer: the reader may take any time. */
  rest(): void {
    platform.clearTimeout(this.#timer);
  }

  /** Changes the timeout from now on. */
  set timeoutMs(ms: number) {
    this.#ms = ms;
  }

  /** Awaits network data, and gives up when the attempt ends first. Not every `fetch` heeds its signal. */
  async net<T>(promise: Promise<T>): Promise<T> {
    try {
      return await Promise.race([promise, this.#stopped]);
    } catch (error) {
      if (error instanceof WaypostError || this.#caller?.aborted) {
        throw error;
      }
      const why = error instanceof Error ? error.message : String(error);
      throw new ConnectionFailedError(`no whole answer came: ${why}`, { cause: error });
    }
  }

  /** Releases timer and signal. */
  end(): void {
    this.rest();
    this.#caller?.removeEventListener("abort", this.#abort);
  }

  readonly #abort = (): void => {
    this.#fail(this.#caller ? abortReason(this.#caller) : undefined);
  };

  #fail(error: unknown): void {
    this.#stop?.(error);
    this.#controller.abort(error);
  }

  #late(): string {
    return `no answer came within ${this.#ms} ms`;
  }
}
