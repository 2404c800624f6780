-- What operators have asked of the projector on the system page. This is no read model: whoever
-- performs one keeps here how far it has come, so that another process can go on with it.
CREATE TABLE projection_operations (
    operation_id uuid        PRIMARY KEY,
    -- rebuild, verify, retry or skip.
    kind         text        NOT NULL,
    projection   text        NOT NULL,
    -- The dead letters that are retried or skipped, by their sequence, as they were when this was
    -- asked for: what comes later is not meant.
    letters      bigint[]    NOT NULL DEFAULT '{}',
    asked_at     timestamptz NOT NULL DEFAULT now(),
    begun_at     timestamptz,
    ended_at     timestamptz,
    -- Whether somebody has asked for it to be cancelled.
    is_cancelled boolean     NOT NULL DEFAULT false,
    -- What is being done, and how far that has come: sequences of the log, or letters.
    doing        text,
    done         bigint      NOT NULL DEFAULT 0,
    total        bigint      NOT NULL DEFAULT 0,
    -- SUCCEEDED, DIFFERS, FAILED or CANCELLED, once it has ended.
    outcome      text,
    -- The outcome in words without personal data, a line each.
    told         text[]      NOT NULL DEFAULT '{}',
    CHECK ((ended_at IS NULL) = (outcome IS NULL))
);
-- The same is asked for once at a time; the projector looks here for what is open.
CREATE UNIQUE INDEX projection_operations_open
    ON projection_operations (kind, projection, coalesce(letters[1], 0)) WHERE ended_at IS NULL;
-- The page shows the last ones.
CREATE INDEX projection_operations_asked ON projection_operations (asked_at DESC);

-- How often an event was tried. What waits behind another was not tried.
ALTER TABLE dead_letters ADD COLUMN attempts integer NOT NULL DEFAULT 1;
