//! `worldwire ki client-args`.

use std::fmt::Write as _;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use worldwire_ki::client_args::{ARGUMENTS, GivenArgument, parse_each};

use crate::cli::KiClientArgs;
use crate::output::{Failure, complain, print};

pub(crate) fn run(arguments: &KiClientArgs) -> Result<(), Failure> {
    let mut out = String::new();
    match &arguments.explain {
        None => {
            let words: Vec<String> = arguments.given.iter().map(GivenArgument::to_string).collect();
            let _ = writeln!(out, "{}", words.join(" "));
        }
        Some(words) => {
            let (mut problems, mut line) = (Vec::new(), Vec::new());
            for given in parse_each(words) {
                let given = match given {
                    Ok(given) => given,
                    Err(error) => {
                        problems.push(error.to_string());
                        continue;
                    }
                };
                let argument = given.argument;
                let _ = writeln!(
                    out,
                    "{:<32} --{}: {}",
                    given.to_string(),
                    argument.name,
                    argument.about
                );
                line.push(given.to_string());
            }
            // The line as the client receives it, without anything that it would not understand.
            if !line.is_empty() {
                let _ = writeln!(out, "\n{}", line.join(" "));
            }
            print(&out)?;
            problems.iter().for_each(|problem| complain("ki client-args", problem));
            return if problems.is_empty() { Ok(()) } else { Err(Failure::Input) };
        }
    }
    print(&out)
}

const EXPLAIN: &str = "explain";

/// An option for every argument the client knows.
impl Args for KiClientArgs {
    fn augment_args(command: Command) -> Command {
        let command = command.arg_required_else_help(true);
        let command = ARGUMENTS.iter().fold(command, |command, argument| {
            let mark = if argument.documented { "" } else { " *" };
            let help = format!("{}: {}{mark}", argument.flag, argument.about);
            let arg = Arg::new(argument.name).long(argument.name).help(help);
            let names: Vec<&str> =
                argument.values.iter().map(|word| word.name.trim_start_matches('.')).collect();
            command.arg(match names[..] {
                [] => arg.action(ArgAction::SetTrue),
                _ => arg
                    .value_name(names.join(":"))
                    .value_parser(|text: &str| argument.with_joined(text)),
            })
        });
        let help = "Explain a command line of the client, given after --";
        command.arg(Arg::new(EXPLAIN).long(EXPLAIN).help(help).action(ArgAction::SetTrue)).arg(
            Arg::new("words")
                .value_name("ARGUMENT")
                .num_args(0..)
                .last(true)
                .requires(EXPLAIN)
                .help("The command line to explain"),
        )
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for KiClientArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        // In the order in which they were given.
        let mut given: Vec<(usize, GivenArgument)> = Vec::new();
        for argument in ARGUMENTS {
            let place = matches.index_of(argument.name).unwrap_or(usize::MAX);
            if argument.values.is_empty() {
                if matches.get_flag(argument.name) {
                    given.push((place, GivenArgument { argument, words: Vec::new() }));
                }
            } else if let Some(valued) = matches.get_one::<GivenArgument>(argument.name) {
                given.push((place, valued.clone()));
            }
        }
        given.sort_by_key(|(place, _)| *place);
        let explain = matches
            .get_flag(EXPLAIN)
            .then(|| matches.get_many::<String>("words").into_iter().flatten().cloned().collect());
        Ok(Self { given: given.into_iter().map(|(_, given)| given).collect(), explain })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
