//! `worldwire tera map carry`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use worldwire_core::{Side, listed};
use worldwire_dissect::{Definitions, Item, Scratch, Sink, TeraDefinitions};
use worldwire_tera::carry::{Carried, Carry, format};
use worldwire_tera::file::library::{BuildFacts, CheckVersion};
use worldwire_tera::file::{CodeMap, MapName};
use worldwire_tera::frame::{CHECK_VERSION, CHECK_VERSION_ANSWER, Header};
use worldwire_tera::packet::Packets;
use worldwire_tera::schema::{Definition, Patch};

use super::map;
use crate::cli::{Capture, Common, Data, Target};
use crate::definitions::{options, shell};
use crate::output::{Failure, complain, counted, printable, shown, write_all};
use crate::{command, definitions};

/// The inputs of a carry-over.
pub(super) struct Of<'a> {
    pub(super) old: &'a Path,
    pub(super) old_map: &'a Path,
    pub(super) new: &'a Path,
    pub(super) data: &'a [PathBuf],
    pub(super) patch: Option<Patch>,
}

/// A TERA message.
#[derive(Clone)]
pub(super) struct Said {
    pub(super) stream: u64,
    pub(super) from: Side,
    pub(super) bytes: Box<[u8]>,
}

impl Said {
    /// The message of an item; `None` for handshake steps and other families.
    pub(super) fn of(item: &Item<'_>) -> Option<Self> {
        let is_message = item.message().is_some_and(|message| message.is_message());
        (item.family == "tera" && is_message).then(|| Self {
            stream: item.stamp.stream,
            from: item.from,
            bytes: item.bytes().into(),
        })
    }
}

/// The facts that a capture reveals about its build.
#[derive(Default)]
struct Build {
    messages: u64,
    /// The opcodes that vary between builds.
    opcodes: BTreeSet<u16>,
    /// The revisions that clients report.
    revisions: BTreeSet<u32>,
}

impl Build {
    fn push(&mut self, Said { from, bytes, .. }: &Said) {
        self.messages += 1;
        match Header::peek(bytes) {
            Ok(Some(Header { opcode: CHECK_VERSION, .. })) if *from == Side::Client => {
                let named = CheckVersion::decode(bytes).ok();
                self.revisions.extend(named.and_then(|named| named.protocol));
            }
            Ok(Some(Header { opcode: CHECK_VERSION | CHECK_VERSION_ANSWER, .. })) => {}
            Ok(Some(Header { opcode, .. })) => drop(self.opcodes.insert(opcode)),
            _ => {}
        }
    }

    /// Why conversations of several builds cannot be analysed together.
    fn mixed(&self) -> Option<String> {
        (self.revisions.len() > 1).then(|| {
            format!(
                "contains conversations of revisions {}; write those of one revision to a separate capture: \
                 dissect CAPTURE --stream NUMBER -o ONE.pcapng",
                listed(&self.revisions)
            )
        })
    }

    /// The revision of the build, if clients report one.
    fn revision(&self) -> Option<u32> {
        self.revisions.first().copied()
    }

    /// The reason why a map with this name cannot belong to the build: the map contains none of its
    /// opcodes.
    fn other_than(&self, map: &CodeMap, name: &str, of_map: Option<u32>) -> Option<String> {
        let is_there = |opcode: &u16| map.name(u32::from(*opcode)).is_some();
        if self.opcodes.is_empty() || self.opcodes.iter().any(is_there) {
            return None;
        }
        let check = match (of_map, self.revision()) {
            (Some(map), Some(client)) if map != client => {
                format!("the map is for revision {map}, but the client is revision {client}")
            }
            (Some(_), Some(client)) => {
                format!("both are for revision {client}; check the map's entries")
            }
            (None, Some(client)) => {
                format!("check that it is for the client's revision {client}")
            }
            (Some(map), None) => {
                format!("check that the client is revision {map}; the capture does not show it")
            }
            (None, None) => "check that it is for the client's build".to_owned(),
        };
        let opcodes = counted(self.opcodes.len(), "opcode");
        Some(format!("none of its {opcodes} are in {name}: {check}"))
    }
}

pub(super) fn run(of: &Of<'_>, target: &Target, common: &Common) -> Result<(), Failure> {
    let (map, mut clean) = map::read_only(of.old_map, common)?;
    map::wants_opcodes(of.old_map, &map)?;
    let definitions = definitions::load_from(of.data, common)?;
    // The built-in definitions alone fit almost any message.
    if !adds_tera(&definitions) {
        let paths = listed(of.data.iter().map(|path| shown(path)));
        return Err(Failure::Run(format!("{paths}: contains no TERA definitions")));
    }
    let mut library = definitions.part::<TeraDefinitions>().library().clone();
    let name = of.old_map.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let of_map = MapName::parse(&name).and_then(|name| name.version.parse().ok());
    let revision = of_map.unwrap_or(0);
    library.opcodes.insert(revision, map.clone());
    let known = BuildFacts { revision: Some(revision), patch: of.patch, ..BuildFacts::default() };
    let packets = Packets::new(&library, known);
    let mut carry = Carry::new(&packets);
    let mut revision = None;
    for (file, is_old) in [(of.old, true), (of.new, false)] {
        let show = |item: &Item<'_>, _: &mut Scratch, out: &mut Vec<Said>| {
            out.extend(Said::of(item));
        };
        let mut build = Build::default();
        let good = capture(file, common, definitions.clone(), show, |said: &Vec<Said>| {
            for said in said {
                build.push(said);
                let Said { stream, from, bytes } = said;
                if is_old {
                    carry.push_old(*stream, *from, bytes);
                } else {
                    carry.push_new(*stream, *from, bytes);
                }
            }
            Ok(())
        })?;
        if build.messages == 0 {
            complain(&shown(file), "contains no TERA messages");
            return Err(Failure::Input);
        }
        if let Some(problem) = build.mixed() {
            complain(&shown(file), &problem);
            return Err(Failure::Input);
        }
        if is_old && let Some(problem) = build.other_than(&map, &name, of_map) {
            complain(&shown(file), &problem);
            return Err(Failure::Input);
        }
        clean &= good;
        // After the last capture, this is the revision of the new build.
        revision = build.revision();
    }
    let add = target.output.as_deref().filter(|_| !target.is_stdout());
    write_all(target, written(&carry.finish(), &printable(&name), of, add).as_bytes())?;
    map::tell_name(target, revision, common);
    if clean { Ok(()) } else { Err(Failure::Input) }
}

/// Whether there are TERA definitions other than the built-in ones.
fn adds_tera(definitions: &Definitions) -> bool {
    let built_in = Definitions::built_in().part::<TeraDefinitions>();
    let is_new =
        |one: &Definition| built_in.library().definitions.get(one.name(), one.version()).is_none();
    definitions.part::<TeraDefinitions>().library().definitions.definitions().any(is_new)
}

/// The map, with an explanation of its comments and advice for unresolved opcodes. If the map is
/// written to a file, the advice consists of commands that add entries to it.
fn written(carried: &[Carried], name: &str, of: &Of<'_>, file: Option<&Path>) -> String {
    let sure = carried.iter().filter(|one| one.is_sure).count();
    let mut text = String::new();
    let _ = writeln!(
        text,
        "# {sure} of {} opcodes, carried over from {name}; the others are uncertain.\n\
         # The percentage is the lead over the next best name. A match is also uncertain if it depends on\n\
         # uncertain ones, could be swapped with another, or has different messages before and after it.",
        carried.len()
    );
    let mut open = carried.iter().filter(|one| one.name.is_none()).peekable();
    if open.peek().is_none() {
        text.push_str(&format(carried));
        return text;
    }
    let _ = writeln!(
        text,
        "# ? stands for a name. Only names in {name} with messages in the old capture are proposed,\n\
         # and none of those remaining fits the opcode. The commands at the end try all definitions."
    );
    text.push_str(&format(carried));
    text.push_str(
        "\n# Try every definition on the opcodes with ?. You can do the same for uncertain ones.\n",
    );
    let data = Data { paths: of.data.to_vec(), revision: None, patch: of.patch, pin: Vec::new() };
    let add = file.map_or(String::new(), |file| format!(" --write {} --add", shell(file)));
    let rest = format!("--from {}{}{add}", shell(of.new), options(&data));
    for Carried { opcode, .. } in open {
        let _ = writeln!(text, "# worldwire tera def rank {opcode} {rest}");
    }
    text
}

/// Reads a capture without keys; true if the capture itself had no problems.
pub(super) fn capture<S: Sink>(
    file: &Path,
    common: &Common,
    definitions: Definitions,
    show: impl Fn(&Item<'_>, &mut Scratch, &mut S) + Sync,
    write: impl FnMut(&S) -> Result<(), Failure>,
) -> Result<bool, Failure> {
    let data = Data { paths: Vec::new(), revision: None, patch: None, pin: Vec::new() };
    let capture = Capture::plain(file, data);
    Ok(command::capture::read(&capture, common, definitions, show, write)?.1)
}

#[cfg(test)]
mod tests {
    use worldwire_tera::file::{CodeMap, MapKind};

    use super::*;

    #[test]
    fn a_map_reads_back_whatever_files_are_called() {
        let carried = |opcode, name: Option<&str>| Carried {
            opcode,
            from: Side::Server,
            messages: 1,
            name: name.map(Box::from),
            is_sure: name.is_some(),
            confidence: 0.99,
            second: None,
        };
        let (one, open) = (carried(5, Some("S_A")), carried(6, None));
        let data = [PathBuf::from("a\nS_B = 6")];
        let patch = Some(Patch::major(98));
        let of =
            Of { old: "o".as_ref(), old_map: "m".as_ref(), new: "n".as_ref(), data: &data, patch };
        let file = Path::new("my maps/x");
        let text = written(&[one.clone(), open.clone()], "m", &of, Some(file));
        let end = " --data $'a\\x0aS_B = 6' --patch 98 --write 'my maps/x' --add\n";
        assert!(text.ends_with(end), "{text}");
        let text = written(&[one.clone(), open], "m", &of, None);
        let (head, _) = text.split_once("\nS_A = 5").unwrap();
        assert!(
            head.contains(
                "# ? stands for a name. Only names in m with messages in the old capture are proposed,\n"
            ),
            "{text}"
        );
        let end = "\n# worldwire tera def rank 6 --from n --data $'a\\x0aS_B = 6' --patch 98\n";
        assert!(text.ends_with(end), "{text}");
        let (map, problems) = CodeMap::parse(MapKind::Protocol, "m", &text);
        assert_eq!(map.iter().collect::<Vec<_>>(), [("S_A", 5)]);
        assert!(problems.is_empty(), "{problems:?}");
        // If there are no unresolved opcodes, the comments do not mention any.
        let text = written(&[one], "m", &of, None);
        assert!(!text.contains('?'), "{text}");
        // The percentage is always explained.
        assert!(text.contains(
            "The percentage is the lead over the next best name. A match is also uncertain if"
        ));
    }

    #[test]
    fn conversations_of_two_builds_are_reported() {
        let mut build = Build::default();
        let mut message = [
            0x20, 0, 0xbc, 0x4d, 2, 0, 8, 0, 8, 0, 20, 0, 0, 0, 0, 0, 0x1d, 0x8a, 5, 0, 20, 0, 0,
            0, 1, 0, 0, 0, 0xce, 0x7b, 5, 0,
        ];
        for (revision, wanted) in
            [(7_u32, None), (7, None), (8, Some("contains conversations of revisions 7, 8;"))]
        {
            message[16..20].copy_from_slice(&revision.to_le_bytes());
            build.push(&Said { stream: 0, from: Side::Client, bytes: message.into() });
            let said = build.mixed();
            assert_eq!(said.is_some(), wanted.is_some());
            assert!(said.unwrap_or_default().starts_with(wanted.unwrap_or_default()));
            assert_eq!(build.revision(), Some(7));
        }
    }
}
