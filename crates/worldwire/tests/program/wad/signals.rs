//! The files that remain when a signal ends the program.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use tempfile::tempdir;

use super::*;

#[cfg(target_os = "linux")]
#[test]
fn an_interrupted_create_leaves_nothing() {
    use std::os::unix::process::ExitStatusExt;
    let home = tempdir().unwrap();
    fill_large(home.path());
    for signal in signals() {
        let status = interrupted(signal, || {
            let _ = fs::remove_file(home.path().join("a.wad"));
            let create = start(home.path(), &["create", "in", "-o", "a.wad", "--level", "12"]);
            wait(|| writes_into(&create, home.path()));
            create
        });
        match signal {
            "INT" => assert_eq!(status.code(), Some(130)),
            "TERM" => assert_eq!(status.code(), Some(143)),
            "HUP" => assert_eq!(status.code(), Some(129)),
            _ => assert_eq!(status.signal(), Some(9)),
        }
        let left = names(home.path());
        assert!(!left.contains(&"a.wad".to_owned()), "SIG{signal}: {status}");
        if left.len() > 1 {
            // This file system has no unnamed files, so nothing can delete this one.
            assert!(signal == "KILL" && left[0].ends_with(".part"), "SIG{signal}: {left:?}");
            fs::remove_file(home.path().join(&left[0])).unwrap();
        }
    }
}

/// However the program ends, any file that appears under its name is complete. The files of a new
/// folder all appear at once.
#[test]
fn an_interrupted_extract_leaves_only_whole_files() {
    let home = tempdir().unwrap();
    fill_large(home.path());
    assert!(wad(home.path(), &["create", "in", "-o", "a.wad", "--level", "1"]).status.success());
    let [before, after] = ["in/Data", "out/Data"].map(|folder| home.path().join(folder));
    let unfinished = || -> Vec<_> {
        let found = names(home.path()).into_iter().filter(|name| name.ends_with(".part"));
        found.map(|name| home.path().join(name)).collect()
    };
    for (signal, is_new) in signals().into_iter().flat_map(|it| [(it, true), (it, false)]) {
        let status = interrupted(signal, || {
            let _ = fs::remove_dir_all(home.path().join("out"));
            if !is_new {
                fs::create_dir_all(&after).unwrap();
            }
            let arguments = ["extract", "a.wad", "-C", "out", "--threads", "2"];
            let extract = start(home.path(), &arguments);
            let has_files = |folder: &Path| {
                let mut found = fs::read_dir(folder).into_iter().flatten().flatten();
                found.any(|file| file.path().extension().is_some_and(|it| it == "xml"))
            };
            let staged = || unfinished().first().is_some_and(|it| has_files(&it.join("Data")));
            wait(|| staged() || has_files(&after));
            extract
        });
        assert!(!status.success());
        let left = if after.exists() { names(&after) } else { Vec::new() };
        for name in &left {
            if name.ends_with(".xml") {
                let whole = fs::read(before.join(name)).unwrap();
                assert!(fs::read(after.join(name)).unwrap() == whole, "SIG{signal}: {name}");
            } else {
                assert!(signal == "KILL" && name.ends_with(".part"), "SIG{signal}: {name}");
            }
        }
        let unfinished = unfinished();
        let is_told = if is_new && signal == "KILL" { left.is_empty() } else { !left.is_empty() };
        assert!(is_told, "SIG{signal}: {left:?}");
        assert_eq!(unfinished.len(), usize::from(is_new && signal == "KILL"), "SIG{signal}");
        unfinished.iter().for_each(|stage| fs::remove_dir_all(stage).unwrap());
        fs::remove_dir_all(home.path().join("out")).unwrap();
    }
}

/// Two runs into one folder that each create some of its subfolders.
#[test]
fn two_extracts_into_one_folder_at_once_do_not_mind_each_other() {
    let home = tempdir().unwrap();
    let files: Vec<(String, String)> =
        (0..400).map(|at| (format!("d{}/f{at}", at % 40), format!("{at}"))).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    put(&home.path().join("in"), &files);
    said(&wad(home.path(), &["create", "in", "-o", "a.wad"]), 0);
    for (flag, is_new) in [("--skip-existing", true), ("--force", false)] {
        let _ = fs::remove_dir_all(home.path().join("out"));
        if !is_new {
            fs::create_dir(home.path().join("out")).unwrap();
        }
        let arguments = ["extract", "a.wad", "-C", "out", "--threads", "2", flag];
        let runs = [(); 2].map(|()| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
            command.current_dir(home.path()).args(["-q", "ki", "wad"]).args(arguments);
            command.stderr(Stdio::piped()).spawn().unwrap()
        });
        for run in runs {
            let end = run.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&end.stderr);
            assert!(end.status.success() && said.is_empty(), "{flag}: {said}");
        }
        for (name, content) in &files {
            assert_eq!(fs::read_to_string(home.path().join("out").join(name)).unwrap(), *content);
        }
        let leftovers = |folder: &Path| names(folder).iter().any(|name| name.ends_with(".part"));
        assert!(!leftovers(home.path()) && !leftovers(&home.path().join("out")), "{flag}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn ignored_signals_stay_ignored() {
    let home = tempdir().unwrap();
    fill_large(home.path());
    let worldwire = env!("CARGO_BIN_EXE_worldwire");
    for signal in ["HUP", "INT", "TERM"] {
        let _ = fs::remove_file(home.path().join("a.wad"));
        let mut create = Command::new("sh")
            .args(["-c", &format!("trap '' {signal}; exec \"$@\""), "sh", worldwire])
            .args(["ki", "wad", "create", "in", "-o", "a.wad", "--level", "6"])
            .current_dir(home.path())
            .spawn()
            .unwrap();
        wait(|| writes_into(&create, home.path()));
        kill(signal, &create);
        assert!(create.wait().unwrap().success(), "SIG{signal}");
        assert!(wad(home.path(), &["test", "a.wad"]).status.success());
    }
}

/// The signals that end the program.
fn signals() -> Vec<&'static str> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:\t"));
    let ignored = ignored.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    // The tests may have been started with `nohup` or in the background, where they must survive
    // signals.
    let is_heard = |number: u32| match ignored {
        Some(ignored) => ignored & (1 << (number - 1)) == 0,
        None => number != 1,
    };
    let all = [("KILL", 9), ("INT", 2), ("TERM", 15), ("HUP", 1)];
    all.into_iter().filter(|(_, number)| is_heard(*number)).map(|(name, _)| name).collect()
}

fn kill(signal: &str, child: &Child) {
    // `kill` is a builtin of every shell.
    let kill = ["-c", "kill -s \"$0\" \"$1\"", signal, &child.id().to_string()];
    assert!(Command::new("sh").args(kill).status().unwrap().success());
}

/// Files that take at least a second to compress well, and some time to write.
fn fill_large(folder: &Path) {
    fs::create_dir_all(folder.join("in/Data")).unwrap();
    let mut state = 1_u32;
    for number in 0..100 {
        let mut text = String::new();
        while text.len() < 100_000 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            text.push_str(&format!("<Value id=\"{}\">{:x}</Value>\n", text.len(), state >> 12));
        }
        fs::write(folder.join(format!("in/Data/{number:03}.xml")), text.repeat(10)).unwrap();
    }
}

fn start(folder: &Path, arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
    command.current_dir(folder).args(["-q", "ki", "wad"]).args(arguments);
    command.stderr(Stdio::null()).spawn().unwrap()
}

/// Starts a command and sends it a signal. Tries again if the command had ended before the signal
/// arrived.
fn interrupted(signal: &str, start: impl Fn() -> Child) -> ExitStatus {
    for _ in 0..20 {
        let mut child = start();
        kill(signal, &child);
        let status = child.wait().unwrap();
        if !status.success() {
            return status;
        }
    }
    panic!("SIG{signal} was always too late");
}

/// Waits for an event that is expected soon.
fn wait(happened: impl Fn() -> bool) {
    for _ in 0..60_000 {
        if happened() {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("nothing happened for a minute");
}

/// Whether a program has an unfinished file open in a folder, with or without a name.
#[cfg(target_os = "linux")]
fn writes_into(program: &Child, folder: &Path) -> bool {
    let open = fs::read_dir(format!("/proc/{}/fd", program.id())).into_iter().flatten();
    let mut open = open.flatten().filter_map(|file| fs::read_link(file.path()).ok());
    open.any(|file| file.parent() == Some(folder) && file.extension().is_none_or(|it| it == "part"))
}

/// The type list is a FIFO, so the archive is open when it is truncated, but not read yet.
#[cfg(target_os = "linux")]
#[test]
fn an_archive_that_is_cut_while_it_is_read_is_told() {
    let home = tempdir().unwrap();
    let large = vec![1; 1 << 20];
    fs::write(home.path().join("a.wad"), craft(&[("x", &large)])).unwrap();
    let fifo = home.path().join("types.json");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let arguments = ["ki", "wad", "cat", "a.wad", "x", "--decode", "json", "-t", "types.json"];
    let mut cat = program(home.path(), &arguments);
    let cat = cat.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Opening the FIFO waits for the reader.
    let mut types = fs::OpenOptions::new().write(true).open(&fifo).unwrap();
    fs::OpenOptions::new()
        .write(true)
        .open(home.path().join("a.wad"))
        .unwrap()
        .set_len(99)
        .unwrap();
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples/ki-types.json");
    types.write_all(&fs::read(sample).unwrap()).unwrap();
    drop(types);
    let outcome = cat.wait_with_output().unwrap();
    assert_eq!(said(&outcome, 2), "worldwire: a file was truncated while it was being read\n");
    assert!(outcome.stdout.is_empty());
}
