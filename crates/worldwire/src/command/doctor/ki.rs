//! Findings about KI logins.

use worldwire_core::{Tree, Value};
use worldwire_dissect::Item;

/// The messages that contain a login's secret.
const SECRETS: [&str; 2] = ["LOGIN.MSG_USER_AUTHEN_V3", "LOGIN.MSG_USER_AUTHEN_RSP"];
/// The field that contains the secret.
const SECRET: &str = "Rec1";

/// The reason why a login's secret could not be decrypted; `None` if it could be. `has_logins`
/// states whether the key file contains accounts.
pub(super) fn closed(item: &Item<'_>, tree: &Tree<'_>, has_logins: bool) -> Option<String> {
    if item.family != "ki" || item.note().is_some() {
        return None;
    }
    let mut name = String::new();
    item.push_name(&mut name);
    if !SECRETS.contains(&&*name) {
        return None;
    }
    let fields = tree.roots().find(|node| node.name() == "fields")?;
    let secret = fields.children().find(|node| node.name() == SECRET)?;
    match secret.value() {
        Value::Span(span) if span.length > 0 => {}
        _ => return None,
    }
    let why = match has_logins {
        false => {
            "supply the account's password or ck2 with --keys, as [[ki.login]]; serve ki \
             --secrets writes the ck2 of all logins"
        }
        true => {
            "no account in the key file matches; check its user and password. A refused login has no \
             ck2"
        }
    };
    Some(format!("{name}.{SECRET} cannot be decrypted: {why}"))
}
