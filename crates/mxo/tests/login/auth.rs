//! The auth server and its clients.

use std::sync::Arc;

use worldwire_core::testing::pair::Conditions;
use worldwire_mxo::crypt::{KeyUse, PrivateKey, SessionKey};
use worldwire_mxo::file::PublicKeyFile;
use worldwire_mxo::login::{
    AuthAction, AuthChallengeResponse, AuthClientConfig, AuthClientMessage, AuthProof, AuthRequest,
    AuthSecret, AuthServer, AuthServerConfig, AuthServerMessage, GetPublicKeyRequest, LoginRefusal,
    LoginStatus,
};
use worldwire_mxo::types::{Bytes16, Secret, Str};

use super::support::{KEYS, NOW, account, accounts, auth_config, client_config, log_in, random};

fn server(config: AuthServerConfig) -> AuthServer {
    AuthServer::new(Arc::new(config), random(2))
}

/// Returns the messages that a server sends now, and its refusal, if any.
fn replies(server: &mut AuthServer) -> (Vec<AuthServerMessage<'static>>, Option<LoginRefusal>) {
    let (mut messages, mut refusal) = (Vec::new(), None);
    while let Some(action) = server.poll() {
        match action {
            AuthAction::Send(message) => messages.push(*message),
            AuthAction::Query(query) => {
                server.answer(accounts(&query.name, &query.password), NOW);
            }
            AuthAction::Close(why) => refusal = why,
        }
    }
    (messages, refusal)
}

fn request(name: &str, key: [u8; 16]) -> AuthRequest<'static> {
    let secret = AuthSecret {
        reserved: 0,
        key_id: 4,
        key: Secret(key),
        time: NOW,
        name: Str::new(name).unwrap(),
    };
    let blob = secret.seal(KEYS.server.public(), &mut random(5)).unwrap();
    AuthRequest {
        key_id: 4,
        login_type: 1,
        unknown1: 0,
        key_config_md5: [0; 16],
        ui_config_md5: [0; 16],
        blob: Bytes16(blob.into()),
    }
}

fn status(message: &AuthServerMessage<'_>) -> LoginStatus {
    match message {
        AuthServerMessage::AuthReply(reply) => reply.status,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_client_gets_its_certificate_key_characters_and_worlds() {
    let end = log_in(auth_config(), client_config("neo", "zion"), Conditions::default());
    assert_eq!((end.refusal, end.fault), (None, None));
    let ticket = end.outcome.unwrap().unwrap();
    assert!(ticket.certificate.is_signed_by(KEYS.server.public()));
    assert_eq!(ticket.certificate.certificate.expires, NOW + 600);
    assert_eq!(ticket.key.exponent(), KEYS.user.exponent());
    assert_eq!((ticket.characters, ticket.worlds), (account().characters, account().worlds));
}

/// L-02: the key is sent to clients that name another key ID, and to all clients if configured.
#[test]
fn the_key_is_sent_to_clients_that_lack_it() {
    let offered = |config: AuthServerConfig, key_id| {
        let mut server = server(config);
        let request = GetPublicKeyRequest { client_version: 467_417, key_id };
        server.handle(&request.into(), NOW);
        match &replies(&mut server).0[..] {
            [AuthServerMessage::GetPublicKeyReply(reply)] => reply.modulus.is_some(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((offered(auth_config(), 4), offered(auth_config(), 0)), (false, true));
    let always = AuthServerConfig { always_sends_key: true, ..auth_config() };
    assert!(offered(always, 4));
    let client = AuthClientConfig { public_key: None, ..client_config("neo", "zion") };
    let end = log_in(auth_config(), client, Conditions::default());
    assert!(end.outcome.unwrap().is_ok());
}

/// L-03 and L-04: fields that clients fill in different ways do not matter.
#[test]
fn unimportant_fields_are_ignored() {
    let mut server = server(auth_config());
    let odd = AuthRequest {
        login_type: 9,
        unknown1: 40,
        key_config_md5: [7; 16],
        ui_config_md5: [8; 16],
        key_id: 77,
        ..request("neo", [3; 16])
    };
    server.handle(&odd.into(), NOW);
    let (messages, _) = replies(&mut server);
    let [AuthServerMessage::AuthChallenge(sent)] = &messages[..] else { panic!("{messages:?}") };
    let key = SessionKey::new(&[3; 16]);
    let challenge = key.open_block(&sent.challenge);
    let mut proof = AuthProof::new(&challenge, Str::new("zion").unwrap(), Str::NONE);
    proof.offsets.0 = [23, 5, 1];
    let blob = Bytes16(proof.seal(&key).unwrap().into());
    server.handle(&AuthChallengeResponse { blob_offset: 0x1b, blob }.into(), NOW);
    assert_eq!(status(&replies(&mut server).0[0]), LoginStatus::Success);
}

/// L-05: only the code that manages the accounts knows which names exist.
#[test]
fn an_unknown_name_looks_like_a_wrong_password() {
    let refused = |name: &str, password: &str| {
        let end = log_in(auth_config(), client_config(name, password), Conditions::default());
        (end.outcome.unwrap().unwrap_err(), end.refusal)
    };
    let wrong = LoginRefusal::Status(LoginStatus::WrongPassword);
    assert_eq!(refused("nobody", "zion"), (wrong, Some(wrong)));
    assert_eq!(refused("neo", "matrix"), (wrong, Some(wrong)));
    let banned = LoginRefusal::Status(LoginStatus::Banned);
    assert_eq!(refused("smith", ""), (banned, Some(banned)));
}

/// L-30: whatever is wrong with the blob, the client gets the same reply.
#[test]
fn requests_for_another_server_are_refused_alike() {
    let good = request("neo", [3; 16]);
    let mut blobs = vec![vec![0; 128], vec![0xff; 128], vec![], good.blob.0[1..].to_vec()];
    let mut flipped = good.blob.0.to_vec();
    flipped[60] ^= 1;
    blobs.push(flipped);
    // A valid blob with different contents.
    blobs.push(KEYS.server.public().encrypt(b"hello", &mut random(1)).unwrap());
    for blob in blobs {
        let mut server = server(auth_config());
        server.handle(&AuthRequest { blob: Bytes16(blob.into()), ..good.clone() }.into(), NOW);
        let (messages, refusal) = replies(&mut server);
        assert_eq!(messages.iter().map(status).collect::<Vec<_>>(), [LoginStatus::UnknownKey]);
        assert_eq!(refusal, Some(LoginRefusal::OtherServerKey));
        assert!(refusal.unwrap().to_string().contains("pubkey.dat"));
    }
}

#[test]
fn a_proof_must_answer_this_challenge() {
    let key = SessionKey::new(&[3; 16]);
    let proof = AuthProof::new(&[0; 16], Str::new("zion").unwrap(), Str::NONE);
    for blob in [proof.seal(&key).unwrap(), vec![7; 48], vec![7; 5], vec![]] {
        let mut server = server(auth_config());
        server.handle(&request("neo", [3; 16]).into(), NOW);
        let response = AuthChallengeResponse { blob_offset: 3, blob: Bytes16(blob.into()) };
        server.handle(&response.into(), NOW);
        let (messages, refusal) = replies(&mut server);
        assert_eq!(status(&messages[1]), LoginStatus::WrongPassword);
        assert_eq!(refusal, Some(LoginRefusal::WrongProof));
    }
}

#[test]
fn challenges_are_never_repeated() {
    let mut seen = Vec::new();
    let mut server = server(auth_config());
    server.handle(&request("neo", [3; 16]).into(), NOW);
    seen.extend(replies(&mut server).0);
    let mut other = AuthServer::new(Arc::new(auth_config()), random(7));
    other.handle(&request("neo", [3; 16]).into(), NOW);
    seen.extend(replies(&mut other).0);
    assert_eq!(seen.len(), 2);
    assert_ne!(seen[0], seen[1]);
}

#[test]
fn nothing_follows_a_refusal() {
    let mut server = server(auth_config());
    let response = AuthChallengeResponse { blob_offset: 3, blob: Bytes16::default() };
    server.handle(&response.clone().into(), NOW);
    assert_eq!(replies(&mut server).0.len(), 1);
    server.handle(&response.into(), NOW);
    assert!(server.poll().is_none());
    assert_eq!(server.ignored(), 1);
}

#[test]
fn messages_out_of_order_are_refused() {
    let response = || AuthChallengeResponse { blob_offset: 3, blob: Bytes16::default() };
    let first: AuthClientMessage<'_> = response().into();
    let again: AuthClientMessage<'_> = request("neo", [3; 16]).into();
    for (messages, opcode) in [(vec![first.clone()], 10), (vec![again.clone(), again.clone()], 8)] {
        let mut server = server(auth_config());
        messages.iter().for_each(|message| server.handle(message, NOW));
        let refusal = replies(&mut server).1;
        assert_eq!(refusal, Some(LoginRefusal::OutOfOrder { opcode }));
    }
}

/// L-01: a client that knows the signing key accepts only servers whose key it has signed.
#[test]
fn a_client_refuses_keys_that_are_not_signed() {
    let other = PrivateKey::generate(KeyUse::Server, &mut random(8)).unwrap();
    let mut unsigned =
        PublicKeyFile::sign(4, other.public(), &KEYS.signing, &mut random(1)).unwrap();
    unsigned.signature[3] ^= 1;
    let config =
        AuthServerConfig { always_sends_key: true, ..AuthServerConfig::new(other, unsigned) };
    let end = log_in(config.clone(), client_config("neo", "zion"), Conditions::default());
    assert_eq!(end.outcome.unwrap().unwrap_err(), LoginRefusal::UnsignedKey);
    // Without a signing key, a client trusts any server and logs in.
    let trusting = AuthClientConfig { signing_key: None, ..client_config("neo", "zion") };
    let end = log_in(config, trusting, Conditions::default());
    assert!(end.outcome.unwrap().is_ok());
    // A server cannot read a request that is encrypted with another server's key.
    let stale = PrivateKey::generate(KeyUse::Server, &mut random(9)).unwrap();
    let stale = PublicKeyFile::sign(4, stale.public(), &KEYS.signing, &mut random(1)).unwrap();
    let client = AuthClientConfig { public_key: Some(stale), ..client_config("neo", "zion") };
    let end = log_in(auth_config(), client, Conditions::default());
    assert_eq!(end.refusal, Some(LoginRefusal::OtherServerKey));
    let refused = LoginRefusal::Status(LoginStatus::UnknownKey);
    assert_eq!(end.outcome.unwrap().unwrap_err(), refused);
}
