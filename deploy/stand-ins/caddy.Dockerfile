# Stands in for caddy:2-alpine.
FROM debian:bookworm-slim
RUN apt-get update && apt-get install --yes --no-install-recommends caddy wget && rm -rf /var/lib/apt/lists/*
ENV XDG_DATA_HOME=/data XDG_CONFIG_HOME=/config
CMD ["caddy", "run", "--config", "/etc/caddy/Caddyfile", "--adapter", "caddyfile"]
