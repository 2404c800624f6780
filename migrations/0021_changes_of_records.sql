-- When the records of an organization last changed, kind by kind, so that whoever asks for what
-- did not change is told so by one row.
CREATE TABLE record_changes (
    org_id     text        COLLATE "C" NOT NULL,
    -- The projection that keeps them, such as contacts.
    kind       text        COLLATE "C" NOT NULL,
    -- The newest event of the batch that changed them.
    sequence   bigint      NOT NULL,
    -- A whole second, later than that of every change before: no two states have the same one.
    -- Where batches follow each other faster, it runs ahead of the clock.
    changed_at timestamptz NOT NULL,
    PRIMARY KEY (org_id, kind)
) WITH (fillfactor = 50); -- rewritten in place, batch after batch

-- What stands already counts as changed now.
INSERT INTO record_changes (org_id, kind, sequence, changed_at)
SELECT org_id, kind, 0, date_trunc('second', now())
FROM totals
WHERE parent = '' AND state = ''
  AND kind IN ('companies', 'deals', 'contacts', 'orders', 'leads', 'clients');
