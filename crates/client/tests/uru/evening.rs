//! An evening in an age: players arrive, walk, talk, compete for a lock, change things and leave.
//! When they return, they find everything as it was, no matter how the shard ended.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tokio::time::timeout;
use worldwire_client::uru::{Age, Auth, Game, NewAge, Notifications, Scene, SceneEvent, Shard};
use worldwire_core::Reader;
use worldwire_core::json::Json;
use worldwire_net::Stop;
use worldwire_uru::plasma_message::InputState;
use worldwire_uru::schema::Descriptors;
use worldwire_uru::sdl::{Blob, ObjectState, Scalar, hook};
use worldwire_uru::types::{Location, LocationFlags, SequenceNumber, UnifiedTime, Uoid, Uuid};
use worldwire_uru::vault::{NodeType, VaultNode};

use crate::shard::{ACCOUNTS, Running, open};

const PREFIX: i32 = 120;
const FERN: Uuid = Uuid([7; 16]);
const SDL: &str = "
STATEDESC Fern { VERSION 1 VAR BOOL open[1] }
STATEDESC lever { VERSION 1 VAR INT place[1] }
STATEDESC avatarPhysical { VERSION 1 VAR POINT3 position[1] }
";
const PATIENCE: Duration = Duration::from_secs(30);

fn prepare(folder: &Path) {
    let data = folder.join("data");
    std::fs::create_dir_all(data.join("ages")).unwrap();
    std::fs::create_dir_all(data.join("secure/SDL")).unwrap();
    let age = format!("MaxCapacity=9\nLingerTime=60\nSequencePrefix={PREFIX}\n");
    std::fs::write(data.join("ages/Fern.age"), age).unwrap();
    std::fs::write(data.join("secure/SDL/Fern.sdl"), SDL).unwrap();
}

/// A player and what the player sees.
struct Visitor {
    auth: Auth,
    account: Uuid,
    player: u32,
    name: String,
    game: Game,
    told: Notifications,
    scene: Scene,
}

fn descriptors() -> Arc<Descriptors> {
    Arc::new(Descriptors::load([("Fern.sdl", SDL)]))
}

impl Visitor {
    /// Logs in, creates a player with this name and links to the age. Returns what the player found
    /// there.
    async fn come(shard: &Shard, account: usize, name: &str) -> (Self, Vec<SceneEvent>) {
        let (auth, _) = Auth::connect(shard).await.unwrap();
        let (account, password) = ACCOUNTS[account];
        let login = auth.log_in(account, password).await.unwrap();
        let known = login.players.iter().find(|player| player.name == name).cloned();
        let player = match known {
            Some(player) => player.id,
            None => auth.create_player(name, "female").await.unwrap().id,
        };
        auth.set_player(player).await.unwrap();
        auth.init_age(&NewAge::new("Fern", FERN)).await.unwrap();
        let age = auth.age("Fern", FERN).await.unwrap();
        let account = login.account_id;
        let (game, told, scene, seen) = join(shard, &age, account, player).await;
        (Self { auth, account, player, name: name.to_owned(), game, told, scene }, seen)
    }

    /// Waits for the next event other than movement.
    async fn sees(&mut self, what: &str) -> SceneEvent {
        loop {
            let told = timeout(PATIENCE, self.told.next()).await.expect(what).expect(what);
            let mut seen = self.scene.apply(&told).unwrap();
            seen.retain(|one| !matches!(one, SceneEvent::Moved { .. }));
            if let Some(first) = seen.pop() {
                assert!(seen.is_empty());
                return first;
            }
        }
    }

    async fn sees_steps(&mut self, of: u32) -> Option<[f32; 3]> {
        let told = timeout(PATIENCE, self.told.next()).await.unwrap().unwrap();
        match &self.scene.apply(&told).unwrap()[..] {
            [SceneEvent::Moved { player, position }] => {
                assert_eq!(*player, of);
                *position
            }
            other => panic!("{other:?}"),
        }
    }

    async fn pushes(&mut self) -> bool {
        self.game.lock(button(), true).await.unwrap();
        match self.sees("an answer").await {
            SceneEvent::Lock { object, granted } => {
                assert_eq!(object, button());
                granted
            }
            other => panic!("{other:?}"),
        }
    }

    /// Waits until the age's state in the vault has this value.
    async fn reads_in_the_vault(&self, open: bool) {
        let template = VaultNode {
            node_type: Some(NodeType::SDL),
            string64_1: Some("Fern".into()),
            ..VaultNode::default()
        };
        loop {
            for node in self.auth.find_nodes(&template).await.unwrap() {
                let blob = self.auth.fetch_node(node).await.unwrap().blob_1;
                let blob = blob.map(|blob| blob.to_vec()).unwrap_or_default();
                let descriptors = descriptors();
                let state = Blob::decode(&descriptors, &mut Reader::new(&blob));
                let state = state.ok().map(|blob| ObjectState::of(&blob));
                if state.is_some_and(|it| it.scalar("open") == Some(Scalar::Bool(open))) {
                    return;
                }
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn sets(&self, object: Uoid<'static>, change: &Blob<'static>) {
        self.game.change(object, change).await.unwrap();
    }
}

async fn join(
    shard: &Shard,
    age: &Age,
    account: Uuid,
    player: u32,
) -> (Game, Notifications, Scene, Vec<SceneEvent>) {
    let (game, mut told) = Game::join(shard, age, account, player).await.unwrap();
    let mut scene = Scene::new(player, descriptors());
    let seen = game.arrive("female", &mut scene, &mut told).await.unwrap();
    (game, told, scene, seen)
}

fn object(name: &'static str) -> Uoid<'static> {
    let sequence_number = SequenceNumber::from_page(PREFIX, 0).unwrap();
    let location = Location { sequence_number, flags: LocationFlags(0) };
    let (load_mask, class_index, object_id, clone) = (None, 1, 7, None);
    Uoid { location, load_mask, class_index, object_id, name: name.into(), clone }
}

fn gate() -> Uoid<'static> {
    hook::object(PREFIX).unwrap()
}

fn button() -> Uoid<'static> {
    object("Button")
}

fn change(descriptor: &str, variable: &str, value: Scalar<'_>) -> Blob<'static> {
    let mut state = ObjectState::new(descriptors().newest(descriptor).unwrap());
    let never = UnifiedTime { seconds: 0, microseconds: 0 };
    state.set(variable, &[value], &never).unwrap();
    state.to_blob()
}

/// A state change as text.
fn changed(seen: &SceneEvent) -> (String, Option<u32>, Vec<String>) {
    let SceneEvent::State { object, player, changes, .. } = seen else { panic!("{seen:?}") };
    let values = changes.iter().flatten().filter(|change| change.part.name() == "value");
    (object.name.to_text(), *player, values.map(ToString::to_string).collect())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_evening() {
    let running = Running::start(prepare).await;
    let shard = &running.shard;

    // They see each other arrive.
    let (mut ann, seen) = Visitor::come(shard, 0, "Yeesha").await;
    assert_eq!(seen[0], SceneEvent::Owner(true));
    assert_eq!(seen.last(), Some(&SceneEvent::StateComplete));
    assert_eq!(ann.scene.members().len(), 0);
    let (mut bob, seen) = Visitor::come(shard, 1, "Atrus").await;
    let came = SceneEvent::Joined { player: ann.player, name: "Yeesha".to_owned() };
    assert_eq!(seen[..2], [SceneEvent::Owner(false), came]);
    let avatar =
        SceneEvent::Clone { object: ann.game.avatar("female"), is_avatar: true, loaded: true };
    assert_eq!(seen[2], avatar);
    let came = SceneEvent::Joined { player: bob.player, name: "Atrus".to_owned() };
    assert_eq!(ann.sees("Atrus come").await, came);
    assert!(matches!(ann.sees("his avatar").await, SceneEvent::Clone { loaded: true, .. }));
    assert!(ann.scene.is_owner() && !bob.scene.is_owner());
    assert_eq!(ann.scene.clones(), [bob.game.avatar("female")]);

    // They walk.
    ann.game.send(ann.game.keys(InputState::Forward).unwrap()).await.unwrap();
    assert_eq!(bob.sees_steps(ann.player).await, None);
    let step = ann.game.position("female", &descriptors(), [1.0, 2.0, 3.0]).unwrap().unwrap();
    ann.game.send(step).await.unwrap();
    assert_eq!(bob.sees_steps(ann.player).await, Some([1.0, 2.0, 3.0]));

    // They talk. A message with a name that would crash clients is not forwarded (D-41); the next
    // message is.
    bob.game.say("\u{c9}owyn", "Shorah").await.unwrap();
    bob.game.say(&bob.name, "Shorah").await.unwrap();
    let (player, name, text) = (bob.player, "Atrus".to_owned(), "Shorah".to_owned());
    assert_eq!(ann.sees("chat").await, SceneEvent::Chat { player, name, text });

    // Both push the same button, and one wins.
    assert!(bob.pushes().await);
    assert!(!ann.pushes().await);
    bob.game.lock(button(), false).await.unwrap();
    bob.game.say(&bob.name, "yours").await.unwrap();
    assert!(matches!(ann.sees("chat").await, SceneEvent::Chat { .. }));
    assert!(ann.pushes().await);

    // They change things and the age itself.
    bob.sets(object("Lever"), &change("lever", "place", Scalar::Int(5))).await;
    let seen = ann.sees("the lever").await;
    let five = vec!["+ place = 5".to_owned()];
    assert_eq!(changed(&seen), ("Lever".to_owned(), Some(bob.player), five));
    ann.sets(gate(), &change("Fern", "open", Scalar::Bool(true))).await;
    assert_eq!(changed(&bob.sees("the age").await).2, ["+ open = true"]);

    // The first player leaves. The other one is notified and becomes the owner.
    ann.game.leave().await;
    assert!(matches!(bob.sees("her avatar go").await, SceneEvent::Clone { loaded: false, .. }));
    let went = SceneEvent::Left { player: ann.player, name: "Yeesha".to_owned() };
    assert_eq!(bob.sees("her go").await, went);
    assert_eq!(bob.sees("the age").await, SceneEvent::Owner(true));
    assert_eq!((bob.scene.members().len(), bob.scene.clones().len()), (0, 0));
    // Her lock is free.
    assert!(bob.pushes().await);

    // She returns later and finds everything.
    let age = ann.auth.age("Fern", FERN).await.unwrap();
    let (game, _told, scene, _) = join(shard, &age, ann.account, ann.player).await;
    let values = |scene: &Scene| {
        let lever = scene.states().get(&object("Lever"), "lever").unwrap();
        let age = scene.states().get(&gate(), "Fern").unwrap();
        (lever.state.scalar("place") == Some(Scalar::Int(5)), age.state.is_set("open"))
    };
    assert_eq!(values(&scene), (true, true));
    assert_eq!(scene.members().next(), Some((bob.player, "Atrus")));

    // The shard restarts, and everything is as they left it.
    drop((game, ann.auth, bob));
    let running = Running::start_in(running.stop().await, |_| ()).await;
    let (ann, _) = Visitor::come(&running.shard, 0, "Yeesha").await;
    assert_eq!(values(&ann.scene), (true, true));
    assert!(ann.scene.is_owner());
    drop(ann);
    running.stop().await;
}

const FOLDER: &str = "WORLDWIRE_EVENING_FOLDER";

/// A shard in a child process, which is killed when this value is dropped.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(folder: &TempDir) -> (Process, Shard) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "evening::a_shard_that_is_killed", "--nocapture"]);
    command.env(FOLDER, folder.path()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut process = Process(command.spawn().unwrap());
    let mut lines = BufReader::new(process.0.stdout.take().unwrap()).lines();
    let ready = lines.find_map(|line| {
        let line = line.unwrap();
        let json = line.split_once("server.ini: ")?.1.to_owned();
        Some(json_text(&json))
    });
    let mut shard = Shard::parse(&ready.unwrap()).unwrap();
    shard.patience = PATIENCE;
    // Nobody reads the remaining output, but the pipe must stay open.
    std::thread::spawn(move || lines.for_each(drop));
    (process, shard)
}

fn json_text(json: &str) -> String {
    match worldwire_core::json::parse(json) {
        Ok(Json::String(text)) => text.into(),
        other => panic!("{other:?}"),
    }
}

/// The child: serves until it is killed. When run as an ordinary test, it does nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shard_that_is_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let server = open(folder.as_ref(), |_| ()).await;
    // The test harness has already started a line.
    println!("\nserver.ini: {}", Json::from(server.server_ini()));
    server.serve(Stop::new().signal()).await.unwrap();
}

/// Recent changes survive a crash; locks and avatars of lost players do not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_in_the_middle() {
    let folder = tempfile::tempdir().unwrap();
    prepare(folder.path());
    let (process, shard) = start(&folder);
    let (mut ann, _) = Visitor::come(&shard, 0, "Yeesha").await;
    let (mut bob, _) = Visitor::come(&shard, 1, "Atrus").await;
    assert!(bob.pushes().await);
    bob.sets(object("Lever"), &change("lever", "place", Scalar::Int(1))).await;
    while !matches!(ann.sees("the lever").await, SceneEvent::State { .. }) {}
    // Batches are written in order: once the second is stored, the first is stored, too.
    for open in [true, false] {
        bob.sets(gate(), &change("Fern", "open", Scalar::Bool(open))).await;
        timeout(PATIENCE, bob.reads_in_the_vault(open)).await.unwrap();
    }
    // The crash happens in the middle of more changes.
    for place in 2..50 {
        bob.sets(object("Lever"), &change("lever", "place", Scalar::Int(place))).await;
    }
    drop(process);
    assert!(timeout(PATIENCE, async { while ann.told.next().await.is_some() {} }).await.is_ok());
    drop((ann, bob));

    let (process, shard) = start(&folder);
    let (mut ann, seen) = Visitor::come(&shard, 0, "Yeesha").await;
    let lever = ann.scene.states().get(&object("Lever"), "lever").unwrap();
    assert!(matches!(lever.state.scalar("place"), Some(Scalar::Int(1..50))), "{lever:?}");
    let age = ann.scene.states().get(&gate(), "Fern").unwrap();
    assert!(age.state.is_set("open"));
    assert!(
        !seen.iter().any(|one| matches!(one, SceneEvent::Clone { .. } | SceneEvent::Joined { .. }))
    );
    assert!(ann.pushes().await);
    drop(process);
}
