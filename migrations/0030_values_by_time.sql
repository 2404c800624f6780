-- How many orders, leads and clients with each value of a field came to be in each day and each
-- quarter of an hour, in UTC: what a series is grouped by. Changed with the records, so that no query
-- adds these up.
CREATE TABLE values_by_time (
    org_id  text        COLLATE "C" NOT NULL,
    -- What has the value: orders, leads or clients.
    kind    text        COLLATE "C" NOT NULL,
    -- The column: status, plan, source or city.
    field   text        COLLATE "C" NOT NULL,
    -- How long the stretch of time is: 15 or 1440.
    minutes smallint    NOT NULL,
    begins  timestamptz NOT NULL,
    -- As it was written, its first 100 characters; empty for records that have none.
    value   text        COLLATE "C" NOT NULL,
    -- Never 0: stretches without such records have no row.
    count   bigint      NOT NULL,
    -- Of ACTIVE and COMPLETED orders, in minor units. Numeric, because sums of bigints need not be one.
    revenue numeric     NOT NULL,
    PRIMARY KEY (org_id, field, minutes, begins, kind, value)
) WITH (fillfactor = 50); -- counters are rewritten in place, batch after batch

-- Counts a kind, or all, from the rows that are there.
CREATE FUNCTION count_values_by_time(wanted text DEFAULT NULL) RETURNS void LANGUAGE sql AS $$
    DELETE FROM values_by_time WHERE kind = coalesce(wanted, kind);
    INSERT INTO values_by_time
    SELECT org_id, kind, field, minutes,
           date_bin(minutes * interval '1 minute', created_at, 'epoch'),
           left(coalesce(value, ''), 100), count(*), sum(revenue)
    FROM (
        SELECT org_id, 'orders', field, value, created_at,
               CASE WHEN status IN ('ACTIVE', 'COMPLETED') THEN amount ELSE 0 END
        FROM orders, LATERAL (VALUES ('status', status), ('plan', plan)) AS of (field, value)
        UNION ALL
        SELECT org_id, 'leads', field, value, created_at, 0
        FROM leads, LATERAL (VALUES ('status', status), ('source', source)) AS of (field, value)
        UNION ALL
        SELECT org_id, 'clients', 'city', city, created_at, 0 FROM clients
    ) AS counted (org_id, kind, field, value, created_at, revenue)
    CROSS JOIN (VALUES (15::smallint), (1440::smallint)) AS lengths (minutes)
    WHERE kind = coalesce(wanted, kind)
    GROUP BY 1, 2, 3, 4, 5, 6
$$;

SELECT count_values_by_time();
