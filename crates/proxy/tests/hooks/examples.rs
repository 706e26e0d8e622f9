//! The examples in `docs/examples`.

use std::path::{Path, PathBuf};

use tokio::io::{AsyncBufReadExt as _, BufReader};
use worldwire_core::Side::{Client, Server};
use worldwire_net::Stop;
use worldwire_proxy::{HookOptions, HookSocket};

use crate::schema::check;
use crate::world::{World, has, message, ping, until};

fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples").join(name);
    path.to_str().unwrap().to_owned()
}

/// A directory for this test.
pub(crate) fn directory(name: &str) -> PathBuf {
    let path =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// The numbers of `BuildIdRequest`, `BuildIdReply` and `BuildIdUpdate`.
const REQUEST: u32 = 10;
const UPDATE: u32 = 11;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_python_example_keeps_clients_from_updating() {
    if !has("python3") || !has("tee") {
        return;
    }
    let directory = directory("python");
    let [to, from] = ["to", "from"].map(|name| directory.join(name));
    let command = format!(
        "tee '{}' | python3 '{}' 918 | tee '{}'",
        to.display(),
        example("hook.py"),
        from.display()
    );
    let stop = Stop::new();
    let options = HookOptions { commands: vec![command.into()], ..HookOptions::default() };
    let mut world = World::new(options, stop.signal()).await;
    world.send(Server, &message(REQUEST, &[1, 0, 7]));
    world.send(Server, &message(UPDATE, &[8]));
    world.send(Server, &message(REQUEST, &[2, 0, 9]));
    let expected = [1, 2].map(|number| message(REQUEST, &[number, 0, 918])).concat();
    assert_eq!(world.receive(Client, expected.len()).await, expected);
    assert!(world.problems().is_empty());
    drop(world);
    let ended = || std::fs::read_to_string(&to).is_ok_and(|text| text.contains("\"closed\""));
    until("the hook learns of the end", ended).await;
    stop.stop();
    let lines = |path| std::fs::read_to_string(path).unwrap();
    lines(&to).lines().for_each(|line| check("to_hook", line));
    lines(&from).lines().for_each(|line| check("from_hook", line));
    assert_eq!((lines(&to).lines().count(), lines(&from).lines().count()), (6, 6));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_javascript_example_answers_clients() {
    if !has("node") {
        return;
    }
    let command = format!("node '{}'", example("hook.mjs"));
    let stop = Stop::new();
    let options = HookOptions { commands: vec![command.into()], ..HookOptions::default() };
    let mut world = World::new(options, stop.signal()).await;
    request_build(&mut world).await;
    stop.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_javascript_example_connects_to_a_port() {
    if !has("node") {
        return;
    }
    let stop = Stop::new();
    let sockets = vec![HookSocket::Tcp("127.0.0.1:0".parse().unwrap())];
    let options = HookOptions { sockets, is_required: true, ..HookOptions::default() };
    let mut world = World::new(options, stop.signal()).await;
    let port = world.hooks.addresses()[0].port();
    let mut child = tokio::process::Command::new("node")
        .args([example("hook.mjs"), port.to_string()])
        .stderr(std::process::Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    until("the hook connects", || world.hooks.is_complete()).await;
    request_build(&mut world).await;
    stop.stop();
    let mut errors = BufReader::new(child.stderr.take().unwrap()).lines();
    assert_eq!(errors.next_line().await.unwrap(), None);
    child.wait().await.unwrap();
}

async fn request_build(world: &mut World) {
    world.send(Client, &message(REQUEST, &[77]));
    let reply = message(REQUEST, &[77, 0, 918]);
    assert_eq!(world.receive(Client, reply.len()).await, reply);
    world.send(Client, &ping(1));
    assert_eq!(world.receive(Server, 12).await, ping(1), "nothing else reached the server");
    assert!(world.problems().is_empty());
}
