//! Replies from login and patch servers that have many fields, described once for senders and
//! receivers.

use super::{Fields, Put};

/// A field type that can be looked up by name.
trait Named: Sized {
    fn read(fields: &Fields<'_>, name: &str) -> Self;
    fn put(&self) -> Put;
}

impl Named for String {
    fn read(fields: &Fields<'_>, name: &str) -> Self {
        fields.text(name)
    }

    fn put(&self) -> Put {
        Put::text(self)
    }
}

macro_rules! numbers {
    ($($kind:ty)*) => {$(
        impl Named for $kind {
            /// Reads the field; a number out of range becomes 0.
            fn read(fields: &Fields<'_>, name: &str) -> Self {
                Self::try_from(fields.number(name)).unwrap_or_default()
            }

            fn put(&self) -> Put {
                Put::from(*self)
            }
        }
    )*};
}

numbers! { u16 u32 u64 }

macro_rules! answers {
    ($($(#[$doc:meta])* $answer:ident { $($(#[$about:meta])* $field:ident $name:literal: $kind:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Default)]
        pub struct $answer {
            $(#[doc = concat!("`", $name, "`")] $(#[$about])* pub $field: $kind,)*
        }

        impl $answer {
            /// Reads the reply. Fields missing from the loaded definition are 0 or empty.
            #[must_use]
            pub fn read(fields: &Fields<'_>) -> Self {
                Self { $($field: Named::read(fields, $name),)* }
            }

            /// The fields, for sending.
            #[must_use]
            pub fn fields(&self) -> Vec<(&'static str, Put)> {
                vec![$(($name, self.$field.put()),)*]
            }
        }
    )*};
}

answers! {
    /// The server to which a client connects after selecting a character: `MSG_CHARACTERSELECTED`
    /// without an error. While the zone is being prepared, a server sends an empty `IP` and port 0.
    Selected {
        /// is the address of the zone server.
        ip "IP": String,
        /// is its TCP port.
        tcp_port "TCPPort": u16,
        /// is its UDP port.
        udp_port "UDPPort": u16,
        /// is the key that the client returns as `LoginKey` of `MSG_ATTACH`.
        key "Key": String,
        /// is the account ID.
        user "UserID": u64,
        /// is the character ID.
        character "CharID": u64,
        /// is the zone ID.
        zone_id "ZoneID": u64,
        /// is the zone's name.
        zone "ZoneName": String,
        /// is the location in the zone.
        location "Location": String,
        /// is the name of the server that sends this.
        server "LoginServer": String,
    }

    /// The file list that a patch client must download: `MSG_LATEST_FILE_LIST` and
    /// `MSG_LATEST_FILE_LIST_V2`.
    FileListAnswer {
        /// is the version number.
        version "LatestVersion": u32,
        /// is the file name of the list.
        name "ListFileName": String,
        /// is the time at which the list was created, in Unix seconds.
        time "ListFileTime": u32,
        /// is the size of the list in bytes.
        size "ListFileSize": u32,
        /// is the list's checksum, computed as in archives.
        crc "ListFileCRC": u32,
        /// is the list's URL.
        url "ListFileURL": String,
        /// is the URL prefix for the names in the list.
        prefix "URLPrefix": String,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Protocols;

    #[test]
    fn written_answers_read_back() {
        let protocols = Protocols::built_in();
        let selected = Selected {
            ip: "192.0.2.1".to_owned(),
            tcp_port: 12_900,
            udp_port: u16::MAX,
            key: "key".to_owned(),
            user: u64::MAX,
            character: 3,
            zone_id: 191_965_934_121_493_239,
            zone: "Zone".to_owned(),
            location: "START".to_owned(),
            server: "worldwire".to_owned(),
        };
        let raw = protocols.compose(7, "MSG_CHARACTERSELECTED", &selected.fields()).unwrap();
        let message = protocols.message(raw.service, raw.order).unwrap();
        let fields = Fields::read(message, &raw.payload, 0).unwrap();
        assert_eq!(Selected::read(&fields), selected);
        let list = FileListAnswer {
            version: 1,
            name: "LatestFileList.bin".to_owned(),
            time: 2,
            size: 3,
            crc: u32::MAX,
            url: "http://192.0.2.1/x".to_owned(),
            prefix: "http://192.0.2.1".to_owned(),
        };
        for tag in ["MSG_LATEST_FILE_LIST", "MSG_LATEST_FILE_LIST_V2"] {
            let raw = protocols.compose(8, tag, &list.fields()).unwrap();
            let message = protocols.message(raw.service, raw.order).unwrap();
            let fields = Fields::read(message, &raw.payload, 0).unwrap();
            assert_eq!(FileListAnswer::read(&fields), list, "{tag}");
        }
    }
}
