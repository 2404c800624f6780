-- Whoever opens their page is told which calls for help of the people around them are open: each
-- person's newest, however many calls have ended.
CREATE INDEX sos_calls_open_of_account ON sos_calls (account_id, org_id, triggered_at DESC)
    WHERE resolved_at IS NULL;
