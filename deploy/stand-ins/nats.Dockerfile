# Stands in for nats:2.15.1-alpine; the context holds the pinned nats-server.
FROM debian:bookworm-slim
RUN apt-get update && apt-get install --yes --no-install-recommends wget && rm -rf /var/lib/apt/lists/*
COPY nats-server /usr/local/bin/
ENTRYPOINT ["nats-server"]
