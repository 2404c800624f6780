# Every target first makes sure that what it needs is there; see scripts/prepare.

target := $(or $(CARGO_TARGET_DIR),target)

# Queries are checked against .sqlx while building, never against a database in use.
export SQLX_OFFLINE ?= true

# The programs that a system consists of, which bench, faults and the tests from outside start.
programs := $(addprefix --package ,waypost command-api query-api projector workflow-runner)

# Tests mostly wait: for processes, for messages, for time to pass.
export RUST_TEST_THREADS ?= $(shell expr 2 '*' $$(nproc))

.PHONY: help
help: ## List the targets
	@sed -nE 's/^([a-z-]+):.*## (.*)$$/make \1\t\2/p' Makefile | expand -t 19

.PHONY: run
run: ## Build Waypost and run it at http://127.0.0.1:8080 until Ctrl-C
	@scripts/prepare --use-given
	@cargo build --release --package waypost
	@exec env WAYPOST_ALLOW_PRIVATE_TARGETS=$${WAYPOST_ALLOW_PRIVATE_TARGETS:-1} $(target)/release/waypost up

.PHONY: test
test: ## Run all tests, with servers of their own (PACKAGE= names one package, ONLY= a part of the tests' names)
	@scripts/prepare --with-axe
ifdef PACKAGE
	@cargo build --package local-servers $(if $(filter waypost-tests faults,$(PACKAGE)),$(programs))
	@cargo test --package $(PACKAGE) --no-run
else
	@cargo build --workspace --all-targets
endif
	@exec $(target)/debug/local-servers with --template migrations -- cargo test $(if $(PACKAGE),--package $(PACKAGE),--workspace) --no-fail-fast $(if $(ONLY),-- $(ONLY))

.PHONY: pictures
pictures: ## Retake the documentation's pictures of the pages (needs Chromium)
	@scripts/prepare --with-axe
	@cargo build --workspace --bins --package waypost-tests --test browser
	@exec env WAYPOST_PICTURES=$(CURDIR)/docs/pictures $(target)/debug/local-servers with -- cargo test --package waypost-tests --test browser -- pictures

.PHONY: test-clients
test-clients: ## Run the client libraries' own tests against the built system (CLIENTS="python javascript dart")
	@scripts/test-clients $(CLIENTS)

.PHONY: bench
bench: ## Measure Waypost against the ceilings of this machine (ONLY= names one part)
	@scripts/prepare
	@cargo build --release --package bench $(programs)
	@exec $(target)/release/bench $(if $(ONLY),--only $(ONLY))

.PHONY: faults
faults: ## Inject faults under load for SECONDS (60) by SEED, on NATS (1 or 3) servers, with a hostile crowd (not with FRIENDLY=1), on disks that lose power (with DISKS=1, as root), with clocks that jump (with CLOCKS=1), alongside another version's programs (with OTHER=folder), with deeds ONLY= or WITHOUT= some, in ROUNDS= only, and check what is left (RECORD= keeps a record, SHRINK=1 looks for the fewest rounds that show the fault)
	@scripts/prepare
	@cargo build --package faults $(programs)
	@exec $(target)/debug/faults --seconds $(or $(SECONDS),60) $(if $(SEED),--seed $(SEED)) --nats $(or $(NATS),1) $(if $(FRIENDLY),--friendly) $(if $(DISKS),--disks) $(if $(CLOCKS),--clocks) $(if $(OTHER),--other $(OTHER)) $(addprefix --only ,$(ONLY)) $(addprefix --without ,$(WITHOUT)) $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(SHRINK),--shrink) $(if $(RECORD),--record $(RECORD))

.PHONY: containers
containers: ## Run docker-compose.yml in containers and kill each under load (needs Docker or Podman)
	@scripts/prepare
ifndef WAYPOST_PROGRAMS
	@cargo build --release $(programs)
endif
	@scripts/containers

.PHONY: lint
lint: ## Check format, lints and dependencies, as CI does
	@cargo fmt --all --check
	@cargo clippy --workspace --all-targets -- --deny warnings
	@if command -v python3 >/dev/null; then scripts/check-dependencies; \
	else echo "python3 is not installed: dependencies are not checked this time" >&2; fi

.PHONY: check-docs
check-docs: ## Run the commands of README, tutorial and how-tos, and compare the reference with the programs
ifndef WAYPOST_PROGRAMS
	@scripts/prepare
	@cargo build --package waypost --package query-api
endif
	@WAYPOST_PROGRAMS=$${WAYPOST_PROGRAMS:-$(target)/debug} scripts/check-docs
	@WAYPOST_PROGRAMS=$${WAYPOST_PROGRAMS:-$(target)/debug} scripts/check-reference

.PHONY: sqlx
sqlx: ## Regenerate .sqlx, used to check queries without a database (PACKAGES="…" for some only)
	@scripts/prepare
	@cargo build --quiet --package local-servers
	@env -u NATS_URL -u DATABASE_URL $(target)/debug/local-servers with -- scripts/describe-queries $(PACKAGES)
