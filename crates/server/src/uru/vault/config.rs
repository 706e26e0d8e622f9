//! A vault's rules.

use worldwire_uru::games::MarkerBounds;
use worldwire_uru::types::Uuid;
use worldwire_uru::vault::MAX_TEXT_UNITS;

/// The rules that an operator chooses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VaultConfig {
    /// The number of the first node of a new vault. Default 10,001, as on dirtsand and moulars.
    pub first_node: u32,
    /// Whether players may change only their own nodes and read only nodes that they can encounter
    /// in the game. Default true.
    pub strict: bool,
    /// The maximum length of a node's Text, in UTF-16 units. Default 1,023.
    pub max_text: usize,
    /// What to do when a session chooses a player who is online elsewhere. Default: refuse.
    pub on_duplicate: OnDuplicate,
    /// The maximum number of players per account. Default 5, which is all that clients have room
    /// for.
    pub players: usize,
    /// Whether only administrators, developers and testers may log in. Default false.
    pub restricted: bool,
    /// The number of failed logins per minute for one name and address after which further ones are
    /// refused. For an address alone, and for a name from addresses that have never logged in to
    /// it, the limit is four times as high. Default 5; 0 for no limit.
    pub failed_logins: u32,
    /// The neighbourhood that new players join. When all are full, another one is created.
    pub neighbourhood: AgeNames,
    /// The number of owners at which a neighbourhood is full. Default 20.
    pub neighbours: usize,
    /// The public city to which new players get a link.
    pub city: StaticAge,
    /// More public ages, created when the shard starts.
    pub static_ages: Vec<StaticAge>,
    /// Ages to whose instances the game's scripts link by UUID. An instance that is missing is
    /// created for the first client that follows such a link. Default none.
    pub linked_ages: Vec<AgeNames>,
    /// Filenames of ages that owners may make public. Default `Neighborhood`.
    pub may_be_public: Vec<String>,
    /// Filenames of ages that players may enter without their being in the vault. Default `StartUp`
    /// and `AvatarCustomization`.
    pub temporary_ages: Vec<String>,
    /// Whether players may enter any age that is not in the vault. Default false.
    pub any_temporary_age: bool,
    /// Whether players may enter any age in the vault that they know of. Default false.
    pub open_ages: bool,
    /// Whether players may enter an age while they are in the same age as one of its owners, or
    /// shortly afterwards, so that books can be shared. Default true.
    pub sharing: bool,
    /// The maximum number of nodes that one player may create. Nodes that belong to no tree count
    /// separately, up to the same number. Default 20,000; 0 for no limit.
    pub max_nodes: usize,
    /// The number of nodes in a player's inbox beyond which others cannot send more. Default 500; 0
    /// for no limit.
    pub max_in_inbox: usize,
    /// Limits on marker games.
    pub markers: MarkerBounds,
    /// The size of the cache of node contents, in bytes. Default 64 MiB.
    pub cache_bytes: usize,
    /// The maximum number of queued notices per session. Sessions that exceed it are ended. Default
    /// 1,000.
    pub max_notices: usize,
}

/// What to do when a session chooses a player who is online elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OnDuplicate {
    /// The new connection is refused.
    #[default]
    Refuse,
    /// The old connection is ended.
    Kick,
}

/// An age's names.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct AgeNames {
    /// The filename, such as `Neighborhood`.
    pub filename: String,
    /// The instance's name, such as `Hood`.
    pub instance_name: String,
    /// The name that its owner gave it, such as `DRC`.
    pub user_name: String,
    /// Its description, such as `DRC Hood`.
    pub description: String,
}

/// An age of which only one instance exists.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct StaticAge {
    /// The age's names.
    pub names: AgeNames,
    /// Its instance; `None` for a random one.
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
            linked_ages: Vec::new(),
            may_be_public: vec![text("Neighborhood")],
            temporary_ages: vec![text("StartUp"), text("AvatarCustomization")],
            any_temporary_age: false,
            open_ages: false,
            sharing: true,
            max_nodes: 20_000,
            max_in_inbox: 500,
            markers: MarkerBounds::default(),
            cache_bytes: 64 << 20,
            max_notices: 1_000,
        }
    }
}
