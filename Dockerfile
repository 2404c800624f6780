# syntax=docker/dockerfile:1

# One image with all programs: the four services, and `waypost` for operators.
#
# The programs are built here, or with `--build-arg PROGRAMS=given` taken from the folder `programs`
# of the context, built elsewhere for Debian 12 or newer.
ARG PROGRAMS=build

FROM rust:1.95-bookworm AS build
WORKDIR /source
COPY . .
# Queries are checked against .sqlx; no database is needed for building.
ENV SQLX_OFFLINE=true
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/source/target \
    cargo build --release --locked \
        --package command-api --package query-api --package projector \
        --package workflow-runner --package waypost \
    && install -D --strip --target-directory=/programs \
        target/release/command-api target/release/query-api target/release/projector \
        target/release/workflow-runner target/release/waypost

FROM scratch AS given
COPY programs/ /programs/

FROM ${PROGRAMS} AS programs

FROM debian:bookworm-slim
# Certificates for webhooks and HTTP steps; curl for the health checks; a font for the Chinese,
# Japanese and Korean names in PDF exports.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates curl fonts-droid-fallback \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --home-dir /var/lib/waypost --create-home waypost
COPY --from=programs /programs/ /usr/local/bin/
COPY LICENSE /usr/share/doc/waypost/
USER waypost
WORKDIR /var/lib/waypost
ENV WAYPOST_HOME=/var/lib/waypost \
    WAYPOST_ADDR=0.0.0.0:8080 \
    WAYPOST_LOG_FORMAT=json
EXPOSE 8080
# Each service names its own program.
CMD ["waypost", "--help"]
