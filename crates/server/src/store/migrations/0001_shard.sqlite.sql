-- One row: the number of the last batch that was committed.
CREATE TABLE shard (only_row INTEGER PRIMARY KEY CHECK (only_row = 1), batch INTEGER NOT NULL);
INSERT INTO shard (only_row, batch) VALUES (1, 0);

CREATE TABLE settings (name TEXT PRIMARY KEY, value BLOB NOT NULL);

CREATE TABLE accounts (
    id BLOB PRIMARY KEY,
    name TEXT NOT NULL,
    folded TEXT NOT NULL UNIQUE,
    flags INTEGER NOT NULL,
    created INTEGER NOT NULL,
    secret BLOB NOT NULL
);

CREATE TABLE characters (
    id INTEGER PRIMARY KEY,
    account BLOB NOT NULL REFERENCES accounts (id) DEFERRABLE INITIALLY DEFERRED,
    name TEXT NOT NULL,
    created INTEGER NOT NULL,
    data BLOB NOT NULL
);
CREATE INDEX characters_by_account ON characters (account);

CREATE TABLE nodes (
    id INTEGER PRIMARY KEY,
    kind INTEGER NOT NULL,
    data BLOB NOT NULL
);

CREATE TABLE refs (
    parent INTEGER NOT NULL REFERENCES nodes (id) DEFERRABLE INITIALLY DEFERRED,
    child INTEGER NOT NULL REFERENCES nodes (id) DEFERRABLE INITIALLY DEFERRED,
    owner INTEGER NOT NULL,
    PRIMARY KEY (parent, child)
) WITHOUT ROWID;
CREATE INDEX refs_by_child ON refs (child);

CREATE TABLE scores (
    id INTEGER PRIMARY KEY,
    owner INTEGER NOT NULL,
    name TEXT NOT NULL,
    kind INTEGER NOT NULL,
    value INTEGER NOT NULL,
    created INTEGER NOT NULL,
    UNIQUE (owner, name)
);
