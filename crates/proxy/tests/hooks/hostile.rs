//! Hooks that harm only themselves. Some are shell scripts, so these tests run on Unix only.
#![cfg(unix)]

use std::time::Duration;

use worldwire_core::Side::{Client, Server};
use worldwire_net::Stop;
use worldwire_proxy::HookOptions;

use crate::examples::directory;
use crate::world::{World, message, until};

const HELLO: &str = r#"{"type":"hello","version":1,"subscriptions":[{"id":"all"}]}"#;

fn options(script: &str) -> HookOptions {
    HookOptions {
        commands: vec![script.replace("HELLO", &format!("echo '{HELLO}'")).into()],
        answer_time: Duration::from_millis(100),
        restart_after: Duration::from_millis(20),
        ..HookOptions::default()
    }
}

/// Checks that messages from both sides arrive unchanged despite the hook. Returns the problems.
async fn continues_with(script: &str) -> Vec<String> {
    let stop = Stop::new();
    let mut world = World::new(options(script), stop.signal()).await;
    for number in 0..6 {
        let [request, update] = [10, 11].map(|kind| message(kind, &[number]));
        world.send(Client, &request);
        world.send(Server, &update);
        assert_eq!(world.receive(Server, 12).await, request, "{script}");
        assert_eq!(world.receive(Client, 12).await, update, "{script}");
        world.run_for(Duration::from_millis(20)).await;
    }
    assert!(!world.exchange.is_closed());
    stop.stop();
    world.problems()
}

/// The proxy does not wait ten seconds for a hook that never connects, and leaves no process behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hook_that_ends_does_not_delay_the_start() {
    let began = std::time::Instant::now();
    let stop = Stop::new();
    let world = World::new(options("exit 3"), stop.signal()).await;
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    drop(world);
    stop.stop();
}

/// A hook's processes end with it, even those that ignore the end of their input.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_processes_of_a_hook_end_with_the_proxy() {
    let file = directory("processes").join("pid");
    let script = format!("HELLO; sleep 600 & echo $! >{}; wait", file.display());
    let stop = Stop::new();
    let world = World::new(options(&script), stop.signal()).await;
    let id = || std::fs::read_to_string(&file).ok().filter(|text| text.ends_with('\n'));
    until("a process", || id().is_some()).await;
    let alive = |id: &str| std::path::Path::new("/proc").join(id.trim()).join("exe").exists();
    let id = id().unwrap();
    let has_proc = alive("self");
    assert!(!has_proc || alive(&id));
    stop.stop();
    drop(world);
    until("its end", || !alive(&id)).await;
}

macro_rules! hostile {
    ($($(#[doc = $doc:literal])* $name:ident: $script:expr;)*) => {$(
        $(#[doc = $doc])*
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            continues_with($script).await;
        }
    )*};
}

hostile! {
    one_that_is_killed: "HELLO; head -c 300 >/dev/null; kill -9 $$";
    one_that_ends_at_once: "HELLO";
    one_that_says_nonsense: "HELLO; yes nonsense";
    one_that_says_only_blank_lines: "HELLO; yes ''";
    one_that_floods_the_log: r#"HELLO; yes '{"type":"log","text":"x"}'"#;
    one_that_floods_wrong_answers:
        r#"HELLO; yes '{"type":"answer","id":"3.999999","do":"drop"}'"#;
    one_that_floods_answers_to_other_conversations:
        r#"HELLO; yes '{"type":"answer","id":"4.1","do":"drop"}'"#;
    one_that_floods_queries: r#"HELLO; yes '{"type":"query"}'"#;
    one_that_floods_subscriptions:
        r#"HELLO; yes '{"type":"subscribe","subscriptions":[{"id":"all"}]}'"#;
    one_that_sends_an_endless_line: "HELLO; tr '\\0' x </dev/zero";
    one_that_sends_bytes: "HELLO; cat /dev/urandom";
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_hangs_is_waited_for_each_time() {
    let problems = continues_with("HELLO; exec sleep 1000").await;
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].contains("it did not answer within 100ms"), "{problems:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_cannot_be_run_delays_only_the_start() {
    tokio::time::timeout(Duration::from_secs(50), continues_with("exec /no/such/program"))
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_ends_is_started_again() {
    let directory = directory("restarts");
    let log = directory.join("log");
    let script = format!("echo x >>'{}'; HELLO; read line; read line; exit 3", log.display());
    let stop = Stop::new();
    let mut world = World::new(options(&script), stop.signal()).await;
    let starts = || std::fs::read_to_string(&log).map_or(0, |text| text.lines().count());
    until("it is started again and again", || starts() >= 4).await;
    world.send(Client, &message(10, &[1]));
    world.receive(Server, 12).await;
    stop.stop();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let count = starts();
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(starts(), count, "it is not started after the end");
}

/// The proxy continues without a hook that fails too often.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_fails_too_often_is_not_started_again() {
    let directory = directory("failures");
    let log = directory.join("log");
    let mut options = options(&format!("echo x >>'{}'; HELLO; exit 3", log.display()));
    options.commands.iter_mut().for_each(|command| command.max_failures = Some(3));
    let stop = Stop::new();
    let mut world = World::new(options, stop.signal()).await;
    let starts = || std::fs::read_to_string(&log).map_or(0, |text| text.lines().count());
    until("it is started again", || starts() >= 3).await;
    // This is twice as long as the next delay would be.
    world.run_for(Duration::from_millis(400)).await;
    assert_eq!(starts(), 3);
    let request = message(10, &[1]);
    world.send(Client, &request);
    assert_eq!(world.receive(Server, 12).await, request);
    assert!(!world.exchange.is_closed());
    stop.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_required_hook_conversations_end() {
    let stop = Stop::new();
    let options = HookOptions { is_required: true, ..options("HELLO; read line; kill -9 $$") };
    let mut world = World::new(options, stop.signal()).await;
    world.send(Client, &message(10, &[1]));
    world.run_for(Duration::from_millis(200)).await;
    assert!(world.exchange.is_closed());
    let problems = world.problems();
    assert!(problems.iter().any(|text| text.contains("is required")), "{problems:?}");
    stop.stop();
}
