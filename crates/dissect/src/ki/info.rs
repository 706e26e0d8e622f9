//! The most informative fields of messages.

use crate::info::{InfoFields, InfoTable};

/// Keys, and fields that say little. `Rec1` is an encrypted login.
const HIDDEN: &[&str] = &[
    "Data",
    "FallbackKey",
    "Key",
    "MachineID",
    "Rec1",
    "ck1",
    "ck2",
    "crypto",
    "length",
    "millis",
    "order",
    "reserved",
    "service",
    "timeHigh",
    "timeLow",
];

/// Messages whose first fields are not the most informative ones, sorted by name.
const SHOWN: InfoTable = &[
    ("GAME.MSG_ATTACH", &["UserID", "CharID", "ZoneName", "Location", "Locale"]),
    ("LOGIN.MSG_CHARACTERSELECTED", &["Error", "IP", "TCPPort", "CharID", "ZoneName", "Location"]),
    ("LOGIN.MSG_USER_AUTHEN_RSP", &["Error", "UserID", "Reason"]),
    ("LOGIN.MSG_USER_AUTHEN_V3", &["Rec1.username", "Version", "Revision", "Locale"]),
    ("LOGIN.MSG_USER_VALIDATE", &["UserID", "Locale"]),
];

pub(super) fn fields(name: &str) -> InfoFields {
    InfoFields::find(name, SHOWN, HIDDEN)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_table_fits_the_messages() {
        crate::info::tests::assert_fits(&super::super::Ki, super::SHOWN, super::HIDDEN);
    }
}
