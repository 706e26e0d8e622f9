//! A commit that reaches the database after another process has taken over.
//!
//! Usually, the new leader has committed something by then, and the number of the batch alone shows
//! that the commit is late. Here, the new leader has to delay its first batch, so that only the
//! epoch shows it.

use std::time::{Duration, Instant};

use crate::cluster::Cluster;
use crate::gate::Way;

/// Makes the processes listed in a table wait before they commit, and counts the commits of others
/// in the meantime. A statement-level trigger fires before rows are locked. A sequence also counts
/// transactions that are refused.
pub(crate) const HOLD: &str = "
    CREATE TABLE held (process TEXT);
    CREATE SEQUENCE late_commits MINVALUE 0 START 0;
    SELECT nextval('late_commits');
    CREATE FUNCTION hold_commits() RETURNS TRIGGER LANGUAGE plpgsql AS $$
    BEGIN
        IF EXISTS (SELECT FROM held WHERE process = current_setting('application_name')) THEN
            WHILE EXISTS (SELECT FROM held) LOOP
                PERFORM pg_sleep(0.01);
            END LOOP;
        ELSIF EXISTS (SELECT FROM held) THEN
            PERFORM nextval('late_commits');
        END IF;
        RETURN NULL;
    END;
    $$;
    CREATE TRIGGER hold_commits BEFORE UPDATE OF last_batch ON shard FOR EACH STATEMENT
        EXECUTE FUNCTION hold_commits();";

/// How long the takeover may take, and the commit after it. The new leader gives up a commit after
/// 10 s.
const PATIENCE: Duration = Duration::from_secs(6);

/// Holds back what the leader writes to the database until its standby has taken over, and lets it
/// through before the standby commits.
pub(crate) fn send_late_commit(cluster: &Cluster, leader: usize, standby: usize) {
    let number = |sql: &str| cluster.database.sql(sql).trim().parse::<u64>().unwrap();
    let epoch = || number("SELECT epoch FROM shard");
    let commits = || number("SELECT last_value FROM late_commits");
    let before = epoch();
    // After an earlier fault, clients may still be reconnecting.
    for _ in 0..3 {
        let batch = number("SELECT last_batch FROM shard");
        until("the leader commits nothing", || number("SELECT last_batch FROM shard") > batch);
    }
    // The leader must still be able to read, or its next batch might have nothing to commit.
    cluster.way(leader, None, Some(Way::WritesHeld));
    let name = cluster.name(standby);
    cluster.database.sql(&format!("INSERT INTO held VALUES ('{name}')"));
    until("the standby does not take over", || epoch() > before);
    let earlier = commits();
    cluster.way(leader, None, Some(Way::Open));
    // Clients make changes all the time, so the leader was committing.
    until("the old leader commits nothing", || commits() > earlier);
    cluster.database.sql("DELETE FROM held");
}

fn until(otherwise: &str, is_met: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_met() {
        assert!(start.elapsed() < PATIENCE, "{otherwise}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
