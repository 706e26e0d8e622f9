//! `worldwire client uru`.

mod age;
mod load;
mod marker_game;
mod place;
mod play;
mod play_step;
mod session;
mod shown;
mod step;

use worldwire_client::uru::{ClientError, Shard};

use crate::cli::{ClientUru, Common};
use crate::command::{password, system};
use crate::input;
use crate::output::{Failure, complain, print, printable, shown};
use session::Session;
use step::Step;
pub(crate) use step::help as steps_help;

/// Settings shared by all clients.
#[derive(Debug)]
struct Setup {
    shard: Shard,
    account: Option<(String, String)>,
}

pub(crate) fn run(arguments: &ClientUru, common: &Common) -> Result<(), Failure> {
    let source = Source::read(arguments)?;
    // Checking the steps of the first client is enough.
    let steps = source.steps(arguments.count.map(|_| 1))?;
    if arguments.count.is_none() && steps.contains(&Step::Again) {
        return Err(Failure::Run("step `again` needs --count NUMBER".into()));
    }
    if arguments.count.is_some()
        && let Some(step) = steps.iter().find(|step| matches!(step, Step::Play(_)))
    {
        return Err(Failure::Run(format!("step `{}` does not work with --count", step.name())));
    }
    let logs_in = steps.contains(&Step::Login);
    if logs_in && arguments.account.is_none() {
        return Err(Failure::Run("step `login` needs --account NAME".into()));
    }
    let shard = place::shard(arguments)?;
    let account = match &arguments.account {
        Some(account) if logs_in => {
            Some((account.clone(), password::known(arguments.password_file.as_deref())?))
        }
        _ => None,
    };
    let setup = Setup { shard, account };
    if arguments.count.is_some() {
        system::raise_file_limit();
    }
    let runtime = system::runtime()?;
    match arguments.count {
        Some(count) => runtime.block_on(load::run(setup, &source, count, arguments, common)),
        None => runtime.block_on(script(&setup, &steps, arguments)),
    }
}

/// Runs the steps in order and prints their results immediately.
async fn script(setup: &Setup, steps: &[Step], arguments: &ClientUru) -> Result<(), Failure> {
    let mut session = Session::new(setup);
    for step in steps {
        let (mut rest, mut silent) = (Some(step.clone()), true);
        // Events are shown as they happen.
        while let Some(now) = rest {
            let (first, then) = now.split();
            let values =
                session.take(&first).await.map_err(|error| failure(step, &error, arguments))?;
            silent &= values.is_empty();
            if !values.is_empty() || then.is_none() && silent {
                print(&if arguments.json {
                    shown::lines(step.name(), &values)
                } else {
                    shown::text(step, &values)
                })?;
            }
            rest = then;
        }
    }
    session.close().await;
    Ok(())
}

/// A refusal by the server counts as a problem of the input; a missing server is a failure to run.
fn failure(step: &Step, error: &ClientError, arguments: &ClientUru) -> Failure {
    let said = printable(&error.to_string());
    match error {
        ClientError::Connect { .. } if arguments.shard.is_dir() && arguments.at.is_none() => {
            let start = format!("`worldwire serve uru {}` starts it", shown(&arguments.shard));
            Failure::Run(format!("{said}; {start}"))
        }
        ClientError::Connect { .. }
        | ClientError::HostNotFound { .. }
        | ClientError::NoHost(_)
        | ClientError::Setup { .. } => Failure::Run(said),
        ClientError::Timeout { .. } => {
            let hint = match step {
                Step::Play(step) => step.no_answer().map(|why| format!(": {why}")),
                _ => None,
            };
            complain(step.name(), &(said + &hint.unwrap_or_default()));
            Failure::Input
        }
        _ => {
            complain(step.name(), &said);
            Failure::Input
        }
    }
}

#[derive(Debug)]
enum Source {
    Script(String, String),
    Words(Vec<String>),
}

impl Source {
    fn read(arguments: &ClientUru) -> Result<Self, Failure> {
        let words = ["login", "+", "players"].map(str::to_owned);
        Ok(match &arguments.script {
            Some(file) => Self::Script(input::title(file), input::read_text(file)?),
            None if arguments.steps.is_empty() => Self::Words(words.into()),
            None => Self::Words(arguments.steps.clone()),
        })
    }

    /// The steps of one of many clients, identified by its number, or of the only client.
    fn steps(&self, number: Option<u32>) -> Result<Vec<Step>, Failure> {
        let own = |text: &str| match number {
            Some(number) => text.replace("{}", &number.to_string()),
            None => text.to_owned(),
        };
        let parsed = match self {
            Self::Script(title, text) => {
                step::script(&own(text)).map_err(|problem| format!("{title}: {problem}"))
            }
            Self::Words(words) => {
                let words: Vec<_> = words.iter().map(|word| own(word)).collect();
                step::sequence(&words)
            }
        };
        parsed.map_err(|problem| Failure::Run(printable(&problem)))
    }
}
