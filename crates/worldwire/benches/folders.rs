//! Measures how long everyday modding jobs take from the command line: decoding a directory of
//! 21,000 BINd files to JSON, and extracting archives of 9,800 files and of 173,000 small ones, on
//! one thread and on two.
//!
//! Every figure is the best of `WORLDWIRE_BENCH_ROUNDS` rounds [default: 5]. All files are in
//! memory if the system has an in-memory file system. If you pass another program's commands, it
//! takes turns with ours:
//!
//! ```sh
//! cargo bench -p worldwire --bench folders -- \
//! --decode 'PROGRAM ... {types} ... {in} ... {out}' --extract 'PROGRAM ... {in} ... {out}'
//! ```
//!
//! The words of a command are separated by spaces. `{in}` is the directory or the archive, `{out}`
//! a new directory, `{types}` the type list, `{threads}` the number of threads. `RAYON_NUM_THREADS`
//! is also set to that number, and no more cores than threads are used.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot continue has failed")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use worldwire_ki::file::wad::{BuildOptions, build};
use worldwire_ki::object::{Object, ObjectCodec, ObjectOptions};
use worldwire_ki::schema::classes::{Classes, TypeLists};

fn main() {
    let rounds = std::env::var("WORLDWIRE_BENCH_ROUNDS").ok().and_then(|it| it.parse().ok());
    let rounds: usize = rounds.unwrap_or(5);
    let memory = Path::new("/dev/shm");
    let home = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    let home = tempfile::tempdir_in(home).unwrap();
    let types = home.path().join("types.json");
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../../samples/ki-types.json");
    fs::copy(sample, &types).unwrap();
    let objects = home.path().join("objects");
    write_objects(&objects, &types, 21_000);
    let decode = format!(
        "{} -q ki op decode {{in}} -o {{out}} --types {{types}} --threads {{threads}}",
        env!("CARGO_BIN_EXE_worldwire")
    );
    let extract = format!(
        "{} -q ki wad extract {{in}} -C {{out}} --threads {{threads}}",
        env!("CARGO_BIN_EXE_worldwire")
    );
    let job = Job { home: home.path(), types: &types, rounds };
    job.run("decode 21,000 files", &objects, &decode, argument("--decode").as_deref());
    let peer = argument("--extract");
    for (count, size) in [(9_800, 28_000), (173_000, 600)] {
        let archive = home.path().join("a.wad");
        write_archive(&archive, count, size);
        job.run(&format!("extract {count} files"), &archive, &extract, peer.as_deref());
    }
}

/// The argument that follows an option on the command line.
fn argument(name: &str) -> Option<String> {
    std::env::args().skip_while(|argument| argument != name).nth(1)
}

struct Job<'j> {
    home: &'j Path,
    types: &'j Path,
    rounds: usize,
}

impl Job<'_> {
    /// Runs our command and, if there is one, the peer's, in turn.
    fn run(&self, name: &str, input: &Path, ours: &str, peer: Option<&str>) {
        for threads in [1, 2] {
            let (mut own, mut other) = (Duration::MAX, Duration::MAX);
            for _ in 0..self.rounds {
                own = own.min(self.once(input, ours, threads));
                if let Some(peer) = peer {
                    other = other.min(self.once(input, peer, threads));
                }
            }
            let own = own.as_secs_f64();
            let ratio = peer.map_or_else(String::new, |_| {
                let other = other.as_secs_f64();
                format!("; the other {:.0} ms: {:.2}x", other * 1e3, other / own)
            });
            println!("{name}, {threads} threads: {:.0} ms{ratio}", own * 1e3);
        }
    }

    fn once(&self, input: &Path, command: &str, threads: usize) -> Duration {
        let out = self.home.join("out");
        let path = |path: &Path| path.to_str().unwrap().to_owned();
        let filled = command.split(' ').filter(|word| !word.is_empty()).map(|word| {
            word.replace("{in}", &path(input))
                .replace("{out}", &path(&out))
                .replace("{types}", &path(self.types))
                .replace("{threads}", &threads.to_string())
        });
        let cores = format!("0-{}", threads - 1);
        let words: Vec<String> = match cfg!(target_os = "linux") {
            true => {
                ["taskset", "-c", &cores].map(str::to_owned).into_iter().chain(filled).collect()
            }
            false => filled.collect(),
        };
        let (program, arguments) = words.split_first().unwrap();
        let mut command = Command::new(program);
        command.args(arguments).env("RAYON_NUM_THREADS", threads.to_string());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let start = Instant::now();
        assert!(command.status().unwrap().success(), "{command:?} failed");
        let time = start.elapsed();
        assert!(fs::read_dir(&out).unwrap().next().is_some(), "{command:?} wrote nothing");
        fs::remove_dir_all(&out).unwrap();
        time
    }
}

/// Writes objects to files, 500 per directory.
fn write_objects(folder: &Path, types: &Path, count: usize) {
    let mut lists = TypeLists::new();
    lists.add("types.json", &fs::read(types).unwrap()).unwrap();
    let classes = lists.compile();
    let codec = ObjectCodec::new(&classes, ObjectOptions::file());
    for index in 0..count {
        let bytes = codec.encode(&object(&classes, index), codec.header()).unwrap();
        let path: PathBuf = folder.join(format!("{}/Pet{index}.xml", index / 500));
        if index % 500 == 0 {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
        }
        fs::write(path, bytes).unwrap();
    }
}

/// An object of about 700 bytes in JSON.
fn object(classes: &Classes, index: usize) -> Object {
    let snack = |number: usize| {
        format!(
            r#"{{"$class":"class MadeUpSnack","m_templateID":{},"m_isLiked":true,"m_points":{}}}"#,
            index * 31 + number,
            number % 32
        )
    };
    let snacks: Vec<String> = (0..6).map(snack).collect();
    let json = format!(
        r#"{{"$class":"class MadeUpPet","m_name":"Pet number {index}","m_speed":1.25,
            "m_color":{{"b":32,"g":64,"r":128,"a":255}},
            "m_position":{{"x":10.5,"y":-2.0,"z":0.125}},"m_rights":["CHAT","HATCH"],
            "m_tricks":["jump","roll over"],"m_snacks":[{}]}}"#,
        snacks.join(",")
    );
    Object::parse_json(classes, &json).unwrap()
}

/// Writes an archive of text files of about this size, which compress to a fifth.
fn write_archive(path: &Path, count: usize, size: usize) {
    let mut state = 1_u64;
    let mut random = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    let mut one = |index: usize| {
        let size = size / 2 + random() % size;
        let mut text = String::new();
        while text.len() < size {
            text.push_str(&format!("<Value{}>{}</Value>\n", random() % 40, random() % 1000));
        }
        (format!("Data/Zone{}/{index}.xml", index / 70), text.into_bytes())
    };
    let files: Vec<(String, Vec<u8>)> = (0..count).map(&mut one).collect();
    let files = files.iter().map(|(name, content)| (&**name, &**content));
    let options = BuildOptions { level: 1, ..BuildOptions::default() };
    fs::write(path, build(&options, files).unwrap()).unwrap();
}
