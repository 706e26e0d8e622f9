-- Each process that claims the database raises the epoch and leaves its name.
ALTER TABLE shard ADD COLUMN epoch {int} NOT NULL DEFAULT 0;
ALTER TABLE shard ADD COLUMN writer TEXT NOT NULL DEFAULT '';
