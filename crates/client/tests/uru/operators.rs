//! Operators' actions on a running shard, as its clients see them.

use std::time::Duration;

use serde_json::{Value as Json, json};
use tokio::time::timeout;
use worldwire_client::uru::{Auth, Game, Notification, Scene, SceneEvent};
use worldwire_server::uru::admin::{Admin, AdminError, Request};
use worldwire_server::uru::config::FixedAge;
use worldwire_uru::message::AccountFlags;
use worldwire_uru::types::{NetError, Uuid};

use crate::shard::{ACCOUNTS, Running};

const PATIENCE: Duration = Duration::from_secs(30);

impl Running {
    async fn ask(&self, request: Request) -> Result<Vec<Json>, String> {
        let admin = Admin::open(self.folder.path()).await.unwrap();
        match admin.ask(request).await {
            Ok(answer) => Ok(answer),
            Err(AdminError::Refused(problem)) => Err(problem),
            Err(error) => panic!("{error}"),
        }
    }

    async fn ages(&self, running: bool) -> Vec<Json> {
        self.ask(Request::Ages { all: false, running }).await.unwrap()
    }
}

/// Links in the game's scripts name an instance. If it did not exist, these links would disconnect
/// clients.
#[tokio::test]
async fn links_to_fixed_instances_lead_somewhere() {
    let running = Running::start(|_| ()).await;
    let (ann, _, _) = running.enter(0, "Ann").await;
    for pub_ in ["Cartographers", "Greeters", "Maintainers", "Messengers", "Writers"] {
        let name = format!("GuildPub-{pub_}");
        let listed = ann.public_ages(&name).await.unwrap();
        assert_eq!(listed.len(), 1, "{name}");
        assert!(ann.age(&name, listed[0].instance_id).await.is_ok());
    }
    // Instances that did not exist on the shard before, up to a limit.
    for number in 0..8 {
        assert!(ann.age("ChisoPreniv", Uuid([number + 1; 16])).await.is_ok(), "{number}");
    }
    let refused = ann.age("ChisoPreniv", Uuid([9; 16])).await.unwrap_err();
    assert_eq!(refused.net_error(), Some(NetError::AgeNotFound));
    assert!(ann.age("ChisoPreniv", Uuid([8; 16])).await.is_ok());
    // No other age is created in this way.
    for (name, instance) in [("Garden", Uuid([1; 16])), ("Kveer", Uuid::ZERO)] {
        let refused = ann.age(name, instance).await.unwrap_err();
        assert_eq!(refused.net_error(), Some(NetError::AgeNotFound), "{name}");
    }
    running.stop().await;
}

#[tokio::test]
async fn operators_add_and_remove_ages() {
    let running = Running::start(|_| ()).await;
    let (ann, _, _) = running.enter(0, "Ann").await;
    let instance = "12345678-1234-5678-1234-567812345678";
    let age = FixedAge {
        filename: "Garden".to_owned(),
        instance_name: "The Garden".to_owned(),
        instance: instance.to_owned(),
        ..FixedAge::default()
    };
    let add = |age| Request::AddAge { age, another: false };
    let added = running.ask(add(age.clone())).await.unwrap();
    assert_eq!((&added[0]["added"], &added[0]["instance"]), (&json!(true), &json!(instance)));
    let again = running.ask(add(age.clone())).await.unwrap();
    assert_eq!((&again[0]["added"], &again[0]["id"]), (&json!(false), &added[0]["id"]));
    assert!(running.ages(false).await.iter().any(|age| age["instance"] == instance));
    let listed = ann.public_ages("Garden").await.unwrap();
    assert_eq!(listed[0].instance_id.to_string(), instance);

    let other = FixedAge { filename: "Shed".to_owned(), ..age };
    let refused = running.ask(add(other)).await.unwrap_err();
    assert!(refused.ends_with("is an instance of an age other than Shed"), "{refused}");
    let remove = |age: &str| running.ask(Request::RemoveAge { age: age.to_owned() });
    let refused = remove("city").await.unwrap_err();
    assert!(refused.contains("is in [ages] of shard.toml"), "{refused}");
    let refused = remove("Ann's Relto").await.unwrap_err();
    assert!(refused.contains("belongs to players"), "{refused}");
    // A player who is on the way to the age counts as present.
    ann.age("Garden", listed[0].instance_id).await.unwrap();
    let refused = remove("Garden").await.unwrap_err();
    assert!(refused.ends_with("is not empty: Ann is there"), "{refused}");
    drop(ann);
    let removed = timeout(PATIENCE, async {
        loop {
            match remove("Garden").await {
                Ok(removed) => return removed,
                Err(refused) => assert!(refused.contains("is not empty"), "{refused}"),
            }
        }
    });
    assert_eq!(removed.await.unwrap()[0]["instance"], instance);
    let refused = remove("Garden").await.unwrap_err();
    assert_eq!(refused, "there is no age named \"Garden\"");
    assert!(running.ask(Request::Check).await.unwrap().is_empty());
    running.stop().await;
}

#[tokio::test]
async fn operators_see_who_is_where_and_speak_to_them() {
    let running = Running::start(|_| ()).await;
    assert!(running.ask(Request::Online).await.unwrap().is_empty());
    let (auth, _) = Auth::connect(&running.shard).await.unwrap();
    let (account, password) = ACCOUNTS[0];
    let login = auth.log_in(account, password).await.unwrap();
    let player = auth.create_player("Ann", "female").await.unwrap();
    auth.set_player(player.id).await.unwrap();
    let city = auth.public_ages("city").await.unwrap()[0].instance_id;
    let age = auth.age("city", city).await.unwrap();
    let joined = Game::join(&running.shard, &age, login.account_id, player.id).await;
    let (game, mut told) = joined.unwrap();
    let mut scene = Scene::new(player.id, Default::default());
    game.arrive("female", &mut scene, &mut told).await.unwrap();

    let online = running.ask(Request::Online).await.unwrap();
    let [ann] = &online[..] else { panic!("{online:?}") };
    assert_eq!(ann["account"], account);
    assert_eq!(ann["player"], json!({ "id": player.id, "name": "Ann" }));
    assert_eq!((&ann["place"], &ann["instance"]), (&json!("Ae'gura"), &json!(city.to_string())));
    assert!(ann["since"].is_u64() && ann["placeSince"].is_u64() && ann["connected"] == true);
    assert!(ann["address"].as_str().unwrap().starts_with("127.0.0.1:"), "{ann}");
    let ages = running.ages(true).await;
    let [there] = &ages[..] else { panic!("{ages:?}") };
    assert_eq!((&there["filename"], &there["population"]), (&json!("city"), &json!(1)));
    assert_eq!(there["running"]["players"][0]["name"], "Ann");

    let message = |age: Option<&str>, text: &str| {
        let (sender, text, age) = ("Shard".to_owned(), text.to_owned(), age.map(str::to_owned));
        running.ask(Request::Message { sender, text, age })
    };
    assert_eq!(message(Some("Kveer"), "elsewhere").await.unwrap(), [json!({ "players": 0 })]);
    assert_eq!(message(Some("city"), "Shorah").await.unwrap(), [json!({ "players": 1 })]);
    assert_eq!(message(None, "Closing").await.unwrap(), [json!({ "players": 1 })]);
    for wanted in ["Shorah", "Closing"] {
        let said = timeout(PATIENCE, told.next()).await.unwrap().unwrap();
        let (player, name, text) = (0, "Shard".to_owned(), wanted.to_owned());
        let chat = SceneEvent::Chat { player, name, text };
        assert_eq!(scene.apply(&said).unwrap(), [chat]);
    }
    assert!(message(None, "two\nlines").await.unwrap_err().contains("no line breaks"));
    assert!(message(Some("Nowhere"), "x").await.unwrap_err().contains("there is no age named"));
    running.stop().await;
}

#[tokio::test]
async fn operators_close_the_shard_and_change_roles() {
    let running = Running::start(|_| ()).await;
    let (_ann, mut told, _) = running.enter(0, "Ann").await;
    let bob = ACCOUNTS[1];
    let log_in = async || {
        let (auth, _) = Auth::connect(&running.shard).await.unwrap();
        auth.log_in(bob.0, bob.1).await.map(|login| login.flags)
    };
    let closed = running.ask(Request::Restrict { closed: true, kick: true }).await.unwrap();
    assert_eq!(closed[0]["kicked"][0]["player"]["name"], "Ann");
    let kicked = async {
        loop {
            if let Some(Notification::KickedOff(reason)) = told.next().await {
                return reason;
            }
        }
    };
    assert_eq!(timeout(PATIENCE, kicked).await.unwrap(), NetError::RemoteShutdown);
    assert_eq!(log_in().await.unwrap_err().net_error(), Some(NetError::LoginDenied));
    let role = |flags: u32| Request::SetRoles { name: bob.0.to_owned(), flags };
    running.ask(role(AccountFlags::Developer.0)).await.unwrap();
    assert_eq!(log_in().await.unwrap(), AccountFlags(AccountFlags::Developer.0));
    running.ask(role(0)).await.unwrap();
    assert_eq!(log_in().await.unwrap_err().net_error(), Some(NetError::LoginDenied));

    // Like a change of the welcome message, this change survives a restart.
    let welcome = |text: Option<&str>| Request::Welcome { text: text.map(str::to_owned) };
    running.ask(welcome(Some("Shorah!"))).await.unwrap();
    let running = Running::start_in(running.stop().await, |_| ()).await;
    let shown = running.ask(welcome(None)).await.unwrap();
    assert_eq!(shown, [json!({ "welcome": "Shorah!" })]);
    let (auth, _) = Auth::connect(&running.shard).await.unwrap();
    let refused = auth.log_in(bob.0, bob.1).await.unwrap_err();
    assert_eq!(refused.net_error(), Some(NetError::LoginDenied));
    running.ask(Request::Restrict { closed: false, kick: false }).await.unwrap();
    auth.log_in(bob.0, bob.1).await.unwrap();
    running.stop().await;
}

/// Clients differ in how much of a password they use.
#[tokio::test]
async fn long_passwords_work_in_every_client() {
    let running = Running::start(|_| ()).await;
    for name in ["cat", "cat@example.org"] {
        let (name, password) = (name.to_owned(), "much longer than fifteen".to_owned());
        let flags = 0;
        let account = name.clone();
        running.ask(Request::AddAccount { name, password, flags }).await.unwrap();
        let (auth, _) = Auth::connect(&running.shard).await.unwrap();
        auth.log_in(&account, "much longer than fifteen").await.unwrap();
        auth.log_in_uncut(&account, "much longer than fifteen").await.unwrap();
        auth.log_in(&account, "much longer tha").await.unwrap();
        for wrong in ["much longer th", "much longer than sixteen"] {
            let refused = auth.log_in_uncut(&account, wrong).await.unwrap_err();
            assert_eq!(refused.net_error(), Some(NetError::AuthenticationFailed), "{wrong}");
        }
    }
    running.stop().await;
}
