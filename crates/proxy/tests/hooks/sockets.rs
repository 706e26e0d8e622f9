//! Hooks that connect to a socket.

use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::net::TcpStream;
use worldwire_core::Side::{Client, Server};
use worldwire_core::json::{Json, parse};
use worldwire_net::Stop;
use worldwire_proxy::{HookOptions, HookSocket};

use crate::schema::check;
use crate::world::{World, message};

/// A hook that the test plays.
struct Player<S> {
    stream: BufReader<S>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Player<S> {
    fn new(stream: S) -> Self {
        Self { stream: BufReader::new(stream) }
    }

    async fn say(&mut self, line: &str) {
        check("from_hook", line);
        self.stream.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    async fn hears(&mut self, kind: &str) -> Json {
        let mut line = String::new();
        self.stream.read_line(&mut line).await.unwrap();
        check("to_hook", &line);
        let json = parse(&line).unwrap();
        assert_eq!(json["type"].as_str(), Some(kind), "{line}");
        json
    }
}

fn tcp() -> HookOptions {
    let sockets = vec![HookSocket::Tcp("127.0.0.1:0".parse().unwrap())];
    HookOptions { sockets, ..HookOptions::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hook_talks_over_a_port() {
    let stop = Stop::new();
    let mut world = World::new(tcp(), stop.signal()).await;
    let stream = TcpStream::connect(world.hooks.addresses()[0]).await.unwrap();
    let mut player = Player::new(stream);
    player.say(r#"{"type":"hello","version":1,"name":"test"}"#).await;
    let welcome = player.hears("welcome").await;
    assert!(welcome["families"].as_array().unwrap().contains(&"uru".into()));
    let opened = player.hears("opened").await;
    assert_eq!(opened["conversation"].as_u64(), Some(3));
    assert_eq!(opened["server"].as_str(), Some("192.0.2.1:14617"));
    player.say(r#"{"type":"query","id":"q","messages":"file.BuildId*"}"#).await;
    assert_eq!(player.hears("definitions").await["messages"].as_array().unwrap().len(), 3);
    player
        .say(r#"{"type":"subscribe","subscriptions":[{"id":"x","filter":"BuildIdRequst"}]}"#)
        .await;
    let error = player.hears("error").await;
    assert!(error["text"].as_str().unwrap().contains("did you mean"), "{error}");
    player
        .say(r#"{"type":"subscribe","subscriptions":[{"id":"x","filter":"BuildIdRequest","bytes":true}]}"#)
        .await;
    player.say(r#"{"type":"query"}"#).await;
    player.hears("definitions").await;
    world.send(Client, &message(10, &[5]));
    let asked = player.hears("message").await;
    assert_eq!(asked["fields"]["transId"].as_u64(), Some(5));
    assert_eq!(asked["bytes"].as_str(), Some("0c0000000a00000005000000"));
    let id = asked["id"].as_str().unwrap();
    player
        .say(&format!(r#"{{"type":"answer","id":"{id}","do":"replace","fields":{{"transId":6}}}}"#))
        .await;
    assert_eq!(world.receive(Server, 12).await, message(10, &[6]));
    player.say(&format!(r#"{{"type":"answer","id":"{id}","do":"drop"}}"#)).await;
    player.say(r#"{"type":"add","conversation":3,"messages":[{"to":"client","name":"file.BuildIdUpdate","fields":{"buildId":9}}]}"#).await;
    assert_eq!(world.receive(Client, 12).await, message(11, &[9]));
    assert_eq!(player.hears("error").await["id"].as_str(), Some(id));
    drop(world);
    player.hears("closed").await;
    stop.stop();
    let mut rest = String::new();
    player.stream.read_to_string(&mut rest).await.unwrap();
    assert_eq!(rest, "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_lines_that_make_no_sense_end_a_hook() {
    let stop = Stop::new();
    let world = World::new(tcp(), stop.signal()).await;
    let stream = TcpStream::connect(world.hooks.addresses()[0]).await.unwrap();
    let mut player = Player::new(stream);
    player.say(r#"{"type":"hello","version":1}"#).await;
    player.hears("welcome").await;
    player.hears("opened").await;
    // Answers to a conversation that has just ended.
    for number in 0..200 {
        player.say(&format!(r#"{{"type":"answer","id":"9.{number}","do":"pass"}}"#)).await;
    }
    for _ in 0..200 {
        let error = player.hears("error").await;
        assert_eq!(error["text"].as_str(), Some("conversation 9 is not open"));
    }
    for _ in 0..100 {
        player.stream.write_all(b"nonsense\n").await.unwrap();
    }
    for _ in 0..100 {
        player.hears("error").await;
    }
    let mut rest = String::new();
    player.stream.read_to_string(&mut rest).await.unwrap();
    assert_eq!(rest, "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_hook_is_turned_away() {
    let stop = Stop::new();
    let mut world = World::new(tcp(), stop.signal()).await;
    for first in [
        "POST / HTTP/1.1\r\n\r\n{\"type\":\"hello\",\"version\":1}\n",
        "{\"type\":\"hello\",\"version\":2}\n",
        "{\"type\":\"log\",\"text\":\"x\"}\n",
    ] {
        let mut stream = TcpStream::connect(world.hooks.addresses()[0]).await.unwrap();
        stream.write_all(first.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        // The end may come as a reset, because not everything was read.
        let _ = stream.read_to_end(&mut answer).await;
        let answer = String::from_utf8(answer).unwrap();
        if !answer.is_empty() {
            check("to_hook", &answer);
            assert!(answer.starts_with("{\"type\":\"error\""), "{answer}");
        }
    }
    assert!(world.problems().is_empty());
    stop.stop();
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_unix_socket_is_for_its_owner_and_replaces_a_dead_one() {
    use std::os::unix::fs::PermissionsExt as _;

    let path = crate::examples::directory("socket").join("hooks");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let stop = Stop::new();
    let options =
        || HookOptions { sockets: vec![HookSocket::Unix(path.clone())], ..HookOptions::default() };
    let mut world = World::new(options(), stop.signal()).await;
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let definitions = std::sync::Arc::new(worldwire_dissect::Definitions::built_in());
    let second = worldwire_proxy::Hooks::start(options(), definitions, stop.signal()).await;
    assert!(second.is_err(), "one that is in use is not replaced");
    let mut player = Player::new(tokio::net::UnixStream::connect(&path).await.unwrap());
    player.say(r#"{"type":"hello","version":1,"subscriptions":[{"id":"all"}]}"#).await;
    player.hears("welcome").await;
    player.hears("opened").await;
    world.send(Client, &message(10, &[5]));
    player.hears("message").await;
    drop(player);
    assert_eq!(
        world.receive(Server, 12).await,
        message(10, &[5]),
        "the conversation continues without the hook"
    );
    stop.stop();
    crate::world::until("the socket is removed", || !path.exists()).await;
}
