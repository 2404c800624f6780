-- Limits: how much of its quota a key (or an account) has used. These counters are not folded from
-- the log: they are short-lived, and losing them would only forgive an hour's use.
--
-- A counter is named by its policy and its caller, such as hourly/<key id>. Time is this
-- database's own, in whole seconds since 1970, so that any number of processes share one clock.
-- What is counted in a second counts until the end of that second + span: never more than the
-- quota in any span, and at most one second stricter than that.

-- One row for each counter: locked first, so that the checks of one counter follow each other.
CREATE TABLE limit_windows (
    counter text   COLLATE "C" PRIMARY KEY,
    -- The sum of the counter's seconds, kept so that no check has to add them up.
    total   bigint NOT NULL CHECK (total >= 0),
    -- The first second that still counts; null where none does.
    oldest  bigint,
    -- The last second in which anything was counted.
    newest  bigint NOT NULL,
    -- From this second on nothing counts any more and the counter can be swept away.
    ends    bigint NOT NULL
) WITH (fillfactor = 50); -- rewritten by every check: room for new versions on the same page

-- The use in each second; rows go as they stop counting. The primary key serves every access.
CREATE TABLE limit_seconds (
    counter text   COLLATE "C" NOT NULL,
    second  bigint NOT NULL,
    used    bigint NOT NULL,
    PRIMARY KEY (counter, second)
) WITH (fillfactor = 50);

-- The first second that still counts at `now_second`. A fixed window begins at whole multiples of
-- its span and keeps one row, at its beginning.
CREATE FUNCTION limit_horizon(now_second bigint, span bigint, fixed boolean) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN fixed THEN now_second - now_second % span ELSE now_second - span END
$$;

-- The second from which what was counted in `second` no longer counts.
CREATE FUNCTION limit_frees(second bigint, span bigint, fixed boolean) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN fixed THEN second + span ELSE second + span + 1 END
$$;

-- Decides about everything that waits in one process. The arrays run side by side; a counter
-- stands in them once, with `checks` checks that cost `cost` each: a check is admitted whole or not
-- at all. `moment` is given by tests only.
--
-- Answers for each place: how many of the checks were admitted (the first ones), the counter's use
-- after that, when it begins to shrink, from which second on the first refused check would be
-- admitted if nothing else were counted, and the time of the decision.
CREATE FUNCTION admit(
    counters text[],
    quotas   bigint[],
    costs    bigint[],
    checks   bigint[],
    spans    bigint[],
    fixed    boolean[],
    moment   timestamptz DEFAULT NULL
) RETURNS TABLE (
    place    bigint,
    admitted bigint,
    used     bigint,
    eases_at bigint,
    retry_at bigint,
    decided  double precision
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    now_exact  double precision;
    now_second bigint;
BEGIN
    -- Makes and locks the counters' rows. The order keeps processes out of deadlock, and the
    -- statements that follow see what the lock's last holder wrote.
    INSERT INTO limit_windows AS held (counter, total, newest, ends)
    SELECT asked.counter, 0, 0, 0
      FROM (SELECT DISTINCT unnest(counters) COLLATE "C" AS counter) AS asked
     ORDER BY asked.counter
        ON CONFLICT (counter) DO UPDATE SET total = held.total WHERE false;
    -- Read after the locks were granted, so that a counter's time does not run backwards.
    now_exact := extract(epoch FROM coalesce(moment, clock_timestamp()));
    now_second := floor(now_exact);

    WITH stale AS MATERIALIZED (
        SELECT held.counter, limit_horizon(now_second, asked.span, asked.fixed) AS horizon
          FROM unnest(counters, spans, fixed) AS asked (counter, span, fixed)
          JOIN limit_windows AS held ON held.counter = asked.counter
         WHERE held.oldest < limit_horizon(now_second, asked.span, asked.fixed)
    ), gone AS (
        DELETE FROM limit_seconds AS spent
         USING stale
         WHERE spent.counter = stale.counter AND spent.second < stale.horizon
        RETURNING spent.counter, spent.used
    ), freed AS (
        SELECT gone.counter, sum(gone.used)::bigint AS used FROM gone GROUP BY gone.counter
    )
    UPDATE limit_windows AS held
       SET total = held.total - coalesce(freed.used, 0),
           oldest = (SELECT min(spent.second) FROM limit_seconds AS spent
                      WHERE spent.counter = stale.counter AND spent.second >= stale.horizon)
      FROM stale LEFT JOIN freed ON freed.counter = stale.counter
     WHERE held.counter = stale.counter;

    RETURN QUERY
    WITH asked AS MATERIALIZED (
        SELECT asked.*,
               held.total,
               held.oldest,
               least(asked.checks, greatest(0, (asked.quota - held.total) / asked.cost)) AS admitted,
               CASE WHEN asked.fixed THEN now_second - now_second % asked.span ELSE now_second END AS second
          FROM unnest(counters, quotas, costs, checks, spans, fixed) WITH ORDINALITY
               AS asked (counter, quota, cost, checks, span, fixed, place)
          JOIN limit_windows AS held ON held.counter = asked.counter
    ), noted AS (
        INSERT INTO limit_seconds AS spent (counter, second, used)
        SELECT asked.counter, asked.second, asked.admitted * asked.cost
          FROM asked WHERE asked.admitted > 0
            ON CONFLICT (counter, second) DO UPDATE SET used = spent.used + excluded.used
    ), summed AS (
        UPDATE limit_windows AS held
           SET total = asked.total + asked.admitted * asked.cost,
               oldest = coalesce(asked.oldest, asked.second),
               newest = now_second,
               ends = limit_frees(asked.second, asked.span, asked.fixed)
          FROM asked
         WHERE held.counter = asked.counter AND asked.admitted > 0
    )
    SELECT asked.place,
           asked.admitted,
           asked.total + asked.admitted * asked.cost,
           limit_frees(coalesce(asked.oldest, asked.second), asked.span, asked.fixed),
           CASE WHEN asked.admitted < asked.checks THEN limit_frees(coalesce((
               SELECT spending.second
                 FROM (SELECT spent.second, sum(spent.used) OVER (ORDER BY spent.second) AS freed
                         FROM limit_seconds AS spent WHERE spent.counter = asked.counter) AS spending
                WHERE spending.freed >= asked.total + (asked.admitted + 1) * asked.cost - asked.quota
                ORDER BY spending.second
                LIMIT 1
           ), asked.second), asked.span, asked.fixed) END,
           now_exact
      FROM asked;
END
$$;

-- Adds what was admitted while this database was away, each use in the second in which it
-- happened; what has stopped counting since is left out.
CREATE FUNCTION count_back(
    counters text[],
    seconds  bigint[],
    used     bigint[],
    spans    bigint[],
    fixed    boolean[],
    moment   timestamptz DEFAULT NULL
) RETURNS void
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    now_second bigint;
BEGIN
    -- The same locks in the same order as above.
    INSERT INTO limit_windows AS held (counter, total, newest, ends)
    SELECT asked.counter, 0, 0, 0
      FROM (SELECT DISTINCT unnest(counters) COLLATE "C" AS counter) AS asked
     ORDER BY asked.counter
        ON CONFLICT (counter) DO UPDATE SET total = held.total WHERE false;
    now_second := floor(extract(epoch FROM coalesce(moment, clock_timestamp())));

    WITH late AS MATERIALIZED (
        SELECT late.counter,
               CASE WHEN late.fixed THEN late.second - late.second % late.span ELSE late.second END AS second,
               sum(late.used)::bigint AS used,
               max(late.span) AS span,
               bool_or(late.fixed) AS fixed
          FROM unnest(counters, seconds, used, spans, fixed) AS late (counter, second, used, span, fixed)
         WHERE late.second >= limit_horizon(now_second, late.span, late.fixed)
         GROUP BY 1, 2
    ), noted AS (
        INSERT INTO limit_seconds AS spent (counter, second, used)
        SELECT late.counter, late.second, late.used FROM late
            ON CONFLICT (counter, second) DO UPDATE SET used = spent.used + excluded.used
    )
    UPDATE limit_windows AS held
       SET total = held.total + added.used,
           oldest = least(held.oldest, added.oldest),
           newest = greatest(held.newest, added.newest),
           ends = greatest(held.ends, added.ends)
      FROM (SELECT late.counter,
                   sum(late.used)::bigint AS used,
                   min(late.second) AS oldest,
                   max(late.second) AS newest,
                   max(limit_frees(late.second, late.span, late.fixed)) AS ends
              FROM late GROUP BY late.counter) AS added
     WHERE held.counter = added.counter;
END
$$;

-- Removes counters that nobody has used for a whole window, some at a time; answers how many.
CREATE FUNCTION sweep_limits(at_most bigint) RETURNS bigint
LANGUAGE sql AS $$
    WITH ended AS (
        DELETE FROM limit_windows AS held
         WHERE held.counter IN (
               SELECT idle.counter FROM limit_windows AS idle
                WHERE idle.ends < extract(epoch FROM clock_timestamp())
                  FOR UPDATE SKIP LOCKED
                LIMIT at_most)
        RETURNING held.counter
    ), gone AS (
        DELETE FROM limit_seconds AS spent USING ended WHERE spent.counter = ended.counter
    )
    SELECT count(*) FROM ended
$$;
