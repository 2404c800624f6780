-- Calls for help and crossings of places, each by where it stands in the log: what was said and
-- where somebody was stays there, sealed. Here is only what finds them without reading everybody's.

-- A call stands once for persons, under the system's own organization, and once for each
-- organization that was told of it.
CREATE TABLE sos_calls (
    org_id          text        COLLATE "C" NOT NULL,
    sos_id          text        COLLATE "C" NOT NULL,
    -- Who called.
    account_id      bigint      NOT NULL,
    -- The place in the log of the event that made it.
    sequence        bigint      NOT NULL,
    triggered_at    timestamptz NOT NULL,
    acknowledged_at timestamptz,
    resolved_at     timestamptz,
    PRIMARY KEY (org_id, sos_id)
);
-- An organization's map asks for those that are open, newest first.
CREATE INDEX sos_calls_open ON sos_calls (org_id, triggered_at DESC) WHERE resolved_at IS NULL;
-- A person's own: for their export, and when they are forgotten.
CREATE INDEX sos_calls_of_account ON sos_calls (account_id, sequence);

-- When somebody came to a place or left it: the event's place in the log.
CREATE TABLE crossings (
    account_id bigint NOT NULL,
    sequence   bigint NOT NULL,
    PRIMARY KEY (account_id, sequence)
);

-- The times whose fixes of a person an organization may see, now: the person is in one of its
-- circles now, was in one when the fix was made, and hid neither then nor hides now. The same as
-- visible_times, for organizations.
CREATE FUNCTION visible_times_of_organization(viewer text, subject bigint, now_at timestamptz)
RETURNS tstzmultirange LANGUAGE sql STABLE AS $$
    SELECT CASE
        WHEN NOT EXISTS (
            SELECT FROM circle_members AS member JOIN circles AS circle USING (circle_id)
            WHERE member.account_id = subject AND member.left_at IS NULL
              AND circle.owner_org = viewer COLLATE "C"
        ) THEN '{}'
        WHEN EXISTS (
            SELECT FROM sharing_pauses WHERE account_id = subject AND now_at < until_at
        ) THEN '{}'
        ELSE coalesce((
            SELECT range_agg(tstzrange(member.joined_at, member.left_at))
            FROM circle_members AS member JOIN circles AS circle USING (circle_id)
            WHERE member.account_id = subject AND circle.owner_org = viewer COLLATE "C"
              AND member.joined_at < coalesce(member.left_at, 'infinity')
        ), '{}') - coalesce((
            SELECT range_agg(tstzrange(from_at, until_at)) FROM sharing_pauses
            WHERE account_id = subject AND from_at < until_at
        ), '{}')
    END
$$;
