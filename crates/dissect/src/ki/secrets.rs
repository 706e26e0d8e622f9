//! The secrets of the login, shown in the messages that carry them.

use worldwire_core::{Form, Place, Reader, Result, Trace};
use worldwire_ki::connection::{Received, Unit};
use worldwire_ki::crypt::login::{Salt, apply_rec1};
use worldwire_ki::message::{NoHook, StrField, StrHook, Values};
use worldwire_ki::types::FieldValue;

use crate::{Definitions, Keys};

/// The service of the login server.
const LOGIN: u8 = 7;
/// `MSG_USER_AUTHEN_RSP`: the server's `Rec1`.
const USER_AUTHEN_RSP: u8 = 14;
/// `MSG_USER_AUTHEN_V3`: the client's.
const USER_AUTHEN_V3: u8 = 27;

/// Opens `Rec1` fields that the user has the secret of.
pub(crate) struct Secrets<'k> {
    keys: &'k Keys,
    salt: Option<Salt>,
    /// The session whose client proved a password of the user's: what the server answers is the
    /// user's too.
    proven: Option<Salt>,
    opened: Option<String>,
}

impl<'k> Secrets<'k> {
    pub(crate) fn new(keys: &'k Keys, salt: Option<Salt>, proven: Option<Salt>) -> Self {
        Self { keys, salt, proven, opened: None }
    }

    /// Whether it opened the last field it was asked for.
    pub(crate) fn has_opened(&self) -> bool {
        self.opened.is_some()
    }
}

/// Whether a message of the client proves a password that the user has.
pub(crate) fn proves(received: &Received<'_>, keys: &Keys, definitions: &Definitions) -> bool {
    let asks = Unit::Message { service: LOGIN, order: USER_AUTHEN_V3 };
    if received.unit != asks || keys.ki.logins().is_empty() {
        return false;
    }
    let Some(message) = definitions.ki.message(LOGIN, USER_AUTHEN_V3) else {
        return false;
    };
    let mut values = Values::new();
    let mut reader = Reader::new(received.payload());
    if message.decode(&mut reader, &mut NoHook, &mut values).is_err() {
        return false;
    }
    let mut secrets = Secrets::new(keys, received.salt, None);
    message.fields().iter().zip(values.fields()).enumerate().any(|(index, (field, value))| {
        let FieldValue::Str(text) = value else { return false };
        let (service, order) = (LOGIN, USER_AUTHEN_V3);
        let asked = StrField { service, order, index, name: &field.name };
        secrets.wants(asked, text.as_bytes()) && secrets.has_opened()
    })
}

impl<'n> StrHook<'n> for Secrets<'_> {
    fn wants(&mut self, field: StrField<'_>, bytes: &[u8]) -> bool {
        let carries = field.service == LOGIN
            && matches!(field.order, USER_AUTHEN_RSP | USER_AUTHEN_V3)
            && field.name == "Rec1"
            && !bytes.is_empty();
        self.opened = None;
        if let (true, Some(salt)) = (carries, self.salt) {
            self.opened = self.keys.ki.open_rec1(bytes, salt).map(|opened| opened.0);
            if self.opened.is_none() && field.order == USER_AUTHEN_RSP && self.proven == self.salt {
                let mut plain = bytes.to_vec();
                apply_rec1(salt, &mut plain);
                self.opened = String::from_utf8(plain).ok();
            }
        }
        self.opened.is_some()
    }

    fn show<'d, T: Trace<'n>>(
        &mut self,
        _: StrField<'n>,
        _: &'d [u8],
        start: Place,
        reader: &mut Reader<'d, T>,
    ) -> Result<()> {
        let plain = self.opened.take().unwrap_or_default().into_bytes();
        reader.layer("decrypted", start, plain, |reader| {
            // The client's is three words; the server's is one.
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
