//! How processes join a leader, are refused, or replace members.

use std::collections::HashMap;
use std::time::Duration;

use worldwire_core::Bytes32;

use super::super::super::channel::Channel;
use super::super::super::frames::{Admitted, DownItem, Farewell, Head};
use super::super::super::passport::{Passport, Refusal};
use super::super::super::subjects::Sender;
use super::super::admission::Identity;
use super::{GiveUpReason, LeaderEvent, LeaderMachine, MAX_NODES, Node};

impl LeaderMachine {
    /// Handles a node's request for an incarnation. The node joins only when it uses that
    /// incarnation, because the request may be an old, delayed one.
    pub(super) fn asked_to_join(
        &mut self,
        now: Duration,
        sender: &Sender<'_>,
        head: &Head,
        shown: &[u8],
    ) {
        let &Sender { kind, node: name } = sender;
        let is_same = |node: &&mut Node| node.is_sent_by(sender) && node.is_asked_by(head);
        if let Some(node) = self.nodes.values_mut().find(is_same) {
            return node.channel.greet();
        }
        let Ok(passport) = Passport::parse(shown) else {
            return self.refuse(now, name, head, "", Refusal::Unreadable);
        };
        let identity = Identity::new(head.process, passport.of(kind));
        let checked = self.admission.check(name, &identity.passport);
        let checked = checked.and_then(|()| self.check_name(now, name, &identity));
        let is_known = self.nodes.values().any(|node| node.name == name);
        let checked = checked.and(match is_known || self.nodes.len() < MAX_NODES {
            true => Ok(()),
            false => Err(Refusal::Full),
        });
        let may_join = self.quotas.allows(now, name);
        let checked = checked.and(if may_join { Ok(()) } else { Err(Refusal::Excess) });
        if let Err(refusal) = checked {
            return self.refuse(now, name, head, &identity.passport.place, refusal);
        }
        let mut channel = Channel::new(now);
        let settings = Bytes32::new(self.admission.settings.as_bytes());
        if channel.push(&DownItem::from(Admitted { settings })).is_err() {
            return;
        }
        // Discards an earlier attempt under this name, possibly by the same process.
        self.nodes.retain(|_, node| node.is_member || node.name != name);
        self.last += 1;
        let node = Node {
            name: name.to_owned(),
            kind,
            identity,
            differences: None,
            attempt: head.attempt,
            channel,
            joined: now,
            heard: now,
            beat: 0,
            is_member: false,
            sessions: HashMap::new(),
            opened: (now, 0),
            requests: 0,
            request_bytes: 0,
            description: None,
        };
        self.nodes.insert(self.last, node);
    }

    /// Checks that a name is free: no other process holds it or has just requested it.
    pub(super) fn check_name(
        &self,
        now: Duration,
        name: &str,
        process: &Identity,
    ) -> Result<(), Refusal> {
        let silent = |node: &Node| now.saturating_sub(node.heard);
        let mut holders = self.nodes.values().filter(|node| node.name == name);
        let holder = holders.find(|node| !process.can_replace(&node.identity, silent(node)));
        let Some(holder) = holder else { return Ok(()) };
        let (joined, silent) = (now.saturating_sub(holder.joined).as_secs(), silent(holder));
        Err(Refusal::NameTaken {
            node: name.to_owned(),
            place: holder.identity.passport.place.clone(),
            joined: u32::try_from(joined).unwrap_or(u32::MAX),
            heard: u32::try_from(silent.as_millis()).unwrap_or(u32::MAX),
        })
    }

    /// Handles a process that uses the incarnation it requested.
    pub(super) fn joined(&mut self, name: &str, head: &Head) {
        let incarnation = head.incarnation;
        let old = self.members.insert(name.to_owned(), incarnation).unwrap_or_default();
        let replaced = self.nodes.get(&old).map(|node| node.identity.clone());
        match &replaced {
            Some(replaced) if replaced.process != head.process => {
                // If the old process is still running, this tells it at once to end its sessions.
                self.dismiss(old, Farewell::Replaced);
                self.give_up(old, GiveUpReason::Restarted);
            }
            _ => self.give_up(old, GiveUpReason::Rejoined),
        }
        let mut folder = 0;
        if let Some(node) = self.nodes.get_mut(&incarnation) {
            node.is_member = true;
            folder = node.identity.passport.folder;
            if let Some(replaced) = replaced {
                node.identity.replaces(replaced);
            }
        }
        self.refusals.admitted(name, head.process);
        let (node, process) = (name.to_owned(), head.process);
        self.events.push_back(LeaderEvent::Joined { node, incarnation, process, folder });
        self.compare_files(incarnation);
    }

    /// Tells a process that it is not admitted.
    pub(super) fn refuse(
        &mut self,
        now: Duration,
        name: &str,
        head: &Head,
        place: &str,
        refusal: Refusal,
    ) {
        let answer = refusal.to_bytes();
        if self.refusals.is_news(now, name, head.process, &refusal) {
            let (node, place) = (name.to_owned(), place.to_owned());
            self.events.push_back(LeaderEvent::NotAdmitted { node, place, refusal });
        }
        let head = Head { incarnation: 0, ..head.clone() };
        self.farewell(name, &head, Farewell::GivenUp, &answer);
    }

    /// Compares a member's age files with the leader's.
    pub(super) fn compare_files(&mut self, incarnation: u64) {
        let leaders = &self.admission.passport;
        let Some(node) = self.nodes.get_mut(&incarnation).filter(|node| node.is_member) else {
            return;
        };
        let differences = node.identity.passport.file_differences(leaders);
        if node.differences != differences {
            node.differences.clone_from(&differences);
            let node = node.name.clone();
            self.events.push_back(LeaderEvent::FilesCompared { node, incarnation, differences });
        }
    }
}
