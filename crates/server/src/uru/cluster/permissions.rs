//! What the processes of a cluster may do on the bus: the configuration of `nats-server`.

use std::fmt::Write as _;

use nkeys::{KeyPair, KeyPairType};

use super::bus::Subjects;
use crate::uru::config::{Role, is_name};

/// A process that uses the bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BusUser {
    /// Its name in the cluster.
    pub node: String,
    /// Its public nkey, which begins with `U`.
    pub key: String,
    /// What it does. With [`Role::Vault`], it leads the cluster, or stands by.
    pub roles: Vec<Role>,
}

/// Why a configuration of the bus cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BusUserError {
    /// A name that cannot be part of a subject.
    #[error("a name must have 1 to 32 lowercase letters, digits and hyphens, not {0:?}")]
    Name(String),
    /// Not the public key of a user.
    #[error(
        "not the public nkey of a user, which has 56 characters and begins with U: {0:?}; `nk -inkey FILE \
        -pubout` prints it"
    )]
    Key(String),
    /// A secret key. It is not repeated.
    #[error("{0} has a secret key; give the public one, which `nk -inkey FILE -pubout` prints")]
    Secret(String),
    /// Two processes with one key would have the permissions of both.
    #[error("{0} and {1} have the same key; generate one for each with `nk -gen user`")]
    SameKey(String, String),
    /// Two processes with one name.
    #[error("{0} has several keys; give each process its own name")]
    SameName(String),
}

/// The section `authorization` of the configuration of `nats-server`, for the processes of a cluster:
/// each may do what it needs, and nothing else.
pub fn nats_config(cluster: &str, users: &[BusUser]) -> Result<String, BusUserError> {
    if !is_name(cluster) {
        return Err(BusUserError::Name(cluster.to_owned()));
    }
    for (index, user) in users.iter().enumerate() {
        check(user)?;
        for other in users.iter().take(index) {
            if other.node == user.node {
                return Err(BusUserError::SameName(user.node.clone()));
            }
            if other.key == user.key {
                return Err(BusUserError::SameKey(other.node.clone(), user.node.clone()));
            }
        }
    }
    let mut text =
        format!("# The processes of the shard `{cluster}`.\nauthorization {{\n  users: [\n");
    for BusUser { node, key, roles } in users {
        let names: Vec<_> = roles.iter().map(|role| role.name()).collect();
        let Permissions { publish, subscribe } = Permissions::of(cluster, node, roles);
        let _ = writeln!(
            text,
            "    # {node}: {}\n    {{ nkey: \"{key}\", permissions: {{\n        publish: [{}],\n        \
             subscribe: [{}] }} }}",
            names.join(", "),
            quoted(&publish),
            quoted(&subscribe),
        );
    }
    text.push_str("  ]\n}\n");
    Ok(text)
}

fn check(user: &BusUser) -> Result<(), BusUserError> {
    if !is_name(&user.node) {
        return Err(BusUserError::Name(user.node.clone()));
    }
    if user.key.starts_with('S') {
        return Err(BusUserError::Secret(user.node.clone()));
    }
    match KeyPair::from_public_key(&user.key) {
        Ok(pair) if pair.key_pair_type() == KeyPairType::User => Ok(()),
        _ => Err(BusUserError::Key(user.key.clone())),
    }
}

/// The subjects that a process may use.
struct Permissions {
    publish: Vec<String>,
    subscribe: Vec<String>,
}

impl Permissions {
    fn of(cluster: &str, node: &str, roles: &[Role]) -> Self {
        let subjects = Subjects::of(cluster);
        // The permissions of a node. A standby is also a node.
        let mut publish = vec![subjects.all_up()];
        let mut subscribe = vec![subjects.leader(), subjects.all_down_to(node)];
        if roles.contains(&Role::Vault) {
            publish.extend([subjects.leader(), subjects.all_down()]);
            subscribe.push(subjects.all_up());
        }
        if roles.iter().any(|role| matches!(role, Role::Age | Role::Vault)) {
            for list in [&mut publish, &mut subscribe] {
                list.extend(subjects.all_players());
            }
        }
        Self { publish, subscribe }
    }
}

fn quoted(subjects: &[String]) -> String {
    let quoted: Vec<_> = subjects.iter().map(|subject| format!("\"{subject}\"")).collect();
    quoted.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(node: &str, key: &str) -> BusUser {
        BusUser { node: node.to_owned(), key: key.to_owned(), roles: vec![Role::Front] }
    }

    #[test]
    fn mistakes_are_named() {
        let [one, other] = [(); 2].map(|()| KeyPair::new_user());
        let (key, secret) = (one.public_key(), one.seed().unwrap());
        let refused = |users: &[BusUser]| nats_config("shard", users).unwrap_err().to_string();
        assert!(refused(&[user("Front", &key)]).contains("not \"Front\""));
        assert!(refused(&[user("a", "UABC")]).contains("not the public nkey of a user"));
        let account = KeyPair::new_account().public_key();
        assert!(refused(&[user("a", &account)]).contains("not the public nkey of a user"));
        let said = refused(&[user("a", &secret)]);
        assert!(said.starts_with("a has a secret key") && !said.contains(&secret), "{said}");
        assert!(refused(&[user("a", &key), user("b", &key)]).contains("a and b have the same key"));
        let both = [user("a", &key), user("a", &other.public_key())];
        assert!(refused(&both).starts_with("a has several keys"));
        assert!(nats_config("My shard", &[]).is_err());
    }
}
