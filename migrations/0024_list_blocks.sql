-- How many rows stand in each block of neighbours of a list, so that a page of any number is found
-- without walking to it. Changed with the rows.
CREATE TABLE list_blocks (
    org_id     text        COLLATE "C" NOT NULL,
    -- What is listed, as in totals: orders, runs, deliveries …
    kind       text        COLLATE "C" NOT NULL,
    -- What the list belongs to (the workflow of runs, the webhook of deliveries), else empty.
    parent     text        COLLATE "C" NOT NULL,
    -- The state of its rows, where there is a list of each, or empty for the rows of all states.
    state      text        COLLATE "C" NOT NULL,
    -- 1 for blocks of some 256 rows, 2 for blocks of these, some 16,384 rows.
    level      smallint    NOT NULL,
    -- The row that the block begins with: minus the microseconds from 1970 to its created_at, so
    -- that keys ascend in the order of the list, and its id. The first block of a list begins
    -- before all rows, with the lowest number there is and no id.
    age        bigint      NOT NULL,
    id         text        COLLATE "C" NOT NULL,
    -- The same row's time; infinity of the first block.
    created_at timestamptz NOT NULL,
    -- Its rows: up to the one that the next block begins with. Blocks without rows are not kept.
    count      bigint      NOT NULL,
    PRIMARY KEY (org_id, kind, parent, state, level, age, id)
) WITH (fillfactor = 50); -- counters are rewritten in place, batch after batch

-- Counts the blocks of a kind's lists, or of all, from the rows that are there. A block begins with a
-- row whose id's SHA-256 begins with so many zeros; projector/src/projection/blocks/plan.rs has the
-- same.
CREATE FUNCTION count_list_blocks(wanted text DEFAULT NULL) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    list record;
BEGIN
    DELETE FROM list_blocks WHERE kind = coalesce(wanted, kind);
    FOR list IN
        SELECT * FROM (VALUES
            ('companies', 'id', '''''', ''''''),
            ('deals', 'id', '''''', ''''''),
            ('contacts', 'id', '''''', ''''''),
            ('orders', 'id', '''''', ''''''),
            ('orders', 'id', '''''', 'status'),
            ('leads', 'id', '''''', ''''''),
            ('clients', 'id', '''''', ''''''),
            ('runs', 'run_id', 'workflow_id', ''''''),
            ('runs', 'run_id', 'workflow_id', 'state'),
            ('deliveries', 'delivery_id', 'webhook_id', '''''')
        ) AS lists (kind, id, parent, state)
        WHERE kind = coalesce(wanted, kind)
    LOOP
        EXECUTE format(
            'WITH listed AS (
                 SELECT org_id, %3$s AS parent, %4$s AS state, created_at, %2$I AS id,
                        sha256(convert_to(%2$I, ''UTF8'')) < ''\x01'' AS begins
                 FROM %1$I
             ), numbered AS (
                 SELECT *, count(*) FILTER (WHERE begins) OVER (
                     PARTITION BY org_id, parent, state ORDER BY created_at DESC, id) AS number
                 FROM listed
             )
             INSERT INTO list_blocks
             SELECT org_id, %1$L, parent, state, 1,
                    CASE WHEN number = 0 THEN -9223372036854775808
                         ELSE -(extract(epoch FROM max(created_at) FILTER (WHERE begins))
                                * 1000000)::bigint END,
                    CASE WHEN number = 0 THEN '''' ELSE max(id) FILTER (WHERE begins) END,
                    CASE WHEN number = 0 THEN ''infinity''
                         ELSE max(created_at) FILTER (WHERE begins) END,
                    count(*)
             FROM numbered GROUP BY org_id, parent, state, number',
            list.kind, list.id, list.parent, list.state);
    END LOOP;
    WITH listed AS (
        SELECT *, age > -9223372036854775808
                  AND sha256(convert_to(id, 'UTF8')) < '\x0004' AS begins
        FROM list_blocks WHERE kind = coalesce(wanted, kind)
    ), numbered AS (
        SELECT *, count(*) FILTER (WHERE begins) OVER (
            PARTITION BY org_id, kind, parent, state ORDER BY age, id) AS number
        FROM listed
    )
    INSERT INTO list_blocks
    SELECT org_id, kind, parent, state, 2,
           CASE WHEN number = 0 THEN -9223372036854775808
                ELSE max(age) FILTER (WHERE begins) END,
           CASE WHEN number = 0 THEN '' ELSE max(id) FILTER (WHERE begins) END,
           CASE WHEN number = 0 THEN 'infinity' ELSE max(created_at) FILTER (WHERE begins) END,
           sum(count)
    FROM numbered GROUP BY org_id, kind, parent, state, number;
END $$;

SELECT count_list_blocks();
