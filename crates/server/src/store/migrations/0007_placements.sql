-- Which process runs each age, if several processes run ages.
CREATE TABLE placements (
    number {int} PRIMARY KEY,
    data {bytes} NOT NULL
);
