-- Deliveries of an endpoint are searched by their event's type. The types that an endpoint has got
-- are few, so that they are found one after another at the beginning of each one's part; within a
-- part the newest come first, as the list does.
CREATE INDEX deliveries_by_type
    ON deliveries (org_id, webhook_id, event_type, created_at DESC, delivery_id);
