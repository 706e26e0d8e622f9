//! Hooks that the proxy starts.

use core::time::Duration;
use std::process::Stdio;
use std::sync::Arc;

use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};
use worldwire_net::{Signal, reason};

use super::HookCommand;
use super::hub::Hub;
use super::protocol::LogLevel;
use super::serve::{Ended, LineReader, LogBudget, serve};

/// The longest delay before a restart.
const MAX_WAIT: Duration = Duration::from_secs(60);
/// After a hook has run this long, the delay before its next restart is reset.
const STEADY_TIME: Duration = Duration::from_secs(60);
/// How long a hook may take to exit after its input has been closed.
const END_TIME: Duration = Duration::from_secs(2);

/// Runs a command as a hook. Restarts it whenever it ends, unless it has failed too often.
pub(crate) async fn run(
    hub: Arc<Hub>,
    source: usize,
    command: HookCommand,
    restart_after: Duration,
    mut signal: Signal,
) {
    let HookCommand { command, name, max_failures } = command;
    let (mut wait, mut failures) = (restart_after, 0_u32);
    loop {
        let started = Instant::now();
        let ended = run_once(&hub, source, &command, &mut signal).await;
        if matches!(ended, Ok(Ended::Stopped)) {
            return;
        }
        if started.elapsed() >= STEADY_TIME {
            (wait, failures) = (restart_after, 0);
        }
        failures = failures.saturating_add(1);
        hub.note_end(source);
        let why = ended.map_or_else(|error| error, |ended| ended.to_string());
        if max_failures.is_some_and(|max| failures >= max) {
            let meanwhile = match hub.is_required() {
                true => "conversations are closed",
                false => "messages continue without it",
            };
            let times = format!("{failures} times, each time within {STEADY_TIME:?} of its start");
            tracing::error!(
                "hook {name} has ended {times} ({why}). It is not restarted: correct it, then \
                 restart the proxy. Until then, {meanwhile}"
            );
            return;
        }
        tracing::warn!("hook {name} has ended: {why}; restarting it in {wait:?}");
        tokio::select! {
            () = sleep(wait) => {}
            () = signal.stopping() => return,
        }
        wait = wait.saturating_mul(2).min(MAX_WAIT);
    }
}

/// Runs a command until it ends. The error says why it could not be started.
async fn run_once(
    hub: &Arc<Hub>,
    source: usize,
    command: &str,
    signal: &mut Signal,
) -> Result<Ended, String> {
    let mut child = shell(command)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("it cannot be run: {}", reason(&error)))?;
    let streams = (child.stdout.take(), child.stdin.take(), child.stderr.take());
    let (Some(output), Some(input), Some(errors)) = streams else {
        return Err("it has no standard streams".to_owned());
    };
    let labels = Arc::clone(hub);
    let logging = tokio::spawn(async move {
        let mut lines = LineReader::new(errors);
        let mut budget = LogBudget::new();
        while let Ok(Some(line)) = lines.next().await {
            let line = line.unwrap_or("(a line that is not text)");
            budget.log(LogLevel::Info, &labels.label(source), line);
        }
    });
    let ended = serve(hub, source, (output, input), signal).await;
    let ended = match (ended, end(&mut child).await) {
        (Ended::Closed | Ended::Failed(_), Some(status)) => return Err(status),
        (ended, _) => ended,
    };
    // A child process of the hook may keep the stream open.
    let _ = timeout(END_TIME, logging).await;
    Ok(ended)
}

/// Waits for the end of a process whose input is closed, or kills it and the processes it started.
/// Returns how it ended.
async fn end(child: &mut Child) -> Option<String> {
    // The process ID is no longer available once the process has been waited for.
    #[cfg(unix)]
    let group = child.id();
    match timeout(END_TIME, child.wait()).await {
        Ok(Ok(status)) => Some(status.to_string()),
        _ => {
            #[cfg(unix)]
            kill_group(group);
            let _ = child.kill().await;
            None
        }
    }
}

/// Kills all processes of a hook: the shell may have started others.
#[cfg(unix)]
fn kill_group(leader: Option<u32>) {
    use rustix::process::{Pid, Signal, kill_process_group};
    let leader = leader.and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    if let Some(leader) = leader {
        // It may have ended.
        let _ = kill_process_group(leader, Signal::KILL);
    }
}

/// A command, run by the shell.
fn shell(command: &str) -> Command {
    let (shell, option) = if cfg!(windows) { ("cmd", "/C") } else { ("sh", "-c") };
    let mut shell = Command::new(shell);
    shell.arg(option).arg(command);
    // In a separate group, the processes can be ended together, and Ctrl-C reaches only the proxy.
    #[cfg(unix)]
    shell.process_group(0);
    shell
}
