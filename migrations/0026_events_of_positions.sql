-- The event that stands where a projection has come to, where one does: a log that has gone back has
-- another there, or none.
ALTER TABLE projection_checkpoints ADD COLUMN event_id uuid;
