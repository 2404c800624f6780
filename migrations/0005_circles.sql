-- Persons, their circles and where they were. All that is personal stands readable here and only
-- here: it goes when its person is forgotten, and can be built again only while their key is
-- there.

CREATE TABLE accounts (
    account_id bigint      PRIMARY KEY,
    name       text        NOT NULL,
    created_at timestamptz NOT NULL
);

-- Whom a late event must not bring back. It names nobody: a number without a name.
CREATE TABLE forgotten_accounts (
    account_id   bigint      PRIMARY KEY,
    forgotten_at timestamptz NOT NULL
);

CREATE TABLE circles (
    circle_id     text        COLLATE "C" PRIMARY KEY,
    -- Whose it is: a person's or an organization's.
    owner_account bigint,
    owner_org     text        COLLATE "C",
    -- Null once the person who named it was forgotten.
    name          text,
    created_at    timestamptz NOT NULL,
    CHECK ((owner_account IS NULL) <> (owner_org IS NULL))
);
-- What is left of a person who is forgotten.
CREATE INDEX circles_of_owner ON circles (owner_account) WHERE owner_account IS NOT NULL;

-- Every membership, those that have ended included: a fix is shown to those who were in a circle
-- with its person when it was made.
CREATE TABLE circle_members (
    circle_id  text        COLLATE "C" NOT NULL,
    account_id bigint      NOT NULL,
    -- The place in the log of the event that began it.
    sequence   bigint      NOT NULL,
    joined_at  timestamptz NOT NULL,
    left_at    timestamptz,
    PRIMARY KEY (circle_id, account_id, sequence)
);
-- The circles of a person.
CREATE INDEX circle_members_of_account ON circle_members (account_id, circle_id);

CREATE TABLE circle_places (
    circle_id  text             COLLATE "C" NOT NULL,
    place_id   text             COLLATE "C" NOT NULL,
    named_by   bigint           NOT NULL,
    name       text             NOT NULL,
    lat        double precision NOT NULL,
    lng        double precision NOT NULL,
    radius_m   double precision NOT NULL,
    created_at timestamptz      NOT NULL,
    PRIMARY KEY (circle_id, place_id)
);
-- What is left of a person who is forgotten.
CREATE INDEX circle_places_named_by ON circle_places (named_by);

-- When persons hid where they were.
CREATE TABLE sharing_pauses (
    account_id bigint      NOT NULL,
    sequence   bigint      NOT NULL,
    from_at    timestamptz NOT NULL,
    until_at   timestamptz NOT NULL,
    PRIMARY KEY (account_id, sequence)
);

-- Positions. The person and the time of the fix name it; the key also finds the newest ones.
CREATE TABLE positions (
    account_id  bigint           NOT NULL,
    recorded_at timestamptz      NOT NULL,
    lat         double precision NOT NULL,
    lng         double precision NOT NULL,
    accuracy    double precision,
    speed       double precision,
    place_name  text,
    battery     double precision,
    -- When it was taken up: it lives as long as its event does.
    received_at timestamptz      NOT NULL,
    PRIMARY KEY (account_id, recorded_at)
);
-- What is too old. Rows come in the order of this column, so that a summary of each range of
-- pages finds them at next to no cost.
CREATE INDEX positions_received ON positions USING brin (received_at) WITH (autosummarize = on);

-- The times whose fixes of a person another may see, now: both are in a circle now, both were in
-- one when the fix was made, and its person hid neither then nor hides now. Disjoint ranges and
-- not a test of each fix, so that reads look at no fix that they do not show.
CREATE FUNCTION visible_times(viewer bigint, subject bigint, now_at timestamptz)
RETURNS tstzmultirange LANGUAGE sql STABLE AS $$
    SELECT CASE
        WHEN viewer = subject THEN '{(,)}'::tstzmultirange
        WHEN NOT EXISTS (
            SELECT FROM circle_members AS mine JOIN circle_members AS theirs USING (circle_id)
            WHERE mine.account_id = viewer AND theirs.account_id = subject
              AND mine.left_at IS NULL AND theirs.left_at IS NULL
        ) THEN '{}'
        WHEN EXISTS (
            SELECT FROM sharing_pauses WHERE account_id = subject AND now_at < until_at
        ) THEN '{}'
        ELSE coalesce((
            -- least() passes over null: a membership that lasts.
            SELECT range_agg(tstzrange(greatest(mine.joined_at, theirs.joined_at),
                                       least(mine.left_at, theirs.left_at)))
            FROM circle_members AS mine JOIN circle_members AS theirs USING (circle_id)
            WHERE mine.account_id = viewer AND theirs.account_id = subject
              AND greatest(mine.joined_at, theirs.joined_at)
                  < coalesce(least(mine.left_at, theirs.left_at), 'infinity')
        ), '{}') - coalesce((
            SELECT range_agg(tstzrange(from_at, until_at)) FROM sharing_pauses
            WHERE account_id = subject AND from_at < until_at
        ), '{}')
    END
$$;
