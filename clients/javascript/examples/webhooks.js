// Receives webhooks, verifies their signatures, and handles each delivery once.
//   WAYPOST_SECRET=whsec_… PORT=9000 node examples/webhooks.js
import { createServer } from "node:http";
import { verifyWebhook } from "@waypost/client";

const { WAYPOST_SECRET: secret = "", PORT: port = "9000" } = process.env;
/** Processed deliveries. A real receiver keeps them with its own data. */
const done = new Set();

const server = createServer(async (request, response) => {
  const parts = [];
  for await (const part of request) {
    parts.push(part);
  }
  try {
    const event = await verifyWebhook({
      secret,
      headers: request.headers,
      body: Buffer.concat(parts),
    });
    if (!done.has(event.id)) {
      done.add(event.id);
      console.log(event.type, JSON.stringify(event.data));
    }
    response.writeHead(204).end();
  } catch (error) {
    console.error(`refused: ${error.message}`);
    response.writeHead(400).end();
  }
});
server.listen(Number(port), "127.0.0.1", () =>
  console.log(`listening at ${server.address().port}`),
);
