import type { Attempt } from "./attempt.js";
import { platform, type ResponseLike } from "./platform.js";

/** The body of a response, chunk by chunk, or whole if the platform offers nothing else. */
export async function* chunksOf(
  response: ResponseLike,
  attempt: Attempt,
): AsyncGenerator<Uint8Array, void, undefined> {
  if (!response.body) {
    const whole = await attempt.net(response.arrayBuffer());
    if (whole.byteLength > 0) {
      yield new Uint8Array(whole);
    }
    return;
  }
  const reader = response.body.getReader();
  let ended = false;
  try {
    for (;;) {
      attempt.alive();
      const { done, value } = await attempt.net(reader.read());
      attempt.rest();
      if (done) {
        ended = true;
        return;
      }
      if (value) {
        yield value;
      }
    }
  } finally {
    if (!ended) {
      // The rest is not needed.
      reader.cancel().catch(() => undefined);
    }
  }
}

/** The lines of a response, without line endings. A last line without one counts too. */
export async function* linesOf(
  response: ResponseLike,
  attempt: Attempt,
): AsyncGenerator<string, void, undefined> {
  let rest = "";
  for await (const text of textOf(response, attempt)) {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      yield line.endsWith("\r") ? line.slice(0, -1) : line;
    }
  }
  if (rest !== "") {
    yield rest;
  }
}

async function* textOf(
  response: ResponseLike,
  attempt: Attempt,
): AsyncGenerator<string, void, undefined> {
  if (!response.body) {
    yield await attempt.net(response.text());
    return;
  }
  const decoder = new platform.TextDecoder();
  for await (const chunk of chunksOf(response, attempt)) {
    yield decoder.decode(chunk, { stream: true });
  }
  yield decoder.decode();
}
