-- Deliveries are counted in blocks by their event's type too, so that any page of what is searched
-- by type is found at once. The index in which they are counted is called as those of other lists.
ALTER INDEX deliveries_by_type RENAME TO deliveries_newest_by_event_type;

-- The lists that are counted in blocks: the kind, which is its table, the column of ids, what the
-- list belongs to and the state of its rows, as expressions, and which rows are in it.
CREATE VIEW counted_lists (kind, id, parent, state, condition) AS VALUES
    ('companies', 'id', '''''', '''''', 'true'),
    ('deals', 'id', '''''', '''''', 'true'),
    ('contacts', 'id', '''''', '''''', 'true'),
    ('orders', 'id', '''''', '''''', 'true'),
    ('orders', 'id', '''''', 'status', 'true'),
    ('leads', 'id', '''''', '''''', 'true'),
    ('leads', 'id', '''''', 'status_key', 'status_key <> '''''),
    ('clients', 'id', '''''', '''''', 'true'),
    ('runs', 'run_id', 'workflow_id', '''''', 'true'),
    ('runs', 'run_id', 'workflow_id', 'state', 'true'),
    ('deliveries', 'delivery_id', 'webhook_id', '''''', 'true'),
    ('deliveries', 'delivery_id', 'webhook_id', 'event_type', 'true');

-- The function of migration 0032, with its lists in the view.
CREATE OR REPLACE FUNCTION count_list_blocks(wanted text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    list record;
BEGIN
    DELETE FROM list_blocks WHERE kind = coalesce(wanted, kind);
    FOR list IN SELECT * FROM counted_lists WHERE kind = coalesce(wanted, kind) LOOP
        EXECUTE format(
            'WITH listed AS (
                 SELECT org_id, %3$s AS parent, %4$s AS state, created_at, %2$I AS id,
                        sha256(convert_to(%2$I, ''UTF8'')) < ''\x01'' AS begins
                 FROM %1$I WHERE %5$s
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
            list.kind, list.id, list.parent, list.state, list.condition);
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

SELECT count_list_blocks('deliveries');
