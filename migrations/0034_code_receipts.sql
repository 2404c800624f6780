-- Requests for one-time codes are repeated as long as those of other commands, and a success takes
-- out of a throttle only what its try has put in.

-- One row for each request for a code that came with an Idempotency-Key, written in the transaction
-- of its code. Keys and requests are keyed hashes: neither can be read from here.
CREATE TABLE code_receipts (
    receipt_key  text COLLATE "C" PRIMARY KEY,
    fingerprint  text COLLATE "C" NOT NULL,
    -- Until when the code of that request is valid.
    code_ends_at timestamptz      NOT NULL,
    -- The key can be used for another request from then on.
    ends_at      timestamptz      NOT NULL
);

-- Sweeping away what has ended.
CREATE INDEX code_receipts_ends_at ON code_receipts (ends_at);

-- Requests of the last minutes are repeated as they were going to be. From here on only processes
-- of an older version use the columns receipt_key and fingerprint of one_time_codes.
INSERT INTO code_receipts (receipt_key, fingerprint, code_ends_at, ends_at)
SELECT receipt_key, fingerprint, expires_at, expires_at
  FROM one_time_codes
 WHERE receipt_key IS NOT NULL AND fingerprint IS NOT NULL AND expires_at > now()
    ON CONFLICT (receipt_key) DO NOTHING;

DROP FUNCTION throttle(text[], double precision[], double precision[], boolean[], text,
                       double precision);

-- Puts one try into all of these counters, or into none where one is full. The arrays run side by
-- side; each name is in them once. A counter that does not run out (`refill` 0) lasts `lasts`
-- seconds. A counter with `spares` lets a client pass who is `known`, by the name of a pair that
-- belongs together; when it is full it does not take that client's try, so that nobody waits for
-- longer.
--
-- Answers what is in each counter now, which of them have taken the try, and the first one of those
-- that are full, with the seconds after which all of them would take the try (infinity where one
-- does not run out).
CREATE FUNCTION throttle(
    names   text[],
    most    double precision[],
    refills double precision[],
    spares  boolean[],
    known   text,
    lasts   double precision,
    OUT is_known boolean,
    OUT used     double precision[],
    OUT counted  boolean[],
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

    SELECT array_agg(CASE WHEN inside + 1 <= full_at THEN inside + 1 ELSE inside END
                     ORDER BY place),
           array_agg(inside + 1 <= full_at ORDER BY place)
      INTO throttle.used, throttle.counted
      FROM unnest(throttle.used, most) WITH ORDINALITY AS asked (inside, full_at, place);
    UPDATE throttles AS held
       SET used = asked.inside,
           ends_at = held.at + make_interval(secs => CASE
               WHEN held.refill > 0 THEN asked.inside / held.refill ELSE lasts END)
      FROM unnest(names, throttle.used) AS asked (name, inside)
     WHERE held.name = asked.name COLLATE "C";
END
$$;
