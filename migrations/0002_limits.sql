-- Limits: how much of its quota a key (or an account) has used. These counters are not folded from
-- the log: they are short-lived, and losing them would only forgive an hour's use.
--
-- A counter is named by its policy and its caller, such as hourly/<key id>. Time is this
-- database's own, in whole seconds since 1970, so that any number of processes share one clock.
-- What is counted in a second counts until the end of that second + span: never more than the
-- quota in any span, and at most one second stricter than that.

-- One row for each counter. The second under way is kept here, so that a check writes one row.
CREATE TABLE limit_windows (
    counter  text   COLLATE "C" PRIMARY KEY,
    -- All that counts now, this second included; kept so that no check has to add it up.
    total    bigint NOT NULL,
    -- The last second in which a check was decided (of a fixed window: its first second).
    second   bigint NOT NULL,
    -- What was counted in that second.
    used     bigint NOT NULL,
    -- The first second in limit_seconds that still counts; null where none does.
    oldest   bigint,
    -- From this second on nothing counts any more, and the counter can be swept away.
    ends     bigint NOT NULL,
    -- Of the last call of admit: the counter's place in it, and how many checks were admitted.
    place    bigint NOT NULL,
    admitted bigint NOT NULL
) WITH (fillfactor = 50); -- rewritten by every check: room for new versions on the same page

-- The use in each earlier second; rows go as they stop counting. The primary key serves every
-- access.
CREATE TABLE limit_seconds (
    counter text   COLLATE "C" NOT NULL,
    second  bigint NOT NULL,
    used    bigint NOT NULL,
    PRIMARY KEY (counter, second)
);

-- The second under which `now_second` is counted: a fixed window is counted as a whole, and begins
-- at whole multiples of its span.
CREATE FUNCTION limit_bucket(now_second bigint, span bigint, fixed boolean) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN fixed THEN now_second - now_second % span ELSE now_second END
$$;

-- The first second that still counts at `now_second`.
CREATE FUNCTION limit_horizon(now_second bigint, span bigint, fixed boolean) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN fixed THEN now_second - now_second % span ELSE now_second - span END
$$;

-- The second from which what was counted under `second` no longer counts.
CREATE FUNCTION limit_frees(second bigint, span bigint, fixed boolean) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN fixed THEN second + span ELSE second + span + 1 END
$$;

-- How many checks that cost `cost` each fit into what is left.
CREATE FUNCTION limit_admits(checks bigint, cost bigint, remaining bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT least(checks, greatest(0, remaining / cost))
$$;

-- Decides about everything that waits in one process. The arrays run side by side; a counter
-- stands in them once, with `checks` checks that cost `costs` each: a check is admitted whole or
-- not at all. `moment` is given by tests only.
--
-- Answers side by side, in an order of their own: the place of the counter in the question, how
-- many of its checks were admitted, the counter's use after that, when it begins to shrink, and
-- from when on the first refused check would be admitted if nothing else were counted. Arrays and
-- not rows, because handing over rows one by one would cost more than deciding about them.
CREATE FUNCTION admit(
    counters text[],
    quotas   bigint[],
    costs    bigint[],
    checks   bigint[],
    spans    bigint[],
    fixed    boolean[],
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
    waiting    bigint[] := ARRAY(SELECT generate_subscripts(counters, 1));
    refused    boolean := false;
    n          bigint;
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
            INSERT INTO limit_windows AS held (counter, total, second, used, ends, place, admitted)
            SELECT asked.counter, asked.admitted * asked.cost, asked.second, asked.admitted * asked.cost,
                   limit_frees(asked.second, asked.span, asked.fixed), asked.place, asked.admitted
              FROM (SELECT counters[i] COLLATE "C" AS counter, costs[i] AS cost, i AS place,
                           spans[i] AS span, fixed[i] AS fixed,
                           limit_admits(checks[i], costs[i], quotas[i]) AS admitted,
                           limit_bucket(now_second, spans[i], fixed[i]) AS second
                      FROM unnest(waiting) AS i) AS asked
             ORDER BY asked.counter
                ON CONFLICT (counter) DO UPDATE
               SET place = excluded.place,
                   admitted = limit_admits(checks[excluded.place], costs[excluded.place],
                                           quotas[excluded.place] - held.total),
                   total = held.total + costs[excluded.place]
                           * limit_admits(checks[excluded.place], costs[excluded.place],
                                          quotas[excluded.place] - held.total),
                   used = held.used + costs[excluded.place]
                          * limit_admits(checks[excluded.place], costs[excluded.place],
                                         quotas[excluded.place] - held.total)
             WHERE held.second >= excluded.second
            RETURNING held.place, held.admitted, held.total,
                      limit_frees(least(held.oldest, held.second), spans[held.place], fixed[held.place])
                      AS eases_at
        )
        SELECT admit.places || array_agg(decision.place),
               admit.admitted || array_agg(decision.admitted),
               admit.used || array_agg(decision.total),
               admit.eases_at || array_agg(decision.eases_at),
               refused OR coalesce(bool_or(decision.admitted < checks[decision.place]), false)
          INTO admit.places, admit.admitted, admit.used, admit.eases_at, refused
          FROM decision;
        EXIT WHEN cardinality(admit.places) = cardinality(counters);

        -- Those of an earlier second go on to the present one, once a second at most: what no
        -- longer counts is taken off, and the second that has ended is put to the earlier ones.
        waiting := ARRAY(
            SELECT i FROM unnest(waiting) AS i
              JOIN limit_windows AS held ON held.counter = counters[i]
             WHERE held.second < limit_bucket(now_second, spans[i], fixed[i]));
        WITH behind AS MATERIALIZED (
            SELECT held.counter, held.second, held.used, held.oldest,
                   spans[i] AS span, fixed[i] AS fixed,
                   limit_bucket(now_second, spans[i], fixed[i]) AS present,
                   limit_horizon(now_second, spans[i], fixed[i]) AS horizon
              FROM unnest(waiting) AS i
              JOIN limit_windows AS held ON held.counter = counters[i]
        ), gone AS (
            DELETE FROM limit_seconds AS spent USING behind
             WHERE behind.oldest < behind.horizon
               AND spent.counter = behind.counter AND spent.second < behind.horizon
            RETURNING spent.counter, spent.used
        ), freed AS (
            SELECT gone.counter, sum(gone.used)::bigint AS used FROM gone GROUP BY gone.counter
        ), kept AS (
            INSERT INTO limit_seconds AS spent (counter, second, used)
            SELECT behind.counter, behind.second, behind.used
              FROM behind WHERE behind.used > 0 AND behind.second >= behind.horizon
                ON CONFLICT (counter, second) DO UPDATE SET used = spent.used + excluded.used
            RETURNING spent.counter, spent.second
        )
        UPDATE limit_windows AS held
           SET total = greatest(0, held.total - coalesce(freed.used, 0)
                                   - CASE WHEN kept.second IS NULL THEN held.used ELSE 0 END),
               second = behind.present,
               used = 0,
               oldest = least(kept.second,
                              CASE WHEN behind.oldest >= behind.horizon THEN behind.oldest
                              ELSE (SELECT min(spent.second) FROM limit_seconds AS spent
                                     WHERE spent.counter = behind.counter
                                       AND spent.second >= behind.horizon) END),
               ends = limit_frees(behind.present, behind.span, behind.fixed)
          FROM behind
          LEFT JOIN freed ON freed.counter = behind.counter
          LEFT JOIN kept ON kept.counter = behind.counter
         WHERE held.counter = behind.counter;
    END LOOP;

    IF NOT refused THEN
        RETURN;
    END IF;
    retry_at := array_fill(NULL::bigint, ARRAY[cardinality(counters)]);
    FOR n IN
        SELECT i FROM generate_subscripts(admit.places, 1) AS i
         WHERE admit.admitted[i] < checks[admit.places[i]]
    LOOP
        retry_at[n] := (
            SELECT limit_frees(coalesce((
                   SELECT spending.second
                     FROM (SELECT spent.second, sum(spent.used) OVER (ORDER BY spent.second) AS freed
                             FROM limit_seconds AS spent WHERE spent.counter = held.counter) AS spending
                    WHERE spending.freed >= held.total + costs[held.place] - quotas[held.place]
                    ORDER BY spending.second
                    LIMIT 1
                   ), held.second), spans[held.place], fixed[held.place])
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
    spans    bigint[],
    fixed    boolean[],
    moment   timestamptz DEFAULT NULL
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    now_second CONSTANT bigint := floor(extract(epoch FROM coalesce(moment, clock_timestamp())));
BEGIN
    -- Makes and locks the rows, in the order of admit.
    INSERT INTO limit_windows AS held (counter, total, second, used, ends, place, admitted)
    SELECT asked.counter, 0, 0, 0, 0, 0, 0
      FROM (SELECT DISTINCT unnest(counters) COLLATE "C" AS counter) AS asked
     ORDER BY asked.counter
        ON CONFLICT (counter) DO UPDATE SET total = held.total WHERE false;

    WITH late AS MATERIALIZED (
        SELECT counters[i] AS counter,
               limit_bucket(seconds[i], spans[i], fixed[i]) AS second,
               sum(uses[i])::bigint AS used,
               max(limit_frees(limit_bucket(seconds[i], spans[i], fixed[i]), spans[i], fixed[i])) AS frees
          FROM generate_subscripts(counters, 1) AS i
         WHERE seconds[i] >= limit_horizon(now_second, spans[i], fixed[i])
         GROUP BY 1, 2
    ), noted AS (
        INSERT INTO limit_seconds AS spent (counter, second, used)
        SELECT late.counter, late.second, late.used FROM late
            ON CONFLICT (counter, second) DO UPDATE SET used = spent.used + excluded.used
    )
    UPDATE limit_windows AS held
       SET total = held.total + added.used,
           oldest = least(held.oldest, added.oldest),
           ends = greatest(held.ends, added.ends)
      FROM (SELECT late.counter, sum(late.used)::bigint AS used,
                   min(late.second) AS oldest, max(late.frees) AS ends
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
