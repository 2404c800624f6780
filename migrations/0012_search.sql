-- Lists of records can be searched by a part of a name, an e-mail address or a number, and sorted
-- by name and amount. Both extensions ship with Postgres and can be made by whoever may create
-- things in the database: no superuser is needed.
CREATE EXTENSION IF NOT EXISTS pg_trgm;
CREATE EXTENSION IF NOT EXISTS btree_gin;

-- By any part of what a record is looked for by. The organization comes first, so that no search
-- walks over another's rows. The expressions stand in query-api/src/search/kind.rs once more.
CREATE INDEX companies_found ON companies USING gin (org_id, (name || E'\n' || coalesce(domain, '')
    || E'\n' || coalesce(email, '') || E'\n' || coalesce(phone, '')) gin_trgm_ops);
CREATE INDEX deals_found ON deals USING gin (org_id, (title || E'\n' || coalesce(company_name, '')
    || E'\n' || coalesce(contact_name, '')) gin_trgm_ops);
CREATE INDEX contacts_found ON contacts USING gin (org_id, (coalesce(first_name, '') || ' '
    || coalesce(last_name, '') || E'\n' || coalesce(email, '') || E'\n' || coalesce(phone, '')
    || E'\n' || coalesce(company_name, '')) gin_trgm_ops);
CREATE INDEX orders_found ON orders USING gin (org_id, (order_number || E'\n'
    || coalesce(client_name, '') || E'\n' || coalesce(client_email, '') || E'\n'
    || coalesce(product_name, '')) gin_trgm_ops);
CREATE INDEX leads_found ON leads USING gin (org_id, (name || E'\n' || coalesce(email, '')
    || E'\n' || coalesce(phone, '')) gin_trgm_ops);
CREATE INDEX clients_found ON clients USING gin (org_id, (name || E'\n' || coalesce(email, '')
    || E'\n' || coalesce(phone, '') || E'\n' || coalesce(company, '')) gin_trgm_ops);

-- By name, whatever its case. Only the beginning: an entry of a btree must stay small.
CREATE INDEX companies_by_name ON companies (org_id, (lower(left(name, 100)) COLLATE "C"), id);
CREATE INDEX deals_by_name ON deals (org_id, (lower(left(title, 100)) COLLATE "C"), id);
CREATE INDEX contacts_by_name ON contacts (org_id, (lower(left(ltrim(coalesce(first_name, '') || ' '
    || coalesce(last_name, '')), 100)) COLLATE "C"), id);
CREATE INDEX orders_by_name ON orders (org_id, (lower(left(coalesce(client_name, ''), 100))
    COLLATE "C"), id);
CREATE INDEX leads_by_name ON leads (org_id, (lower(left(name, 100)) COLLATE "C"), id);
CREATE INDEX clients_by_name ON clients (org_id, (lower(left(name, 100)) COLLATE "C"), id);

-- By amount, the highest first.
CREATE INDEX deals_by_amount ON deals (org_id, (coalesce(amount, 0)) DESC, id);
CREATE INDEX orders_by_amount ON orders (org_id, amount DESC, id);

-- Those of one stage or status, newest first, as orders have it already.
CREATE INDEX deals_newest_by_stage ON deals (org_id, stage, created_at DESC, id);
CREATE INDEX leads_newest_by_status ON leads (org_id, status, created_at DESC, id);
