//! Exports and imports a whole vault as a [`Dump`].

use std::sync::Arc;

use worldwire_uru::message::AccountFlags;
use worldwire_uru::types::NetError;
use worldwire_uru::vault::{NodeType, VaultNode};

use super::content::decode;
use super::dump::{AccountLine, Dump, Password, PlayerLine, uuid_of};
use super::session::{Outcome, Session};
use super::steps::VaultState;
use super::tables::accounts::Account;
use super::tables::players::Player;

impl VaultState {
    /// The whole vault. Password digests can be used like passwords, so they are optional.
    pub(crate) fn dump(&mut self, with_passwords: bool) -> Outcome<Dump> {
        let ids = self.graph().ids();
        self.need(&ids)?;
        let mut dump = Dump::default();
        (dump.head.next_node, dump.head.next_score) = self.next_numbers();
        dump.refs =
            self.graph().refs().map(|(above, below, owner)| ((above, below), owner)).collect();
        for id in ids {
            dump.nodes.insert(id, self.content(id)?);
        }
        for id in self.accounts().ids() {
            let Some(account) = self.accounts().get(id) else { continue };
            if let Some(digest) = self.known_digest(id).filter(|_| with_passwords) {
                dump.passwords.insert(id, Password(digest));
            }
            let Account { name, flags, created, .. } = account.clone();
            let line = AccountLine { id: id.to_string(), name, flags: flags.0, created };
            dump.accounts.insert(id, line);
        }
        for (id, player) in self.players().iter() {
            let Player { account, name, shape, explorer, created } = player.clone();
            let account = account.to_string();
            let line = PlayerLine { id, account, name, shape, explorer, created };
            dump.players.insert(id, line);
        }
        for id in self.scores().ids() {
            dump.scores.extend(self.scores().get(id).map(|score| (id, score.clone())));
        }
        Ok(dump.finish())
    }

    /// Replaces the whole vault, except existing accounts, which stay as they are. Existing players
    /// are removed only if `replace` is set. This is refused while anybody is logged in or an age
    /// is running, because the age would write its states into the new vault.
    pub(crate) fn restore(&mut self, dump: &Dump, replace: bool) -> Outcome<()> {
        let is_busy = |session: &Arc<Session>| !session.account.is_zero() || session.age != 0;
        let busy = self.sessions().values().any(is_busy);
        if busy || !replace && self.players().iter().next().is_some() {
            return Err(NetError::LoggedInElsewhere.into());
        }
        let old: Vec<_> = self.graph().refs().collect();
        for (parent, child, _) in old {
            self.unlink(parent, child);
        }
        for id in self.graph().ids() {
            self.drop_node(id);
        }
        let old: Vec<_> = self.players().iter().map(|(id, _)| id).collect();
        old.into_iter().for_each(|id| self.put_player(id, None));
        self.scores().ids().into_iter().for_each(|id| self.put_score(id, None));

        for (id, line) in &dump.accounts {
            match self.accounts().named(&line.name) {
                Some((known, _)) if known == *id => {}
                Some(_) => return Err(NetError::AccountAlreadyExists.into()),
                None if self.accounts().get(*id).is_some() => {}
                None => {
                    let (name, flags) = (line.name.clone(), AccountFlags(line.flags));
                    let secret = Vec::new();
                    let account = Account { name, flags, created: line.created, secret };
                    self.put_account(*id, Some(account));
                    if let Some(Password(digest)) = dump.passwords.get(id) {
                        self.set_digest(*id, *digest);
                    }
                }
            }
        }
        let mut next_node = dump.head.next_node;
        for (id, content) in &dump.nodes {
            self.put_node(*id, &decode(content)?)?;
            next_node = next_node.max(id.saturating_add(1));
        }
        for (&(parent, child), &owner) in &dump.refs {
            self.link(parent, child, owner);
        }
        for (id, line) in &dump.players {
            let account = uuid_of(&line.account).map_err(|_| NetError::InvalidParameter)?;
            let PlayerLine { name, shape, explorer, created, .. } = line.clone();
            self.put_player(*id, Some(Player { account, name, shape, explorer, created }));
        }
        let mut next_score = dump.head.next_score;
        for (id, score) in &dump.scores {
            self.put_score(*id, Some(score.clone()));
            next_score = next_score.max(id.saturating_add(1));
        }
        self.set_next_numbers(next_node, next_score);
        let system = VaultNode { node_type: Some(NodeType::System), ..VaultNode::default() };
        let system = self.graph().find(&system, 1).first().copied();
        self.put_system(system.ok_or(NetError::InvalidParameter)?);
        self.clear_online()
    }
}
