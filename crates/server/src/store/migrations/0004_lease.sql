-- PostgreSQL only. One row: the epoch of the last process that kept a lease, and how often it
-- renewed it; -1 once it was given up.
CREATE TABLE lease (
    only_row SMALLINT PRIMARY KEY CHECK (only_row = 1),
    epoch BIGINT NOT NULL,
    beat BIGINT NOT NULL
) WITH (fillfactor = 10);
INSERT INTO lease (only_row, epoch, beat) VALUES (1, 0, 0);
