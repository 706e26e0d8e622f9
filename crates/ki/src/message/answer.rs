//! Answers of login and patch servers with many fields, described once for those who write them and
//! those who read them.

use super::{Fields, Put};

/// A type of a field that is found by name.
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
            /// 0 for a number that does not fit.
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
            /// Reads it. What the definition in use lacks is 0 or empty.
            #[must_use]
            pub fn read(fields: &Fields<'_>) -> Self {
                Self { $($field: Named::read(fields, $name),)* }
            }

            /// Its fields, to be sent.
            #[must_use]
            pub fn fields(&self) -> Vec<(&'static str, Put)> {
                vec![$(($name, self.$field.put()),)*]
            }
        }
    )*};
}

answers! {
    /// Where a client goes that has selected a character: `MSG_CHARACTERSELECTED` without an error. A
    /// server sends an empty `IP` and port 0 while the zone is being prepared.
    Selected {
        /// of the zone server.
        ip "IP": String,
        /// of it.
        tcp_port "TCPPort": u16,
        /// of it.
        udp_port "UDPPort": u16,
        /// comes back as `LoginKey` of `MSG_ATTACH`.
        key "Key": String,
        /// is the account.
        user "UserID": u64,
        /// is the character.
        character "CharID": u64,
        /// is the number of the zone.
        zone_id "ZoneID": u64,
        /// is its name.
        zone "ZoneName": String,
        /// is where in the zone.
        location "Location": String,
        /// is the name of the server that says this.
        server "LoginServer": String,
    }

    /// The list of files that a patch client is pointed to: `MSG_LATEST_FILE_LIST` and
    /// `MSG_LATEST_FILE_LIST_V2`.
    FileListAnswer {
        /// is the number of the version.
        version "LatestVersion": u32,
        /// is the name of the list.
        name "ListFileName": String,
        /// is when it was made, Unix seconds.
        time "ListFileTime": u32,
        /// is how many bytes it has.
        size "ListFileSize": u32,
        /// is its checksum, as archives have it.
        crc "ListFileCRC": u32,
        /// is where the list is.
        url "ListFileURL": String,
        /// is what the names in the list go behind.
        prefix "URLPrefix": String,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Protocols;

    #[test]
    fn what_is_written_is_read() {
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
