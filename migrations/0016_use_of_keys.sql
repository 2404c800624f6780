-- How much of its limit a key has used within the last day. What the counters know ends with the
-- limit's window; here it is kept by quarters of an hour, at most once a second for each key and
-- never for each request. Like the counters it is not folded from the log.
CREATE TABLE limit_quarters (
    counter text   COLLATE "C" NOT NULL,
    -- The first second of the quarter.
    quarter bigint NOT NULL,
    used    bigint NOT NULL,
    PRIMARY KEY (counter, quarter)
) WITH (fillfactor = 70); -- the present quarter's row is rewritten: room for new versions

-- Quarters are swept away by their age, whoever used them.
CREATE INDEX limit_quarters_by_age ON limit_quarters (quarter);

-- A counter that goes on to a later second leaves what it has counted in its quarter, also where
-- that no longer counts for the limit. Only keys have such counters; whoever writes here holds the
-- counter's row, so that nobody waits for anybody.
CREATE FUNCTION keep_use() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO limit_quarters AS known (counter, quarter, used)
    VALUES (OLD.counter, OLD.second - OLD.second % 900, OLD.used)
        ON CONFLICT (counter, quarter) DO UPDATE SET used = known.used + excluded.used;
    RETURN NULL;
END
$$;

-- A check does not set the second: it pays nothing for this.
CREATE TRIGGER keep_use AFTER UPDATE OF second ON limit_windows
    FOR EACH ROW
    WHEN (OLD.second < NEW.second AND OLD.used <> 0 AND OLD.counter LIKE 'hourly/%')
    EXECUTE FUNCTION keep_use();

-- The same for a counter that is swept away.
CREATE TRIGGER keep_last_use AFTER DELETE ON limit_windows
    FOR EACH ROW
    WHEN (OLD.used <> 0 AND OLD.counter LIKE 'hourly/%')
    EXECUTE FUNCTION keep_use();

-- As before; what was counted elsewhere, or is given back, goes to its quarter too.
CREATE OR REPLACE FUNCTION count_back(
    counters text[],
    seconds  bigint[],
    uses     bigint[],
    span     bigint,
    fixed    boolean,
    moment   timestamptz DEFAULT NULL
) RETURNS void
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    now_second CONSTANT bigint := floor(extract(epoch FROM coalesce(moment, clock_timestamp())));
    horizon    CONSTANT bigint := now_second - CASE WHEN fixed THEN now_second % span ELSE span END;
    lasts      CONSTANT bigint := CASE WHEN fixed THEN span ELSE span + 1 END;
BEGIN
    -- Makes and locks the rows, in the order of admit.
    INSERT INTO limit_windows AS held (counter, second, used, ends)
    SELECT late.counter COLLATE "C",
           max(CASE WHEN fixed THEN late.second - late.second % span ELSE late.second END), 0, 0
      FROM unnest(counters, seconds) AS late (counter, second)
     GROUP BY 1
     ORDER BY 1
        ON CONFLICT (counter) DO UPDATE SET used = held.used WHERE false;

    WITH late AS MATERIALIZED (
        SELECT late.counter,
               CASE WHEN fixed THEN late.second - late.second % span ELSE late.second END AS second,
               sum(late.used)::bigint AS used
          FROM unnest(counters, seconds, uses) AS late (counter, second, used)
         WHERE late.second >= horizon
         GROUP BY 1, 2
    ), noted AS (
        INSERT INTO limit_seconds AS spent (counter, second, used)
        SELECT late.counter, late.second, late.used FROM late
            ON CONFLICT (counter, second) DO UPDATE SET used = spent.used + excluded.used
    )
    UPDATE limit_windows AS held
       SET earlier = held.earlier + added.used,
           oldest = least(held.oldest, added.oldest),
           ends = greatest(held.ends, added.newest + lasts)
      FROM (SELECT late.counter, sum(late.used)::bigint AS used,
                   min(late.second) AS oldest, max(late.second) AS newest
              FROM late GROUP BY late.counter) AS added
     WHERE held.counter = added.counter;

    INSERT INTO limit_quarters AS known (counter, quarter, used)
    SELECT late.counter, late.second - late.second % 900, sum(late.used)::bigint
      FROM unnest(counters, seconds, uses) AS late (counter, second, used)
     WHERE late.counter LIKE 'hourly/%'
     GROUP BY 1, 2
     ORDER BY 1, 2
        ON CONFLICT (counter, quarter) DO UPDATE SET used = known.used + excluded.used;
END
$$;

-- As before; quarters older than a day go too. Answers how many there were of what had more.
CREATE OR REPLACE FUNCTION sweep_limits(at_most bigint) RETURNS bigint
LANGUAGE sql AS $$
    WITH ended AS (
        DELETE FROM limit_windows AS held
         WHERE held.counter IN (
               SELECT idle.counter FROM limit_windows AS idle
                WHERE idle.ends < extract(epoch FROM clock_timestamp())
                LIMIT at_most
                  FOR UPDATE SKIP LOCKED)
        RETURNING held.counter
    ), gone AS (
        DELETE FROM limit_seconds AS spent USING ended WHERE spent.counter = ended.counter
    ), past AS (
        DELETE FROM limit_quarters AS known
         WHERE (known.counter, known.quarter) IN (
               SELECT old.counter, old.quarter FROM limit_quarters AS old
                WHERE old.quarter < extract(epoch FROM clock_timestamp())::bigint - 90000
                LIMIT at_most
                  FOR UPDATE SKIP LOCKED)
        RETURNING known.counter
    )
    SELECT greatest((SELECT count(*) FROM ended), (SELECT count(*) FROM past))
$$;
