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

/// How long the old leader's commit may take once it can reach the database again.
const LATE_WITHIN: Duration = Duration::from_secs(2);

/// Holds back what the leader writes to the database until its standby has taken over, and lets it
/// through before the standby commits. Returns false if there was no commit among it: the old leader
/// was then between two commits, or learned first that it no longer leads.
pub(crate) fn send_late_commit(cluster: &Cluster, leader: usize, standby: usize) -> bool {
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
    // Clients make changes all the time, so the leader was probably committing.
    let is_late = is_met_within(LATE_WITHIN, || commits() > earlier);
    cluster.database.sql("DELETE FROM held");
    is_late
}

fn until(otherwise: &str, is_met: impl Fn() -> bool) {
    assert!(is_met_within(PATIENCE, is_met), "{otherwise}");
}

fn is_met_within(patience: Duration, is_met: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    while !is_met() {
        if start.elapsed() >= patience {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}
