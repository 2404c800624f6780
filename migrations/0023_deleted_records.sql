-- Records that can be exported and are gone, so that whoever keeps a copy up to date hears of it:
-- one row for each, until it is written again. Those deleted before this table came appear once
-- their projection is rebuilt.
CREATE TABLE deleted_companies (
    org_id     text        COLLATE "C" NOT NULL,
    id         text        COLLATE "C" NOT NULL,
    deleted_at timestamptz NOT NULL,
    PRIMARY KEY (org_id, id)
);
CREATE TABLE deleted_deals (
    org_id     text        COLLATE "C" NOT NULL,
    id         text        COLLATE "C" NOT NULL,
    deleted_at timestamptz NOT NULL,
    PRIMARY KEY (org_id, id)
);
CREATE TABLE deleted_contacts (
    org_id     text        COLLATE "C" NOT NULL,
    id         text        COLLATE "C" NOT NULL,
    deleted_at timestamptz NOT NULL,
    PRIMARY KEY (org_id, id)
);

-- What was written or deleted since a moment, without a look at the rest.
CREATE INDEX deleted_companies_latest ON deleted_companies (org_id, deleted_at);
CREATE INDEX deleted_deals_latest ON deleted_deals (org_id, deleted_at);
CREATE INDEX deleted_contacts_latest ON deleted_contacts (org_id, deleted_at);
CREATE INDEX companies_latest ON companies (org_id, updated_at);
CREATE INDEX deals_latest ON deals (org_id, updated_at);
CREATE INDEX contacts_latest ON contacts (org_id, updated_at);
