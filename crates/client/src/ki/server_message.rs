//! Messages from the server.

use core::result::Result;

use worldwire_ki::message::{Fields, FileListAnswer, Selected};
use worldwire_ki::schema::Protocols;

use super::Code;

/// A decoded message from the server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerMessage {
    /// `MSG_PING_RSP`.
    Pong,
    /// `MSG_USER_AUTHEN_RSP`: the account and `Rec1`.
    Authenticated(Result<(u64, Vec<u8>), Code>),
    /// `MSG_USER_VALIDATE_RSP`: the account.
    Validated(Result<u64, Code>),
    /// `MSG_USER_ADMIT_IND`: the queue position; 0 means admitted.
    Admit(u32),
    /// `MSG_STARTCHARACTERLIST`.
    StartList {
        /// `LoginServer`.
        server: String,
        /// `PurchasedCharacterSlots`.
        purchased: u32,
    },
    /// `MSG_CHARACTERINFO`: the blob.
    Character(Vec<u8>),
    /// `MSG_CHARACTERLIST`.
    EndList(Option<Code>),
    /// `MSG_CREATECHARACTERRESPONSE`.
    Created(Option<Code>),
    /// `MSG_DELETECHARACTERRESPONSE`.
    Deleted(Option<Code>),
    /// `MSG_CHARACTERSELECTED`.
    Selected(Result<Box<Selected>, Code>),
    /// `MSG_SERVERLIST`.
    Servers,
    /// `MSG_DISCONNECT_LOGIN_AFK` or `MSG_DISCONNECT_AFK`.
    Afk,
    /// `MSG_LOGINSERVERSHUTDOWN` or `MSG_SERVERSHUTDOWN`.
    Shutdown,
    /// `MSG_FORCE_DISCONNECT`.
    ForceDisconnect(String),
    /// `MSG_SERVERMESSAGE`.
    Message(String),
    /// `MSG_LATEST_FILE_LIST` or `MSG_LATEST_FILE_LIST_V2`.
    FileList(Box<FileListAnswer>),
    /// `MSG_LOGINCOMPLETE`.
    InZone {
        /// `ZoneName`.
        zone: String,
        /// `ZoneID`.
        id: u64,
    },
    /// `MSG_ATTACHFAILED`.
    AttachFailed(Code),
    /// Any other message.
    Other {
        /// The service's number.
        service: u8,
        /// The message's number within the service.
        order: u8,
    },
}

impl ServerMessage {
    /// Decodes a message.
    #[must_use]
    pub fn read(protocols: &Protocols, service: u8, order: u8, payload: &[u8]) -> Self {
        let other = Self::Other { service, order };
        let Some(message) = protocols.message(service, order) else { return other };
        if &*message.tag == "MSG_SERVERMESSAGE" {
            return server_message(payload).map_or(other, Self::Message);
        }
        // Servers of earlier revisions omit the fields that were appended later.
        let Some(fields) = Fields::read(message, payload, 0) else { return other };
        let error = |name| Some(Code(fields.word(name))).filter(|code| code.0 != 0);
        match fields.tag() {
            "MSG_PING_RSP" => Self::Pong,
            "MSG_USER_AUTHEN_RSP" => Self::Authenticated(match error("Error") {
                None => Ok((fields.number("UserID"), fields.bytes("Rec1"))),
                Some(code) => Err(code),
            }),
            "MSG_USER_VALIDATE_RSP" => Self::Validated(match error("Error") {
                None => Ok(fields.number("UserID")),
                Some(code) => Err(code),
            }),
            "MSG_USER_ADMIT_IND" => match fields.number("Status") {
                1 => Self::Admit(0),
                _ => Self::Admit(fields.word("PositionInQueue").max(1)),
            },
            "MSG_STARTCHARACTERLIST" => Self::StartList {
                server: fields.text("LoginServer"),
                purchased: fields.word("PurchasedCharacterSlots"),
            },
            "MSG_CHARACTERINFO" => Self::Character(fields.bytes("CharacterInfo")),
            "MSG_CHARACTERLIST" => Self::EndList(error("Error")),
            "MSG_CREATECHARACTERRESPONSE" => Self::Created(error("ErrorCode")),
            "MSG_DELETECHARACTERRESPONSE" => Self::Deleted(error("ErrorCode")),
            "MSG_CHARACTERSELECTED" => Self::Selected(match error("Error") {
                Some(code) => Err(code),
                None => Ok(Box::new(Selected::read(&fields))),
            }),
            "MSG_SERVERLIST" => Self::Servers,
            "MSG_DISCONNECT_LOGIN_AFK" | "MSG_DISCONNECT_AFK" => Self::Afk,
            "MSG_LOGINSERVERSHUTDOWN" | "MSG_SERVERSHUTDOWN" => Self::Shutdown,
            "MSG_FORCE_DISCONNECT" => Self::ForceDisconnect(fields.text("Message")),
            "MSG_LATEST_FILE_LIST" | "MSG_LATEST_FILE_LIST_V2" => {
                Self::FileList(Box::new(FileListAnswer::read(&fields)))
            }
            "MSG_LOGINCOMPLETE" => {
                Self::InZone { zone: fields.text("ZoneName"), id: fields.number("ZoneID") }
            }
            "MSG_ATTACHFAILED" => Self::AttachFailed(Code(fields.word("Error"))),
            _ => other,
        }
    }
}

/// The text of `MSG_SERVERMESSAGE`. Sources disagree on whether its characters are narrow or wide;
/// the length tells which.
fn server_message(payload: &[u8]) -> Option<String> {
    let (_modal, rest) = payload.split_first()?;
    let (count, text) = rest.split_first_chunk()?;
    let count = usize::from(u16::from_le_bytes(*count));
    if text.len() == count {
        return Some(String::from_utf8_lossy(text).into_owned());
    }
    let (units, odd) = text.as_chunks::<2>();
    let units = units.iter().map(|unit| u16::from_le_bytes(*unit));
    let fits = odd.is_empty() && text.len() == count * 2;
    fits.then(|| {
        char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k_02_a_server_message_can_be_narrow_or_wide() {
        let protocols = Protocols::built_in();
        let read = |payload: &[u8]| ServerMessage::read(&protocols, 2, 6, payload);
        assert_eq!(read(b"\x01\x02\0hi"), ServerMessage::Message("hi".to_owned()));
        assert_eq!(read(b"\x01\x02\0h\0i\0"), ServerMessage::Message("hi".to_owned()));
        let other = ServerMessage::Other { service: 2, order: 6 };
        assert_eq!(read(b"\x01\x02\0h\0i"), other);
        assert_eq!(read(b"\x01"), other);
        assert_eq!(
            ServerMessage::read(&protocols, 99, 1, b""),
            ServerMessage::Other { service: 99, order: 1 }
        );
    }
}
