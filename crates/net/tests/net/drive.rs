//! A driver over a stream in memory, in virtual time.

use std::sync::Arc;
use std::time::Duration;

use crate::toy::{Obedient, PART, Seen, frame};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use worldwire_core::Side;
use worldwire_core::connection::{Bounds, CloseReason, Timer};
use worldwire_net::{Clock, Driver, End, Settings, Stop, mailbox};

/// A server, its observations, and the handle that stops it.
struct Served {
    peer: DuplexStream,
    end: JoinHandle<End>,
    seen: Seen,
    stop: Stop,
}

fn serve(buffer: usize, make: impl FnOnce(&mut Obedient)) -> Served {
    serve_bounded(buffer, Bounds::default(), Settings::default(), make)
}

fn serve_bounded(
    buffer: usize,
    bounds: Bounds,
    settings: Settings,
    make: impl FnOnce(&mut Obedient),
) -> Served {
    let (peer, io) = duplex(buffer);
    let (seen, stop, clock) = (Seen::default(), Stop::new(), Clock::start());
    let mut application = Obedient::new(&seen);
    make(&mut application);
    let driver = Driver { peer: Side::Client, clock, settings, signal: stop.signal() };
    let connection = crate::toy::bounded(Side::Client, clock.now(), bounds);
    let end = tokio::spawn(async move { driver.drive(io, connection, application).await });
    Served { peer, end, seen, stop }
}

impl Served {
    async fn say(&mut self, bytes: &[u8]) {
        self.peer.write_all(&frame(bytes)).await.unwrap();
    }

    async fn hear(&mut self) -> Vec<u8> {
        let length = self.peer.read_u16_le().await.unwrap();
        let mut bytes = vec![0; length.into()];
        self.peer.read_exact(&mut bytes).await.unwrap();
        bytes
    }
}

#[tokio::test(start_paused = true)]
async fn frames_are_answered_whatever_their_cut() {
    let mut served = serve(64, |_| ());
    for byte in frame(b"byte by byte") {
        served.peer.write_all(&[byte]).await.unwrap();
    }
    assert_eq!(served.hear().await, b"byte by byte");
    served.peer.write_all(&[frame(b"two"), frame(b"at once")].concat()).await.unwrap();
    assert_eq!((served.hear().await, served.hear().await), (b"two".into(), b"at once".into()));
    drop(served.peer);
    assert_eq!(served.end.await.unwrap(), End::Closed(CloseReason::Remote));
    let last = served.seen.all().split_off(3);
    assert_eq!(last, ["closed by the other side", "ended: closed by the other side"]);
}

#[tokio::test(start_paused = true)]
async fn deadlines_pass_and_every_frame_moves_them() {
    let mut served = serve(1024, |_| ());
    for _ in 0..3 {
        sleep(crate::toy::IDLE - Duration::from_secs(1)).await;
        served.say(b"here").await;
        served.hear().await;
    }
    let start = Instant::now();
    assert_eq!(served.end.await.unwrap(), End::Closed(CloseReason::Timeout(Timer::Idle)));
    assert_eq!(start.elapsed().as_secs(), crate::toy::IDLE.as_secs());
}

#[tokio::test(start_paused = true)]
async fn a_deadline_that_passes_while_the_application_works_is_not_the_peers_fault() {
    let mut served = serve(1024, |_| ());
    served.say(b"sleep").await;
    sleep(crate::toy::IDLE).await;
    served.say(b"still here").await;
    assert_eq!(served.hear().await, b"sleep");
    assert_eq!(served.hear().await, b"still here");
    served.say(b"sleep").await;
    sleep(crate::toy::IDLE).await;
    drop(served.peer);
    assert_eq!(served.end.await.unwrap(), End::Closed(CloseReason::Remote));
}

#[tokio::test(start_paused = true)]
async fn endless_input_does_not_delay_a_deadline() {
    let mut served = serve(1024, |_| ());
    served.peer.write_all(&[0xff, 0x7f]).await.unwrap();
    let start = Instant::now();
    while served.peer.write_all(&[1]).await.is_ok() {
        sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(served.end.await.unwrap(), End::Closed(CloseReason::Timeout(Timer::Idle)));
    assert_eq!(start.elapsed().as_secs(), crate::toy::IDLE.as_secs());
}

#[tokio::test(start_paused = true)]
async fn a_broken_rule_is_named() {
    let mut served = serve(1024, |_| ());
    served.say(b"fine").await;
    served.peer.write_all(&[0xff, 0xff]).await.unwrap();
    assert_eq!(served.hear().await, b"fine");
    let End::Fault { error, state } = served.end.await.unwrap() else { panic!("no fault") };
    assert_eq!(error.to_string(), "wanted a shorter frame, found the longest");
    // The application's own state, after every event except the end.
    assert_eq!(state, "3 events");
    let seen = served.seen.all();
    assert_eq!(seen.get(1..3).unwrap(), ["Fault", "closed because of a fault"]);
}

#[tokio::test(start_paused = true)]
async fn queued_data_is_written_but_nothing_is_read_while_the_application_works() {
    let mut served = serve(256, |_| ());
    let gate = Arc::default();
    let handle = Arc::clone(&gate);
    let mut waiting = serve(256, |application| application.gate = handle);
    waiting.peer.write_all(&[frame(&[3; 250]), frame(b"wait")].concat()).await.unwrap();
    // The first answer arrives although the application waits.
    assert_eq!(waiting.hear().await, [3; 250]);
    // The stream holds some of these frames, and the driver one buffer; the rest cannot be written.
    let more = timeout(Duration::from_secs(1), async {
        for _ in 0..100 {
            waiting.peer.write_all(&frame(&[4; 250])).await.unwrap();
        }
    });
    assert!(more.await.is_err());
    // Other connections are unaffected.
    served.say(b"other").await;
    assert_eq!(served.hear().await, b"other");
    gate.notify_one();
    assert_eq!(waiting.hear().await, b"wait");
    assert_eq!(waiting.hear().await, [4; 250]);
}

#[tokio::test(start_paused = true)]
async fn a_panic_ends_the_connection_and_is_reported_to_the_application() {
    let mut served = serve(1024, |_| ());
    served.say(b"panic").await;
    assert_eq!(served.end.await.unwrap(), End::Panicked("as asked".to_owned()));
    assert_eq!(served.seen.all(), ["ended: a defect in worldwire: as asked"]);
}

#[tokio::test(start_paused = true)]
async fn queued_data_is_written_before_the_end() {
    for (last, end) in
        [(b"end".as_slice(), End::Application), (b"close", End::Closed(CloseReason::Local))]
    {
        let mut served = serve(64, |_| ());
        served.peer.write_all(&[frame(&[5; 40]), frame(last)].concat()).await.unwrap();
        assert_eq!(served.hear().await, [5; 40]);
        assert_eq!(served.peer.read(&mut [0; 8]).await.unwrap(), 0);
        drop(served.peer);
        assert_eq!(served.end.await.unwrap(), end);
    }
}

#[tokio::test(start_paused = true)]
async fn a_download_continues_when_there_is_room_and_requests_are_answered_meanwhile() {
    let mut served = serve(4096, |_| ());
    served.say(b"download").await;
    assert_eq!(served.hear().await, b"download");
    let mut parts = 0;
    let mut answered_after = None;
    for read in 0..101 {
        if read == 10 {
            served.say(b"question").await;
        }
        match served.hear().await.as_slice() {
            b"question" => answered_after = Some(parts),
            part => {
                assert_eq!(part.len(), PART);
                parts += 1;
            }
        }
    }
    // The low-water mark is four parts, and the writer may hold one more.
    let after = answered_after.unwrap();
    assert!((10..=18).contains(&after), "{after}");
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_does_not_read_is_cut_by_the_bound_or_for_stalling() {
    let mut served = serve(1024, |_| ());
    served.say(b"flood").await;
    assert_eq!(served.end.await.unwrap(), End::Application);
    assert_eq!(served.seen.count("full"), 1);

    let mut served = serve(1024, |_| ());
    served.say(b"download").await;
    let start = Instant::now();
    // The peer sends but does not read.
    let peer = tokio::spawn(async move {
        while served.peer.write_all(&frame(b"?")).await.is_ok() {
            sleep(Duration::from_secs(5)).await;
        }
    });
    assert_eq!(served.end.await.unwrap(), End::Stalled);
    assert_eq!(start.elapsed().as_secs(), 60);
    peer.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_stops_reading_before_its_limit() {
    let bounds = Bounds { queued_bytes: 100_000, queued_messages: 4096 };
    let settings = Settings { low_water: 1 << 10, high_water: 10_000, ..Settings::default() };
    let mut served = serve_bounded(1024, bounds, settings, |_| ());
    // The answers to these requests far exceed the limit, and none of them is read.
    let (mut reading, mut writing) = tokio::io::split(served.peer);
    let writer = tokio::spawn(async move {
        for _ in 0..1000 {
            writing.write_all(&frame(&[9; 500])).await.unwrap();
        }
        writing
    });
    sleep(Duration::from_secs(30)).await;
    assert!(!writer.is_finished() && !served.end.is_finished());
    let mut all = vec![0; 1000 * 502];
    reading.read_exact(&mut all).await.unwrap();
    drop((reading, writer.await.unwrap()));
    assert_eq!((&mut served.end).await.unwrap(), End::Closed(CloseReason::Remote));
}

#[tokio::test(start_paused = true)]
async fn notices_reach_the_peer_and_too_many_end_the_connection() {
    let (handle, mail) = mailbox(4);
    let mut served = serve(64, |application| application.mailbox = Some(mail));
    assert!(handle.tell("first") && handle.tell("second"));
    assert_eq!((served.hear().await, served.hear().await), (b"first".into(), b"second".into()));
    while handle.tell("more") {}
    assert_eq!(served.end.await.unwrap(), End::Application);
    assert!(handle.is_closed());
}

#[tokio::test(start_paused = true)]
async fn a_stop_sends_a_goodbye_and_a_cut_does_not_wait() {
    let mut served = serve(1024, |_| ());
    served.say(b"hello").await;
    assert_eq!(served.hear().await, b"hello");
    served.stop.stop();
    assert_eq!(served.hear().await, b"bye");
    assert_eq!(served.end.await.unwrap(), End::Stopped);

    let mut served = serve(1024, |_| ());
    served.say(b"wait").await;
    sleep(Duration::from_secs(1)).await;
    served.stop.stop();
    sleep(Duration::from_secs(1)).await;
    assert!(!served.end.is_finished());
    served.stop.cut();
    assert_eq!(served.end.await.unwrap(), End::Cut);
    assert_eq!(served.seen.all(), ["ended: cut because the server is stopping"]);
}

#[tokio::test(start_paused = true)]
async fn a_flush_to_a_peer_that_reads_nothing_times_out() {
    let mut served = serve(16, |_| ());
    served.peer.write_all(&frame(&[5; 40])).await.unwrap();
    served.say(b"end").await;
    let start = Instant::now();
    assert_eq!(served.end.await.unwrap(), End::Application);
    assert_eq!(start.elapsed().as_secs(), 5);
}
