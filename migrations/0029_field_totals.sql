-- How many records have each value of the fields that lists are filtered by, so that the first total
-- of a common value need not be counted from its rows. Changed with the rows.
CREATE TABLE field_totals (
    org_id text   COLLATE "C" NOT NULL,
    -- What has the value: companies, deals, contacts, leads or clients.
    kind   text   COLLATE "C" NOT NULL,
    -- The column.
    field  text   COLLATE "C" NOT NULL,
    -- The value as the index of lists by this field has it: its beginning, whatever its case. Rows
    -- without one are not counted.
    value  text   COLLATE "C" NOT NULL,
    -- Never 0: a value that nothing has any more is forgotten.
    count  bigint NOT NULL,
    PRIMARY KEY (org_id, kind, field, value)
) WITH (fillfactor = 50); -- counters are rewritten in place, batch after batch

-- Counts the values of a kind's fields, or of all, from the rows that are there.
CREATE FUNCTION count_field_totals(wanted text DEFAULT NULL) RETURNS void LANGUAGE sql AS $$
    DELETE FROM field_totals WHERE kind = coalesce(wanted, kind);
    INSERT INTO field_totals
    SELECT org_id, kind, field, lower(left(value, 100)), count(*)
    FROM (
        SELECT org_id, 'companies', field, value
        FROM companies, LATERAL (VALUES ('city', city), ('owner', owner)) AS of (field, value)
        UNION ALL
        SELECT org_id, 'deals', field, value
        FROM deals, LATERAL (VALUES ('stage', stage), ('owner', owner)) AS of (field, value)
        UNION ALL
        SELECT org_id, 'contacts', field, value
        FROM contacts, LATERAL (VALUES ('city', city), ('owner', owner)) AS of (field, value)
        UNION ALL
        SELECT org_id, 'leads', 'status', status FROM leads
        UNION ALL
        SELECT org_id, 'clients', field, value
        FROM clients,
             LATERAL (VALUES ('city', city), ('is_active', is_active::text)) AS of (field, value)
    ) AS counted (org_id, kind, field, value)
    WHERE value <> '' AND kind = coalesce(wanted, kind)
    GROUP BY 1, 2, 3, 4
$$;

SELECT count_field_totals();
