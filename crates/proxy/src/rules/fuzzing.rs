//! The fuzz target for rules.

use core::time::Duration;
use std::sync::LazyLock;

use worldwire_core::json::{Json, json};
use worldwire_core::{Limits, Result, Side, Tree};
use worldwire_dissect::{Codec, CodecOptions, Item, ItemBody, Keys, Message, Stamp};

use super::Rules;
use crate::fuzzing::DEFINITIONS;
use crate::handler::{Effects, Next, Passing};

/// A message without a conversation.
#[derive(Debug)]
struct Blob {
    name: &'static str,
    from: Side,
    body: Vec<u8>,
}

/// Messages with fields of many kinds.
static MESSAGES: LazyLock<Vec<Blob>> = LazyLock::new(|| {
    let login = json!({
        "transId": 5, "clientChallenge": 7, "accountName": "shorah@example.org",
        "challengeHash": { "$hex": "a9132248bb2c6ebbf356556aa8020c33f7f6a3db" },
        "authToken": "", "os": "win",
    });
    let reply = json!({
        "transId": 5, "result": "Success", "accountId": "11111111-1111-1111-1111-111111111111",
        "accountFlags": ["User"], "billingType": 1, "encryptionKey": [1, 2, 3, 4],
    });
    let buffer = json!({
        "type": "plNetMsgMembersListReq",
        "buffer": { "$hex": "ad020110060000b9556900000000ce270000" },
    });
    let blob = |name: &'static str, from, fields: Json| {
        let mut blob = Blob { name, from, body: Vec::new() };
        blob.body = blob.encode(&fields).expect("the fields fit");
        blob
    };
    vec![
        blob("auth.AcctLoginRequest", Side::Client, login),
        blob("auth.AcctLoginReply", Side::Server, reply),
        blob("game.PropagateBuffer", Side::Client, buffer),
        blob(
            "auth.PingRequest",
            Side::Client,
            json!({"pingTimeMs": 3, "transId": 0, "payload": {"$hex": "00ff"}}),
        ),
    ]
});

impl Blob {
    fn options(&self) -> CodecOptions<'static> {
        static KEYS: LazyLock<Keys> = LazyLock::new(Keys::none);
        static LIMITS: Limits = Limits::DEFAULT;
        CodecOptions { from: self.from, keys: &KEYS, definitions: &DEFINITIONS, limits: &LIMITS }
    }

    fn codec(&self) -> &'static Codec {
        let codec = if self.name.starts_with("auth.") { "uru.auth" } else { "uru.game" };
        Codec::named(codec).expect("a codec for every message")
    }
}

impl Message for Blob {
    fn push_name(&self, name: &mut String) {
        name.push_str(self.name);
    }

    fn bytes(&self) -> &[u8] {
        &self.body
    }

    fn is_message(&self) -> bool {
        true
    }

    fn is_whole(&self) -> bool {
        true
    }

    fn tree_of<'t>(&'t self, body: &'t [u8], _: Tree<'t>, _: &'t Limits) -> Tree<'t> {
        self.codec().decode(body, &self.options())
    }

    fn encode(&self, fields: &Json) -> Result<Vec<u8>> {
        let name = self.name.split_once('.').map_or(self.name, |(_, name)| name);
        let json = [("name", Json::from(name)), ("fields", fields.clone())].into_iter().collect();
        self.codec().encode(json, &self.options())
    }
}

/// Parses any text as rules and applies valid rules to messages. Neither may panic, errors must
/// point into the text, and a changed message must be complete.
///
/// # Panics
/// If any of this fails.
pub(crate) fn rules(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let rules = match Rules::parse("fuzz.rules", &text, &DEFINITIONS) {
        Ok(rules) => rules,
        Err(mistakes) => {
            assert!(!mistakes.is_empty());
            for mistake in mistakes {
                assert!(mistake.line() <= text.split('\n').count(), "{mistake}");
            }
            return;
        }
    };
    let mut handler = rules.handler();
    let mut now = Duration::from_secs(1);
    for blob in MESSAGES.iter().chain(MESSAGES.iter()) {
        let body = ItemBody::Message(blob);
        let item = Item::new(Stamp::default(), "uru", blob.from, 0..0, body);
        let mut effects = Effects::default();
        let mut changed: Option<Vec<u8>> = None;
        for run in 0.. {
            assert!(run <= crate::desk::MAX_AGAIN, "the rules never end");
            let before = changed.take();
            let passing = Passing::new((&item, blob), blob.name, now, before.as_deref(), false);
            let next = handler.message(&passing, &mut effects);
            drop(passing);
            changed = effects.change.take().or(before);
            if let Some(body) = &changed {
                let tree = blob.codec().decode(body, &blob.options());
                assert!(tree.error().is_none(), "{:?}", tree.error());
            }
            if next == Next::Done {
                break;
            }
        }
        now += Duration::from_secs(20);
        if handler.poll_timeout().is_some_and(|at| at <= now) {
            handler.timeout(now, &mut effects);
            assert!(handler.poll_timeout().is_none_or(|at| at > now));
        }
    }
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let texts = [
        "when auth.AcctLoginRequest { set os = \"mac\"; log \"{accountName} is {os}\" }\n",
        "let seen = 0\nwhen auth.* and transId != seen { let seen = transId + 1; count \"a\" }\n",
        "when AcctLoginReply { set accountFlags = [Admin, \"0x100\"]; set billingType = -1 * 2 }\n",
        "every 30s { inject server auth.PingRequest { pingTimeMs: 5, transId: 0, payload: 00:ff } }\n",
        "on connect { inject client auth.PingReply; log \"{{}}\" } # comment\n",
        "when PropagateBuffer and playerId in {1, 10190} { set playerId = 7; delay 200ms; pause }\n",
        "when auth.AcctLoginRequest {\n  inject back auth.PingReply { \"pingTimeMs\": clientChallenge }\n\
         \x20 drop\n}\n",
        "when * { set encryptionKey[1] = encryptionKey[0] * 2; set payload = hex\"00\" }\n",
    ];
    texts.map(|text| text.as_bytes().to_vec()).to_vec()
}
