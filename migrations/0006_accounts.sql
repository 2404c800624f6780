-- One-time codes. They are not folded from the log: they live for minutes, and losing them would
-- only make persons ask for another.

-- One row for each phone number that was sent a code lately, so that a row's lock orders all that
-- happens to its code. Numbers and codes are keyed hashes: neither can be read from here.
CREATE TABLE one_time_codes (
    phone       text COLLATE "C" PRIMARY KEY,
    -- The last code that was sent; there is one at a time.
    code        text COLLATE "C" NOT NULL,
    -- 0 once it has been used or tried too often.
    tries_left  integer          NOT NULL,
    expires_at  timestamptz      NOT NULL,
    -- When codes were sent, as far back as they are counted.
    sends       timestamptz[]    NOT NULL,
    -- From then on the row says nothing any more.
    ends_at     timestamptz      NOT NULL,
    -- The receipt of the request for the last code, where it came with an Idempotency-Key.
    receipt_key text COLLATE "C",
    fingerprint text COLLATE "C"
);

-- Sweeping away what has ended.
CREATE INDEX one_time_codes_ends_at ON one_time_codes (ends_at);
-- Finding a request again by its key.
CREATE INDEX one_time_codes_receipt_key ON one_time_codes (receipt_key)
    WHERE receipt_key IS NOT NULL;
