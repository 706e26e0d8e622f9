//! Records every change of a database's position and the process that made it, so that tests do not
//! depend on the processes' own view.

/// Records changes of the position in a database with a server's tables.
pub(crate) const RECORD: &str = "
    CREATE TABLE history (number BIGSERIAL PRIMARY KEY, epoch BIGINT, batch BIGINT, process TEXT,
        at BIGINT);
    CREATE FUNCTION note_position() RETURNS TRIGGER LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO history (epoch, batch, process, at) VALUES (NEW.epoch, NEW.last_batch,
            current_setting('application_name'), extract(epoch FROM clock_timestamp()) * 1000);
        RETURN NEW;
    END;
    $$;
    CREATE TRIGGER note_position AFTER UPDATE OF epoch, last_batch ON shard FOR EACH ROW
        EXECUTE FUNCTION note_position();";

/// Reads the records, for [`check`].
pub(crate) const READ: &str = "SELECT epoch, batch, process FROM history ORDER BY number";

/// Checks that the batches have no gap, and that each belongs to the process that had last claimed
/// the database. Returns the numbers of claims and of batches.
pub(crate) fn check(rows: &str) -> Result<(u64, u64), String> {
    let (mut first, mut claims) = (None, 0);
    let mut last = (0_u64, 0_u64, "");
    for row in rows.lines() {
        let [epoch, batch, process] = row.split('|').collect::<Vec<_>>()[..] else {
            return Err(format!("not a position: {row}"));
        };
        let number = |text: &str| text.parse().map_err(|_| format!("not a number: {text}"));
        let found = (number(epoch)?, number(batch)?, process);
        let is_claim = found.0 > last.0 && found.1 == last.1;
        let is_commit = (found.0, found.1) == (last.0, last.1 + 1) && found.2 == last.2;
        // The database may have been used before.
        if first.is_some() && !is_claim && !is_commit {
            return Err(format!("after {last:?} came {found:?}"));
        }
        claims += u64::from(first.is_none() || is_claim);
        first.get_or_insert(found.1);
        last = found;
    }
    let batches = first.ok_or("nothing was committed")?;
    Ok((claims, last.1 - batches))
}

#[test]
fn gaps_and_writers_without_a_claim_are_found() {
    assert_eq!(check("4|9|a\n4|10|a\n7|10|b\n7|11|b\n"), Ok((2, 2)));
    let broken = [
        ("no history", ""),
        ("a gap", "1|0|a\n1|2|a\n"),
        ("a batch that is written twice", "1|0|a\n1|1|a\n1|1|a\n"),
        ("a writer that was overtaken", "1|0|a\n2|0|b\n1|1|a\n"),
        ("the same epoch for two writers", "1|0|a\n1|1|b\n"),
        ("an earlier epoch", "4|0|a\n3|0|b\n"),
        ("a lost batch", "1|0|a\n1|1|a\n2|0|b\n"),
        ("not a position", "1|0\n"),
    ];
    for (about, rows) in broken {
        assert!(check(rows).is_err(), "{about}");
    }
}
