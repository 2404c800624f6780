-- What records are searched by, in lower case, and the values that lists are filtered by, as columns
-- that Postgres keeps with the row. Of an index over an expression it cannot count without reading
-- the rows, and lower() is most of what it costs to look at one. One ALTER for each table: each
-- writes the table anew.
ALTER TABLE companies
    ADD COLUMN search_text text GENERATED ALWAYS AS (lower(name || E'\n' || coalesce(domain, '')
        || E'\n' || coalesce(email, '') || E'\n' || coalesce(phone, ''))) STORED,
    ADD COLUMN city_key text COLLATE "C"
        GENERATED ALWAYS AS (lower(left(coalesce(city, ''), 100))) STORED,
    ADD COLUMN owner_key text COLLATE "C"
        GENERATED ALWAYS AS (lower(left(coalesce(owner, ''), 100))) STORED;
ALTER TABLE deals
    ADD COLUMN search_text text GENERATED ALWAYS AS (lower(title || E'\n'
        || coalesce(company_name, '') || E'\n' || coalesce(contact_name, ''))) STORED,
    ADD COLUMN stage_key text COLLATE "C"
        GENERATED ALWAYS AS (lower(left(coalesce(stage, ''), 100))) STORED,
    ADD COLUMN owner_key text COLLATE "C"
        GENERATED ALWAYS AS (lower(left(coalesce(owner, ''), 100))) STORED;
ALTER TABLE contacts
    ADD COLUMN search_text text GENERATED ALWAYS AS (lower(coalesce(first_name, '') || ' '
        || coalesce(last_name, '') || E'\n' || coalesce(email, '') || E'\n' || coalesce(phone, '')
        || E'\n' || coalesce(company_name, ''))) STORED,
    ADD COLUMN city_key text COLLATE "C"
        GENERATED ALWAYS AS (lower(left(coalesce(city, ''), 100))) STORED,
    ADD COLUMN owner_key text COLLATE "C"
        GENERATED ALWAYS AS (lower(left(coalesce(owner, ''), 100))) STORED;
ALTER TABLE orders
    ADD COLUMN search_text text GENERATED ALWAYS AS (lower(order_number || E'\n'
        || coalesce(client_name, '') || E'\n' || coalesce(client_email, '') || E'\n'
        || coalesce(product_name, ''))) STORED;
ALTER TABLE leads
    ADD COLUMN search_text text GENERATED ALWAYS AS (lower(name || E'\n' || coalesce(email, '')
        || E'\n' || coalesce(phone, ''))) STORED,
    ADD COLUMN status_key text COLLATE "C"
        GENERATED ALWAYS AS (lower(left(coalesce(status, ''), 100))) STORED;
ALTER TABLE clients
    ADD COLUMN search_text text GENERATED ALWAYS AS (lower(name || E'\n' || coalesce(email, '')
        || E'\n' || coalesce(phone, '') || E'\n' || coalesce(company, ''))) STORED,
    ADD COLUMN city_key text COLLATE "C"
        GENERATED ALWAYS AS (lower(left(coalesce(city, ''), 100))) STORED;

-- The same indexes, over these.
DROP INDEX companies_found, deals_found, contacts_found, orders_found, leads_found, clients_found;
CREATE INDEX companies_found ON companies USING gin (org_id, search_text gin_trgm_ops);
CREATE INDEX deals_found ON deals USING gin (org_id, search_text gin_trgm_ops);
CREATE INDEX contacts_found ON contacts USING gin (org_id, search_text gin_trgm_ops);
CREATE INDEX orders_found ON orders USING gin (org_id, search_text gin_trgm_ops);
CREATE INDEX leads_found ON leads USING gin (org_id, search_text gin_trgm_ops);
CREATE INDEX clients_found ON clients USING gin (org_id, search_text gin_trgm_ops);

DROP INDEX companies_by_city, companies_by_owner, contacts_by_city, contacts_by_owner,
           clients_by_city, deals_by_owner, deals_by_stage, leads_by_status;
CREATE INDEX companies_by_city ON companies (org_id, city_key, created_at DESC, id);
CREATE INDEX companies_by_owner ON companies (org_id, owner_key, created_at DESC, id);
CREATE INDEX contacts_by_city ON contacts (org_id, city_key, created_at DESC, id);
CREATE INDEX contacts_by_owner ON contacts (org_id, owner_key, created_at DESC, id);
CREATE INDEX clients_by_city ON clients (org_id, city_key, created_at DESC, id);
CREATE INDEX deals_by_owner ON deals (org_id, owner_key, created_at DESC, id);
CREATE INDEX deals_by_stage ON deals (org_id, stage_key, created_at DESC, id);
CREATE INDEX leads_by_status ON leads (org_id, status_key, created_at DESC, id);
