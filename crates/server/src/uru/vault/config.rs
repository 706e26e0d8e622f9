//! What an operator may choose about a vault.

use worldwire_uru::types::Uuid;
use worldwire_uru::vault::MAX_TEXT_UNITS;

/// The rules of a shard, as far as its operator chooses them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VaultConfig {
    /// The number of the first node of a new vault. Default 10,001, as on dirtsand and moulars.
    pub first_node: u32,
    /// Whether players may change only what is theirs and read only what they come across.
    /// Default true.
    pub strict: bool,
    /// UTF-16 units of a node's Text when it is saved. Default 1,023.
    pub max_text: usize,
    /// What becomes of a player that is chosen while it is active elsewhere. Default refuse.
    pub on_duplicate: OnDuplicate,
    /// Players of one account. Default and most 5: clients have no room for more.
    pub players: usize,
    /// Whether only administrators, developers and testers may log in. Default false.
    pub restricted: bool,
    /// Failed logins in a minute for an account name from an address, after which more are refused.
    /// Four times as many for an address, and for a name from an address that has never logged in
    /// to it. Default 5; 0 is no limit.
    pub failed_logins: u32,
    /// The neighbourhood that a new player joins; another one is made when all are full.
    pub neighbourhood: AgeNames,
    /// Owners of such a neighbourhood. Default 20.
    pub neighbours: usize,
    /// The public city, to which a new player has a link.
    pub city: StaticAge,
    /// Further public ages, made when the shard starts.
    pub static_ages: Vec<StaticAge>,
    /// Files of the ages that their owners may make public. Default `Neighborhood`.
    pub may_be_public: Vec<String>,
    /// Files of the ages that may be entered without being in the vault. Default `StartUp` and
    /// `AvatarCustomization`.
    pub temporary_ages: Vec<String>,
    /// Whether any age may be entered without being in the vault. Default false.
    pub any_temporary_age: bool,
    /// Whether whoever knows an age of the vault may enter it. Default false.
    pub open_ages: bool,
    /// Nodes that one player may have made. Default 20,000; 0 is no limit.
    pub max_nodes: usize,
    /// Nodes in a player's inbox, above which others send it no more. Default 500; 0 is no limit.
    pub max_in_inbox: usize,
    /// Bytes of node contents that are kept in memory. Default 64 MiB.
    pub cache_bytes: usize,
    /// Notices that may wait for a connection; one that lets more pile up is ended. Default 1,000.
    pub max_notices: usize,
}

/// What becomes of a player that is chosen while it is active elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OnDuplicate {
    /// The new connection is refused.
    #[default]
    Refuse,
    /// The old connection is ended.
    Kick,
}

/// What an age is called.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct AgeNames {
    /// In files: `Neighborhood`.
    pub filename: String,
    /// The instance: `Hood`.
    pub instance_name: String,
    /// What its owner calls it: `DRC`.
    pub user_name: String,
    /// Its description: `DRC Hood`.
    pub description: String,
}

/// An age that exists once.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct StaticAge {
    /// What it is called.
    pub names: AgeNames,
    /// Its instance; a random one if there is none.
    pub instance: Option<Uuid>,
}

impl Default for VaultConfig {
    fn default() -> Self {
        let text = str::to_owned;
        Self {
            first_node: 10_001,
            strict: true,
            max_text: MAX_TEXT_UNITS,
            on_duplicate: OnDuplicate::default(),
            players: 5,
            restricted: false,
            failed_logins: 5,
            neighbourhood: AgeNames {
                filename: text("Neighborhood"),
                instance_name: text("Hood"),
                user_name: text("DRC"),
                description: text("DRC Hood"),
            },
            neighbours: 20,
            city: StaticAge {
                names: AgeNames {
                    filename: text("city"),
                    instance_name: text("Ae'gura"),
                    user_name: String::new(),
                    description: text("Ae'gura"),
                },
                instance: None,
            },
            static_ages: Vec::new(),
            may_be_public: vec![text("Neighborhood")],
            temporary_ages: vec![text("StartUp"), text("AvatarCustomization")],
            any_temporary_age: false,
            open_ages: false,
            max_nodes: 20_000,
            max_in_inbox: 500,
            cache_bytes: 64 << 20,
            max_notices: 1_000,
        }
    }
}
