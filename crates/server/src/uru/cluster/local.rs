//! An in-process bus, and a leader without a vault, for tests in virtual time.

use std::collections::HashMap;
use std::future::ready;
use std::sync::{Arc, Mutex};

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use super::ages::{AgeOrder, AgeReport};
use super::bus::{Bus, BusError, BusMessage, Messages, Pending, Publisher};
use super::leader::machine::{LeaderEvent, LeaderMachine};
use super::subjects::{Subjects, matches};

/// The maximum number of waiting messages per subscription.
const MAX_WAITING: usize = 1_024;

/// The bus.
#[derive(Debug)]
pub(in crate::uru) struct LocalBus {
    subscribers: Mutex<HashMap<String, Vec<mpsc::Sender<BusMessage>>>>,
    copies: usize,
}

impl LocalBus {
    pub(in crate::uru) fn new() -> Arc<Self> {
        Arc::new(Self::repeating(1))
    }

    /// A bus that delivers every message `copies` times.
    pub(super) fn repeating(copies: usize) -> Self {
        Self { subscribers: Mutex::default(), copies }
    }

    /// The number of open subscriptions to a subject.
    pub(in crate::uru) fn listeners(&self, subject: &str) -> usize {
        let subscribers = self.subscribers.lock().unwrap();
        let of_subject = subscribers.get(subject).into_iter().flatten();
        of_subject.filter(|subscriber| !subscriber.is_closed()).count()
    }
}

impl Bus for LocalBus {
    fn publish<'b>(&'b self, subject: &'b str, message: Vec<u8>) -> Pending<'b, bool> {
        let subscribers = self.subscribers.lock().unwrap();
        let meant = subscribers.iter().filter(|(pattern, _)| matches(pattern, subject));
        let message = BusMessage { subject: subject.to_owned(), body: message };
        for subscriber in meant.flat_map(|(_, subscribers)| subscribers) {
            for _ in 0..self.copies {
                // Dropped if the queue is full.
                let _ = subscriber.try_send(message.clone());
            }
        }
        Box::pin(ready(true))
    }

    fn flush(&self) -> Pending<'_, ()> {
        Box::pin(ready(()))
    }

    fn subscribe<'b>(&'b self, subject: &'b str) -> Pending<'b, Result<Messages, BusError>> {
        let (sender, messages) = mpsc::channel(MAX_WAITING);
        self.subscribers.lock().unwrap().entry(subject.to_owned()).or_default().push(sender);
        Box::pin(ready(Ok(messages)))
    }
}

/// A leader whose orders come from the test. It refuses all requests.
pub(in crate::uru) struct LocalLeader {
    orders: mpsc::UnboundedSender<AgeOrder>,
    reports: mpsc::UnboundedReceiver<AgeReport>,
    asked: mpsc::UnboundedReceiver<(u16, Vec<u8>)>,
    task: JoinHandle<()>,
}

impl LocalLeader {
    /// Starts leading in the given epoch.
    pub(in crate::uru) async fn start(bus: &Arc<LocalBus>, cluster: &str, epoch: u64) -> Self {
        let start = Instant::now();
        let machine = LeaderMachine::new(Subjects::of(cluster), epoch, start.elapsed());
        let frames = bus.subscribe(&machine.subscription()).await.unwrap();
        let (orders, ordered) = mpsc::unbounded_channel();
        let (reported, reports) = mpsc::unbounded_channel();
        let (refused, asked) = mpsc::unbounded_channel();
        let publisher = Publisher::new(Arc::clone(bus) as _);
        let task =
            tokio::spawn(lead(machine, start, publisher, frames, ordered, (reported, refused)));
        Self { orders, reports, asked, task }
    }

    /// Sends an order to all nodes.
    pub(in crate::uru) fn order(&self, order: AgeOrder) {
        self.orders.send(order).unwrap();
    }

    /// The next report from the node under test.
    pub(in crate::uru) async fn hears(
        &mut self,
        mut is_meant: impl FnMut(&AgeReport) -> bool,
    ) -> AgeReport {
        loop {
            let report = self.reports.recv().await.expect("the leader runs");
            if is_meant(&report) {
                return report;
            }
        }
    }

    /// The next refused request: its kind and body.
    pub(in crate::uru) async fn refused(&mut self) -> (u16, Vec<u8>) {
        self.asked.recv().await.expect("the leader runs")
    }

    /// Stops sending and receiving for good.
    pub(in crate::uru) fn fail(&self) {
        self.task.abort();
    }
}

async fn lead(
    mut machine: LeaderMachine,
    start: Instant,
    mut publisher: Publisher,
    mut frames: Messages,
    mut ordered: mpsc::UnboundedReceiver<AgeOrder>,
    (reported, refused): (mpsc::UnboundedSender<AgeReport>, mpsc::UnboundedSender<(u16, Vec<u8>)>),
) {
    let mut nodes = Vec::new();
    loop {
        tokio::select! {
            frame = frames.recv() => {
                let BusMessage { subject, body } = frame.unwrap();
                machine.received(start.elapsed(), &subject, &body);
            }
            order = ordered.recv() => {
                let Some(order) = order else { return };
                for node in &nodes {
                    assert!(machine.order(*node, &order));
                }
            }
            () = sleep_until(start + machine.poll_timeout()) => {}
        }
        machine.timeout(start.elapsed());
        while let Some(event) = machine.poll_event() {
            match event {
                LeaderEvent::Joined { incarnation, .. } => nodes.push(incarnation),
                LeaderEvent::Left { incarnation, .. } => nodes.retain(|node| *node != incarnation),
                LeaderEvent::Requested { from, number, kind, body } => {
                    // Sending fails if the test is not listening.
                    let _ = refused.send((kind, body));
                    let refusal = worldwire_uru::types::NetError::NotSupported;
                    machine.reply(from, number, 0, Err(refusal));
                }
                // Sending fails if the test is not listening.
                LeaderEvent::AgesReported { report, .. } => drop(reported.send(report)),
                _ => {}
            }
        }
        publisher.publish(|| machine.poll_transmit(start.elapsed())).await;
    }
}
