-- How many orders and leads came to be in each day and each quarter of an hour, in UTC, and what
-- these orders bring in. A span of time in any time zone is made of whole days and, at its ends,
-- quarters: since 1973 every zone is a whole number of these away from UTC. Changed with the
-- records, so that no query adds these up.
CREATE TABLE orders_by_time (
    org_id  text        COLLATE "C" NOT NULL,
    -- How long it is: 15 or 1440.
    minutes smallint    NOT NULL,
    begins  timestamptz NOT NULL,
    count   bigint      NOT NULL,
    -- In minor units. Numeric, because sums of bigints need not be one.
    revenue numeric     NOT NULL,
    PRIMARY KEY (org_id, minutes, begins)
) WITH (fillfactor = 50); -- counters are rewritten in place, batch after batch

CREATE TABLE leads_by_time (
    org_id  text        COLLATE "C" NOT NULL,
    minutes smallint    NOT NULL,
    begins  timestamptz NOT NULL,
    count   bigint      NOT NULL,
    PRIMARY KEY (org_id, minutes, begins)
) WITH (fillfactor = 50);

INSERT INTO orders_by_time (org_id, minutes, begins, count, revenue)
SELECT org_id, minutes,
       to_timestamp(floor(extract(epoch FROM created_at) / (minutes * 60)) * (minutes * 60)),
       count(*), coalesce(sum(amount) FILTER (WHERE status IN ('ACTIVE', 'COMPLETED')), 0)
FROM orders CROSS JOIN (VALUES (15::smallint), (1440::smallint)) AS lengths (minutes)
GROUP BY 1, 2, 3;

INSERT INTO leads_by_time (org_id, minutes, begins, count)
SELECT org_id, minutes,
       to_timestamp(floor(extract(epoch FROM created_at) / (minutes * 60)) * (minutes * 60)),
       count(*)
FROM leads CROSS JOIN (VALUES (15::smallint), (1440::smallint)) AS lengths (minutes)
GROUP BY 1, 2, 3;
