//! Writes `docs/dissect.svg`: the program's output for a login, in colour.
//!
//! `cargo build && cargo run --example picture` runs the program from the same target directory on
//! a sample and draws its output; the bytes are always the same.

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The command in the picture, one string for each line of the prompt.
const COMMAND: [&[&str]; 2] = [
    &["dissect", "samples/uru-login.pcapng", "--keys", "samples/uru-keys.toml"],
    &["--filter", "auth.AcctLogin* or result != 0"],
];

/// Sizes in pixels.
const CHAR_WIDTH: usize = 8;
const LINE_HEIGHT: usize = 19;
const MARGIN: usize = 16;
/// The distance from the top of a line to its baseline.
const BASELINE: usize = 14;

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let program = program()?;
    let output = Command::new(&program)
        .args(["--color", "always"])
        .args(COMMAND.concat())
        .current_dir(&root)
        .output()
        .map_err(|error| format!("{}: {error}; run `cargo build` first", program.display()))?;
    let messages = String::from_utf8(output.stderr)?;
    if !output.status.success() {
        return Err(messages.into());
    }
    let mut text = prompt();
    text.push_str(&String::from_utf8(output.stdout)?);
    text.push_str(&messages);
    std::fs::write(root.join("docs/dissect.svg"), svg(&text)?)?;
    Ok(())
}

/// The program from the same build as this example, one directory up. Building it from here would
/// need another cargo process, and would enable only this package's features.
fn program() -> Result<PathBuf, Box<dyn Error>> {
    let example = std::env::current_exe()?;
    let folder = example.parent().and_then(Path::parent).ok_or("an example without a folder")?;
    Ok(folder.join(format!("worldwire{}", std::env::consts::EXE_SUFFIX)))
}

/// The command as a user would type it.
fn prompt() -> String {
    let quoted = |word: &&str| match word.contains(' ') {
        true => format!("'{word}'"),
        false => (*word).to_owned(),
    };
    let lines = COMMAND.map(|line| line.iter().map(quoted).collect::<Vec<_>>().join(" "));
    format!("\x1b[32m$\x1b[0m worldwire {}\n", lines.join(" \\\n    "))
}

/// Text with ANSI colours as an SVG image: one `<text>` for each run of one style.
fn svg(text: &str) -> Result<String, Box<dyn Error>> {
    let mut runs = String::new();
    let mut class = "plain";
    let (mut rows, mut columns) = (0, 0);
    for line in text.lines() {
        let mut column = 0;
        for (index, part) in line.split("\x1b[").enumerate() {
            let run = match part.split_once('m') {
                Some((code, run)) if index > 0 => {
                    class = class_of(code)?;
                    run
                }
                _ => part,
            };
            let length = run.chars().count();
            let indent = length - run.trim_start().chars().count();
            if !run.trim().is_empty() {
                let x = MARGIN + (column + indent) * CHAR_WIDTH;
                let y = MARGIN + rows * LINE_HEIGHT + BASELINE;
                let run = run.trim();
                let width = run.chars().count() * CHAR_WIDTH;
                let run = run.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
                writeln!(
                    runs,
                    "<text class=\"{class}\" x=\"{x}\" y=\"{y}\" textLength=\"{width}\">{run}</text>"
                )?;
            }
            column += length;
        }
        columns = columns.max(column);
        rows += 1;
    }
    let (width, height) = (columns * CHAR_WIDTH + 2 * MARGIN, rows * LINE_HEIGHT + 2 * MARGIN);
    Ok(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\">\n\
         <style>\n\
         text {{ font: 13px ui-monospace, Menlo, Consolas, \"DejaVu Sans Mono\", monospace; \
         fill: #d8dee9; white-space: pre }}\n\
         .dim {{ fill: #7b879d }}\n\
         .bold {{ font-weight: bold; fill: #ffffff }}\n\
         .red {{ fill: #e06c75 }}\n\
         .green {{ fill: #98c379 }}\n\
         .yellow {{ fill: #e5c07b }}\n\
         .cyan {{ fill: #6cc5d1 }}\n\
         </style>\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"#1e222a\"/>\n\
         {runs}</svg>\n"
    ))
}

/// The style that an escape code switches on.
fn class_of(code: &str) -> Result<&'static str, String> {
    Ok(match code {
        "0" => "plain",
        "1" => "bold",
        "2" => "dim",
        "31" => "red",
        "32" => "green",
        "33" => "yellow",
        "36" => "cyan",
        _ => return Err(format!("wanted a colour of the picture, found code {code}")),
    })
}
