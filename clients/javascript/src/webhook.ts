import { InvalidWebhookError } from "./errors.js";
import { type CryptoLike, platform } from "./platform.js";

/** A webhook to verify. */
export interface ReceivedWebhook {
  /** The body exactly as received: bytes, or text decoded from them. Never re-encoded JSON. */
  body: string | Uint8Array;
  /** The request's headers, in any form and case. */
  headers:
    | { get(name: string): string | null }
    | Readonly<Record<string, string | readonly string[] | undefined>>;
  /** The endpoint's secret (`whsec_…`), or several during a rotation. */
  secret: string | readonly string[];
  /** How far the sender's clock may differ from ours, in seconds: 300. */
  toleranceSeconds?: number | undefined;
  /** The current time, in milliseconds since 1970. */
  now?: number | undefined;
  /** Web Crypto in place of the platform's. */
  crypto?: CryptoLike | undefined;
}

/** The content of a webhook. */
export interface WebhookEvent {
  /** The delivery, the same for all its attempts and replays: store it to do nothing twice. */
  id: string;
  type: string;
  timestamp: string;
  data: Record<string, unknown>;
  /** Its position in the log. */
  position: string;
}

interface Signed {
  id: string;
  timestamp: string;
  signatures: string[];
}

/**
 * Verifies a webhook's signature according to Standard Webhooks, and returns its content.
 *
 * @throws InvalidWebhookError if it must not be trusted; its `reason` says why.
 */
export async function verifyWebhook(received: ReceivedWebhook): Promise<WebhookEvent> {
  const secrets = [received.secret]
    .flat()
    .map(bytesOfSecret)
    .filter((bytes) => bytes.length > 0);
  if (secrets.length === 0) {
    throw new InvalidWebhookError(
      "secret",
      "there is no secret that can be used: whsec_ and base64",
    );
  }
  const signed = signedHeaders(received.headers);
  checkTime(signed.timestamp, received);
  const body =
    typeof received.body === "string"
      ? new platform.TextEncoder().encode(received.body)
      : received.body;
  if (!(await isSigned(signed, body, secrets, received.crypto ?? platform.crypto))) {
    throw new InvalidWebhookError("signature", "no signature fits the body and the secret");
  }
  return { ...parsed(body), id: signed.id };
}

function signedHeaders(headers: ReceivedWebhook["headers"]): Signed {
  const named = (name: string): string => {
    const value = headerOf(headers, name);
    if (value === undefined) {
      throw new InvalidWebhookError("header", `the header ${name} is missing`);
    }
    return value;
  };
  const [id, timestamp] = [named("webhook-id"), named("webhook-timestamp")];
  return { id, timestamp, signatures: named("webhook-signature").split(" ") };
}

function headerOf(headers: ReceivedWebhook["headers"], name: string): string | undefined {
  if (typeof headers["get"] === "function") {
    return (headers as { get(name: string): string | null }).get(name) ?? undefined;
  }
  const all = Object.entries(headers as Record<string, string | readonly string[] | undefined>);
  const value = all.find(([key]) => key.toLowerCase() === name)?.[1];
  return typeof value === "string" ? value : value?.join(" ");
}

function checkTime(
  timestamp: string,
  { now = Date.now(), toleranceSeconds = 300 }: ReceivedWebhook,
): void {
  const apart = Math.abs(Math.floor(now / 1000) - Number(timestamp));
  if (!/^\d+$/.test(timestamp) || apart > toleranceSeconds) {
    throw new InvalidWebhookError("time", "the time of sending is too far from now");
  }
}

async function isSigned(
  { id, timestamp, signatures }: Signed,
  body: Uint8Array,
  secrets: Uint8Array[],
  crypto: CryptoLike | undefined,
): Promise<boolean> {
  const subtle = crypto?.subtle;
  if (!subtle) {
    throw new TypeError("this platform has no Web Crypto: pass one in `crypto`");
  }
  const head = new platform.TextEncoder().encode(`${id}.${timestamp}.`);
  const content = new Uint8Array(head.length + body.length);
  content.set(head);
  content.set(body, head.length);
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  for (const secret of secrets) {
    const key = await subtle.importKey("raw", secret, algorithm, false, ["verify"]);
    for (const signature of signatures) {
      // Compared by Web Crypto, which takes the same time whatever differs.
      const given = signature.startsWith("v1,") ? bytesOf(signature.slice(3)) : undefined;
      if (given?.length && (await subtle.verify(algorithm, key, given, content))) {
        return true;
      }
    }
  }
  return false;
}

function parsed(body: Uint8Array): Omit<WebhookEvent, "id"> {
  try {
    const value: unknown = JSON.parse(new platform.TextDecoder().decode(body));
    if (typeof value === "object" && value !== null && !Array.isArray(value)) {
      return value as Omit<WebhookEvent, "id">;
    }
  } catch {
    // Reported below.
  }
  throw new InvalidWebhookError("body", "the body is signed, but no JSON object");
}

const bytesOfSecret = (secret: string): Uint8Array => bytesOf(secret.replace(/^whsec_/, ""));

/** Decodes base64; empty if it is invalid. */
function bytesOf(base64: string): Uint8Array {
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(base64) || base64.length % 4 === 1) {
    return new Uint8Array();
  }
  return Uint8Array.from(platform.atob(base64), (character) => character.charCodeAt(0));
}
