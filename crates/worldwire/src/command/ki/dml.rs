//! `worldwire ki dml`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::json;
use worldwire_core::Severity;
use worldwire_core::json::Style;
use worldwire_ki::message::Fit;
use worldwire_ki::schema::{Message, Mode, Protocol, Protocols};

use super::table;
use crate::cli::{Common, KiDml};
use crate::output::{Failure, counted, print};
use crate::{definitions, input, report};

pub(crate) fn run(arguments: &KiDml, common: &Common) -> Result<(), Failure> {
    match arguments {
        KiDml::List { service, data, json } => {
            let definitions = definitions::load_from(data, common)?;
            list(&definitions.part(), service.as_deref(), *json)
        }
        KiDml::Show { message, data, json } => {
            let definitions = definitions::load_from(data, common)?;
            show(&definitions.part(), message, *json)
        }
        KiDml::Check { paths, strict } => check(paths, *strict, common),
        KiDml::Fit { message, file, hex, data } => {
            let definitions = definitions::load_from(data, common)?;
            fit(&definitions.part(), message, file.as_deref(), hex.as_deref())
        }
        KiDml::Table { file, to, table, json_safe, target } => {
            table::run(file, *to, table.as_deref(), Style { safe: *json_safe }, target)
        }
    }
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
            let fields = message.fields().len();
            if json {
                let _ = writeln!(out, "{}", described(protocols, message));
            } else {
                let plural = if fields == 1 { "" } else { "s" };
                let alias = message.alias.as_deref();
                let alias = alias.map_or(String::new(), |alias| format!(", _MsgName {alias}"));
                let _ = writeln!(
                    out,
                    "{:>3}/{:<3} {:<44} {fields} field{plural}{alias}",
                    message.service, message.order, message.tag
                );
            }
        }
    }
    if !found {
        let message = format!("unknown service \"{name}\"");
        return Err(Failure::Run(message));
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
    let _ = writeln!(out, "{service:>3} {kind:<20} {messages:>3} messages{part:<9}  {origin}");
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
            "  {:<6} {} (from revision {} on)",
            field.kind.name(),
            field.name,
            worldwire_ki::schema::APPENDED_REVISION
        );
    }
    print(&out)
}

fn described(protocols: &Protocols, message: &Message) -> serde_json::Value {
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
    let mode = if strict { Mode::Strict } else { Mode::Lenient };
    let mut protocols = Protocols::new();
    let (mut files, mut warnings, mut errors) = (0, 0, 0);
    for path in paths {
        for file in input::files(path, &|subject, text| common.note(subject, text))? {
            let xml = file.extension().is_some_and(|end| end.eq_ignore_ascii_case("xml"));
            if !xml && *path != file {
                continue;
            }
            files += 1;
            let said = protocols.add(&file.display().to_string(), &input::read(&file)?, mode);
            let faults = said.iter().filter(|one| one.severity() == Severity::Error).count();
            errors += faults;
            warnings += said.len() - faults;
            report::diagnostics(&said);
        }
    }
    if files == 0 {
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

fn fit(
    protocols: &Protocols,
    name: &str,
    file: Option<&Path>,
    hex: Option<&str>,
) -> Result<(), Failure> {
    let message = named(protocols, name)?;
    let payload = match hex {
        Some(digits) => input::hex(digits)?,
        None => input::read(file.unwrap_or_else(|| Path::new("-")))?,
    };
    let fit = message.fit(&payload);
    print(&format!("{}: {fit}\n", protocols.name(message)))?;
    if fit == Fit::Exact { Ok(()) } else { Err(Failure::Input) }
}

fn named<'p>(protocols: &'p Protocols, name: &str) -> Result<&'p Message, Failure> {
    protocols.message_named(name).ok_or_else(|| {
        let hint = match protocols.suggest(name) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => "use SERVICE.MESSAGE".to_owned(),
        };
        Failure::Run(format!("unknown message \"{name}\"; {hint}"))
    })
}
