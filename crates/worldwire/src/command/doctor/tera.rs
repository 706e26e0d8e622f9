//! What there is to say about the messages of TERA.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use worldwire_dissect::{Item, TeraDefinitions};
use worldwire_tera::diagnosis::{Diagnosis, Finding};
use worldwire_tera::packet::Packets;

use crate::cli::Capture;
use crate::definitions::{options, shell};

/// A diagnosis for each build that speaks in the capture.
#[derive(Default)]
pub(super) struct Builds(Mutex<BTreeMap<Option<u32>, Diagnosis>>);

impl Builds {
    /// Looks at an item; true when it is TERA's.
    pub(super) fn look(&self, item: &Item<'_>) -> bool {
        let Some(packets) = item.knowledge::<Arc<Packets>>() else {
            return false;
        };
        if item.message().is_some_and(|message| message.is_message())
            && let Ok(mut builds) = self.0.lock()
        {
            let fresh = || Diagnosis::new(Arc::clone(packets));
            let build = builds.entry(packets.known().revision).or_insert_with(fresh);
            build.look(item.stamp.stream, item.from, item.bytes());
        }
        true
    }

    /// Writes all findings; true when there are none.
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
            for finding in diagnosis.findings(&library.deprecated) {
                well = false;
                let help = help(&finding, capture, definitions);
                let text = finding.to_string().replace('\n', "\n     ");
                let _ = match text.split_once('\n') {
                    Some((head, changes)) => writeln!(out, "     tera {head}{help}\n{changes}"),
                    None => writeln!(out, "     tera {text}{help}"),
                };
            }
        }
        well
    }
}

/// What can be done about it.
fn help(finding: &Finding, capture: &Capture, definitions: &TeraDefinitions) -> String {
    match finding {
        Finding::NoMap { .. } => {
            let maps: Vec<String> =
                definitions.library().opcodes.keys().map(ToString::to_string).collect();
            match &maps[..] {
                [] => "; give one with --data".to_owned(),
                _ => format!("; there are maps for {}", maps.join(", ")),
            }
        }
        Finding::Unmapped { opcode, .. } => {
            let from = shell(&capture.file);
            let mut command = format!("; worldwire tera def rank {opcode} --from {from}");
            command.push_str(&options(&capture.data));
            command
        }
        Finding::Sealed { .. } => {
            let mut command = format!("; worldwire tera integrity {}", shell(&capture.file));
            command.push_str(&options(&capture.data));
            command
        }
        Finding::Deprecated { name, version, .. } => {
            format!("; --pin {name}.{version} reads them")
        }
        Finding::Undefined { name, .. } => format!("; write {name}.1.def"),
        _ => String::new(),
    }
}
