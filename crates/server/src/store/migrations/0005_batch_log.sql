-- PostgreSQL only. The rows that each of the latest batches changed, for standbys. A batch that was
-- too large to be committed at once is missing.
CREATE TABLE batch_log (
    batch BIGINT PRIMARY KEY,
    settings TEXT[] NOT NULL,
    accounts BYTEA[] NOT NULL,
    characters BIGINT[] NOT NULL,
    nodes BIGINT[] NOT NULL,
    parents BIGINT[] NOT NULL,
    children BIGINT[] NOT NULL,
    scores BIGINT[] NOT NULL
);
