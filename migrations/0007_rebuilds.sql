-- Rebuilding, checking and repairing read models while they are in use.

-- Counts how often somebody else than the active projector has changed a projection's rows: a
-- rebuild that took over, an operator who retried or skipped an event. A projector that finds
-- another number than it knows reads anew what it holds in memory.
ALTER TABLE projection_checkpoints ADD COLUMN generation bigint NOT NULL DEFAULT 0;

-- Events that an operator has told a projection to leave out, for good: rebuilding and checking
-- leave them out as well.
CREATE TABLE skipped_events (
    projection text        NOT NULL,
    log        text        NOT NULL,
    -- A restored log may give the same sequence to another event.
    epoch      bigint      NOT NULL,
    sequence   bigint      NOT NULL,
    -- The aggregate, by its subject in the log.
    subject    text        NOT NULL,
    -- Why it could not be applied.
    reason     text        NOT NULL,
    skipped_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (projection, epoch, sequence)
);
