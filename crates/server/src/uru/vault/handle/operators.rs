//! Operators' requests.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::Value as Json;
use worldwire_uru::message::AccountFlags;
use worldwire_uru::types::{NetError, Uuid};
use worldwire_uru::vault::VaultNode;
use zeroize::Zeroizing;

use super::Vault;
use crate::uru::vault::accounts::{AccountSummary, PasswordSet};
use crate::uru::vault::dump::Dump;
use crate::uru::vault::inspect::{Finding, TreeLine};
use crate::uru::vault::lookup::Named;
use crate::uru::vault::players::{Kicked, Renamed};
use crate::uru::vault::prune::Pruned;
use crate::uru::vault::steps::{RESTRICTED, VaultState, WELCOME};

/// Declares a method for each operator request. The method's future borrows nothing.
macro_rules! requests {
    ($(
        $(#[doc = $doc:expr])*
        $name:ident($($argument:ident: $type:ty),*) -> $result:ty
            $(, needs $needs:expr)? ; |$state:ident| $body:expr
    )*) => {$(
        $(#[doc = $doc])*
        pub fn $name(
            &self,
            $($argument: $type),*
        ) -> impl Future<Output = Result<$result, NetError>> + Send + use<> {
            let needs: Option<u32> = None$(.or(Some($needs)))?;
            self.operate(needs, move |$state| $body)
        }
    )*};
}

impl Vault {
    /// Creates an account.
    ///
    /// # Errors
    /// [`NetError::AccountAlreadyExists`]; [`NetError::InvalidParameter`] for a name that is
    /// empty, has surrounding spaces, or contains control characters.
    pub async fn add_account(
        &self,
        name: &str,
        password: &str,
        flags: AccountFlags,
    ) -> Result<PasswordSet, NetError> {
        let (name, password) = (name.to_owned(), Zeroizing::new(password.to_owned()));
        self.operate(None, move |state| state.add_account(&name, &password, flags)).await
    }

    /// Changes an account's password. Fails with [`NetError::AccountNotFound`].
    pub async fn set_password(&self, name: &str, password: &str) -> Result<PasswordSet, NetError> {
        let (name, password) = (name.to_owned(), Zeroizing::new(password.to_owned()));
        self.operate(None, move |state| state.set_password(&name, &password)).await
    }

    /// Bans an account and ends its sessions, or lifts its ban. Fails with
    /// [`NetError::AccountNotFound`].
    pub async fn ban_account(&self, name: &str, banned: bool) -> Result<Uuid, NetError> {
        let name = name.to_owned();
        self.operate(None, move |state| state.ban_account(&name, banned)).await
    }

    /// Replaces the rights of an account, except whether it is banned. Fails with
    /// [`NetError::AccountNotFound`].
    pub async fn set_roles(&self, name: &str, flags: AccountFlags) -> Result<Uuid, NetError> {
        let name = name.to_owned();
        Ok(self.call(None, None, move |state| state.set_roles(&name, flags)).await?.0)
    }

    /// Sets whether only administrators, developers and testers may log in. If `kick` is set, also
    /// ends the sessions of all others. Returns the sessions that were ended.
    pub async fn restrict(&self, restricted: bool, kick: bool) -> Result<Vec<Kicked>, NetError> {
        let shown = Arc::clone(&self.restricted);
        let restrict = move |state: &mut VaultState| {
            let kicked = state.restrict(restricted, kick);
            // Like the rule itself, this is not undone by a failed batch.
            if kicked.is_ok() {
                shown.store(restricted, Ordering::Relaxed);
            }
            kicked
        };
        Ok(self.call(None, None, restrict).await?.0)
    }

    /// Tells the processes that follow this vault the welcome message.
    pub(in crate::uru) async fn set_welcome(&self, text: &str) -> Result<(), NetError> {
        let text = text.to_owned();
        let set = move |state: &mut VaultState| {
            state.tell_standbys(WELCOME, &text);
            Ok(())
        };
        self.operate(None, set).await
    }

    /// Tells the processes that follow this vault with which keys the shard is served, as a digest,
    /// and the settings that operators change.
    pub(in crate::uru) async fn introduce(
        &self,
        keys: u64,
        restricted: bool,
        welcome: &str,
    ) -> Result<(), NetError> {
        let welcome = welcome.to_owned();
        let record = move |state: &mut VaultState| {
            state.put_keys(keys);
            // Usually the same as those of the process before.
            if state.live().restricted != Some(restricted) {
                state.tell_standbys(RESTRICTED, &restricted.to_string());
            }
            if state.live().welcome.as_ref() != Some(&welcome) {
                state.tell_standbys(WELCOME, &welcome);
            }
            Ok(())
        };
        self.operate(None, record).await
    }

    /// Ends the sessions of an account, and deletes it and its players. Fails with
    /// [`NetError::AccountNotFound`].
    pub async fn delete_account(&self, name: &str) -> Result<Uuid, NetError> {
        let name = name.to_owned();
        self.operate(None, move |state| state.delete_account(&name)).await
    }

    /// Ends the session of a player, given by number or name, or all sessions of an account.
    /// Clients can log in again.
    ///
    /// # Errors
    /// [`NetError::AccountNotFound`] for an unknown name; [`NetError::InvalidParameter`] for a name
    /// that both an account and another account's player have; [`NetError::PlayerNotFound`] if
    /// there is no such session.
    pub async fn kick(&self, who: &str) -> Result<Vec<Kicked>, NetError> {
        let who = who.to_owned();
        self.operate(None, move |state| state.kick_by_name(&who)).await
    }

    /// Renames a player, given by number or name, everywhere, and notifies all sessions that watch
    /// the player. A player who is online keeps the old name in its age until it logs in again.
    ///
    /// # Errors
    /// [`NetError::PlayerNotFound`]; [`NetError::PlayerNameInvalid`] for a name that no player may
    /// have; [`NetError::PlayerAlreadyExists`] if another player has the name.
    pub async fn rename_player(&self, who: &str, name: &str) -> Result<Renamed, NetError> {
        let (who, name) = (who.to_owned(), name.to_owned());
        self.operate(None, move |state| state.rename_player(&who, &name)).await
    }

    /// The nodes that a word identifies: a number, an age's instance, or the name of a player or
    /// age, ignoring case. Only a name can match several nodes.
    pub async fn nodes_called(&self, word: &str) -> Result<Vec<Named>, NetError> {
        let word = word.to_owned();
        self.operate(None, move |state| state.nodes_called(&word)).await
    }

    /// The Age nodes that a word identifies: a number, an instance, a filename, an instance's name,
    /// or the name that players see.
    pub async fn ages_called(&self, word: &str) -> Result<Vec<Named>, NetError> {
        let word = word.to_owned();
        self.operate(None, move |state| state.ages_called(&word)).await
    }

    requests! {
        /// All accounts, by name.
        accounts() -> Vec<AccountSummary>;
            |state| Ok(state.list_accounts())

        /// The tree below a node (by default the System node), down to this depth. Fails with
        /// [`NetError::VaultNodeNotFound`].
        tree(root: Option<u32>, depth: u32) -> Vec<TreeLine>;
            |state| state.tree(root, depth)

        /// The fields of a node, as JSON. Fails with [`NetError::VaultNodeNotFound`].
        show(node: u32) -> Json, needs node;
            |state| state.show(node)

        /// The nodes with all fields of a template. Fails with [`NetError::InvalidParameter`] for a
        /// template without fields.
        find(template: VaultNode<'static>) -> Vec<u32>;
            |state| state.search(&template)

        /// Changes fields of a node and notifies all sessions that watch it.
        ///
        /// # Errors
        /// [`NetError::VaultNodeNotFound`]; [`NetError::InvalidParameter`] for text that is too
        /// long; [`NetError::VaultNodeAccessViolation`] for fields that the server sets when it
        /// creates a node, the names of players, and the fields by which ages are found.
        set(node: u32, fields: VaultNode<'static>) -> (), needs node;
            |state| state.set_fields(node, &fields)

        /// Checks the vault for damaged nodes, cycles, dangling references, players without nodes,
        /// and players with the same name. All other requests wait.
        check() -> Vec<Finding>;
            |state| state.check()

        /// Removes nodes that belong to no tree, in one transaction; if `dry` is set, only counts
        /// them. All other requests wait. Nodes of players who are online, and nodes that changed
        /// within the last hour, are kept.
        prune(dry: bool) -> Pruned;
            |state| state.prune(dry)

        /// A consistent copy of the whole vault. All other requests wait.
        export() -> Dump;
            |state| state.dump(false)

        /// The whole vault with password digests, for another server. The digests can be used like
        /// passwords.
        export_with_passwords() -> Dump;
            |state| state.dump(true)

        /// Replaces the whole vault, except existing accounts, in one transaction.
        ///
        /// # Errors
        /// [`NetError::LoggedInElsewhere`] while anybody is logged in or an age is running, or if
        /// there are players and `replace` is not set; [`NetError::AccountAlreadyExists`] if an
        /// imported account has the name of an existing one.
        import(dump: Dump, replace: bool) -> ();
            |state| state.restore(&dump, replace)
    }
}
