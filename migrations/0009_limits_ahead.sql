-- Checks that are paid for ahead count under the last second in which they may be made.

DROP FUNCTION admit(text[], bigint[], bigint[], bigint, bigint, boolean, timestamptz);

-- Decides about checks that wait together in one process. The arrays run side by side; a counter
-- stands in them once, with checks that cost `cost` each: a check is admitted whole or not at all.
-- Its checks may be made until the end of the second that lies so many seconds `ahead`: in a rolling
-- window they count under that one, so none of them ever counts for too short. `moment` is given by
-- tests only.
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
    ahead    bigint[],
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
    -- The second to count under (and those ahead, in a rolling window), the first that still
    -- counts, and how long a second counts.
    present    CONSTANT bigint := CASE WHEN fixed THEN now_second - now_second % span ELSE now_second END;
    horizon    CONSTANT bigint := CASE WHEN fixed THEN present ELSE present - span END;
    lasts      CONSTANT bigint := CASE WHEN fixed THEN span ELSE span + 1 END;
    -- What has not been decided yet.
    waiting          bigint[] := ARRAY(SELECT generate_subscripts(counters, 1));
    waiting_counters text[]   := counters;
    waiting_quotas   bigint[] := quotas;
    waiting_checks   bigint[] := checks;
    waiting_seconds  bigint[] := ARRAY(SELECT CASE WHEN fixed THEN present ELSE present + beyond END
                                         FROM unnest(ahead) AS beyond);
    seconds CONSTANT bigint[] := waiting_seconds;
    any_refused      boolean  := false;
    n                bigint;
BEGIN
    places := '{}';
    admitted := '{}';
    used := '{}';
    eases_at := '{}';
    decided := now_exact;
    LOOP
        -- Counters whose row stands in their second or a later one, with nothing in it that no
        -- longer counts: made, locked, decided and written in one go. The order keeps processes out
        -- of deadlock. The others are locked, and only that.
        WITH decision AS (
            INSERT INTO limit_windows AS held
                   (counter, second, used, earlier, ends, place, quota, checks, admitted)
            SELECT asked.counter COLLATE "C", asked.second, asked.fits * cost, 0,
                   asked.second + lasts, asked.place, asked.quota, asked.checks, asked.fits
              FROM (SELECT *, limit_admits(checks, cost, quota) AS fits
                      FROM unnest(waiting_counters, waiting_quotas, waiting_checks,
                                  waiting_seconds, waiting)
                           AS asked (counter, quota, checks, second, place)) AS asked
             ORDER BY 1
                ON CONFLICT (counter) DO UPDATE
               SET place = excluded.place,
                   quota = excluded.quota,
                   checks = excluded.checks,
                   admitted = limit_admits(excluded.checks, cost,
                                           excluded.quota - held.earlier - held.used),
                   used = held.used + cost * limit_admits(excluded.checks, cost,
                                                          excluded.quota - held.earlier - held.used)
             WHERE held.second >= excluded.second AND coalesce(held.oldest >= horizon, true)
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

        -- Of the others, once a second at most, what no longer counts is taken off; those of an
        -- earlier second go on to theirs, and the second that they leave is put to the earlier ones.
        SELECT array_agg(asked.counter), array_agg(asked.quota), array_agg(asked.checks),
               array_agg(asked.second), array_agg(asked.place)
          INTO waiting_counters, waiting_quotas, waiting_checks, waiting_seconds, waiting
          FROM unnest(counters, quotas, checks, seconds)
               WITH ORDINALITY AS asked (counter, quota, checks, second, place)
          JOIN limit_windows AS held ON held.counter = asked.counter
         WHERE held.second < asked.second OR held.oldest < horizon;
        WITH behind AS MATERIALIZED (
            SELECT held.counter, held.second, held.used, held.oldest,
                   greatest(held.second, asked.second) AS next
              FROM unnest(waiting_counters, waiting_seconds) AS asked (counter, second)
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
              FROM behind
             WHERE behind.used > 0 AND behind.second >= horizon AND behind.second < behind.next
                ON CONFLICT (counter, second) DO UPDATE SET used = spent.used + excluded.used
            RETURNING spent.counter, spent.second
        )
        UPDATE limit_windows AS held
           SET earlier = greatest(0, held.earlier - coalesce(freed.used, 0)
                                     + CASE WHEN kept.second IS NULL THEN 0 ELSE held.used END),
               second = behind.next,
               used = CASE WHEN behind.second < behind.next THEN 0 ELSE held.used END,
               oldest = least(kept.second,
                              CASE WHEN behind.oldest >= horizon THEN behind.oldest
                              ELSE (SELECT min(spent.second) FROM limit_seconds AS spent
                                     WHERE spent.counter = behind.counter
                                       AND spent.second >= horizon) END),
               ends = behind.next + lasts
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
