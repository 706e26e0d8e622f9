//! A signal that arrives before the end of a capture file: output already printed stays, no summary
//! is printed, no file is written, and the exit code shows the interruption.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Repeats the sample in the capture, so that reading it takes much longer than sending a signal.
const TIMES: usize = 6_000;
/// After this many bytes, the program has read the headers and is reading packets.
const UNDER_WAY: u64 = 200 << 10;

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples").join(name)
}

/// The outcome of a program that was interrupted while reading.
struct Ended {
    shown: String,
    said: String,
}

/// Runs a command over a large TERA capture, `large.pcapng` in the current folder, and sends it a
/// signal while it runs. Tries again if the command had ended before the signal arrived.
fn interrupt(arguments: &[&str], (signal, code): (&str, i32)) -> Ended {
    let folder = tempfile::tempdir().unwrap();
    let capture = folder.path().join("large.pcapng");
    let once = fs::read(sample("tera-login.pcapng")).unwrap();
    fs::write(&capture, once.repeat(TIMES)).unwrap();
    std::os::unix::fs::symlink(sample("tera"), folder.path().join("data")).unwrap();
    let results = tempfile::tempdir().unwrap();
    let (shown, said) = (results.path().join("shown"), results.path().join("said"));
    for _ in 0..20 {
        let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
        command.current_dir(folder.path()).arg("--quiet").args(arguments).stdin(Stdio::null());
        command.stdout(File::create(&shown).unwrap()).stderr(File::create(&said).unwrap());
        let mut child = command.spawn().unwrap();
        if reads_on(&mut child, &capture) {
            let kill = Command::new("kill").args([signal, &child.id().to_string()]).status();
            assert!(kill.unwrap().success());
        }
        let status = child.wait().unwrap();
        let ended = Ended {
            shown: fs::read_to_string(&shown).unwrap(),
            said: fs::read_to_string(&said).unwrap(),
        };
        if status.code() == Some(code) {
            let left = fs::read_dir(folder.path()).unwrap();
            let mut left: Vec<_> = left.map(|file| file.unwrap().file_name()).collect();
            left.sort();
            assert_eq!(left, ["data", "large.pcapng"], "{arguments:?}");
            return ended;
        }
        for file in fs::read_dir(folder.path()).unwrap() {
            let path = file.unwrap().path();
            if !path.ends_with("data") && !path.ends_with("large.pcapng") {
                fs::remove_file(path).unwrap();
            }
        }
    }
    panic!("{arguments:?}: no {signal} ended it with {code}");
}

/// Waits until a program is in the middle of a file. Returns false if the program ended earlier.
fn reads_on(child: &mut Child, file: &Path) -> bool {
    loop {
        let files = fs::read_dir(format!("/proc/{}/fd", child.id())).into_iter().flatten();
        let is_far = files.flatten().any(|open| {
            let path = open.path();
            let about = path.to_string_lossy().replace("/fd/", "/fdinfo/");
            let about = fs::read_to_string(about).unwrap_or_default();
            let at = about.lines().find_map(|line| line.strip_prefix("pos:")?.trim().parse().ok());
            fs::read_link(&path).is_ok_and(|path| path == file)
                && at.is_some_and(|it: u64| it > UNDER_WAY)
        });
        if is_far {
            return true;
        }
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

const INTERRUPTED: &str =
    "worldwire: large.pcapng: interrupted: the capture was not read to its end\n";
const INT: (&str, i32) = ("-INT", 130);

#[test]
fn output_already_printed_stays() {
    for signal in [INT, ("-TERM", 143)] {
        let Ended { shown, said } = interrupt(&["dissect", "--brief", "large.pcapng"], signal);
        assert_eq!(said, INTERRUPTED);
        assert!(shown.lines().count() > 100 && shown.ends_with('\n'), "{shown}");
    }
}

#[test]
fn a_partly_read_capture_is_not_written() {
    for name in ["part.pcapng", "part.txt"] {
        let Ended { shown, said } = interrupt(&["dissect", "large.pcapng", "-o", name], INT);
        assert_eq!((&*shown, &*said), ("", INTERRUPTED));
    }
}

#[test]
fn a_partly_read_capture_prints_no_summary() {
    const CAPTURE: &str = "large.pcapng";
    for arguments in [
        // None of the messages read matches.
        &["dissect", CAPTURE, "--first", "--filter", "stream == 99999999"][..],
        &["stats", CAPTURE],
        &["doctor", CAPTURE, "--data", "data"],
        &["follow", CAPTURE, "--stream", "99999999", "-o", "part.txt"],
        &["secrets", "export", CAPTURE, "-o", "part.toml"],
        &["tera", "integrity", CAPTURE, "--data", "data", "-o", "part.json"],
        &["tera", "def", "rank", "--from", CAPTURE, "--data", "data", "--write", "part.map"],
        &[
            "tera",
            "map",
            "carry",
            "--old",
            CAPTURE,
            "--old-map",
            "data/map/protocol.999001.map",
            "--new",
            CAPTURE,
            "--data",
            "data",
            "-o",
            "part.map",
        ],
    ] {
        let Ended { shown, said } = interrupt(arguments, INT);
        assert_eq!((&*shown, &*said), ("", INTERRUPTED), "{arguments:?}");
    }
}

#[test]
fn the_second_capture_is_not_read_after_a_signal() {
    let folder = tempfile::tempdir().unwrap();
    let torn = folder.path().join("torn.pcapng");
    let whole = fs::read(sample("tera-login.pcapng")).unwrap();
    fs::write(&torn, &whole[..whole.len() - 10]).unwrap();
    let Ended { shown, said } = interrupt(&["diff", "large.pcapng", torn.to_str().unwrap()], INT);
    // If the second capture were read, its end would be reported, too.
    assert_eq!((&*shown, &*said), ("", INTERRUPTED));
}
