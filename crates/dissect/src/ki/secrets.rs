//! Shows the login's secrets in the messages that carry them.

use worldwire_core::opener::{Site, Subject};
use worldwire_core::{Form, Reader, Result, TreeBuilder};
use worldwire_ki::connection::{Received, Unit};
use worldwire_ki::crypt::Salt;
pub(super) use worldwire_ki::crypt::keys::KeyFile;
use worldwire_ki::crypt::login::apply_rec1;
use worldwire_ki::message::Values;
use worldwire_ki::schema::Protocols;
use worldwire_ki::types::FieldValue;

use super::objects::message;

/// The service of the login server.
const LOGIN: u8 = 7;
/// `MSG_USER_AUTHEN_RSP`, with the server's `Rec1`.
const USER_AUTHEN_RSP: u8 = 14;
/// `MSG_USER_AUTHEN_V3`, with the client's `Rec1`.
const USER_AUTHEN_V3: u8 = 27;

/// Why a stream is not decrypted, and what to do.
pub(super) const NO_KEY: &str =
    "no key was given; supply the connection's key and nonce with --keys";

/// Decrypts `Rec1` fields that the user has the secret for.
#[derive(Clone, Debug)]
pub(crate) struct Secrets<'k> {
    pub(crate) keys: &'k KeyFile,
    pub(crate) salt: Option<Salt>,
    /// The session in which the client proved that it has one of the user's passwords. The user may
    /// then also see the server's reply.
    pub(crate) proven: Option<Salt>,
}

impl Secrets<'_> {
    /// Whether it can decrypt a field.
    pub(crate) fn opens(&self, site: Site<'_>, bytes: &[u8]) -> bool {
        self.opened(site, bytes).is_some()
    }

    /// The decrypted content of a field.
    pub(crate) fn opened(&self, site: Site<'_>, bytes: &[u8]) -> Option<String> {
        let (service, order) = message(site);
        let carries = service == LOGIN
            && matches!(order, USER_AUTHEN_RSP | USER_AUTHEN_V3)
            && site.field == "Rec1"
            && !bytes.is_empty();
        let salt = self.salt.filter(|_| carries)?;
        if let Some(opened) = self.keys.open_rec1(bytes, salt) {
            return Some(opened.0);
        }
        if order == USER_AUTHEN_RSP && self.proven == self.salt {
            let mut plain = bytes.to_vec();
            apply_rec1(salt, &mut plain);
            return String::from_utf8(plain).ok();
        }
        None
    }

    /// Shows the decrypted content.
    pub(crate) fn show<'n>(plain: String, reader: &mut Reader<'_, TreeBuilder<'n>>) -> Result<()> {
        let start = reader.place();
        reader.take(reader.remaining())?;
        reader.layer("decrypted", start, plain.into_bytes(), |reader| {
            // The client sends three words, the server one word.
            let mut words = [("sessionId", 0), ("username", 0), ("ck1", 0)];
            let count = {
                let lengths: Vec<usize> =
                    reader.rest().split(|b| *b == b' ').map(<[u8]>::len).collect();
                words.iter_mut().zip(&lengths).for_each(|(word, length)| word.1 = *length);
                lengths.len()
            };
            if count != words.len() {
                reader.span("ck2", reader.remaining(), Form::Utf8)?;
                return Ok(());
            }
            for (index, (name, length)) in words.into_iter().enumerate() {
                if index > 0 {
                    reader.take(1)?;
                }
                reader.span(name, length, Form::Utf8)?;
            }
            Ok(())
        })
    }
}

/// Whether a client message proves that the client has one of the user's passwords.
pub(crate) fn proves(received: &Received<'_>, keys: &KeyFile, protocols: &Protocols) -> bool {
    let asks = Unit::Message { service: LOGIN, order: USER_AUTHEN_V3 };
    if received.unit != asks || keys.logins().is_empty() {
        return false;
    }
    let Some(message) = protocols.message(LOGIN, USER_AUTHEN_V3) else {
        return false;
    };
    let mut values = Values::new();
    let mut reader = Reader::new(received.payload());
    if message.decode(&mut reader, &mut values).is_err() {
        return false;
    }
    let secrets = Secrets { keys, salt: received.salt, proven: None };
    let number = u32::from(LOGIN) << 8 | u32::from(USER_AUTHEN_V3);
    let subject = Subject { connection: "ki", number, name: &message.tag, sender: None };
    message.fields().iter().zip(values.fields()).any(|(field, value)| {
        let FieldValue::Str(text) = value else { return false };
        secrets.opens(Site { message: subject, field: &field.name }, text.as_bytes())
    })
}
