//! The gatekeeper, logins and players.

use worldwire_client::uru::{Auth, ClientError, Files, Gatekeeper, Notification, VaultMirror};
use worldwire_net::End;
use worldwire_uru::file::keys::KeyRing;
use worldwire_uru::types::NetError;

use crate::shard::{ACCOUNTS, Running};

#[tokio::test]
async fn everything_survives_a_restart() {
    let mut running = Running::start(|_| ()).await;
    for (index, (account, password)) in ACCOUNTS.into_iter().enumerate() {
        let (auth, mut notifications) = Auth::connect(&running.shard).await.unwrap();
        let login = auth.log_in(account, password).await.unwrap();
        assert!(login.players.is_empty() && !login.account_id.is_zero());
        let name = format!("Player {index}");
        let player = auth.create_player(&name, "female").await.unwrap();
        assert_eq!((&*player.name, &*player.shape, player.explorer), (&*name, "female", 1));
        auth.set_player(player.id).await.unwrap();
        let vault = VaultMirror::fetch(&auth, player.id).await.unwrap();
        // The second player sees the first one among the neighbourhood's owners.
        assert_eq!((vault.refs().count(), vault.nodes().len()), (34 + index, 33 + index));
        // The server sent its capabilities earlier.
        let first = notifications.next().await.unwrap();
        assert!(matches!(first, Notification::ServerCaps(_)), "{first:?}");

        running = Running::start_in(running.stop().await, |_| ()).await;
        let reason = Notification::KickedOff(NetError::RemoteShutdown);
        loop {
            let next = notifications.next().await.expect("a goodbye");
            if next == reason {
                break;
            }
        }
        assert_eq!(notifications.next().await, None);
        let error = auth.link().ping().await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "kicked off: RemoteShutdown (9): game clients show \"Remote Shutdown\""
        );

        let (auth, _) = Auth::connect(&running.shard).await.unwrap();
        let login = auth.log_in(account, password).await.unwrap();
        assert_eq!(login.players, std::slice::from_ref(&player));
        auth.set_player(player.id).await.unwrap();
        let again = VaultMirror::fetch(&auth, player.id).await.unwrap();
        let refs = |mirror: &VaultMirror| -> Vec<_> {
            mirror.refs().map(|known| (known.parent_id, known.child_id)).collect()
        };
        assert_eq!(refs(&again), refs(&vault));
        assert!(again.nodes().map(|(id, _)| id).eq(vault.nodes().map(|(id, _)| id)));
        auth.link().ping().await.unwrap();
        auth.link().clone().close().await;
        assert!(matches!(
            auth.set_player(0).await,
            Err(ClientError::Closed {
                request: "AcctSetPlayerRequest",
                end: End::Application,
                hint: None
            })
        ));
    }
    running.stop().await;
}

#[tokio::test]
async fn a_session_resumes_with_its_token() {
    let running = Running::start(|_| ()).await;
    let (auth, mut notifications, player) = running.enter(0, "Ann").await;
    let (server, token) = loop {
        if let Some(Notification::ServerAddr { address, token }) = notifications.next().await {
            break (address, token);
        }
    };
    // The server has not noticed the lost connection yet.
    let (again, _) = Auth::reconnect(&running.shard, server, token).await.unwrap();
    again.register().await.unwrap();
    assert_eq!(again.fetch_node(player).await.unwrap().node_id, Some(player));
    while notifications.next().await.is_some() {}
    assert!(auth.fetch_node(player).await.is_err());
    let (worthless, _) = Auth::reconnect(&running.shard, server, token).await.unwrap();
    worthless.register().await.unwrap();
    let refused = worthless.fetch_node(player).await.unwrap_err();
    assert_eq!(refused.net_error(), Some(NetError::AuthenticationFailed));
    running.stop().await;
}

#[tokio::test]
async fn refusals_name_their_error() {
    let running = Running::start(|_| ()).await;
    let (auth, _) = Auth::connect(&running.shard).await.unwrap();
    let refused = auth.log_in(ACCOUNTS[0].0, "wrong").await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "AcctLoginRequest: refused with AuthenticationFailed (20): game clients show \
         \"Authentication Failed\"; check the account name and the password"
    );
    assert_eq!(
        auth.set_player(0).await.unwrap_err().net_error(),
        Some(NetError::AuthenticationFailed)
    );
    // The case of the name does not matter, and the connection still works.
    let login = auth.log_in("ANN@example.ORG", ACCOUNTS[0].1).await.unwrap();
    assert_eq!(login.billing_type, 1);
    let shape = auth.create_player("Somebody", "fish").await.unwrap_err();
    assert_eq!(shape.net_error(), Some(NetError::InvalidParameter));
    let player = auth.create_player("Somebody", "male").await.unwrap();
    let twice = auth.create_player("somebody", "male").await.unwrap_err();
    assert_eq!(twice.net_error(), Some(NetError::PlayerAlreadyExists));
    auth.delete_player(player.id).await.unwrap();
    let gone = auth.set_player(player.id).await.unwrap_err();
    assert_eq!(gone.net_error(), Some(NetError::PlayerNotFound));
    // The client itself refuses to send a name that does not fit into the message.
    let long = auth.create_player(&"x".repeat(40), "male").await.unwrap_err();
    assert!(matches!(long, ClientError::NotSent { request: "PlayerCreateRequest", .. }), "{long}");
    auth.link().ping().await.unwrap();
    running.stop().await;
}

#[tokio::test]
async fn the_gatekeeper_is_asked_for_missing_addresses() {
    let running = Running::start(|_| ()).await;
    let gatekeeper = Gatekeeper::connect(&running.shard).await.unwrap();
    assert_eq!(gatekeeper.auth_server().await.unwrap(), "127.0.0.1");
    assert_eq!(gatekeeper.file_server().await.unwrap(), "127.0.0.1");
    gatekeeper.link().ping().await.unwrap();
    let mut shard = running.shard.clone();
    (shard.auth, shard.file) = (None, None);
    let (auth, _) = Auth::connect(&shard).await.unwrap();
    auth.log_in(ACCOUNTS[1].0, ACCOUNTS[1].1).await.unwrap();
    let files = Files::connect(&shard).await.unwrap();
    assert_eq!(files.build_id().await.unwrap(), 918);
    shard.gatekeeper = None;
    let error = Auth::connect(&shard).await.unwrap_err();
    assert!(matches!(error, ClientError::NoHost("gatekeeper")), "{error}");
    // A server on loopback also accepts unencrypted connections.
    let mut plain = running.shard.clone();
    plain.keys = KeyRing::new();
    let (auth, _) = Auth::connect(&plain).await.unwrap();
    auth.log_in(ACCOUNTS[1].0, ACCOUNTS[1].1).await.unwrap();
    running.stop().await;
}
