-- The business records beside contacts: one row for each that is there, with the fields that were
-- written. Lists and exports read the index of the newest without sorting.

CREATE TABLE companies (
    org_id         text        COLLATE "C" NOT NULL,
    id             text        COLLATE "C" NOT NULL,
    name           text        NOT NULL,
    domain         text,
    industry       text,
    phone          text,
    email          text,
    address        text,
    city           text,
    country        text,
    employees      bigint,
    annual_revenue bigint,
    owner          text,
    created_at     timestamptz NOT NULL,
    updated_at     timestamptz NOT NULL,
    PRIMARY KEY (org_id, id)
);
CREATE INDEX companies_newest ON companies (org_id, created_at DESC, id);

CREATE TABLE deals (
    org_id              text        COLLATE "C" NOT NULL,
    id                  text        COLLATE "C" NOT NULL,
    title               text        NOT NULL,
    stage               text,
    -- In minor units of the currency.
    amount              bigint,
    currency            text,
    probability         double precision,
    company_id          text,
    company_name        text,
    contact_id          text,
    contact_name        text,
    owner               text,
    expected_close_date date,
    created_at          timestamptz NOT NULL,
    updated_at          timestamptz NOT NULL,
    PRIMARY KEY (org_id, id)
);
CREATE INDEX deals_newest ON deals (org_id, created_at DESC, id);

CREATE TABLE orders (
    org_id       text        COLLATE "C" NOT NULL,
    id           text        COLLATE "C" NOT NULL,
    order_number text        NOT NULL,
    -- PAYMENT_PENDING, ACTIVE, COMPLETED or CANCELLED.
    status       text        COLLATE "C" NOT NULL,
    -- In minor units.
    amount       bigint      NOT NULL,
    plan         text,
    client_name  text,
    client_email text,
    product_name text,
    created_at   timestamptz NOT NULL,
    updated_at   timestamptz NOT NULL,
    PRIMARY KEY (org_id, id)
);
CREATE INDEX orders_newest ON orders (org_id, created_at DESC, id);
CREATE INDEX orders_newest_by_status ON orders (org_id, status, created_at DESC, id);

CREATE TABLE leads (
    org_id     text        COLLATE "C" NOT NULL,
    id         text        COLLATE "C" NOT NULL,
    name       text        NOT NULL,
    phone      text,
    email      text,
    service    text,
    source     text,
    status     text,
    score      bigint      NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (org_id, id)
);
CREATE INDEX leads_newest ON leads (org_id, created_at DESC, id);

CREATE TABLE clients (
    org_id     text        COLLATE "C" NOT NULL,
    id         text        COLLATE "C" NOT NULL,
    name       text        NOT NULL,
    email      text,
    phone      text,
    company    text,
    city       text,
    is_active  boolean     NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (org_id, id)
);
CREATE INDEX clients_newest ON clients (org_id, created_at DESC, id);

-- What orders brought in, by the month in which they came to be (its first day, in UTC): those
-- that are ACTIVE or COMPLETED. Changed with the orders, so that no query adds them up.
CREATE TABLE revenue_months (
    org_id  text   COLLATE "C" NOT NULL,
    month   date   NOT NULL,
    -- In minor units. Numeric, because sums of bigints need not be one.
    revenue numeric NOT NULL,
    PRIMARY KEY (org_id, month)
) WITH (fillfactor = 50); -- counters are rewritten in place, batch after batch
