//! `worldwire ki dml`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::json;
use worldwire_core::{Limits, Severity, nearest};
use worldwire_ki::message::Fit;
use worldwire_ki::schema::{Message, Mode, Protocol, Protocols};

use super::inside;
use super::loader::Loader;
use super::op::inputs::{self, Input};
use super::table;
use crate::cli::{Common, KiDml};
use crate::output::{Failure, complain, counted, print, printable};
use crate::{definitions, input, report};

pub(crate) fn run(arguments: &KiDml, common: &Common) -> Result<(), Failure> {
    match arguments {
        KiDml::List { named, data, json } => {
            let (mut data, mut services) = (data.clone(), Vec::new());
            for name in named {
                match is_path(name) {
                    true => data.push(PathBuf::from(name)),
                    false => services.push(name.as_str()),
                }
            }
            if let [one, other, ..] = services[..] {
                let message = format!(
                    "\"{one}\" and \"{other}\": neither is a path; specify only one service"
                );
                return Err(Failure::Run(message));
            }
            let definitions = definitions::load_from(&data, common)?;
            list(&definitions.part(), services.first().copied(), *json)
        }
        KiDml::Show { message, paths, data, json } => {
            let definitions = definitions::load_from(&[&paths[..], data].concat(), common)?;
            show(&definitions.part(), message, *json)
        }
        KiDml::Check { paths, strict } => check(paths, *strict, common),
        KiDml::Fit { message, files, hex, data } => {
            let definitions = definitions::load_from(data, common)?;
            fit(&definitions.part(), message, files, hex.as_deref())
        }
        KiDml::Table { file, to, table, json_safe, target } => {
            let how = table::How { to: *to, only: table.as_deref(), safe: *json_safe };
            table::run(file, &how, target, common)
        }
    }
}

/// Whether an argument is a path rather than a service. Built-in services take precedence.
fn is_path(name: &str) -> bool {
    let path = Path::new(name);
    let is_there = path.exists() || inputs::is_pattern(path) || inside::split(path).is_some();
    is_there && Protocols::built_in().services_named(name).next().is_none()
}

fn list(protocols: &Protocols, service: Option<&str>, json: bool) -> Result<(), Failure> {
    let mut out = String::new();
    let Some(name) = service else {
        for protocol in protocols.iter() {
            line(protocol, json, &mut out);
        }
        return print(&out);
    };
    let mut found = false;
    for protocol in protocols.services_named(name) {
        found = true;
        for message in protocol.messages() {
            let fields = counted(message.fields().len(), "field");
            if json {
                let _ = writeln!(out, "{}", described(protocols, message));
            } else {
                let alias = message.alias.as_deref();
                let alias = alias.map_or(String::new(), |alias| format!(", _MsgName {alias}"));
                let _ = writeln!(
                    out,
                    "{:>3}/{:<3} {:<44} {fields}{alias}",
                    message.service, message.order, message.tag
                );
            }
        }
    }
    if !found {
        let kinds = protocols.iter().map(|protocol| &*protocol.kind);
        let hint = match nearest(name, kinds) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => "`worldwire ki dml list` lists them".to_owned(),
        };
        complain("ki dml", &format!("unknown service \"{name}\"; {hint}"));
        return Err(Failure::Input);
    }
    print(&out)
}

fn line(protocol: &Protocol, json: bool, out: &mut String) {
    let Protocol { service, kind, version, description, origin, .. } = protocol;
    let messages = protocol.messages().len();
    if json {
        let line = json!({
            "service": service, "type": kind, "version": version, "description": description,
            "messages": messages, "partial": protocol.is_partial, "origin": origin,
        });
        let _ = writeln!(out, "{line}");
        return;
    }
    let part = if protocol.is_partial { " (a part)" } else { "" };
    let s = if messages == 1 { " " } else { "s" };
    let _ = writeln!(out, "{service:>3} {kind:<20} {messages:>3} message{s}{part:<9}  {origin}");
}

fn show(protocols: &Protocols, name: &str, json: bool) -> Result<(), Failure> {
    let message = named(protocols, name)?;
    let mut out = String::new();
    if json {
        let _ = writeln!(out, "{}", described(protocols, message));
        return print(&out);
    }
    let _ = writeln!(
        out,
        "{} ({}/{}), access level {}",
        protocols.name(message),
        message.service,
        message.order,
        message.access_level
    );
    if let Some(alias) = &message.alias {
        let _ = writeln!(out, "  _MsgName: {alias}");
    }
    for text in [&message.description, &message.handler] {
        if !text.is_empty() {
            let _ = writeln!(out, "  {text}");
        }
    }
    if message.is_tag_inferred {
        out.push_str("  The name is a guess.\n");
    }
    for field in message.fields() {
        let default = field.default.to_text().filter(|text| !text.is_empty() && text != "0");
        let default = default.map_or(String::new(), |text| format!(" = {text}"));
        let line = format!("  {:<6} {}{default}", field.kind.name(), field.name);
        let _ = writeln!(out, "{line}");
    }
    for field in message.appended() {
        let _ = writeln!(
            out,
            "  {:<6} {} (since revision {})",
            field.kind.name(),
            field.name,
            worldwire_ki::schema::APPENDED_REVISION
        );
    }
    print(&out)
}

/// A message and its fields as JSON.
pub(in crate::command) fn described(protocols: &Protocols, message: &Message) -> serde_json::Value {
    let fields: Vec<_> = message
        .fields()
        .iter()
        .map(|field| json!({ "name": field.name, "type": field.kind.name() }))
        .collect();
    json!({
        "name": protocols.name(message), "service": message.service, "order": message.order,
        "accessLevel": message.access_level, "description": message.description, "fields": fields,
        "alias": message.alias,
    })
}

fn check(paths: &[PathBuf], strict: bool, common: &Common) -> Result<(), Failure> {
    let mut check = Check { strict, ..Check::default() };
    inputs::with(paths, &Limits::DEFAULT, |inputs| {
        inputs.iter().for_each(|input| check.input(input));
        Ok(())
    })?;
    if check.files == 0 {
        let archives = definitions::archives_in(paths, common)?;
        inputs::with(&archives, &Limits::DEFAULT, |inputs| {
            inputs.iter().for_each(|input| check.input(input));
            Ok(())
        })?;
    }
    let Check { protocols, files, warnings, errors, .. } = check;
    if files == 0 && errors == 0 {
        return Err(Failure::Run("no message XML found".into()));
    }
    let messages: usize = protocols.iter().map(|protocol| protocol.messages().len()).sum();
    let services = protocols.iter().count();
    let counts = [
        counted(services, "service"),
        counted(messages, "message"),
        counted(warnings, "warning"),
        counted(errors, "error"),
    ];
    print(&format!("{}: {}\n", counted(files, "file"), counts.join(", ")))?;
    if errors == 0 { Ok(()) } else { Err(Failure::Input) }
}

/// The state of a check of message XML.
#[derive(Default)]
struct Check {
    strict: bool,
    protocols: Protocols,
    files: usize,
    warnings: usize,
    errors: usize,
}

impl Check {
    /// Checks a file. A file found in a directory is skipped if its extension is not `xml`. A file
    /// found in an archive is skipped if its content is something else, because archives contain
    /// thousands of XML files.
    fn input(&mut self, input: &Input<'_>) {
        let subject = input.subject();
        let is_xml =
            || Path::new(&subject).extension().is_some_and(|it| it.eq_ignore_ascii_case("xml"));
        if input.is_found && !is_xml() {
            return;
        }
        let mut loader = Loader::alone();
        let bytes = match input.read(&mut loader) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return,
            Err(fault) => {
                complain(&subject, &fault);
                self.errors += 1;
                return;
            }
        };
        if input.entry_name().is_some() && !definitions::has_messages(&bytes) {
            return;
        }
        self.files += 1;
        let mode = if self.strict { Mode::Strict } else { Mode::Lenient };
        let said = self.protocols.add(&subject, &bytes, mode);
        let faults = said.iter().filter(|one| one.severity() == Severity::Error).count();
        self.errors += faults;
        self.warnings += said.len() - faults;
        report::diagnostics(&said);
    }
}

fn fit(
    protocols: &Protocols,
    name: &str,
    files: &[PathBuf],
    hex: Option<&str>,
) -> Result<(), Failure> {
    let message = named(protocols, name)?;
    let name = protocols.name(message);
    if let Some(digits) = hex {
        let fit = message.fit(&input::hex(digits)?);
        print(&format!("{name}: {fit}\n"))?;
        return if fit == Fit::Exact { Ok(()) } else { Err(Failure::Input) };
    }
    let standard_input = [PathBuf::from("-")];
    let files = if files.is_empty() { &standard_input[..] } else { files };
    inputs::with(files, &Limits::DEFAULT, |inputs| {
        let is_one = matches!(inputs, [only] if !only.is_found);
        let (mut out, mut all_fit) = (String::new(), true);
        for input in inputs {
            let mut loader = Loader::alone();
            let payload = match input.open(&mut loader) {
                Ok(payload) => payload,
                Err(failure) if is_one => return Err(failure),
                Err(Failure::Run(message)) => {
                    complain("ki dml fit", &message);
                    all_fit = false;
                    continue;
                }
                Err(_) => {
                    all_fit = false;
                    continue;
                }
            };
            let fit = message.fit(&payload);
            all_fit &= fit == Fit::Exact;
            let subject =
                if is_one { String::new() } else { format!("{}: ", printable(&input.subject())) };
            let _ = writeln!(out, "{subject}{name}: {fit}");
        }
        print(&out)?;
        if all_fit { Ok(()) } else { Err(Failure::Input) }
    })
}

fn named<'p>(protocols: &'p Protocols, name: &str) -> Result<&'p Message, Failure> {
    protocols.message_named(name).ok_or_else(|| {
        let hint = match protocols.suggest(name) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => {
                "use SERVICE.MESSAGE; `worldwire ki dml list SERVICE` lists messages".to_owned()
            }
        };
        complain("ki dml", &format!("unknown message \"{name}\"; {hint}"));
        Failure::Input
    })
}
