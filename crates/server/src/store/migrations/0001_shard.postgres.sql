-- One row: the number of the last batch that was committed.
CREATE TABLE shard (only_row SMALLINT PRIMARY KEY CHECK (only_row = 1), batch BIGINT NOT NULL);
INSERT INTO shard (only_row, batch) VALUES (1, 0);

CREATE TABLE settings (name TEXT PRIMARY KEY, value BYTEA NOT NULL);

CREATE TABLE accounts (
    id BYTEA PRIMARY KEY,
    name TEXT NOT NULL,
    folded TEXT NOT NULL UNIQUE,
    flags BIGINT NOT NULL,
    created BIGINT NOT NULL,
    secret BYTEA NOT NULL
);

CREATE TABLE characters (
    id BIGINT PRIMARY KEY,
    account BYTEA NOT NULL REFERENCES accounts (id) DEFERRABLE INITIALLY DEFERRED,
    name TEXT NOT NULL,
    created BIGINT NOT NULL,
    data BYTEA NOT NULL
);
CREATE INDEX characters_by_account ON characters (account);

CREATE TABLE nodes (
    id BIGINT PRIMARY KEY,
    kind BIGINT NOT NULL,
    data BYTEA NOT NULL
);

CREATE TABLE refs (
    parent BIGINT NOT NULL REFERENCES nodes (id) DEFERRABLE INITIALLY DEFERRED,
    child BIGINT NOT NULL REFERENCES nodes (id) DEFERRABLE INITIALLY DEFERRED,
    owner BIGINT NOT NULL,
    PRIMARY KEY (parent, child)
);
CREATE INDEX refs_by_child ON refs (child);

CREATE TABLE scores (
    id BIGINT PRIMARY KEY,
    owner BIGINT NOT NULL,
    name TEXT NOT NULL,
    kind BIGINT NOT NULL,
    value BIGINT NOT NULL,
    created BIGINT NOT NULL,
    UNIQUE (owner, name)
);
