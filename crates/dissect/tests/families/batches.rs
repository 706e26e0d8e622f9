//! The output of a capture depends on neither batches nor threads.

use std::fs;
use std::path::{Path, PathBuf};

use worldwire_capture::{CaptureReader, Record};
use worldwire_core::json::Style;
use worldwire_core::text::TextStyle;
use worldwire_core::{Limits, Tree};
use worldwire_dissect::{Definitions, Dissection, Format, Item, Keys, Options, Scratch, TextForm};

/// A capture with the keys and definitions beside it.
struct Capture {
    path: PathBuf,
    keys: Keys,
    definitions: Definitions,
}

impl Capture {
    /// Dissects the capture in batches of this many packets, to JSON lines, brief lines and the
    /// summary.
    fn dissected(&self, packets: usize, threads: usize) -> String {
        let (keys, definitions) = (self.keys.clone(), self.definitions.clone());
        let mut dissection =
            Dissection::new(Options { keys, definitions, secrets: true, ..Options::default() });
        let bytes = fs::read(&self.path).unwrap();
        let mut capture = CaptureReader::new(&*bytes, &Limits::DEFAULT).unwrap();
        let mut out = String::new();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut count = 0;
            // A truncated file is read up to its last whole packet.
            while let Ok(Some(record)) = capture.next() {
                let Record::Packet(packet) = record else { continue };
                dissection.push(&packet);
                count += 1;
                if count % packets == 0 {
                    dissection.run(&show, &mut out, |_| ());
                }
            }
            dissection.end();
            dissection.run(&show, &mut out, |_| ());
        });
        for overview in dissection.overviews() {
            out += &format!("{overview:?}\n");
        }
        out + &dissection.summary().to_string()
    }

    fn check(&self) {
        let whole = self.dissected(usize::MAX, 1);
        for (packets, threads) in [(1, 1), (2, 1), (7, 1), (50, 1), (1, 3), (usize::MAX, 3)] {
            let parts = self.dissected(packets, threads);
            let differs = whole.lines().zip(parts.lines()).find(|(one, other)| one != other);
            let path = self.path.display();
            assert_eq!(differs, None, "{path}, batches of {packets} packets, {threads} threads");
            assert_eq!(whole.len(), parts.len(), "{path}, batches of {packets} packets");
        }
    }
}

fn show(item: &Item<'_>, scratch: &mut Scratch, out: &mut String) {
    let tree = item.tree(Tree::new(), &Limits::DEFAULT);
    Format::Json(Style::default()).write(item, &scratch.name, &tree, out);
    for form in [TextForm::Name, TextForm::Info { width: Some(100) }] {
        let brief = Format::Text { form, style: TextStyle::default(), time: true };
        brief.write(item, &scratch.name, &tree, out);
    }
}

/// All captures in a directory and its subdirectories. Each is read with every key file beside it
/// and the definitions in its directory.
fn captures(folder: &Path, found: &mut Vec<Capture>) {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, mut files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    files.sort();
    let has_ending = |path: &Path, endings: &[&str]| {
        path.extension().is_some_and(|it| endings.iter().any(|end| it == *end))
    };
    let texts = files.iter().filter(|path| has_ending(path, &["toml", "ini"]));
    let texts: Vec<String> = texts.filter_map(|path| fs::read_to_string(path).ok()).collect();
    let mut definitions = Definitions::built_in();
    let is_capture = |path: &&PathBuf| has_ending(path, &["pcap", "pcapng"]);
    if files.iter().any(|path| is_capture(&path)) {
        definitions.add_folder(folder).unwrap();
    }
    for path in files.iter().filter(is_capture) {
        // Keys of other captures may contradict each other.
        let mut keys = Keys::none();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let own = path.with_file_name(format!("{stem}-keys.toml"));
        let own = fs::read_to_string(own).ok();
        for text in own.iter().chain(&texts) {
            let mut more = keys.clone();
            if more.add(text).is_ok() {
                keys = more;
            }
        }
        found.push(Capture { path: path.clone(), keys, definitions: definitions.clone() });
    }
    folders.iter().for_each(|folder| captures(folder, found));
}

#[test]
fn the_output_of_a_capture_depends_on_neither_batches_nor_threads() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples");
    let mut all = Vec::new();
    captures(&samples, &mut all);
    assert!(all.len() >= 7, "{}", all.len());
    if let Some(folder) = std::env::var_os("WORLDWIRE_CAPTURES") {
        captures(Path::new(&folder), &mut all);
    }
    all.iter().for_each(Capture::check);
}
