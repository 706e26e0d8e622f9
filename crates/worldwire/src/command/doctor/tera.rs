//! Findings about TERA messages.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::mem::{Discriminant, discriminant};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use worldwire_core::listed;
use worldwire_dissect::{Item, TeraDefinitions};
use worldwire_tera::diagnosis::{Diagnosis, Finding};
use worldwire_tera::packet::Packets;

use super::MAX_LISTED;
use crate::cli::Capture;
use crate::definitions::{options, shell};
use crate::output::counted;

/// A diagnosis for each build in the capture.
#[derive(Default)]
pub(super) struct Builds(Mutex<BTreeMap<Option<u32>, Diagnosis>>);

impl Builds {
    /// Examines an item; returns true if it belongs to TERA.
    pub(super) fn look(&self, item: &Item<'_>) -> bool {
        let Some(packets) = item.knowledge::<Arc<Packets>>() else {
            return false;
        };
        if item.message().is_some_and(|message| message.is_message())
            && let Ok(mut builds) = self.0.lock()
        {
            let fresh = || Diagnosis::new(Arc::clone(packets));
            let build = builds.entry(packets.known().revision).or_insert_with(fresh);
            build.push(item.stamp.stream, item.from, item.bytes());
        }
        true
    }

    /// Writes all findings; returns true if there are none.
    pub(super) fn report(
        self,
        capture: &Capture,
        definitions: &TeraDefinitions,
        out: &mut String,
    ) -> bool {
        let builds = self.0.into_inner().unwrap_or_default();
        let library = definitions.library();
        let mut well = true;
        for diagnosis in builds.into_values() {
            let findings = diagnosis.findings(&library.deprecated);
            well &= findings.is_empty();
            let advice = Advice { capture, definitions, packets: diagnosis.packets() };
            write_findings(&findings, &advice, out);
        }
        well
    }
}

/// Writes findings and remedies: each kind up to a limit, then the number of others.
fn write_findings(findings: &[Finding], advice: &Advice<'_>, out: &mut String) {
    let mut kinds: Vec<(Discriminant<Finding>, usize)> = Vec::new();
    for finding in findings {
        let kind = discriminant(finding);
        let place = kinds.iter().position(|(known, _)| *known == kind).unwrap_or_else(|| {
            kinds.push((kind, 0));
            kinds.len() - 1
        });
        let Some((_, count)) = kinds.get_mut(place) else { continue };
        *count += 1;
        if *count > MAX_LISTED {
            continue;
        }
        let help = advice.on(finding);
        let text = finding.to_string().replace('\n', "\n     ");
        let _ = match text.split_once('\n') {
            Some((head, changes)) => writeln!(out, "     tera {head}{help}\n{changes}"),
            None => writeln!(out, "     tera {text}{help}"),
        };
    }
    for (kind, count) in kinds {
        let more = count.saturating_sub(MAX_LISTED);
        let like = findings.iter().find(|finding| discriminant(*finding) == kind);
        if let (1.., Some(like)) = (more, like) {
            let _ = writeln!(out, "     tera {}", advice.on_more(like, more));
        }
    }
}

/// Remedies for findings.
struct Advice<'a> {
    capture: &'a Capture,
    definitions: &'a TeraDefinitions,
    packets: &'a Packets,
}

impl Advice<'_> {
    /// The remedy, appended to a finding.
    fn on(&self, finding: &Finding) -> String {
        match finding {
            Finding::NoMap { .. } => {
                let maps = &self.definitions.library().opcodes;
                match maps.is_empty() {
                    true => "; supply one with --data".to_owned(),
                    false => format!("; maps are available for {}", listed(maps.keys())),
                }
            }
            Finding::Unmapped { opcode, .. } => {
                format!("; to identify the opcode, run {}", self.rank(Some(*opcode)))
            }
            Finding::WrongSide { opcode, .. } => format!(
                "; the map is for another build, or this entry is wrong; to check, run {}",
                self.rank(Some(*opcode))
            ),
            Finding::Misfit { better: Some(better), .. } => {
                format!("; --pin {} uses it", better.title)
            }
            Finding::Misfit { opcode, .. } => {
                format!("; to compare definitions, run {}", self.rank(Some(*opcode)))
            }
            Finding::UnlistedIntegrity { .. } => {
                format!("; to write a list, run {}", self.integrity())
            }
            Finding::WrongList { .. } => {
                format!(
                    "; the list may be for another patch; to write a new one, run {}",
                    self.integrity()
                )
            }
            Finding::UnusedList { .. } => "; use --patch, or a revisions.json that lists it".into(),
            Finding::Deprecated { name, version, .. } => {
                format!("; --pin {name}.{version} reads them")
            }
            Finding::Undefined { name, .. } => format!("; write {name}.1.def"),
            _ => String::new(),
        }
    }

    /// The summary that replaces further findings of one kind.
    fn on_more(&self, like: &Finding, more: usize) -> String {
        let (what, help) = match like {
            Finding::Unmapped { .. } => {
                ("without a name", format!("; to identify them, run {}", self.rank(None)))
            }
            Finding::Undefined { .. } => ("without a definition", String::new()),
            Finding::Deprecated { .. } => ("with deprecated definitions only", String::new()),
            Finding::WrongSide { .. } => ("with messages from the wrong side", String::new()),
            Finding::Misfit { .. } => ("whose definition does not fit", String::new()),
            _ => ("with an outdated definition", String::new()),
        };
        format!("{} {what}{help}", counted(more, "more opcode"))
    }

    /// The command that identifies one opcode or all opcodes without a name.
    fn rank(&self, opcode: Option<u16>) -> String {
        let opcode = opcode.map_or(String::new(), |opcode| format!(" {opcode}"));
        let (file, data) = (&self.capture.file, &self.capture.knowledge.data);
        format!("worldwire tera def rank{opcode} --from {}{}", shell(file), options(data))
    }

    /// The command that writes an integrity list where it will be found.
    fn integrity(&self) -> String {
        let (file, data) = (&self.capture.file, &self.capture.knowledge.data);
        let folder = data.paths.iter().find(|path| path.is_dir());
        let folder =
            folder.map_or_else(|| PathBuf::from("integrity"), |path| path.join("integrity"));
        // The list is named after the patch.
        let patch = if self.packets.patch().is_some() { "" } else { " --patch VERSION" };
        let (file, folder) = (shell(file), shell(&folder.join("")));
        format!("worldwire tera integrity {file}{}{patch} -o {folder}", options(data))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use worldwire_core::Side;
    use worldwire_tera::file::Library;
    use worldwire_tera::file::library::BuildFacts;
    use worldwire_tera::schema::Patch;

    use super::*;
    use crate::cli::Data;

    /// The output for findings in `a.pcap`, for a build with this patch.
    fn written(findings: &[Finding], data: &Path, patch: Option<Patch>) -> String {
        let paths = vec![data.to_owned()];
        let data = Data { paths, revision: None, patch: None, pin: Vec::new() };
        let capture = Capture::plain(Path::new("a.pcap"), data);
        let packets =
            Packets::new(&Library::default(), BuildFacts { patch, ..BuildFacts::default() });
        let definitions = TeraDefinitions::default();
        let advice = Advice { capture: &capture, definitions: &definitions, packets: &packets };
        let mut out = String::new();
        write_findings(findings, &advice, &mut out);
        out
    }

    #[test]
    fn the_findings_of_each_kind_are_limited() {
        let unmapped = |opcode| Finding::Unmapped { opcode, from: Side::Client, count: 1 };
        let undefined = Finding::Undefined { opcode: 1, name: "S_A".into(), count: 1 };
        let findings: Vec<Finding> = (0..60).map(unmapped).chain([undefined]).collect();
        let out = written(&findings, Path::new("data"), None);
        let lines: Vec<&str> = out.lines().collect();
        assert_eq!(lines.len(), MAX_LISTED + 2);
        let begin = "     tera 49: 1 unnamed message from the client; to identify the opcode, run \
                     worldwire tera def rank 49 ";
        assert!(lines[49].starts_with(begin), "{out}");
        assert_eq!(lines[50], "     tera S_A (1): 1 message without a definition; write S_A.1.def");
        let more = "     tera 10 more opcodes without a name; to identify them, run worldwire \
                    tera def rank --from a.pcap --data data";
        assert_eq!(lines[51], more);
    }

    #[test]
    fn every_finding_suggests_a_remedy() {
        let folder = tempfile::tempdir().expect("a directory");
        let data = folder.path();
        let given = shell(data);
        let sealed = [Finding::UnlistedIntegrity { names: vec!["C_A".into()] }];
        let list = format!("-o {given}/integrity/\n");
        let out = written(&sealed, data, Some(Patch::major(98)));
        let command =
            format!("; to write a list, run worldwire tera integrity a.pcap --data {given} {list}");
        assert!(out.ends_with(&command), "{out}");
        let out = written(&sealed, data, None);
        assert!(out.ends_with(&format!(" --data {given} --patch VERSION {list}")), "{out}");
        // If the definitions are in a single file, the list goes beside it.
        let out = written(&sealed, Path::new("data.json"), Some(Patch::major(98)));
        assert!(out.ends_with(" --data data.json -o integrity/\n"), "{out}");
        let wrong = [Finding::WrongList { names: vec!["C_A".into(), "C_B".into()] }];
        let out = written(&wrong, data, Some(Patch::major(98)));
        let text = "tera C_A, C_B are on the integrity list, but have no counter and checksum; \
                    the list may be for another patch; to write a new one, run worldwire tera \
                    integrity a.pcap";
        assert!(out.trim_start().starts_with(text) && out.ends_with(&list), "{out}");
        let rank = "worldwire tera def rank 5 --from a.pcap --data x\n";
        let crossed = Finding::WrongSide {
            opcode: 5,
            name: "C_A".into(),
            from: Side::Server,
            count: 3,
            crossed: 2,
        };
        let gaps = Finding::Misfit {
            opcode: 5,
            title: "C_A.1".into(),
            count: 3,
            failed: 0,
            odd: 1,
            gaps: 1,
            error: None,
            better: None,
        };
        for (finding, text) in [
            (
                crossed,
                "C_A (5): 2 of 3 messages sent by the server, which never sends messages of that \
                 name; the map is for another build, or this entry is wrong; to check, run ",
            ),
            (gaps, "C_A.1 leaves gaps in 1 of 3 messages; to compare definitions, run "),
        ] {
            let wanted = format!("     tera {text}{rank}");
            assert_eq!(written(&[finding], Path::new("x"), None), wanted);
        }
    }
}
