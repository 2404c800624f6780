-- Read models: what queries read. All of it is folded from the event log and can be dropped and
-- built again; nothing here decides anything.
--
-- Names are unqualified, so that a second copy can be built under another search_path. Ids sort
-- by their bytes (COLLATE "C"): the same order on every server, and cheaper to compare.
-- Columns of type json hold what came from outside exactly as it was given: unlike jsonb, json
-- keeps the order of keys and any number, and can hold the character U+0000 in its escaped form.

-- How far each projection has read its log. Rows and position change in one transaction.
CREATE TABLE projection_checkpoints (
    name       text        PRIMARY KEY,
    -- events, locations or deliveries.
    log        text        NOT NULL,
    -- The epoch of the log that the sequence belongs to; a restored log has another one.
    epoch      bigint      NOT NULL,
    -- The last sequence whose event has been applied, 0 before the first.
    sequence   bigint      NOT NULL CHECK (sequence >= 0),
    updated_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 10); -- rewritten with every batch: room for new versions on the same page

-- Events that a projection could not apply, and those that wait behind them.
CREATE TABLE dead_letters (
    projection   text        NOT NULL,
    log          text        NOT NULL,
    -- Where the event stands in its log: the event itself stays there and is read from there.
    sequence     bigint      NOT NULL,
    -- The aggregate whose later events wait. It is named by its subject in the log, which is
    -- known even where the event cannot be decoded; the rest is null there.
    subject      text        NOT NULL,
    org_id       text,
    aggregate    text,
    aggregate_id text,
    event_id     uuid,
    event_type   text,
    -- Why it could not be applied; null for an event that only waits.
    reason       text,
    -- The sequence of the event that this one waits behind; null for that event itself.
    behind       bigint,
    created_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (projection, sequence),
    CHECK ((reason IS NULL) <> (behind IS NULL))
);

-- How many rows a list has: exact counters, so that no query has to count.
CREATE TABLE totals (
    org_id text   COLLATE "C" NOT NULL,
    -- What is counted: contacts, runs or deliveries.
    kind   text   COLLATE "C" NOT NULL,
    -- What the list belongs to (the workflow of runs, the webhook of deliveries), else empty.
    parent text   COLLATE "C" NOT NULL DEFAULT '',
    -- The state that is counted, where the list can be filtered by one, else empty.
    state  text   COLLATE "C" NOT NULL DEFAULT '',
    count  bigint NOT NULL,
    PRIMARY KEY (org_id, kind, parent, state)
) WITH (fillfactor = 50); -- counters are rewritten in place, batch after batch

CREATE TABLE organizations (
    org_id     text        COLLATE "C" PRIMARY KEY,
    name       text        NOT NULL,
    created_at timestamptz NOT NULL
);

-- API keys in force. Neither the key nor its hash stands here. The primary key serves the list
-- of an organization too: it has few keys.
CREATE TABLE api_keys (
    org_id     text        COLLATE "C" NOT NULL,
    key_id     text        COLLATE "C" NOT NULL,
    name       text        NOT NULL,
    scopes     text[]      NOT NULL,
    rate_limit bigint      NOT NULL,
    expires_at timestamptz,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (org_id, key_id)
);

-- Workflows in their newest version.
CREATE TABLE workflows (
    org_id          text        COLLATE "C" NOT NULL,
    workflow_id     text        COLLATE "C" NOT NULL,
    name            text        NOT NULL,
    status          text        NOT NULL,
    version         bigint      NOT NULL,
    timeout_seconds bigint      NOT NULL,
    has_trigger     boolean     NOT NULL,
    -- The steps as they were saved.
    steps           json        NOT NULL,
    created_at      timestamptz NOT NULL,
    updated_at      timestamptz NOT NULL,
    PRIMARY KEY (org_id, workflow_id)
);
-- The list of an organization's workflows, newest first.
CREATE INDEX workflows_newest ON workflows (org_id, created_at DESC, workflow_id);

-- The steps of every version that was ever saved, so that a run shows the steps of the version
-- it follows, those included that have not begun.
CREATE TABLE workflow_outlines (
    org_id      text   COLLATE "C" NOT NULL,
    workflow_id text   COLLATE "C" NOT NULL,
    version     bigint NOT NULL,
    -- [{"id", "type"}] in the order they were written.
    steps       json   NOT NULL,
    PRIMARY KEY (org_id, workflow_id, version)
);

CREATE TABLE runs (
    org_id           text        COLLATE "C" NOT NULL,
    run_id           text        COLLATE "C" NOT NULL,
    workflow_id      text        COLLATE "C" NOT NULL,
    workflow_version bigint      NOT NULL,
    -- QUEUED, RUNNING, WAITING, SUCCEEDED, FAILED or CANCELLED.
    state            text        COLLATE "C" NOT NULL,
    trigger_payload  json        NOT NULL,
    created_at       timestamptz NOT NULL,
    started_at       timestamptz,
    ended_at         timestamptz,
    error            text,
    -- [{id, type, state, attempts: [{number, startedAt, endedAt, error}], input, output}] as the
    -- API shows it. A column and not rows: a run is always read whole, and its events then cost
    -- one row a batch, not one each.
    steps            json        NOT NULL,
    PRIMARY KEY (org_id, run_id)
) WITH (fillfactor = 80); -- a run is rewritten a few times and then never again
-- A workflow's runs, newest first.
CREATE INDEX runs_newest ON runs (org_id, workflow_id, created_at DESC, run_id);
-- The same within one state: whoever looks for the few that failed does not walk past the others.
CREATE INDEX runs_newest_by_state ON runs (org_id, workflow_id, state, created_at DESC, run_id);

-- Webhook endpoints. The signing secret stands only in the log, sealed.
CREATE TABLE webhooks (
    org_id          text        COLLATE "C" NOT NULL,
    webhook_id      text        COLLATE "C" NOT NULL,
    url             text        NOT NULL,
    -- Empty means all.
    events          text[]      NOT NULL,
    description     text,
    -- ENABLED or DISABLED.
    status          text        NOT NULL,
    -- Why it was switched off, where Waypost did it.
    disabled_reason text,
    created_at      timestamptz NOT NULL,
    updated_at      timestamptz NOT NULL,
    PRIMARY KEY (org_id, webhook_id)
);

-- Events on their way to webhook endpoints, each with all its attempts.
CREATE TABLE deliveries (
    org_id          text        COLLATE "C" NOT NULL,
    delivery_id     text        COLLATE "C" NOT NULL,
    webhook_id      text        COLLATE "C" NOT NULL,
    event_id        uuid        NOT NULL,
    event_sequence  bigint      NOT NULL,
    event_type      text        NOT NULL,
    -- PENDING, SUCCEEDED or FAILED.
    status          text        COLLATE "C" NOT NULL,
    -- When it is tried again, while PENDING.
    next_attempt_at timestamptz,
    -- [{at, status, durationMs, error, response}] as the API shows it. jsonb, because attempts
    -- are appended in place without being read; their texts are cleaned of U+0000 beforehand.
    attempts        jsonb       NOT NULL,
    -- When the first attempt began.
    created_at      timestamptz NOT NULL,
    PRIMARY KEY (org_id, delivery_id)
) WITH (fillfactor = 90); -- most succeed at once and are never rewritten
-- An endpoint's deliveries, newest first.
CREATE INDEX deliveries_newest ON deliveries (org_id, webhook_id, created_at DESC, delivery_id);
-- Those that failed, for the replay of all of them; few, so a small index.
CREATE INDEX deliveries_failed ON deliveries (org_id, webhook_id, created_at DESC, delivery_id)
    WHERE status = 'FAILED';

CREATE TABLE contacts (
    org_id       text        COLLATE "C" NOT NULL,
    id           text        COLLATE "C" NOT NULL,
    first_name   text,
    last_name    text,
    email        text,
    phone        text,
    job_title    text,
    company_id   text,
    company_name text,
    city         text,
    country      text,
    owner        text,
    created_at   timestamptz NOT NULL,
    updated_at   timestamptz NOT NULL,
    PRIMARY KEY (org_id, id)
);
-- Exports and lists, newest first, then by id: read in this order without sorting.
CREATE INDEX contacts_newest ON contacts (org_id, created_at DESC, id);
