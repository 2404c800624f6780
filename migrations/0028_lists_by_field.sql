-- Lists of records are filtered and sorted by more fields: each index has the records of each value
-- together, newest first, as a list of that value shows them. Texts are compared whatever their
-- case, by their beginning: an entry of a btree must stay small. The expressions stand in
-- query-api/src/search/kind.rs once more.
CREATE INDEX companies_by_email ON companies
    (org_id, (lower(left(coalesce(email, ''), 100)) COLLATE "C"), created_at DESC, id);
CREATE INDEX companies_by_city ON companies
    (org_id, (lower(left(coalesce(city, ''), 100)) COLLATE "C"), created_at DESC, id);
CREATE INDEX companies_by_owner ON companies
    (org_id, (lower(left(coalesce(owner, ''), 100)) COLLATE "C"), created_at DESC, id);
CREATE INDEX deals_by_owner ON deals
    (org_id, (lower(left(coalesce(owner, ''), 100)) COLLATE "C"), created_at DESC, id);
CREATE INDEX contacts_by_email ON contacts
    (org_id, (lower(left(coalesce(email, ''), 100)) COLLATE "C"), created_at DESC, id);
CREATE INDEX contacts_by_city ON contacts
    (org_id, (lower(left(coalesce(city, ''), 100)) COLLATE "C"), created_at DESC, id);
CREATE INDEX contacts_by_owner ON contacts
    (org_id, (lower(left(coalesce(owner, ''), 100)) COLLATE "C"), created_at DESC, id);
CREATE INDEX orders_by_email ON orders
    (org_id, (lower(left(coalesce(client_email, ''), 100)) COLLATE "C"), created_at DESC, id);
CREATE INDEX orders_by_number ON orders
    (org_id, (lower(left(coalesce(order_number, ''), 100)) COLLATE "C"), created_at DESC, id);
CREATE INDEX leads_by_email ON leads
    (org_id, (lower(left(coalesce(email, ''), 100)) COLLATE "C"), created_at DESC, id);
CREATE INDEX clients_by_email ON clients
    (org_id, (lower(left(coalesce(email, ''), 100)) COLLATE "C"), created_at DESC, id);
CREATE INDEX clients_by_city ON clients
    (org_id, (lower(left(coalesce(city, ''), 100)) COLLATE "C"), created_at DESC, id);
CREATE INDEX clients_by_activity ON clients (org_id, is_active, created_at DESC, id);

-- In place of two that held whole texts, of which one of some thousand bytes has no place in a btree
-- and could not be written.
CREATE INDEX deals_by_stage ON deals
    (org_id, (lower(left(coalesce(stage, ''), 100)) COLLATE "C"), created_at DESC, id);
CREATE INDEX leads_by_status ON leads
    (org_id, (lower(left(coalesce(status, ''), 100)) COLLATE "C"), created_at DESC, id);
DROP INDEX deals_newest_by_stage;
DROP INDEX leads_newest_by_status;
