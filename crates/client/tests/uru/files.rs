//! Downloads, compared byte for byte with the shard's files.

use std::fs;
use std::path::Path;

use worldwire_client::uru::folder::{self, Summary};
use worldwire_client::uru::{Auth, Files};
use worldwire_uru::file::secure;
use worldwire_uru::types::NetError;

use crate::shard::{ACCOUNTS, Running};

fn page() -> Vec<u8> {
    (0..300_000u32).map(|at| (at % 251) as u8).collect()
}

fn noise() -> Vec<u8> {
    let next = |state: &u32| Some(state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
    std::iter::successors(Some(1), next).take(5000).map(|state| (state >> 24) as u8).collect()
}

fn prepare(folder: &Path) {
    let files = folder.join("data/files");
    fs::create_dir_all(files.join("External/dat")).unwrap();
    fs::write(files.join("External/dat/page.prp"), page()).unwrap();
    fs::write(files.join("External/empty.txt"), "").unwrap();
    // This file cannot be compressed, so it is sent uncompressed.
    fs::write(files.join("External/noise.bin"), noise()).unwrap();
    let sdl = folder.join("data/secure/SDL");
    fs::create_dir_all(&sdl).unwrap();
    fs::write(sdl.join("long.sdl"), "STATEDESC ".repeat(30_000)).unwrap();
    // Manifests with wrong entries; "x" has the MD5 9dd4e461268c8034f5c8564e155c67a6.
    fs::write(files.join("x.txt"), "x").unwrap();
    let right = "9dd4e461268c8034f5c8564e155c67a6";
    let wrong = "9dd4e461268c8034f5c8564e155c67a7";
    let mfs =
        |client: &str, md5: &str, size| format!("{client},x.txt,{md5},{md5},{size},{size},0\n");
    fs::write(files.join("Right.mfs"), mfs("sub\\x.txt", right, 1)).unwrap();
    fs::write(files.join("WrongSum.mfs"), mfs("x.txt", wrong, 1)).unwrap();
    fs::write(files.join("WrongSize.mfs"), mfs("x.txt", right, 2)).unwrap();
    fs::write(files.join("Short.mfs"), mfs("x.txt", right, 0)).unwrap();
    let unlisted = format!("bare.txt,x.txt,{right},{right},1,0,0\n");
    fs::write(files.join("Bare.mfs"), unlisted).unwrap();
    fs::write(files.join("Out.mfs"), mfs("..\\x.txt", right, 1)).unwrap();
}

#[tokio::test]
async fn a_folder_is_brought_up_to_date() {
    let running = Running::start(prepare).await;
    let files = Files::connect(&running.shard).await.unwrap();
    let game = tempfile::tempdir().unwrap();
    let target = game.path().join("game");
    let update = async || folder::update(&files, "External", &target, &mut |_| ()).await.unwrap();
    let first = update().await;
    assert_eq!((first.kept, first.written), (0, 3));
    assert!(first.bytes < 100_000, "the page was packed: {first:?}");
    assert_eq!(fs::read(target.join("dat/page.prp")).unwrap(), page());
    assert_eq!(fs::read(target.join("empty.txt")).unwrap(), b"");
    assert_eq!(fs::read(target.join("noise.bin")).unwrap(), noise());
    assert_eq!(update().await, Summary { kept: 3, ..Summary::default() });
    // One wrong byte causes one download.
    let mut bytes = page();
    bytes[77] ^= 1;
    fs::write(target.join("dat/page.prp"), bytes).unwrap();
    assert_eq!(update().await.written, 1);
    assert_eq!(fs::read(target.join("dat/page.prp")).unwrap(), page());
    // No partial file is left.
    assert_eq!(fs::read_dir(target.join("dat")).unwrap().count(), 1);
    files.link().ping().await.unwrap();
    running.stop().await;
}

#[tokio::test]
async fn files_that_differ_from_their_manifest_are_not_installed() {
    let running = Running::start(prepare).await;
    let files = Files::connect(&running.shard).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let update = async |group| folder::update(&files, group, folder.path(), &mut |_| ()).await;
    for (group, said) in [
        ("WrongSum", "x.txt: wanted 1 bytes with MD5 9dd4e461268c8034f5c8564e155c67a7, found 1"),
        ("WrongSize", "x.txt: wanted 2 bytes"),
        ("Short", "x.txt: wanted at most 0 bytes, found 1"),
        ("Out", "..\\x.txt: wanted a name inside the directory, found"),
        (
            "Nothing",
            "ManifestRequest: refused with FileNotFound (7): game clients show \"File Not Found\"",
        ),
    ] {
        let error = update(group).await.unwrap_err().to_string();
        assert!(error.starts_with(said), "{group}: {error}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{group}");
    }
    update("Right").await.unwrap();
    assert_eq!(fs::read(folder.path().join("sub/x.txt")).unwrap(), b"x");
    update("Bare").await.unwrap();
    assert_eq!(fs::read(folder.path().join("bare.txt")).unwrap(), b"x");
    let mut shard = running.shard.clone();
    shard.build = 917;
    let files = Files::connect(&shard).await.unwrap();
    let error = files.manifest("Right").await.unwrap_err();
    assert_eq!(error.net_error(), Some(NetError::OldBuildId));
    running.stop().await;
}

#[tokio::test]
async fn secure_files_open_with_the_key_of_the_login() {
    let running = Running::start(prepare).await;
    let (auth, _) = Auth::connect(&running.shard).await.unwrap();
    let login = auth.log_in(ACCOUNTS[0].0, ACCOUNTS[0].1).await.unwrap();
    let listed = auth.secure_files("SDL", "sdl").await.unwrap();
    assert_eq!(listed.len(), 1);
    let bytes = auth.secure_file(&listed[0].name, listed[0].size).await.unwrap();
    let opened = secure::open(&bytes, Some(&login.file_key), 1 << 20).unwrap();
    assert_eq!(opened.plain(), "STATEDESC ".repeat(30_000).as_bytes());
    let error = auth.secure_file("SDL\\none.sdl", 1000).await.unwrap_err();
    assert_eq!(error.net_error(), Some(NetError::FileNotFound));
    let error = auth.secure_file(&listed[0].name, 1000).await.unwrap_err().to_string();
    assert!(error.starts_with("SDL\\long.sdl: wanted at most 1000 bytes"), "{error}");
    running.stop().await;
}
