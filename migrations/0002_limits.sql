-- Limits: how much of its quota a key (or an account) has used. These counters are not folded from
-- the log: they are short-lived, and losing them would only forgive an hour's use.
--
-- A counter is named by its policy and its caller, such as hourly/<key id>. Time is this
-- database's own, in whole seconds since 1970, so that any number of processes share one clock.
-- In a rolling window, what is counted in a second counts until the end of that second + span:
-- never more than the quota in any span, and at most one second stricter than that. A fixed window
-- begins at whole multiples of its span and is counted as a whole, under its first second.

-- One row for each counter. The second under way is kept here, so that a check writes one row.
CREATE TABLE limit_windows (
    counter  text   COLLATE "C" PRIMARY KEY,
    -- The last second in which a check was decided, and what was counted in it.
    second   bigint NOT NULL,
    used     bigint NOT NULL,
    -- What else counts: the sum of limit_seconds, kept so that no check has to add it up.
    earlier  bigint NOT NULL DEFAULT 0,
    -- The first second in limit_seconds that still counts; null where none does.
    oldest   bigint,
    -- From this second on nothing counts any more, and the counter can be swept away.
    ends     bigint NOT NULL,
    -- Of the last call of admit: the counter's place in it, its quota, its checks, and how many of
    -- these were admitted.
    place    bigint NOT NULL DEFAULT 0,
    quota    bigint NOT NULL DEFAULT 0,
    checks   bigint NOT NULL DEFAULT 0,
    admitted bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50); -- rewritten by every check: room for new versions on the same page

-- The use in each earlier second; rows go as they stop counting. The primary key serves every
-- access.
CREATE TABLE limit_seconds (
    counter text   COLLATE "C" NOT NULL,
    second  bigint NOT NULL,
    used    bigint NOT NULL,
    PRIMARY KEY (counter, second)
);

-- How many checks that cost `cost` each fit into what is left.
CREATE FUNCTION limit_admits(checks bigint, cost bigint, remaining bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT least(checks, greatest(0, remaining / cost))
$$;

-- Decides about checks that wait together in one process. The arrays run side by side; a counter
-- stands in them once, with checks that cost `cost` each: a check is admitted whole or not at all.
-- `moment` is given by tests only.
--
-- Answers side by side, in an order of their own: the place of the counter in the question, how
-- many of its checks were admitted, the counter's use after that, when it begins to shrink, and
-- (where any check was refused) from when on the first refused one would be admitted if nothing
-- else were counted. Arrays and not rows, because handing over rows one by one would cost more
-- than deciding about them.
CREATE FUNCTION admit(
    counters text[],
    quotas   bigint[],
    checks   bigint[],
    cost     bigint,
    span     bigint,
    fixed    boolean,
    moment   timestamptz DEFAULT NULL,
    OUT places   bigint[],
    OUT admitted bigint[],
    OUT used     bigint[],
    OUT eases_at bigint[],
    OUT retry_at bigint[],
    OUT decided  double precision
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    -- Read once: a counter whose row has gone on to a later second is counted under that one.
    now_exact  CONSTANT double precision := extract(epoch FROM coalesce(moment, clock_timestamp()));
    now_second CONSTANT bigint := floor(now_exact);
    -- The second to count under, the first that still counts, and how long a second counts.
    present    CONSTANT bigint := CASE WHEN fixed THEN now_second - now_second % span ELSE now_second END;
    horizon    CONSTANT bigint := CASE WHEN fixed THEN present ELSE present - span END;
    lasts      CONSTANT bigint := CASE WHEN fixed THEN span ELSE span + 1 END;
    -- What has not been decided yet.
    waiting          bigint[] := ARRAY(SELECT generate_subscripts(counters, 1));
    waiting_counters text[]   := counters;
    waiting_quotas   bigint[] := quotas;
    waiting_checks   bigint[] := checks;
    any_refused      boolean  := false;
    n                bigint;
BEGIN
    places := '{}';
    admitted := '{}';
    used := '{}';
    eases_at := '{}';
    decided := now_exact;
    LOOP
        -- Counters whose row stands in the present second: made, locked, decided and written in
        -- one go. The order keeps processes out of deadlock. The others are locked, and only that.
        WITH decision AS (
            INSERT INTO limit_windows AS held
                   (counter, second, used, earlier, ends, place, quota, checks, admitted)
            SELECT asked.counter COLLATE "C", present, asked.fits * cost, 0, present + lasts,
                   asked.place, asked.quota, asked.checks, asked.fits
              FROM (SELECT *, limit_admits(checks, cost, quota) AS fits
                      FROM unnest(waiting_counters, waiting_quotas, waiting_checks, waiting)
                           AS asked (counter, quota, checks, place)) AS asked
             ORDER BY 1
                ON CONFLICT (counter) DO UPDATE
               SET place = excluded.place,
                   quota = excluded.quota,
                   checks = excluded.checks,
                   admitted = limit_admits(excluded.checks, cost,
                                           excluded.quota - held.earlier - held.used),
                   used = held.used + cost * limit_admits(excluded.checks, cost,
                                                          excluded.quota - held.earlier - held.used)
             WHERE held.second >= present
            RETURNING held.place, held.admitted, held.earlier + held.used AS total,
                      least(held.oldest, held.second) + lasts AS eases_at,
                      held.admitted < held.checks AS refused
        )
        SELECT admit.places || array_agg(decision.place),
               admit.admitted || array_agg(decision.admitted),
               admit.used || array_agg(decision.total),
               admit.eases_at || array_agg(decision.eases_at),
               any_refused OR coalesce(bool_or(decision.refused), false)
          INTO admit.places, admit.admitted, admit.used, admit.eases_at, any_refused
          FROM decision;
        EXIT WHEN cardinality(admit.places) = cardinality(counters);

        -- Those of an earlier second go on to the present one, once a second at most: what no
        -- longer counts is taken off, and the second that has ended is put to the earlier ones.
        SELECT array_agg(asked.counter), array_agg(asked.quota),
               array_agg(asked.checks), array_agg(asked.place)
          INTO waiting_counters, waiting_quotas, waiting_checks, waiting
          FROM unnest(counters, quotas, checks) WITH ORDINALITY AS asked (counter, quota, checks, place)
          JOIN limit_windows AS held ON held.counter = asked.counter
         WHERE held.second < present;
        WITH behind AS MATERIALIZED (
            SELECT held.counter, held.second, held.used, held.oldest
              FROM unnest(waiting_counters) AS asked (counter)
              JOIN limit_windows AS held ON held.counter = asked.counter
        ), gone AS (
            DELETE FROM limit_seconds AS spent USING behind
             WHERE behind.oldest < horizon
               AND spent.counter = behind.counter AND spent.second < horizon
            RETURNING spent.counter, spent.used
        ), freed AS (
            SELECT gone.counter, sum(gone.used)::bigint AS used FROM gone GROUP BY gone.counter
        ), kept AS (
            INSERT INTO limit_seconds AS spent (counter, second, used)
            SELECT behind.counter, behind.second, behind.used
              FROM behind WHERE behind.used > 0 AND behind.second >= horizon
                ON CONFLICT (counter, second) DO UPDATE SET used = spent.used + excluded.used
            RETURNING spent.counter, spent.second
        )
        UPDATE limit_windows AS held
           SET earlier = greatest(0, held.earlier - coalesce(freed.used, 0)
                                     + CASE WHEN kept.second IS NULL THEN 0 ELSE held.used END),
               second = present,
               used = 0,
               oldest = least(kept.second,
                              CASE WHEN behind.oldest >= horizon THEN behind.oldest
                              ELSE (SELECT min(spent.second) FROM limit_seconds AS spent
                                     WHERE spent.counter = behind.counter
                                       AND spent.second >= horizon) END),
               ends = present + lasts
          FROM behind
          LEFT JOIN freed ON freed.counter = behind.counter
          LEFT JOIN kept ON kept.counter = behind.counter
         WHERE held.counter = behind.counter;
    END LOOP;

    IF NOT any_refused THEN
        RETURN;
    END IF;
    retry_at := array_fill(NULL::bigint, ARRAY[cardinality(counters)]);
    FOR n IN
        SELECT i FROM generate_subscripts(admit.places, 1) AS i
         WHERE admit.admitted[i] < checks[admit.places[i]]
    LOOP
        retry_at[n] := (
            SELECT lasts + coalesce((
                   SELECT spending.second
                     FROM (SELECT spent.second, sum(spent.used) OVER (ORDER BY spent.second) AS freed
                             FROM limit_seconds AS spent WHERE spent.counter = held.counter) AS spending
                    WHERE spending.freed >= held.earlier + held.used + cost - held.quota
                    ORDER BY spending.second
                    LIMIT 1
                   ), held.second)
              FROM limit_windows AS held
             WHERE held.counter = counters[admit.places[n]]);
    END LOOP;
END
$$;

-- Adds what was admitted while this database was away, each use under the second in which it
-- happened; what has stopped counting since is left out.
CREATE FUNCTION count_back(
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
                LIMIT at_most
                  FOR UPDATE SKIP LOCKED)
        RETURNING held.counter
    ), gone AS (
        DELETE FROM limit_seconds AS spent USING ended WHERE spent.counter = ended.counter
    )
    SELECT count(*) FROM ended
$$;
