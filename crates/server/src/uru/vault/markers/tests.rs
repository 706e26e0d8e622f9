//! Tests the vault against `MarkerLibrary`, which defines the behaviour of a store for marker
//! games.

#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::collections::HashMap;

use proptest::prelude::*;
use worldwire_uru::games::{MarkerBounds, MarkerLibrary};
use worldwire_uru::message::AccountFlags;
use worldwire_uru::types::NetError;

use super::*;
use crate::store::seal::ServerKey;
use crate::store::{Change, NodeRow};
use crate::uru::vault::config::VaultConfig;
use crate::uru::vault::content::Content;
use crate::uru::vault::dump::Dump;
use crate::uru::vault::session::{ConnectionId, Session};

const BOUNDS: MarkerBounds = MarkerBounds { markers: 3, templates: 2 };
const DAY: u32 = 24 * 3_600;

fn template(number: u8) -> Uuid {
    Uuid([number; 16])
}

/// A vault that keeps no contents in memory, and the nodes that its database would contain.
struct Shard {
    state: VaultState,
    stored: HashMap<u32, Content>,
}

impl Shard {
    fn new() -> Self {
        let mut shard = Self { state: state(), stored: HashMap::new() };
        shard.run(VaultState::found).unwrap();
        shard
    }

    /// Runs a request as the vault's task does, and commits it.
    fn run<T>(&mut self, request: impl Fn(&mut VaultState) -> Outcome<T>) -> Result<T, NetError> {
        let outcome = loop {
            match self.state.run(&request) {
                Err(Stop::Need(ids)) => {
                    for id in ids {
                        self.state.load_content(id, self.stored[&id].clone());
                    }
                }
                Err(Stop::Refused(error)) => break Err(error),
                Ok(value) => break Ok(value),
            }
        };
        for change in self.state.staged().clone().into_values() {
            match change {
                Change::PutNode(row) => drop(self.stored.insert(row.id, row.data)),
                Change::DeleteNode(id) => drop(self.stored.remove(&id)),
                _ => {}
            }
        }
        self.state.settle();
        outcome
    }

    /// Starts again with the contents of the database.
    fn restart(&mut self) {
        let mut state = state();
        let numbers = self.state.next_numbers();
        for (id, data) in &self.stored {
            let kind = decode(data).unwrap().node_type.unwrap().0;
            state.load_node(&NodeRow { id: *id, kind, data: data.clone() }).unwrap();
        }
        state.finish_loading().unwrap();
        state.set_next_numbers(numbers.0, numbers.1);
        self.state = state;
        self.state.settle();
    }

    fn markers(&mut self, request: &MarkerRequest) -> MarkerAnswer {
        self.run(|state| state.try_markers(request)).unwrap()
    }

    fn clean_up(&mut self, open: &[Uuid]) -> usize {
        let open = open.iter().copied().collect();
        self.run(|state| state.clean_up_markers(&open)).unwrap()
    }

    /// Whether a template exists.
    fn has(&self, number: u8) -> bool {
        self.state.graph().markers().template(template(number)).is_some()
    }

    fn marker_nodes(&self) -> usize {
        let graph = self.state.graph();
        graph.ids().into_iter().filter(|id| graph.kind(*id).is_some_and(is_marker_node)).count()
    }
}

fn state() -> VaultState {
    let mut number = 0_u8;
    let random = Box::new(move |bytes: &mut [u8]| {
        number = number.wrapping_add(1);
        bytes.fill(number);
    });
    let config = VaultConfig { markers: BOUNDS, cache_bytes: 0, ..VaultConfig::default() };
    VaultState::new(config, ServerKey::from_bytes(&[1; 32]), random)
}

fn create(number: u8, creator: u32, game_type: MarkerGameType) -> MarkerRequest {
    let (template, name) = (template(number), "Hunt".into());
    MarkerRequest::Create { template, creator, game_type, name, time_limit: 60 }
}

fn add(number: u8, creator: u32) -> MarkerRequest {
    let position = [1.5, -2.0, f64::from(number)];
    let marker = Marker { position, name: "here".into(), age: "Garden".into() };
    MarkerRequest::Add { template: template(number), creator, marker: marker.into() }
}

#[derive(Clone, Debug)]
enum Step {
    Request(MarkerRequest),
    /// A request in a batch fails.
    Undone(MarkerRequest),
    Restart,
}

fn request() -> impl Strategy<Value = MarkerRequest> {
    let text = || prop::sample::select(vec!["", "one", "Sh\u{f3}rah \u{1f525}"]);
    let kind = || prop::sample::select(vec![MarkerGameType::Quest, MarkerGameType::Cgz]);
    let key = || (0..3_u8, 1..4_u32);
    prop_oneof![
        2 => (key(), kind(), text(), any::<u32>()).prop_map(|((of, creator), game_type, name, limit)| {
            let (template, time_limit) = (template(of), limit);
            MarkerRequest::Create { template, creator, game_type, name: name.into(), time_limit }
        }),
        4 => (key(), kind()).prop_map(|((of, player), game_type)| {
            MarkerRequest::Open { template: template(of), player, game_type }
        }),
        6 => (key(), text(), any::<f32>()).prop_map(|((of, creator), name, x)| {
            let position = [f64::from(if x.is_finite() { x } else { 0.0 }), 0.0, -1.0];
            let marker = Box::new(Marker { position, name: name.into(), age: "city".into() });
            MarkerRequest::Add { template: template(of), creator, marker }
        }),
        2 => (key(), 0..5_u32).prop_map(|((of, creator), marker)| {
            MarkerRequest::Delete { template: template(of), creator, marker }
        }),
        2 => (key(), 0..5_u32, text()).prop_map(|((of, creator), marker, name)| {
            MarkerRequest::Rename { template: template(of), creator, marker, name: name.into() }
        }),
        1 => (key(), text()).prop_map(|((of, creator), name)| {
            MarkerRequest::RenameGame { template: template(of), creator, name: name.into() }
        }),
        1 => (key(), any::<u32>()).prop_map(|((of, creator), time_limit)| {
            MarkerRequest::SetTimeLimit { template: template(of), creator, time_limit }
        }),
        6 => (key(), 0..5_u32).prop_map(|((of, player), marker)| {
            MarkerRequest::Capture { template: template(of), player, marker }
        }),
        1 => key().prop_map(|(of, player)| {
            MarkerRequest::Forget { template: template(of), player }
        }),
        1 => key().prop_map(|(of, creator)| {
            MarkerRequest::Remove { template: template(of), creator }
        }),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        16 => request().prop_map(Step::Request),
        2 => request().prop_map(Step::Undone),
        1 => Just(Step::Restart),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn the_vault_does_what_the_library_does(steps in prop::collection::vec(step(), 1..80)) {
        let (mut shard, mut library) = (Shard::new(), MarkerLibrary::new(BOUNDS));
        for step in &steps {
            match step {
                Step::Request(request) => {
                    prop_assert_eq!(shard.markers(request), library.apply(request), "{:?}", step);
                }
                Step::Undone(request) => {
                    let refused = shard.run(|state| {
                        state.try_markers(request)?;
                        Err::<(), _>(NetError::InvalidParameter.into())
                    });
                    prop_assert_eq!(refused, Err(NetError::InvalidParameter));
                }
                Step::Restart => shard.restart(),
            }
            prop_assert_eq!(marker_problems(shard.state.graph()), []);
        }
    }
}

/// A panic in one request of a batch affects no other request.
#[test]
fn requests_of_a_batch_are_independent() {
    let mut shard = Shard::new();
    let answers = shard.run(|state| {
        let quest = create(1, 5, MarkerGameType::Quest);
        let first = state.try_markers(&quest)?;
        let failed: Outcome<MarkerAnswer> = state.run(|state| {
            state.markers(&add(1, 5))?;
            Err(NetError::InternalError.into())
        });
        assert!(failed.is_err());
        Ok((first, state.try_markers(&add(1, 5))?))
    });
    let (first, added) = answers.unwrap();
    assert!(matches!(first, MarkerAnswer::Opened { .. }));
    assert_eq!(added, MarkerAnswer::Added { marker: 0 });
    assert_eq!(shard.marker_nodes(), 2);
}

#[test]
fn quests_that_nobody_has_are_removed_a_day_later() {
    let mut shard = Shard::new();
    let mut now = 1_700_000_000;
    let mut at = |shard: &mut Shard, seconds: u32| {
        now += seconds;
        shard.state.set_now(now);
    };
    at(&mut shard, 0);
    shard.markers(&create(1, 5, MarkerGameType::Quest));
    shard.markers(&add(1, 5));
    let capture = MarkerRequest::Capture { template: template(1), player: 6, marker: 0 };
    assert_eq!(shard.markers(&capture), MarkerAnswer::Done);
    // The client creates its node a moment after the template.
    assert_eq!(shard.clean_up(&[]), 0);
    let game = VaultNode {
        node_type: Some(NodeType::MarkerGame),
        uuid_1: Some(template(1)),
        ..VaultNode::default()
    };
    let node = shard.run(|state| state.make_node(game.clone())).unwrap();
    at(&mut shard, 3 * DAY);
    assert_eq!((shard.clean_up(&[]), shard.has(1)), (0, true));
    // The node is deleted, but the game still runs.
    let drop_it = |state: &mut VaultState| {
        state.drop_node(node);
        Ok(())
    };
    shard.run(drop_it).unwrap();
    assert_eq!(shard.clean_up(&[template(1)]), 0);
    at(&mut shard, 3 * DAY);
    assert_eq!(shard.clean_up(&[template(1)]), 0);
    // From now on, nobody has the game.
    assert_eq!(shard.clean_up(&[]), 0);
    shard.restart();
    at(&mut shard, DAY - 1);
    assert_eq!(shard.clean_up(&[]), 0);
    let unused = shard.run(VaultState::check).unwrap();
    assert_eq!(unused.iter().filter(|it| it.kind == "unused-game" && !it.problem).count(), 1);
    at(&mut shard, 1);
    assert_eq!((shard.clean_up(&[]), shard.has(1), shard.marker_nodes()), (1, false, 0));
}

/// The process with the vault does not know that these games are running.
#[test]
fn quests_that_run_at_nodes_stay() {
    let mut shard = Shard::new();
    let at = |shard: &mut Shard, later: u32| {
        let now = shard.state.now();
        shard.state.set_now(now + later);
    };
    at(&mut shard, DAY);
    shard.markers(&create(1, 5, MarkerGameType::Quest));
    let keep = |state: &mut VaultState| state.keep_games(&[template(1), template(2)].into());
    for _ in 0..3 {
        assert_eq!(shard.clean_up(&[]), 0);
        at(&mut shard, DAY);
        shard.restart();
        shard.run(keep).unwrap();
    }
    // The game has only just begun.
    assert_eq!(shard.clean_up(&[]), 0);
    at(&mut shard, DAY);
    let (template, game_type) = (template(1), MarkerGameType::Quest);
    shard.markers(&MarkerRequest::Open { template, player: 6, game_type });
    assert_eq!(shard.clean_up(&[]), 0);
    at(&mut shard, DAY);
    assert_eq!((shard.clean_up(&[]), shard.has(1)), (1, false));
}

#[test]
fn a_deleted_player_leaves_quests_but_no_missions() {
    let mut shard = Shard::new();
    let connection = ConnectionId(1);
    let account = shard.run(|state| state.add_account("ann", "secret", AccountFlags(0))).unwrap();
    shard.state.connect(connection);
    let session = Session { account: account.account, ..Session::default() };
    shard.state.put_session(connection, Some(session));
    let ann = shard.run(|state| state.create_player(connection, "Ann", "female")).unwrap().id;
    for (number, game_type) in [(1, MarkerGameType::Quest), (2, MarkerGameType::Cgz)] {
        shard.markers(&create(number, ann, game_type));
        shard.markers(&add(number, ann));
        for player in [ann, 7] {
            let template = template(number);
            shard.markers(&MarkerRequest::Capture { template, player, marker: 0 });
        }
    }
    shard.run(|state| state.delete_player(connection, ann)).unwrap();
    assert_eq!((shard.has(1), shard.has(2)), (true, false));
    // The quest, its marker, and the other player's captures.
    assert_eq!(shard.marker_nodes(), 3);
    let game = VaultNode {
        node_type: Some(NodeType::MarkerGame),
        uuid_1: Some(template(1)),
        ..VaultNode::default()
    };
    shard.run(|state| state.make_node(game.clone())).unwrap();
    // A mission whose creator was deleted elsewhere, such as on the server from which it was
    // imported.
    shard.markers(&create(3, 99, MarkerGameType::Cgz));
    assert_eq!(shard.clean_up(&[]), 0);
    shard.state.set_now(DAY + 5);
    assert_eq!(shard.clean_up(&[]), 1);
    assert_eq!((shard.has(1), shard.has(3)), (true, false));
}

#[test]
fn exports_include_marker_games_and_find_damaged_ones() {
    let mut shard = Shard::new();
    shard.markers(&create(1, 5, MarkerGameType::Quest));
    shard.markers(&add(1, 5));
    shard.markers(&MarkerRequest::Capture { template: template(1), player: 6, marker: 0 });
    let lines: Vec<String> = shard.run(|state| state.dump(false)).unwrap().lines().collect();
    let dump = Dump::read(lines.iter().map(String::as_str)).unwrap();
    let mut other = Shard::new();
    other.run(|state| state.restore(&dump, false)).unwrap();
    let (template, game_type) = (template(1), MarkerGameType::Quest);
    let open = MarkerRequest::Open { template, player: 6, game_type };
    let opened = shard.markers(&open);
    assert!(matches!(&opened, MarkerAnswer::Opened { captured, .. } if captured.len() == 1));
    assert_eq!(other.markers(&open), opened);
    // Pruning keeps these nodes.
    shard.run(|state| state.prune(false)).unwrap();
    assert_eq!(shard.markers(&open), opened);
    // Without the template, the remaining nodes belong to nothing.
    let kind = format!("\"NodeType\":{}", TEMPLATE.0);
    let damaged = lines.iter().filter(|line| !line.contains(&kind)).map(|line| {
        match line.starts_with("{\"end\"") {
            true => line.replace(
                &format!("\"nodes\":{}", dump.nodes()),
                &format!("\"nodes\":{}", dump.nodes() - 1),
            ),
            false => line.clone(),
        }
    });
    let damaged: Vec<String> = damaged.collect();
    assert_eq!(damaged.len(), lines.len() - 1);
    let error = Dump::read(damaged.iter().map(String::as_str)).unwrap_err().to_string();
    assert!(error.ends_with("belongs to a marker game that does not exist"), "{error}");
}

/// Clients survive anything that an operator writes into a node.
#[test]
fn stored_texts_are_made_sound() {
    let long = TermStr::from(&*"\u{1f525}".repeat(200));
    let name: GameText<'static, 256> = sound(Some(&long));
    assert_eq!(name.units(), 254);
    let ended = TermStr::from("a\0b");
    assert_eq!(sound::<256>(Some(&ended)).to_text(), "a");
    assert_eq!(sound::<256>(Some(&TermStr::from(vec![0, 0xd8]))).to_text(), "\u{fffd}");
}
