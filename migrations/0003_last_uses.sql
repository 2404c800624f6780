-- When keys were last used. The counters of limits know it while anything counts and are swept
-- away after that; this keeps what they knew. Like them it is not folded from the log.
CREATE TABLE limit_uses (
    counter text   COLLATE "C" PRIMARY KEY,
    -- The last second in which the counter decided a check.
    second  bigint NOT NULL
);

CREATE FUNCTION remember_last_uses() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO limit_uses AS known (counter, second)
    SELECT swept.counter, swept.second FROM swept ORDER BY swept.counter
        ON CONFLICT (counter) DO UPDATE SET second = greatest(known.second, excluded.second);
    RETURN NULL;
END
$$;

-- Once a sweep, not once a check.
CREATE TRIGGER remember_last_uses AFTER DELETE ON limit_windows
    REFERENCING OLD TABLE AS swept
    FOR EACH STATEMENT EXECUTE FUNCTION remember_last_uses();
