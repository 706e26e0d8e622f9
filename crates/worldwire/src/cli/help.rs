//! Prints help: prose is wrapped to the terminal, but lines that start with two spaces, such as
//! commands, are not, so that they can be copied.

use std::ffi::OsString;
use std::io::{self, Write as _};

use clap::error::ErrorKind;
use clap::{Command, CommandFactory, FromArgMatches};

use super::groups::grouped;
use super::{Cli, defaults};
use crate::output::{Failure, reason, say, terminal_width};

/// Replaces the spaces at which lines must not be wrapped; printed as a space.
const NO_BREAK: &str = "\u{a0}";

/// Why a command that the manual describes may be missing.
#[cfg(not(feature = "network"))]
const WITHOUT_NETWORK: &str = "\nThis program was built without the feature `network`: it has no servers and \
                               no commands to manage them, no clients, proxies or browser pages, and \
                               no `worldwire uru`.";

/// Parses the command line, with the defaults from environment variables and settings files. Exits after
/// printing help, the version or a usage error.
///
/// # Errors
/// If the settings cannot be used.
pub(crate) fn parse() -> Result<Cli, Failure> {
    let words = arguments(std::env::args_os().collect());
    let matches = Cli::command().try_get_matches_from(&words);
    let mut matches = matches.unwrap_or_else(|error| end(&prepared(error, &words)));
    let mut settings = defaults::settings(&matches)?;
    if !settings.is_empty() {
        let command = defaults::apply(Cli::command(), &matches, &settings);
        matches = command.try_get_matches_from(words).unwrap_or_else(|error| end(&error));
        defaults::mark_used(&matches, &mut settings)?;
    }
    let cli = Cli::from_arg_matches_mut(&mut matches);
    let mut cli = cli.unwrap_or_else(|error| end(&error.format(&mut Cli::command())));
    cli.common.settings = settings;
    Ok(cli)
}

/// The arguments. In Wireshark's extcap directory, the program is run without a command.
fn arguments(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let begins = |argument: &OsString, start| argument.to_string_lossy().starts_with::<&str>(start);
    let has_command = arguments.get(1).is_none_or(|first| !begins(first, "--"));
    if !has_command && arguments.iter().any(|argument| begins(argument, "--extcap-")) {
        arguments.insert(1, "extcap".into());
    }
    arguments
}

/// The error, with its help prepared for wrapping. Commands that print no help start faster without
/// this step.
fn prepared(error: clap::Error, words: &[OsString]) -> clap::Error {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            command().try_get_matches_from(words).err().unwrap_or(error)
        }
        _ => error,
    }
}

/// The command line, with its help prepared for wrapping.
fn command() -> Command {
    grouped(laid_out(Cli::command()), width())
}

/// The width of the help, as clap determines it.
fn width() -> usize {
    const WIDEST: usize = 100;
    let columns = || std::env::var("COLUMNS").ok()?.parse().ok();
    terminal_width().or_else(columns).unwrap_or(WIDEST).min(WIDEST)
}

/// The command line for manual pages, which name commands in full.
pub(crate) fn for_pages() -> Command {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    command
}

fn laid_out(mut command: Command) -> Command {
    if let Some(text) = command.get_after_help().map(|text| lines(&text.to_string())) {
        command = command.after_help(text);
    }
    if let Some(text) = command.get_long_about().map(|text| lines(&text.to_string())) {
        command = command.long_about(text);
    }
    command.mut_subcommands(laid_out)
}

/// Joins the lines of prose, so that clap wraps them, and protects the others.
fn lines(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut was_prose = false;
    for line in text.lines() {
        let is_prose = !line.is_empty() && !line.starts_with("  ");
        if !out.is_empty() {
            out.push(if was_prose && is_prose { ' ' } else { '\n' });
        }
        match is_prose {
            true => out.push_str(line),
            false => out.push_str(&line.replace(' ', NO_BREAK)),
        }
        was_prose = is_prose;
    }
    out
}

fn end(error: &clap::Error) -> ! {
    match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
        | ErrorKind::DisplayVersion => {
            let text = error.render().ansi().to_string().replace(NO_BREAK, " ");
            let code = match error.use_stderr() {
                true => {
                    let _ = anstream::stderr().lock().write_all(text.as_bytes());
                    error.exit_code()
                }
                false => code_of(print_ansi(&text), error.exit_code()),
            };
            std::process::exit(code)
        }
        ErrorKind::ValueValidation => {
            let text = reworded(&error.render().ansi().to_string());
            let _ = anstream::stderr().lock().write_all(text.as_bytes());
            std::process::exit(error.exit_code())
        }
        #[cfg(not(feature = "network"))]
        ErrorKind::InvalidSubcommand => {
            let _ = error.print();
            say(WITHOUT_NETWORK);
            std::process::exit(error.exit_code())
        }
        _ => error.exit(),
    }
}

/// Writes text to standard output, in colour if standard output supports it.
fn print_ansi(text: &str) -> io::Result<()> {
    let mut stdout = anstream::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// The exit code after printing: the given one, or 2 if the text could not be printed. A closed
/// pipe is not an error.
fn code_of(printed: io::Result<()>, code: i32) -> i32 {
    match printed {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            say(format_args!("worldwire: standard output: {}", reason(&error)));
            2
        }
        _ => code,
    }
}

/// Replaces the standard library's messages about numbers with clearer ones.
fn reworded(text: &str) -> String {
    let messages = [
        ("invalid digit found in string", "needs a whole number"),
        ("cannot parse integer from empty string", "needs a whole number"),
        ("number too large to fit in target type", "the number is too large"),
        ("number too small to fit in target type", "the number is too small"),
        ("number would be zero for non-zero type", "must be at least 1"),
        ("invalid float literal", "needs a number"),
        ("cannot parse float from empty string", "needs a number"),
    ];
    messages.iter().fold(text.to_owned(), |text, (theirs, ours)| {
        let end = format!(": {theirs}");
        text.replacen(&end, &format!(": {ours}"), 1)
    })
}

#[cfg(all(test, feature = "network"))]
mod tests {
    use clap::Command;

    use super::{NO_BREAK, command, lines, reworded};

    #[test]
    fn number_errors_are_reworded() {
        let message_for = |words: &[&str]| {
            let words = ["worldwire"].iter().chain(words);
            let error = command().try_get_matches_from(words).unwrap_err();
            reworded(&error.render().to_string())
        };
        for (words, expected) in [
            (&["uru", "vault", "show", "Ann"][..], "'Ann' for '<NODE>': needs a whole number\n"),
            (&["dissect", "x", "--stream", ""], "needs a whole number\n"),
            (&["dissect", "x", "--stream", "99999999999999999999"], "the number is too large\n"),
            (
                &["tera", "def", "rank", "--top", "0"],
                "'0' for '--top <NUMBER>': must be at least 1\n",
            ),
            (
                &["tera", "def", "rank", "0x10000"],
                "'0x10000' for '[OPCODE]': needs an opcode of at most 65535 (0xffff)\n",
            ),
            (&["serve", "mxo", "--reach", "far"], "'far' for '--reach <UNITS>': needs a number\n"),
        ] {
            let message = message_for(words);
            assert!(message.contains(expected), "{words:?}: {message}");
        }
    }

    /// Collects a command and all its subcommands, with their full names.
    fn all(command: &Command, name: &str, found: &mut Vec<(String, Command)>) {
        found.push((name.to_owned(), command.clone()));
        for inner in command.get_subcommands() {
            all(inner, &format!("{name} {}", inner.get_name()), found);
        }
    }

    fn commands() -> Vec<(String, Command)> {
        let mut found = Vec::new();
        all(&command(), "worldwire", &mut found);
        found
    }

    /// The examples in a command's help.
    fn examples(command: &Command) -> Vec<String> {
        let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let plain = text.replace(NO_BREAK, " ");
        let mut is_continued = false;
        let is_example = |line: &&str| {
            let is_one = is_continued || line.contains("worldwire ");
            is_continued = is_one && line.ends_with('\\');
            is_one
        };
        let lines = plain.lines().filter_map(|line| line.strip_prefix("  "));
        lines.filter(is_example).map(str::to_owned).collect()
    }

    /// Splits a shell line into its commands, each a list of words.
    fn words(line: &str) -> Vec<Vec<String>> {
        let (mut commands, mut words) = (Vec::new(), Vec::new());
        let (mut word, mut quote, mut is_word) = (String::new(), None, false);
        for part in line.chars().chain([' ']) {
            match (part, quote) {
                ('\'' | '"', None) => (quote, is_word) = (Some(part), true),
                (_, Some(open)) if part == open => quote = None,
                (' ' | '|', None) => {
                    if is_word {
                        words.push(std::mem::take(&mut word));
                        is_word = false;
                    }
                    if part == '|' {
                        commands.push(std::mem::take(&mut words));
                    }
                }
                _ => {
                    word.push(part);
                    is_word = true;
                }
            }
        }
        assert_eq!(quote, None, "{line}");
        commands.push(words);
        for words in &mut commands {
            // Redirections are not arguments.
            if let Some(at) = words.iter().position(|word| matches!(&**word, "<" | ">")) {
                words.truncate(at);
            }
        }
        commands
    }

    /// Commands copied from the help end up in shell histories, so they must not contain keys.
    #[test]
    fn examples_contain_no_secrets() {
        let is_key = |word: &str| word.len() >= 16 && word.bytes().all(|c| c.is_ascii_hexdigit());
        for (name, of) in commands() {
            let text = examples(&of).join("\n");
            let words = text.split(|c: char| !c.is_ascii_alphanumeric());
            // Message bytes are not secret.
            let shown: Vec<&str> = words.filter(|word| is_key(word)).collect();
            assert!(shown.is_empty() || text.contains("--hex"), "{name}: {shown:?}");
            assert!(!text.contains("WORLDWIRE_PASSWORD="), "{name}: {text}");
        }
    }

    #[test]
    fn every_example_parses() {
        let mut count = 0;
        for (name, of) in commands() {
            // A backslash joins a line to the next one.
            let text = examples(&of).join("\n").replace("\\\n", "");
            for example in text.lines() {
                let lines = words(example);
                let ours = lines.iter().filter(|words| words[0] == "worldwire");
                assert!(ours.clone().count() > 0, "{name}: {example}");
                for words in ours {
                    let outcome = command().try_get_matches_from(words);
                    assert!(outcome.is_ok(), "{name}: {example}: {outcome:?}");
                    count += 1;
                }
            }
        }
        assert!(count > 100, "{count}");
    }

    #[test]
    fn examples_are_not_wrapped() {
        for (name, of) in commands() {
            let help = of.clone().term_width(60).render_long_help().to_string();
            let help = help.replace(NO_BREAK, " ");
            for example in examples(&of) {
                let line = format!("  {example}");
                assert!(help.lines().any(|other| other == line), "{name}: {example}\n{help}");
            }
        }
    }

    /// The options that commands share, as `docs/commands.md` lists them.
    const SHARED: [&str; 7] = ["data", "keys", "filter", "stream", "json", "fields", "limit"];

    #[test]
    fn commands_share_their_options() {
        let mut rows = Vec::new();
        for (name, command) in commands() {
            let has =
                |id: &str| command.get_arguments().any(|argument| argument.get_long() == Some(id));
            let (is_reader, name) = (has("growing"), name.trim_start_matches("worldwire "));
            if is_reader {
                for id in ["data", "keys", "as", "stream", "filter", "json"] {
                    let is_exempt = EXEMPT.contains(&(name, id));
                    assert_eq!(has(id), !is_exempt, "{name} --{id}");
                }
            }
            let is_listed = has("keys") && has("data");
            if is_listed && !name.starts_with("proxy") && !name.starts_with("serve") {
                let cells = SHARED.map(|id| if has(id) { "✓" } else { "" });
                rows.push(format!("| `{name}` | {} |", cells.join(" | ")));
            }
        }
        let heads = SHARED.map(|id| format!("`--{id}`")).join(" | ");
        let rules = "| :-: ".repeat(SHARED.len());
        let table = format!("| command | {heads} |\n| --- {rules}|\n{}\n", rows.join("\n"));
        let guide = include_str!("../../../../docs/commands.md");
        let (_, shown) = guide.split_once("<!-- table -->\n").expect("the table begins");
        let (shown, _) = shown.split_once("<!-- end -->").expect("the table ends");
        assert_eq!(shown, table, "docs/commands.md must list:\n{table}");
    }

    /// Options that would make no sense for these commands, which show a page or write files.
    const EXEMPT: [(&str, &str); 7] = [
        ("inspect", "stream"),
        ("inspect", "filter"),
        ("inspect", "json"),
        ("export files", "json"),
        ("export pcapng", "json"),
        ("secrets export", "json"),
        ("mxo views", "filter"),
    ];

    #[test]
    fn prose_lines_are_joined() {
        let text = "One of\ntwo lines.\n\nExample:\n  a b\n  c\nand prose";
        let expected =
            "One of two lines.\n\nExample:\n\u{a0}\u{a0}a\u{a0}b\n\u{a0}\u{a0}c\nand prose";
        assert_eq!(lines(text), expected);
    }
}
