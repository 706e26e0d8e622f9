//! Captures that are still being written: messages appear immediately, and Ctrl-C ends the input
//! rather than the program.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
#[cfg(unix)]
use std::sync::mpsc;
use std::time::Duration;

use worldwire_capture::{CaptureReader, Record};
use worldwire_core::Limits;

/// Ends the program when the test ends, even if the test fails.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples").join(name)
}

/// The program, reading a capture with the keys of the samples.
fn worldwire(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
    command.args(arguments).arg("--keys").arg(sample("uru-keys.toml"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The sample capture, cut in the middle of a packet.
fn halves() -> (Vec<u8>, Vec<u8>) {
    let mut first = fs::read(sample("uru-login.pcapng")).unwrap();
    let rest = first.split_off(first.len() / 2 + 5);
    (first, rest)
}

/// The program's output for the whole sample.
fn whole(arguments: &[&str]) -> Vec<u8> {
    let file = sample("uru-login.pcapng");
    let output = worldwire(arguments).arg(&file).output().unwrap();
    assert!(output.status.success());
    output.stdout
}

#[test]
fn messages_are_shown_as_they_arrive() {
    for threads in ["1", "2"] {
        let arguments = ["dissect", "--brief", "--threads", threads];
        let whole = whole(&arguments);
        let (first, rest) = halves();
        let mut running = Running(worldwire(&arguments).arg("-").spawn().unwrap());
        let mut input = running.0.stdin.take().unwrap();
        let mut output = BufReader::new(running.0.stdout.take().unwrap());
        input.write_all(&first).unwrap();
        // Reading would block if the program waited for more input.
        let mut shown = Vec::new();
        while shown.len() < whole.len() / 3 {
            assert_ne!(output.read_until(b'\n', &mut shown).unwrap(), 0);
        }
        input.write_all(&rest).unwrap();
        drop(input);
        output.read_to_end(&mut shown).unwrap();
        assert_eq!(String::from_utf8(shown).unwrap(), String::from_utf8(whole).unwrap());
        assert!(running.0.wait().unwrap().success());
    }
}

/// The end of a growing file is not the end of the capture.
#[cfg(unix)]
#[test]
fn a_growing_file_is_read_as_it_grows() {
    let whole = String::from_utf8(whole(&["dissect", "--brief"])).unwrap();
    let (first, rest) = halves();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("growing.pcapng");
    fs::write(&path, &first).unwrap();
    let mut command = worldwire(&["dissect", "--brief", "--follow"]);
    let mut running = Running(command.arg(&path).spawn().unwrap());
    let mut output = BufReader::new(running.0.stdout.take().unwrap());
    let mut shown = String::new();
    while shown.len() < whole.len() / 3 {
        assert_ne!(output.read_line(&mut shown).unwrap(), 0);
    }
    fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(&rest).unwrap();
    while shown.len() < whole.len() {
        assert_ne!(output.read_line(&mut shown).unwrap(), 0);
    }
    assert_eq!(shown, whole);
    signal(&running, "-INT");
    assert_eq!(running.0.wait().unwrap().code(), Some(0));
}

/// Sends a signal, as a terminal does for Ctrl-C.
#[cfg(unix)]
fn signal(running: &Running, name: &str) {
    let id = running.0.id().to_string();
    assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
}

#[cfg(unix)]
#[test]
fn a_signal_ends_the_input() {
    let (first, _) = halves();
    for name in ["-INT", "-TERM"] {
        let mut running = Running(worldwire(&["dissect", "--brief", "-"]).spawn().unwrap());
        let mut input = running.0.stdin.take().unwrap();
        let mut output = BufReader::new(running.0.stdout.take().unwrap());
        input.write_all(&first).unwrap();
        let mut shown = String::new();
        output.read_line(&mut shown).unwrap();
        signal(&running, name);
        output.read_to_string(&mut shown).unwrap();
        let mut summary = String::new();
        running.0.stderr.take().unwrap().read_to_string(&mut summary).unwrap();
        assert_eq!(running.0.wait().unwrap().code(), Some(0), "{summary}");
        let messages = shown.lines().filter(|line| !line.contains(" > ")).count();
        assert!(summary.contains(&format!("{messages} messages")), "{messages}: {summary}");
        drop(input);
    }
}

#[cfg(unix)]
#[test]
fn the_output_for_an_interrupted_fifo_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (fifo, result) = (folder.path().join("fifo"), folder.path().join("result"));
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let (first, _) = halves();
    for (verb, name) in [("dissect", "-INT"), ("stats", "-TERM"), ("follow", "-INT")] {
        let _ = fs::remove_file(&result);
        let mut command = worldwire(&[verb]);
        command.arg(&fifo);
        match verb {
            "dissect" => command.args(["--brief", "-o"]).arg(&result),
            "follow" => command.args(["--stream", "0", "-o"]).arg(&result),
            _ => command.stdout(fs::File::create(&result).unwrap()),
        };
        let mut running = Running(command.spawn().unwrap());
        // The FIFO opens as soon as the program reads from it.
        let (path, (sender, opened)) = (fifo.clone(), mpsc::channel());
        std::thread::spawn(move || sender.send(fs::OpenOptions::new().write(true).open(path)));
        let mut input = opened.recv_timeout(Duration::from_secs(60)).unwrap().unwrap();
        input.write_all(&first).unwrap();
        signal(&running, name);
        let code = running.0.wait().unwrap().code();
        let mut said = String::new();
        running.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(code, Some(0), "{verb}: {said}");
        let kept = fs::read_to_string(&result).unwrap();
        assert!(kept.len() > 200, "{verb}: {kept}");
        drop(input);
    }
}

/// The exit code. The test fails if the program does not end within a minute.
#[cfg(unix)]
fn code(mut running: Running) -> Option<i32> {
    let id = running.0.id().to_string();
    let (sender, ended) = mpsc::channel();
    std::thread::spawn(move || sender.send(running.0.wait()));
    match ended.recv_timeout(Duration::from_secs(60)) {
        Ok(status) => status.unwrap().code(),
        Err(_) => {
            let _ = Command::new("kill").args(["-KILL", &id]).status();
            panic!("the program does not end")
        }
    }
}

/// Nothing more is written after the whole file, so no broken pipe would end the program.
#[cfg(target_os = "linux")]
#[test]
fn a_followed_file_is_closed_when_nobody_reads_the_output() {
    let arguments = ["dissect", "--brief", "--follow"];
    let whole = whole(&["dissect", "--brief"]);
    let mut command = worldwire(&arguments);
    let mut running = Running(command.arg(sample("uru-login.pcapng")).spawn().unwrap());
    let mut shown = vec![0; whole.len()];
    let mut output = running.0.stdout.take().unwrap();
    output.read_exact(&mut shown).unwrap();
    drop(output);
    assert_eq!((code(running), shown), (Some(0), whole));
}

/// A live capture writes its files as packets arrive, and they survive if the program is killed.
#[test]
fn files_of_live_captures_grow() {
    // The packets of a file, and whether it ends after a complete packet.
    let (all, _) = packets(&fs::read(sample("uru-login.pcapng")).unwrap());
    let (first, _) = halves();
    let folder = tempfile::tempdir().unwrap();
    for (name, more) in
        [("a.txt", &["--brief"][..]), ("b.json", &["--json"]), ("c.pcapng", &[]), ("d.pcap", &[])]
    {
        let path = folder.path().join(name);
        let mut command = worldwire(&[&["dissect"], more].concat());
        let mut running = Running(command.arg("-").arg("-o").arg(&path).spawn().unwrap());
        let mut input = running.0.stdin.take().unwrap();
        input.write_all(&first).unwrap();
        let whole = whole(&[&["dissect"], more].concat());
        let begun = std::time::Instant::now();
        loop {
            assert!(begun.elapsed() < Duration::from_secs(60), "{name} does not grow");
            let file = fs::read(&path).unwrap_or_default();
            let is_long = match more.is_empty() {
                true => packets(&file).0.len() > all.len() / 3,
                false => file.len() > whole.len() / 4,
            };
            if is_long {
                break;
            }
            std::thread::yield_now();
        }
        running.0.kill().unwrap();
        running.0.wait().unwrap();
        let file = fs::read(&path).unwrap();
        match more.is_empty() {
            true => {
                let (packets, is_whole) = packets(&file);
                assert!(all.starts_with(&packets) && is_whole, "{name}");
            }
            false => assert!(whole.starts_with(&file) && file.ends_with(b"\n"), "{name}"),
        }
    }
}

/// However the program ends, the capturing program ends, too, even if it captures nothing more.
#[cfg(unix)]
#[test]
fn a_killed_program_leaves_no_capturing_program() {
    let folder = tempfile::tempdir().unwrap();
    let [alive, quiet] = ["alive", "quiet"].map(|name| folder.path().join(name));
    assert!(Command::new("mkfifo").args([&alive, &quiet]).status().unwrap().success());
    let file = sample("uru-login.pcapng");
    let [a, q, f] = [&alive, &quiet, &file].map(|path| path.display().to_string());
    let script = format!("exec 3> '{a}'; cat '{f}'; exec cat '{q}'");
    let path = crate::captures::fake("tcpdump", folder.path(), &script);
    // Because it is opened for reading and writing, the FIFO has a writer that never writes.
    let quiet = fs::OpenOptions::new().read(true).write(true).open(&quiet).unwrap();
    let mut command = worldwire(&["capture", "any", "--brief"]);
    let mut running = Running(command.env("PATH", path).spawn().unwrap());
    let mut alive = fs::File::open(&alive).unwrap();
    let mut output = BufReader::new(running.0.stdout.take().unwrap());
    output.read_line(&mut String::new()).unwrap();
    running.0.kill().unwrap();
    running.0.wait().unwrap();
    let (sender, ended) = mpsc::channel();
    // Reading ends when the last process that has the FIFO open for writing ends.
    std::thread::spawn(move || sender.send(alive.read_to_end(&mut Vec::new())));
    let outcome = ended.recv_timeout(Duration::from_secs(60));
    drop(quiet);
    assert!(outcome.is_ok(), "the capturing program is still running");
}

/// The page shows packets while they are captured.
#[cfg(unix)]
#[test]
fn captured_packets_are_shown_as_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let [quiet, done] = ["quiet", "done"].map(|name| folder.path().join(name));
    assert!(Command::new("mkfifo").arg(&quiet).status().unwrap().success());
    let file = sample("uru-login.pcapng");
    let [f, d, q] = [&file, &done, &quiet].map(|path| path.display().to_string());
    let script = format!("cat '{f}'; touch '{d}'; exec cat '{q}'");
    let path = crate::captures::fake("tcpdump", folder.path(), &script);
    let writer = fs::OpenOptions::new().read(true).write(true).open(&quiet).unwrap();
    let mut command = worldwire(&["capture", "any", "--brief", "--inspect"]);
    let mut running = Running(command.env("PATH", path).spawn().unwrap());
    let mut log = BufReader::new(running.0.stderr.take().unwrap());
    let mut said = String::new();
    while !said.contains("the page is http://") {
        assert_ne!(log.read_line(&mut said).unwrap(), 0, "{said}");
    }
    let page = crate::proxy_page::Page::of(&said);
    while page.get("/api/capture")["rows"].as_u64() < Some(50) {}
    let rows = page.get("/api/rows?count=1000");
    let rows = rows["rows"].as_array().unwrap();
    assert!(rows.iter().any(|row| row["name"] == "auth.AcctLoginRequest"), "{rows:?}");
    // Unlike tcpdump, `cat` would end in the middle of a packet.
    while !done.exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    signal(&running, "-INT");
    drop(writer);
    let status = running.0.wait().unwrap();
    log.read_to_string(&mut said).unwrap();
    assert!(status.success(), "{status}: {said}");
}

/// The packets of a capture that may be truncated, and whether it ends after a complete packet.
fn packets(file: &[u8]) -> (Vec<Vec<u8>>, bool) {
    let mut packets = Vec::new();
    let Ok(mut capture) = CaptureReader::new(file, &Limits::DEFAULT) else {
        return (packets, false);
    };
    loop {
        match capture.next() {
            Ok(Some(Record::Packet(packet))) => packets.push(packet.data.to_vec()),
            Ok(Some(_)) => {}
            end => return (packets, end.is_ok()),
        }
    }
}

/// Every message in a capture: its ports, its name and its position in the sender's stream.
#[cfg(unix)]
fn messages(file: &Path) -> Vec<String> {
    let output = worldwire(&["dissect", "--quiet", "--json"]).arg(file).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    // The names of notes have no dots.
    let lines = lines.filter(|line| line["name"].as_str().unwrap().contains('.'));
    let keys = ["srcport", "dstport", "name", "range"];
    lines.map(|line| keys.map(|key| line[key].to_string()).join(" ")).collect()
}

#[cfg(unix)]
#[test]
fn each_file_of_a_ring_opens_on_its_own() {
    let file = sample("uru-games.pcapng");
    let folder = tempfile::tempdir().unwrap();
    let path =
        crate::captures::fake("tcpdump", folder.path(), &format!("cat '{}'", file.display()));
    let capture = |more: &[&str]| {
        let mut command = worldwire(&["capture", "any", "--quiet", "--names"]);
        command.arg("--write").arg(folder.path().join("evening.pcapng")).args(more);
        command.env("PATH", &path).output().unwrap()
    };
    let output = capture(&["--ring", "3", "--ring-size", "8kB"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let files = || {
        let entries = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<PathBuf> =
            entries.filter(|path| path.extension().is_some_and(|end| end == "pcapng")).collect();
        files.sort();
        files
    };
    let all = messages(&file);
    assert_eq!(files().len(), 3);
    let numbers: Vec<String> =
        files().iter().map(|file| file.file_stem().unwrap().to_string_lossy().into()).collect();
    let last: u32 = numbers[2].strip_prefix("evening-").unwrap().parse().unwrap();
    assert!(last > 4, "{numbers:?}");
    for (file, back) in files().iter().zip([2, 1, 0]) {
        assert!(file.ends_with(format!("evening-{:05}.pcapng", last - back)), "{numbers:?}");
        assert!(fs::metadata(file).unwrap().len() < 64 << 10);
        let found = messages(file);
        // The messages are decrypted, although the conversation began in a file that was deleted.
        assert!(found.iter().all(|line| all.contains(line)), "{}", file.display());
        assert!(found.len() > 3, "{}: {found:?}", file.display());
        if back == 0 {
            assert_eq!(found.last(), all.last());
        }
    }
    // The next capture does not overwrite the existing files.
    let output = capture(&["--ring", "3", "--ring-size", "8kB"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("already exists"));
    // A ring by time: the packets of one sample are close together.
    let output = capture(&["--ring", "2", "--ring-time", "1h", "--force"]);
    assert!(output.status.success());
    assert_eq!(messages(&folder.path().join("evening-00001.pcapng")), all);
    // No files of the longer ring are left.
    assert_eq!(files().len(), 1);
}

/// The copies at the beginning of each file count only once.
#[cfg(unix)]
#[test]
fn the_files_of_a_ring_are_read_as_one() {
    for name in ["uru-games.pcapng", "mxo-login.pcapng"] {
        let file = sample(name);
        let folder = tempfile::tempdir().unwrap();
        let script = format!("cat '{}'", file.display());
        let path = crate::captures::fake("tcpdump", folder.path(), &script);
        let mut command = worldwire(&["capture", "any", "--quiet", "--names"]);
        command.args(["--ring", "100", "--ring-size", "2kB", "--write", "evening.pcapng"]);
        let output = command.current_dir(&folder).env("PATH", &path).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code().is_some_and(|code| code < 2), "{said}");
        let entries = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<PathBuf> =
            entries.filter(|path| path.extension().is_some_and(|end| end == "pcapng")).collect();
        files.sort();
        assert!(files.len() > 2, "{files:?}");
        let dissect = |files: &[PathBuf]| {
            let output = worldwire(&["dissect", "--json"]).args(files).output().unwrap();
            (output.stdout, String::from_utf8(output.stderr).unwrap())
        };
        let ((together, said), (whole, _)) = (dissect(&files), dissect(&[file]));
        assert!(together == whole && !whole.is_empty(), "{name}");
        assert!(said.contains(" skipped: duplicates of packets in other files"), "{said}");
    }
}

/// The capturing program's own messages are of interest only if it fails.
#[cfg(unix)]
#[test]
fn a_quiet_capture_shows_only_errors() {
    let file = sample("uru-login.pcapng");
    let folder = tempfile::tempdir().unwrap();
    for (end, code) in [("0", 0), ("1", 2)] {
        let packets = if code == 0 { format!("cat '{}'", file.display()) } else { String::new() };
        let script = format!("echo 'listening on eth7' >&2\n{packets}\nexit {end}");
        let path = crate::captures::fake("tcpdump", folder.path(), &script);
        for (more, is_shown) in [(&["--quiet"][..], code != 0), (&[], true)] {
            let mut command = worldwire(&["capture", "eth7", "--names"]);
            let output = command.args(more).env("PATH", &path).output().unwrap();
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(code), "{said}");
            assert_eq!(said.contains("listening on eth7"), is_shown, "{more:?} {said}");
        }
    }
}

/// A server appends the keys of a session during its login.
#[cfg(unix)]
#[test]
fn keys_that_arrive_during_a_capture_are_used() {
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("secrets.toml");
    fs::write(&keys, "[[mxo.session]]\nkey = \"000102030405060708090a0b0c0d0e0f\"\n").unwrap();
    let [file, more] = ["mxo-login.pcapng", "mxo-login-keys.toml"].map(sample);
    // The key file is read before the script begins.
    let script =
        format!("cat '{}' >> '{}'; exec cat '{}'", more.display(), keys.display(), file.display());
    let path = crate::captures::fake("tcpdump", folder.path(), &script);
    let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
    command.args(["capture", "any", "--names", "--quiet", "--keys"]).arg(&keys);
    let output = command.env("PATH", &path).output().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
    let whole = command.args(["dissect", "--names", "--quiet", "--keys"]).arg(&more).arg(&file);
    let whole = whole.output().unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    assert_eq!(shown, String::from_utf8(whole.stdout).unwrap());
    assert!(output.status.success() && shown.contains("margin.LoadCharacterReply"), "{shown}");
}

#[cfg(unix)]
#[test]
fn a_capture_stops_by_itself() {
    let file = sample("uru-login.pcapng");
    let folder = tempfile::tempdir().unwrap();
    // The script would run forever.
    let script = format!("cat '{}'; exec sleep 600", file.display());
    let path = crate::captures::fake("tcpdump", folder.path(), &script);
    for (limit, count) in [("10", Some(10)), ("2kB", None), ("500ms", None)] {
        let saved = folder.path().join(format!("{limit}.pcapng"));
        let mut command = worldwire(&["capture", "any", "--names", "--stop-after", limit]);
        let output = command.arg("--write").arg(&saved).env("PATH", &path).output().unwrap();
        assert!(output.status.code().is_some_and(|code| code < 2), "{limit}");
        let (found, is_whole) = packets(&fs::read(&saved).unwrap());
        assert!(is_whole && !found.is_empty(), "{limit}");
        if let Some(count) = count {
            assert_eq!(found.len(), count);
        }
    }
}

#[cfg(unix)]
#[test]
fn a_second_signal_ends_the_program() {
    let (first, _) = halves();
    let mut running = Running(worldwire(&["dissect", "--brief", "-"]).spawn().unwrap());
    let mut input = running.0.stdin.take().unwrap();
    input.write_all(&first).unwrap();
    // Standard error is not read either; the program must not block on it.
    let mut output = BufReader::new(running.0.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    signal(&running, "-INT");
    signal(&running, "-TERM");
    let code = running.0.wait().unwrap().code();
    // The second signal may arrive after the end.
    assert!(code == Some(143) || code == Some(0), "{code:?}");
}
