//! `worldwire ki lang`.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use serde_json::json;
use worldwire_ki::file::lang::{LangFile, Locale, Translation, codes_in};

use super::found::{Found, Kind, LIMITS, each, has_ending};
use super::inside::split;
use super::{Counts, MAX_SAID, complain_first, warning};
use crate::cli::{Common, KiLang, Target};
use crate::input;
use crate::output::{Failure, Output, complain, print, printable};

static LANG: Kind = Kind {
    what: "locale file",
    is_named: |name| has_ending(name, "lang"),
    is: |bytes| LangFile::strict(bytes, &LIMITS).is_ok(),
};

pub(super) fn run(command: &KiLang, common: &Common) -> Result<(), Failure> {
    match command {
        KiLang::Find { text, paths, json } => {
            let (text, paths) = in_order(text, paths);
            find(&text, &paths, *json, common)
        }
        KiLang::Text { codes, lang } => texts(codes, &load(&lang.paths, common)?),
        KiLang::Explain { file, lang } => explain(file.as_deref(), &load(&lang.paths, common)?),
        KiLang::Check(files) => check(&files.paths, common),
        KiLang::Csv { paths, target } => csv(paths, target, common),
        KiLang::Po { paths, translation, target } => po(paths, translation, target, common),
    }
}

/// The string to find, and where to look for it. The string can also come last, like the patterns
/// of `ki wad`: in that case, the first argument is an existing path, and the last one is not.
fn in_order(text: &str, paths: &[PathBuf]) -> (String, Vec<PathBuf>) {
    match paths.split_last() {
        Some((last, others))
            if Path::new(text).exists()
                && fs::symlink_metadata(last).is_err()
                && split(last).is_none() =>
        {
            let paths = [&[PathBuf::from(text)], others].concat();
            (last.to_string_lossy().into_owned(), paths)
        }
        _ => (text.to_owned(), paths.to_vec()),
    }
}

/// All texts in the given files, archives and directories, by code.
pub(crate) fn load(paths: &[PathBuf], common: &Common) -> Result<Locale, Failure> {
    let mut locale = Locale::new();
    each(paths, &LANG, common, |found| {
        locale.add(stem(&found), &read(&found)?);
        Ok(())
    })?;
    Ok(locale)
}

/// The prefix of codes.
fn stem<'f>(found: &'f Found<'_>) -> &'f str {
    found.name.rsplit_once('.').map_or(&found.name, |(stem, _)| stem)
}

fn read<'b>(found: &Found<'b>) -> Result<LangFile<'b>, Failure> {
    super::opened(&LANG, found, LangFile::open(found.bytes, &LIMITS))
}

fn find(text: &str, paths: &[PathBuf], json: bool, common: &Common) -> Result<(), Failure> {
    let wanted = text.to_lowercase();
    let mut out = Output::open(&Target { output: None, force: false })?;
    let mut count = 0_usize;
    let outcome = each(paths, &LANG, common, |found| {
        let file = read(&found)?;
        for entry in &file.entries {
            let code = format!("{}_{}", stem(&found), entry.key.to_text());
            let (comment, text) = (entry.comment.to_text(), entry.text.to_text());
            if ![&code, &comment, &text].iter().any(|it| it.to_lowercase().contains(&wanted)) {
                continue;
            }
            count += 1;
            let line = if json {
                format!("{}\n", json!({"code": code, "comment": comment, "text": text}))
            } else {
                format!("{}  {}\n", printable(&code), printable(&text))
            };
            out.write(line.as_bytes())?;
        }
        Ok(())
    });
    out.finish()?;
    outcome?;
    if count == 0 {
        complain(text, "no text contains this");
        return Err(Failure::Input);
    }
    Ok(())
}

fn texts(codes: &[String], locale: &Locale) -> Result<(), Failure> {
    let mut out = String::new();
    let mut is_missing = false;
    for code in codes {
        match locale.text(code) {
            Some(text) => {
                let _ = writeln!(out, "{}  {}", printable(code), printable(text));
            }
            None => {
                complain(code, "no text has this code");
                is_missing = true;
            }
        }
    }
    print(&out)?;
    if is_missing { Err(Failure::Input) } else { Ok(()) }
}

fn explain(file: Option<&Path>, locale: &Locale) -> Result<(), Failure> {
    let text = input::read_text(file.unwrap_or_else(|| Path::new("-")))?;
    let mut out = Output::open(&Target { output: None, force: false })?;
    for line in text.lines() {
        out.write(explained(line, locale).as_bytes())?;
    }
    out.finish()
}

/// Lines of text, each with the texts of its codes below it.
pub(super) fn explained(text: &str, locale: &Locale) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        out.push_str(line);
        out.push('\n');
        let indent = line.len() - line.trim_start().len() + 4;
        for found in locale.explain(line) {
            let _ = writeln!(out, "{:indent$}{}", "", printable(&found));
        }
    }
    out
}

/// A reference from one text to another, checked after all files have been read.
struct Reference {
    title: Rc<str>,
    key: String,
    code: String,
}

fn check(paths: &[PathBuf], common: &Common) -> Result<(), Failure> {
    let mut locale = Locale::new();
    let mut references = Vec::new();
    let mut counts = Counts::default();
    let outcome = counts.check(paths, &LANG, common, |found| {
        let (file, mut said) = LangFile::open(found.bytes, &LIMITS)?;
        said.extend(file.check(Some(stem(found))));
        locale.add(stem(found), &file);
        let title: Rc<str> = found.title.as_str().into();
        for entry in &file.entries {
            references.extend(codes_in(&entry.text.to_text()).map(|code| Reference {
                title: Rc::clone(&title),
                key: entry.key.to_text(),
                code: code.to_owned(),
            }));
        }
        Ok(said)
    });
    let mut titles = HashSet::new();
    for Reference { title, key, code } in references {
        if locale.text(&code).is_none() {
            complain(&title, &format!("the text of {key} refers to {code}, which is missing"));
            counts.odd += usize::from(titles.insert(title));
        }
    }
    counts.conclude(&LANG, common, outcome)
}

fn csv(paths: &[PathBuf], target: &Target, common: &Common) -> Result<(), Failure> {
    let mut out = Output::open(target)?;
    let mut has_heading = true;
    let outcome = each(paths, &LANG, common, |found| {
        let file = read(&found)?;
        warn(&found, file.check(None));
        let csv = file.to_csv(stem(&found), has_heading).map_err(|error| {
            complain(&found.title, &error.to_string());
            Failure::Input
        })?;
        has_heading = false;
        out.write(csv.as_bytes())
    });
    keep(out, outcome)
}

fn po(
    paths: &[PathBuf],
    translation: &[PathBuf],
    target: &Target,
    common: &Common,
) -> Result<(), Failure> {
    let mut translations: HashMap<String, Translation> = HashMap::new();
    if !translation.is_empty() {
        each(translation, &LANG, common, |found| {
            translations.insert(stem(&found).to_owned(), Translation::of(&read(&found)?));
            Ok(())
        })?;
    }
    let none = Translation::default();
    let mut out = Output::open(target)?;
    out.write(LangFile::po_head().as_bytes())?;
    let outcome = each(paths, &LANG, common, |found| {
        let translation = translations.get(stem(&found)).unwrap_or(&none);
        let file = read(&found)?;
        let count = file.entries.iter().filter(|entry| entry.text.to_text().is_empty()).count();
        let without = (count > 0).then(|| match count {
            1 => "an entry without text was skipped".to_owned(),
            count => format!("{count} entries without text were skipped"),
        });
        warn(&found, file.check(None).chain(without));
        out.write(file.to_po(stem(&found), translation).as_bytes())
    });
    keep(out, outcome)
}

/// Reports irregularities in a file. The output is written anyway.
fn warn(found: &Found<'_>, said: impl Iterator<Item = String>) {
    complain_first(&found.title, MAX_SAID, said.map(warning));
}

/// Keeps the output if the only problem was that some inputs could not be read.
fn keep(out: Output, outcome: Result<(), Failure>) -> Result<(), Failure> {
    match outcome {
        Ok(()) | Err(Failure::Input) => out.finish().and(outcome),
        Err(_) => outcome,
    }
}
