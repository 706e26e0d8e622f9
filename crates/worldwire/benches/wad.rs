//! Measures how fast archives are read, extracted and built, compared with libdeflate on the same
//! streams.
//!
//! The files are generated: `WORLDWIRE_BENCH_FILES` of them (default 9,800, which is 280 MB), in
//! memory if the system has an in-memory file system. Every figure is the best of
//! `WORLDWIRE_BENCH_ROUNDS` rounds (default 5), and the compared programs take turns. `-- --levels`
//! measures all levels instead.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot continue has failed")]
#![allow(clippy::cast_possible_truncation, reason = "the numbers are small")]

use std::collections::BTreeMap;
use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use libdeflater::Decompressor;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use rayon::ThreadPoolBuilder;
use worldwire_core::Limits;
use worldwire_ki::file::wad::{Archive, DEFAULT_LEVEL, Inflater, Packer, is_stored_kind};

fn main() {
    let files = generate(number("WORLDWIRE_BENCH_FILES", 9800));
    let total = files.values().map(Vec::len).sum::<usize>();
    println!("{} files, {:.1} MB", files.len(), total as f64 / 1e6);
    if std::env::args().any(|argument| argument == "--levels") {
        return levels(&files);
    }
    let memory = Path::new("/dev/shm");
    let home = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    let home = tempfile::tempdir_in(home).unwrap();
    write_all(&home.path().join("in"), &files);
    let rounds = number("WORLDWIRE_BENCH_ROUNDS", 5);
    create(home.path(), rounds);
    let archive = fs::read(home.path().join("2.wad")).unwrap();
    println!("archive of {:.1} MB", archive.len() as f64 / 1e6);
    read_and_extract(home.path(), &archive, &files, rounds);
    drop(home);
    level(&files);
}

/// `create` with one thread and with two.
fn create(home: &Path, rounds: usize) {
    let [mut one, mut two] = [Duration::MAX; 2];
    for _ in 0..rounds {
        one = one.min(program(home, &["create", "in", "-o", "1.wad", "--force", "--threads", "1"]));
        two = two.min(program(home, &["create", "in", "-o", "2.wad", "--force", "--threads", "2"]));
    }
    show("wad/create", one, "");
    show("wad/create_2", two, &format!("{:.2}x as fast as one thread", ratio(one, two)));
}

/// Reading all entries in memory, and `extract`, with one thread and with two.
fn read_and_extract(home: &Path, bytes: &[u8], files: &Files, rounds: usize) {
    let limits = Limits::DEFAULT;
    let archive = Archive::parse(bytes, &limits).unwrap();
    let streams: Vec<Stream<'_>> = archive
        .entries()
        .iter()
        .map(|entry| (archive.stored(entry).unwrap(), entry.size as usize, entry.is_compressed()))
        .collect();
    let mut best: BTreeMap<&str, Duration> = BTreeMap::new();
    let mut keep = |name, time: Duration| {
        let kept = best.entry(name).or_insert(time);
        *kept = time.min(*kept);
    };
    let targets = ["peer", "1", "2"].map(|name| home.join("out").join(name));
    for _ in 0..rounds {
        keep("peer", timed(|| libdeflate(&streams)));
        keep("peer_2", timed(|| halves(&streams)));
        keep("read", timed(|| read(bytes, 1)));
        keep("read_2", timed(|| read(bytes, 2)));
        // No program can influence the time that the system takes to write such files.
        keep("write", timed(|| write_all(&targets[0], files)));
        for (name, threads, target) in
            [("extract", "1", &targets[1]), ("extract_2", "2", &targets[2])]
        {
            let folder = target.to_str().unwrap();
            let arguments = ["extract", "2.wad", "-C", folder, "--threads", threads];
            keep(name, program(home, &arguments));
        }
        keep("test", program(home, &["test", "2.wad", "--threads", "1"]));
        keep("test_2", program(home, &["test", "2.wad", "--threads", "2"]));
        for (name, content) in files {
            assert!(fs::read(targets[2].join(name)).unwrap() == *content, "{name} differs");
        }
        fs::remove_dir_all(home.join("out")).unwrap();
    }
    let time = |name: &str| best[name];
    let against = |name: &str, other: &str| ratio(time(name), time(other));
    show("libdeflate", time("peer"), "");
    // The current benefit of a second thread on this machine.
    let faster = format!("{:.2}x as fast as one thread", against("peer", "peer_2"));
    show("libdeflate_2", time("peer_2"), &faster);
    show("wad/read", time("read"), &format!("{:.3} of libdeflate", against("read", "peer")));
    let faster = format!("{:.2}x as fast as one thread", against("read", "read_2"));
    show("wad/read_2", time("read_2"), &faster);
    show("wad/test", time("test"), &format!("{:.2} of wad/read", against("test", "read")));
    show(
        "wad/test_2",
        time("test_2"),
        &format!("{:.2} of wad/read_2", against("test_2", "read_2")),
    );
    show("bare writes", time("write"), "the same files, one thread, no checks");
    let floor = time("read") + time("write");
    let text = format!(
        "{:.2} of wad/read, {:.2} of wad/read with bare writes",
        against("extract", "read"),
        ratio(time("extract"), floor)
    );
    show("wad/extract", time("extract"), &text);
    let text = format!(
        "{:.2} of wad/read, {:.2} of wad/read_2, {:.2} of half of wad/read with bare writes",
        against("extract_2", "read"),
        against("extract_2", "read_2"),
        ratio(time("extract_2"), floor / 2)
    );
    show("wad/extract_2", time("extract_2"), &text);
}

/// An entry: the stored bytes, the size of the file, and whether it is compressed.
type Stream<'d> = (&'d [u8], usize, bool);

/// The peer, which only inflates compressed entries and reads stored ones.
fn libdeflate(streams: &[Stream<'_>]) {
    let mut decompressor = Decompressor::new();
    let most = streams.iter().map(|(_, size, _)| *size).max().unwrap_or_default();
    let mut buffer = vec![0; most];
    for (stored, size, compressed) in streams {
        if *compressed {
            let written = decompressor.zlib_decompress(stored, &mut buffer[..*size]).unwrap();
            assert_eq!(written, *size);
        } else {
            let sum = |sum: u64, word: &[u8; 8]| sum.wrapping_add(u64::from_le_bytes(*word));
            black_box(stored.as_chunks().0.iter().fold(0, sum));
        }
        black_box(&buffer);
    }
}

/// The peer on two threads, each of which processes half of the bytes.
fn halves(streams: &[Stream<'_>]) {
    let size = |streams: &[Stream<'_>]| streams.iter().map(|(_, size, _)| size).sum::<usize>();
    let (half, mut bytes) = (size(streams) / 2, 0);
    let middle = streams.iter().take_while(|(_, size, _)| {
        bytes += size;
        bytes <= half
    });
    let (front, back) = streams.split_at(middle.count());
    std::thread::scope(|scope| {
        scope.spawn(|| libdeflate(front));
        libdeflate(back);
    });
}

fn read(bytes: &[u8], threads: usize) {
    let limits = Limits::DEFAULT;
    let archive = Archive::parse(bytes, &limits).unwrap();
    if threads == 1 {
        let mut inflater = Inflater::new();
        for entry in archive.entries() {
            black_box(archive.read(entry, &mut inflater).unwrap());
        }
        return;
    }
    let mut order: Vec<_> = archive.entries().iter().collect();
    order.sort_unstable_by_key(|entry| std::cmp::Reverse(entry.size));
    let next = AtomicUsize::new(0);
    ThreadPoolBuilder::new().num_threads(threads).build().unwrap().broadcast(|_| {
        let mut inflater = Inflater::new();
        while let Some(entry) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
            black_box(archive.read(entry, &mut inflater).unwrap());
        }
    });
}

/// The default level compared with the highest one, on every fourth file.
fn level(files: &Files) {
    let [(time, size), (long, small)] = [DEFAULT_LEVEL, 12].map(|level| pack(files, level));
    let text = format!(
        "level {DEFAULT_LEVEL}: {:.1}x as fast as level 12, {:+.2} % in size",
        ratio(long, time),
        (size as f64 / small as f64 - 1.0) * 100.0
    );
    show("wad/level", time, &text);
}

fn levels(files: &Files) {
    let (long, small) = pack(files, 12);
    for level in 1..=12 {
        let (time, size) = pack(files, level);
        let more = (size as f64 / small as f64 - 1.0) * 100.0;
        let text = format!("{:.1}x as fast as level 12, {more:+.2} % in size", ratio(long, time));
        show(&format!("level {level}"), time, &text);
    }
}

fn pack(files: &Files, level: u8) -> (Duration, usize) {
    let mut packer = Packer::new(level).unwrap();
    let mut size = 0;
    let time = timed(|| {
        for (name, file) in files.iter().step_by(4) {
            size += packer.pack(file, is_stored_kind(name.as_bytes())).unwrap().bytes.len();
        }
    });
    (time, size)
}

fn program(home: &Path, arguments: &[&str]) -> Duration {
    let mut command = Command::new(env!("CARGO_BIN_EXE_worldwire"));
    command.current_dir(home).args(["-q", "ki", "wad"]).args(arguments).stdout(Stdio::null());
    timed(|| assert!(command.status().unwrap().success(), "{command:?} failed"))
}

fn write_all(folder: &Path, files: &Files) {
    let mut made: Option<PathBuf> = None;
    for (name, content) in files {
        let path = folder.join(name);
        let parent = path.parent().unwrap();
        if made.as_deref() != Some(parent) {
            fs::create_dir_all(parent).unwrap();
            made = Some(parent.to_owned());
        }
        fs::write(&path, content).unwrap();
    }
}

fn timed(act: impl FnOnce()) -> Duration {
    let start = Instant::now();
    act();
    start.elapsed()
}

fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64()
}

fn show(name: &str, time: Duration, text: &str) {
    println!("{name:<14} {:>9.1} ms  {text}", time.as_secs_f64() * 1e3);
}

fn number(variable: &str, default: usize) -> usize {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

type Files = BTreeMap<String, Vec<u8>>;

/// Generates files like those of a game: text, tables, and incompressible data. Every run generates
/// the same files. Their sizes are spread around 10 kB, from 200 bytes to 4 MB.
fn generate(count: usize) -> Files {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let words = vocabulary(&mut random);
    let one = |number: usize| {
        let normal = (0..12).map(|_| part(&mut random)).sum::<f64>() - 6.0;
        let size = (10_500.0 * (1.45 * normal).exp()).clamp(200.0, 4e6) as usize;
        let folder = number / 70;
        let (name, content) = match number % 20 {
            0..=10 => ("Template.xml", text(&mut random, &words, size)),
            11..=16 => ("Table.bin", table(&mut random, &words, size)),
            17 => ("Sound.ogg", noise(&mut random, size)),
            _ => ("Texture.dds", noise(&mut random, size)),
        };
        (format!("Data/Zone{folder:03}/{number:05}{name}"), content)
    };
    (0..count).map(one).collect()
}

fn vocabulary(random: &mut ChaCha8Rng) -> Vec<String> {
    const SYLLABLES: [&str; 24] = [
        "an", "ber", "con", "da", "el", "fi", "gor", "ha", "in", "ka", "lo", "mer", "nis", "or",
        "pe", "qui", "ra", "sten", "tu", "ul", "ver", "wi", "xa", "zan",
    ];
    let mut word = || {
        let syllables = 1 + below(random, 4);
        (0..syllables).map(|_| SYLLABLES[below(random, SYLLABLES.len())]).collect()
    };
    (0..4000).map(|_| word()).collect()
}

/// As in every language, a few words are common and many are rare.
fn word<'w>(random: &mut ChaCha8Rng, words: &'w [String]) -> &'w str {
    &words[(part(random).powi(3) * words.len() as f64) as usize]
}

fn text(random: &mut ChaCha8Rng, words: &[String], size: usize) -> Vec<u8> {
    const FIELDS: [&str; 12] = [
        "m_templateID",
        "m_name",
        "m_displayName",
        "m_description",
        "m_adjectiveList",
        "m_zone",
        "m_icon",
        "m_behaviors",
        "m_primarySchool",
        "m_rank",
        "m_hitpoints",
        "m_value",
    ];
    let mut out = String::with_capacity(size + 256);
    out.push_str("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Objects>\n");
    while out.len() < size {
        let class = word(random, words);
        out.push_str(&format!("  <Class Name=\"class {class}Template\">\n"));
        for field in FIELDS {
            let value = match below(random, 3) {
                0 => (random.next_u32() >> below(random, 28)).to_string(),
                1 => (0..=below(random, 9))
                    .map(|_| word(random, words))
                    .collect::<Vec<_>>()
                    .join(" "),
                _ => word(random, words).to_owned(),
            };
            out.push_str(&format!("    <{field}>{value}</{field}>\n"));
        }
        out.push_str("  </Class>\n");
    }
    out.truncate(size);
    out.into_bytes()
}

fn table(random: &mut ChaCha8Rng, words: &[String], size: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(size + 64);
    let mut id = random.next_u32() >> 8;
    while out.len() < size {
        id += 1 + below(random, 3) as u32;
        out.extend(id.to_le_bytes());
        out.extend((below(random, 4000) as u32).wrapping_mul(0x9e37_79b1).to_le_bytes());
        for _ in 0..4 {
            out.extend((below(random, 2000) as f32 / 8.0).to_le_bytes());
        }
        out.extend((1_u32 << below(random, 6)).to_le_bytes());
        let mut name = word(random, words).as_bytes().to_vec();
        name.resize(20, 0);
        out.extend(name);
    }
    out.truncate(size);
    out
}

fn noise(random: &mut ChaCha8Rng, size: usize) -> Vec<u8> {
    let mut out = vec![0; size];
    random.fill_bytes(&mut out);
    out
}

/// A number from 0 to 1, excluding 1.
fn part(random: &mut ChaCha8Rng) -> f64 {
    f64::from(random.next_u32()) / 4_294_967_296.0
}

fn below(random: &mut ChaCha8Rng, most: usize) -> usize {
    (part(random) * most as f64) as usize
}
