-- Throttles: what slows those who guess passwords and codes, and bounds what costs money. Shared by
-- all processes; not folded from the log, since losing them would only forgive some tries.

-- One row for each counter that is not empty: a try is put in, and what is in it runs out again at
-- `refill` a second. Also one for each pair of a name and a network that belong together, which
-- counts nothing. Names are keyed hashes: no address, number or network can be read from here.
CREATE TABLE throttles (
    name    text COLLATE "C" PRIMARY KEY,
    -- What was in it at that time.
    used    double precision NOT NULL,
    at      timestamptz      NOT NULL,
    refill  double precision NOT NULL,
    -- From then on the row says nothing any more. No index: sweeping reads all rows once in a while,
    -- and every try would have to keep it.
    ends_at timestamptz      NOT NULL
) WITH (fillfactor = 50); -- rewritten by every try: room for new versions on the same page

-- Puts one try into all of these counters, or into none where one is full. The arrays run side by
-- side; each name stands in them once. A counter that does not run out (`refill` 0) lasts `lasts`
-- seconds. A counter with `spares` lets pass, and counts all the same, whoever is `known`: the name
-- of a pair that belongs together.
--
-- Answers what is in each counter now, and the first one of those that are full, with the seconds
-- after which all of them would take the try (infinity where one does not run out).
CREATE FUNCTION throttle(
    names   text[],
    most    double precision[],
    refills double precision[],
    spares  boolean[],
    known   text,
    lasts   double precision,
    OUT is_known boolean,
    OUT used     double precision[],
    OUT full_one bigint,
    OUT wait     double precision
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    now_exact CONSTANT timestamptz := clock_timestamp();
BEGIN
    throttle.is_known := EXISTS (SELECT FROM throttles AS pair
                                  WHERE pair.name = known AND pair.ends_at > now_exact);
    -- Makes and locks the rows and lets them run out up to now; the order keeps processes out of
    -- deadlock.
    WITH asked AS (
        SELECT asked.name COLLATE "C" AS name, asked.most, asked.refill, asked.spared, asked.place
          FROM unnest(names, most, refills, spares)
               WITH ORDINALITY AS asked (name, most, refill, spared, place)
    ), held AS (
        INSERT INTO throttles AS held (name, used, at, refill, ends_at)
        SELECT asked.name, 0, now_exact, asked.refill, now_exact FROM asked ORDER BY asked.name
            ON CONFLICT (name) DO UPDATE
           SET used = CASE WHEN held.ends_at <= now_exact THEN 0
                      ELSE greatest(0, held.used - excluded.refill * greatest(0,
                               extract(epoch FROM excluded.at - held.at)::double precision)) END,
               at = greatest(held.at, excluded.at),
               refill = excluded.refill
        RETURNING held.name, held.used
    )
    SELECT array_agg(held.used ORDER BY asked.place),
           min(asked.place) FILTER (WHERE held.used + 1 > asked.most AND NOT (asked.spared AND is_known)),
           max(CASE WHEN asked.refill > 0 THEN (held.used + 1 - asked.most) / asked.refill
               ELSE 'infinity' END)
               FILTER (WHERE held.used + 1 > asked.most AND NOT (asked.spared AND is_known))
      INTO throttle.used, throttle.full_one, throttle.wait
      FROM asked JOIN held USING (name);
    IF throttle.full_one IS NOT NULL THEN
        RETURN;
    END IF;

    -- Whoever is spared makes nobody wait for longer than a full counter does.
    SELECT array_agg(least(inside + 1, greatest(inside, full_at)) ORDER BY place)
      INTO throttle.used
      FROM unnest(throttle.used, most) WITH ORDINALITY AS counted (inside, full_at, place);
    UPDATE throttles AS held
       SET used = counted.inside,
           ends_at = held.at + make_interval(secs => CASE
               WHEN held.refill > 0 THEN counted.inside / held.refill ELSE lasts END)
      FROM unnest(names, throttle.used) AS counted (name, inside)
     WHERE held.name = counted.name COLLATE "C";
END
$$;

-- Takes one try out of these counters again, and keeps for so many seconds that a name and a network
-- belong together.
CREATE FUNCTION throttle_back(names text[], known text, known_for double precision) RETURNS void
LANGUAGE sql AS $$
    WITH held AS MATERIALIZED (
        SELECT name FROM throttles WHERE name = ANY (names) ORDER BY name FOR UPDATE
    )
    UPDATE throttles SET used = greatest(0, used - 1) FROM held WHERE throttles.name = held.name;
    INSERT INTO throttles AS held (name, used, at, refill, ends_at)
    SELECT known, 0, now(), 0, now() + make_interval(secs => known_for)
     WHERE known IS NOT NULL
        ON CONFLICT (name) DO UPDATE SET ends_at = excluded.ends_at;
$$;

-- Removes rows that say nothing any more, some at a time; answers how many.
CREATE FUNCTION sweep_throttles(at_most bigint) RETURNS bigint
LANGUAGE sql AS $$
    WITH gone AS (
        DELETE FROM throttles WHERE name IN (
            SELECT name FROM throttles WHERE ends_at <= clock_timestamp()
             LIMIT at_most FOR UPDATE SKIP LOCKED)
        RETURNING 1
    )
    SELECT count(*) FROM gone
$$;

-- The request that used a code, where it came with an Idempotency-Key: the same one again, while the
-- first is under way, finds its code right.
ALTER TABLE one_time_codes ADD COLUMN used_by text COLLATE "C";
