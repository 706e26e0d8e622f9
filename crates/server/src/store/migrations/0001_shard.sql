-- One row: the number of the last batch that was committed.
CREATE TABLE shard (only_row {small} PRIMARY KEY CHECK (only_row = 1), batch {int} NOT NULL);
INSERT INTO shard (only_row, batch) VALUES (1, 0);

CREATE TABLE settings (name TEXT PRIMARY KEY, value {bytes} NOT NULL);

CREATE TABLE accounts (
    id {bytes} PRIMARY KEY,
    name TEXT NOT NULL,
    folded TEXT NOT NULL UNIQUE,
    flags {int} NOT NULL,
    created {int} NOT NULL,
    secret {bytes} NOT NULL
);

CREATE TABLE characters (
    id {int} PRIMARY KEY,
    account {bytes} NOT NULL REFERENCES accounts (id) DEFERRABLE INITIALLY DEFERRED,
    name TEXT NOT NULL,
    created {int} NOT NULL,
    data {bytes} NOT NULL
);
CREATE INDEX characters_by_account ON characters (account);

CREATE TABLE nodes (
    id {int} PRIMARY KEY,
    kind {int} NOT NULL,
    data {bytes} NOT NULL
);

CREATE TABLE refs (
    parent {int} NOT NULL REFERENCES nodes (id) DEFERRABLE INITIALLY DEFERRED,
    child {int} NOT NULL REFERENCES nodes (id) DEFERRABLE INITIALLY DEFERRED,
    owner {int} NOT NULL,
    PRIMARY KEY (parent, child)
){clustered};
CREATE INDEX refs_by_child ON refs (child);

CREATE TABLE scores (
    id {int} PRIMARY KEY,
    owner {int} NOT NULL,
    name TEXT NOT NULL,
    kind {int} NOT NULL,
    value {int} NOT NULL,
    created {int} NOT NULL,
    UNIQUE (owner, name)
);
