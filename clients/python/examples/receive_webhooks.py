"""Receives webhooks and trusts only those that are signed.

WEBHOOK_SECRET is the endpoint's secret; PORT (8099) is where it listens.
"""

import os
from http.server import BaseHTTPRequestHandler, HTTPServer

from waypost.webhooks import WebhookError, verify

SEEN: set[str] = set()


class Handler(BaseHTTPRequestHandler):
    """An endpoint."""

    def do_POST(self) -> None:
        """Receive a delivery."""
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        try:
            delivery = verify(body, self.headers, os.environ["WEBHOOK_SECRET"])
        except WebhookError as error:
            print(f"refused: {error}", flush=True)
            self.send_response(400)
        else:
            # A delivery may arrive again; it is handled once.
            if delivery.id not in SEEN:
                SEEN.add(delivery.id)
                print(delivery.type, delivery.data, flush=True)
            self.send_response(204)
        self.end_headers()


if __name__ == "__main__":
    HTTPServer(("127.0.0.1", int(os.environ.get("PORT", "8099"))), Handler).serve_forever()
