-- A delivery shows its last 100 attempts, and each of them only as long as the log keeps it.

UPDATE deliveries SET attempts = jsonb_path_query_array(attempts, '$[last - 99 to last]')
WHERE jsonb_array_length(attempts) > 100;

-- The deliveries whose oldest attempt the log no longer keeps, so that the attempt is deleted while
-- the delivery goes on. Times in attempts have one form (2026-01-31T10:00:00.123456Z), so that their
-- letters are in the order of time. Few deliveries last for longer than an hour: all others are
-- deleted as a whole, by changed_at.
CREATE INDEX deliveries_oldest_attempt
    ON deliveries ((attempts -> 0 ->> 'at') COLLATE "C")
    WHERE changed_at - created_at > interval '1 hour';
