//! Operators and servers that answer them, or do not.

use super::*;

#[derive(Clone)]
struct Echo;

impl Operated for Echo {
    type Request = String;
    type Error = io::Error;

    async fn perform(&self, request: String, _: &[String]) -> io::Result<Vec<Json>> {
        Ok(vec![request.into()])
    }
}

#[tokio::test]
async fn operators_need_the_whole_token() {
    let request = async |lines: &str| {
        let read = read_request::<Echo>(&mut lines.as_bytes(), Some("0123")).await;
        read.map(Result::unwrap).map_err(|error| error.kind())
    };
    assert_eq!(request("0123\n\"hello\"\n").await, Ok("hello".to_owned()));
    for wrong in ["", "\n", "012\n", "01234\n", "0124\n\"hello\"\n", "\"hello\"\n"] {
        assert_eq!(request(wrong).await, Err(io::ErrorKind::PermissionDenied), "{wrong:?}");
    }
}

/// Another thread watches for a moment at which others could connect.
#[cfg(unix)]
#[tokio::test]
async fn the_socket_is_never_open_to_others() {
    use std::os::unix::fs::PermissionsExt as _;
    use std::sync::atomic::{AtomicBool, Ordering};

    let folder = tempfile::tempdir().unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let watching = std::thread::spawn({
        let (socket, done) = (file(folder.path()), Arc::clone(&done));
        move || {
            let mut modes = std::collections::BTreeSet::new();
            while !done.load(Ordering::Relaxed) {
                let found = std::fs::metadata(&socket);
                modes.extend(found.map(|found| found.permissions().mode() & 0o777));
            }
            modes
        }
    });
    for _ in 0..500 {
        drop(Listener::bind(folder.path(), Echo).await.unwrap());
    }
    let listener = Listener::bind(folder.path(), Echo).await.unwrap();
    let running = tokio::spawn(listener.run());
    let answer = ask::<Echo>(folder.path(), &"hello".to_owned(), &[]).await.unwrap();
    assert_eq!(answer, Ok(vec!["hello".into()]));
    running.abort();
    done.store(true, Ordering::Relaxed);
    let modes: Vec<String> =
        watching.join().unwrap().iter().map(|mode| format!("{mode:o}")).collect();
    assert_eq!(modes, ["600"]);
    // Only the socket is left, and it is removed when the server stops.
    let _ = running.await;
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// Takes as long to answer as it is asked to.
#[derive(Clone)]
struct Slow;

impl Operated for Slow {
    type Request = u64;
    type Error = io::Error;

    async fn perform(&self, seconds: u64, _: &[String]) -> io::Result<Vec<Json>> {
        sleep(Duration::from_secs(seconds)).await;
        Ok(vec![seconds.into()])
    }
}

/// The other end of a connection on which a request is served.
async fn busy_lines(seconds: u64) -> Vec<String> {
    let (near, far) = tokio::io::duplex(1_024);
    let permits = Semaphore::new(1);
    let (_slot, lost) = oneshot::channel();
    let served = serve(far, &Slow, None, lost, &permits);
    let asked = async {
        let (reader, mut writer) = tokio::io::split(near);
        write_line(&mut writer, &seconds.to_string()).await.unwrap();
        let (mut reader, mut lines) = (BufReader::new(reader), Vec::new());
        while let Some(line) = within(SILENCE, read_line(&mut reader)).await.unwrap() {
            lines.push(line);
        }
        lines
    };
    let (served, lines) = tokio::join!(served, asked);
    served.unwrap();
    lines
}

#[tokio::test(start_paused = true)]
async fn a_server_that_takes_its_time_says_so() {
    assert_eq!(busy_lines(0).await, [r#"{"data":0}"#, r#"{"done":true}"#]);
    let lines = busy_lines(60).await;
    assert!((58..=60).contains(&(lines.len() - 2)), "{lines:?}");
    let mut answer = AnswerReader::default();
    let answers = lines.iter().filter_map(|line| answer.line(line).unwrap());
    assert_eq!(answers.collect::<Vec<_>>(), [Ok(vec![60.into()])]);
}

/// As if the process was stopped by a signal: the system still accepts connections.
#[cfg(unix)]
#[tokio::test(start_paused = true)]
async fn a_server_that_says_nothing_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let _listener = platform::Listener::bind(folder.path()).await.unwrap();
    let start = tokio::time::Instant::now();
    let asked = ask::<Slow>(folder.path(), &1, &[]).await;
    assert_eq!(asked.unwrap_err().kind(), io::ErrorKind::TimedOut);
    assert_eq!(start.elapsed(), SILENCE);
}
