-- PostgreSQL only. Clients' sessions, and the epoch that wrote them, for the next process.
CREATE TABLE sessions (
    connection BIGINT PRIMARY KEY,
    epoch BIGINT NOT NULL,
    data BYTEA NOT NULL
);
