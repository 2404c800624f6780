-- Deliveries end in the read model where their events do in the log.

-- When the delivery's last event was written.
ALTER TABLE deliveries ADD COLUMN changed_at timestamptz;
UPDATE deliveries SET changed_at = coalesce((attempts -> -1 ->> 'at')::timestamptz, created_at);
ALTER TABLE deliveries ALTER COLUMN changed_at SET NOT NULL;
-- Those that are too old, oldest first.
CREATE INDEX deliveries_oldest ON deliveries (changed_at);
