-- Each process that claims the database raises the epoch and leaves its name. The column gets a new
-- name so that a process of an earlier version, which knows no epochs, can no longer commit.
ALTER TABLE shard RENAME COLUMN batch TO last_batch;
ALTER TABLE shard ADD COLUMN epoch {int} NOT NULL DEFAULT 0;
ALTER TABLE shard ADD COLUMN writer TEXT NOT NULL DEFAULT '';
