//! The maximum memory for encoding one large JSON document.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

use std::fs;
use std::io::Read as _;
use std::process::{Command, Stdio};

use tempfile::tempdir;

/// The maximum memory in bytes that the program uses while it encodes a document, not counting its
/// own code.
#[track_caller]
fn cost(codec: &str, document: &str) -> usize {
    let folder = tempdir().unwrap();
    let path = folder.path().join("document.json");
    fs::write(&path, document).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
    command.args(["encode", codec]).arg(&path).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut output = child.stdout.take().unwrap();
    // A pipe can hold only part of the output, so the program blocks with all of the output in
    // memory.
    let mut bytes = vec![0];
    output.read_exact(&mut bytes).unwrap();
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    output.read_to_end(&mut bytes).unwrap();
    assert!(child.wait().unwrap().success());
    let figure = |name: &str| -> usize {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().strip_suffix(" kB").unwrap().parse::<usize>().unwrap() << 10
    };
    assert!(bytes.len() > 128 << 10, "the pipe holds it all");
    figure("VmHWM:") - figure("RssFile:")
}

/// Checks that each byte of a document uses at most five bytes of memory, in addition to what a
/// short document uses.
#[track_caller]
fn is_modest(codec: &str, start: &str, item: impl Fn(usize) -> String, end: &str) {
    let document = |least: usize| {
        let mut document = start.to_owned();
        let mut count = 0;
        while document.len() < least {
            document.push_str(if count > 0 { "," } else { "" });
            document.push_str(&item(count));
            count += 1;
        }
        document + &end.replace("COUNT", &count.to_string())
    };
    let (short, long) = (document(1 << 20), document(6 << 20));
    let more = cost(codec, &long) - cost(codec, &short);
    let length = long.len() - short.len();
    assert!(more < 5 * length, "{codec}: {more} bytes for {length} of JSON");
}

#[test]
fn a_list_of_files_takes_five_times_its_json() {
    let columns = [
        ("SrcFileName", 9),
        ("TarFileName", 9),
        ("FileType", 3),
        ("Size", 3),
        ("HeaderSize", 3),
        ("CompressedHeaderSize", 3),
        ("CRC", 3),
        ("HeaderCRC", 3),
    ];
    let columns = columns.map(|(name, kind)| format!("{{\"name\":\"{name}\",\"type\":{kind}}}"));
    let start = format!(
        "{{\"tables\":[{{\"name\":\"Base\",\"columns\":[{}],\"records\":[",
        columns.join(","),
    );
    let item = |at| {
        let (size, crc) = (200_000_000 + at, 3_000_000_000 + at);
        format!(
            "{{\"values\":[\"Data/GameData/WizardCity-Zone{at:08}.wad\",\"\",3,{size},9000000,2900000,\
             {crc},{crc}]}}"
        )
    };
    is_modest("ki.dml-table", &start, item, "]}]}");
}

#[test]
fn an_archive_takes_five_times_its_json() {
    let item = |at| {
        format!(
            "{{\"offset\":118,\"size\":{at},\"compressed_size\":4294967295,\"compressed\":0,\
             \"crc\":{at},\"name\":\"ObjectData/Hat{at:08}.xml\"}}"
        )
    };
    let start = "{\"magic\":\"KIWAD\",\"version\":2,\"flags\":[],\"entries\":[";
    let end = "],\"file_count\":COUNT,\"data\":{\"$hex\":\"\"}}";
    is_modest("ki.wad", start, item, end);
}

#[test]
fn a_manifest_takes_five_times_its_json() {
    let item = |at| {
        format!(
            "{{\"clientName\":\"dat\\\\Age{at:08}.prp\",\"downloadName\":\"dat\\\\Age{at:08}.gz\",\
             \"md5\":\"{at:032x}\",\"md5compressed\":\"{at:032x}\",\"fileSize\":{at},\
             \"compressedSize\":{at},\"flags\":0}}"
        )
    };
    is_modest("uru.manifest", "[", item, "]");
}
