//! Replays real clients' messages to our shard: its replies must match the real server's in kind
//! and order, except for the differences listed and justified here.
//!
//! `WORLDWIRE_URU_REPLAY` names a directory with captures (`.pcap`, `.pcapng`) and the keys of the
//! shard in them (`server-keys.ini`, or the file that `WORLDWIRE_URU_KEYS` names). All captures in
//! a directory are replayed against one new shard, in the order in which they were recorded.

mod capture;
mod client;
mod compare;
mod ids;
mod replay;

use std::path::PathBuf;

#[tokio::test]
async fn real_clients_get_the_replies_of_the_real_server() {
    let Some(folder) = std::env::var_os("WORLDWIRE_URU_REPLAY").map(PathBuf::from) else {
        println!("WORLDWIRE_URU_REPLAY names no folder: nothing to replay");
        return;
    };
    let keys = std::env::var_os("WORLDWIRE_URU_KEYS")
        .map_or_else(|| folder.join("server-keys.ini"), PathBuf::from);
    let keys = std::fs::read_to_string(keys).unwrap();
    let mut captures: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "pcap" || end == "pcapng"))
        .collect();
    assert!(!captures.is_empty(), "{}: no captures", folder.display());
    let mut sums = compare::Sums::default();
    // In the order in which they were recorded, because later captures depend on what earlier ones
    // created.
    captures.sort_by_cached_key(|path| capture::begins(path));
    let recorded: Vec<_> = captures.iter().map(|path| capture::read(path, &keys)).collect();
    let mut shard = replay::Replay::start(&recorded).await;
    let mut problems = Vec::new();
    for (path, recorded) in captures.iter().zip(&recorded) {
        let ours = shard.replay(recorded).await;
        let name = path.file_name().unwrap().to_string_lossy();
        problems.extend(compare::compare(&name, recorded, &ours, &mut sums));
    }
    shard.stop().await;
    println!("{sums:#?}");
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(sums.replies > 0, "nothing was compared");
}
