-- Who gave a key: its giver's id, 'owner' or 'operator'. Keys made before that was written down are
-- the operator's, as their events read now.
ALTER TABLE api_keys ADD COLUMN created_by text NOT NULL DEFAULT 'operator';
