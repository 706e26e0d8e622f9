//! The permissions of a cluster's processes on the bus: configuration for `nats-server`.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use nkeys::{KeyPair, KeyPairType};
use zeroize::Zeroizing;

use super::subjects::{NodeKind, Subjects};
use crate::folder::write_secret;
use crate::uru::config::{Role, is_name};

/// A process that uses the bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BusUser {
    /// Its name in the cluster.
    pub node: String,
    /// Its public nkey, which begins with `U`.
    pub key: String,
    /// Its roles. With [`Role::Vault`], it leads the cluster or is a standby.
    pub roles: Vec<Role>,
}

/// Why the bus configuration cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BusUserError {
    /// A name that cannot be part of a subject.
    #[error("a name must have 1 to 32 lowercase letters, digits and hyphens, not {0:?}")]
    Name(String),
    /// A key that is not the public key of a user.
    #[error(
        "not the public nkey of a user, which has 56 characters and begins with U: {0:?}; \
        `worldwire uru cluster nats-key` prints it"
    )]
    Key(String),
    /// A secret key. The error does not show it.
    #[error(
        "{0} has a secret key; give the public one, which `worldwire uru cluster nats-key` prints"
    )]
    Secret(String),
    /// A shared key. Both processes would have the permissions of both.
    #[error(
        "{0} and {1} have the same key; create one for each with `worldwire uru cluster nats-key`"
    )]
    SameKey(String, String),
    /// A name used by two processes.
    #[error("{0} has several keys; give each process its own name")]
    SameName(String),
}

/// Creates a key with which a process logs in to the bus. Writes the secret key to a new file that
/// only its owner can read, and returns the public key.
pub fn new_bus_key(file: &Path) -> io::Result<String> {
    let key = KeyPair::new_user();
    let seed = Zeroizing::new(key.seed().map_err(io::Error::other)?);
    write_secret(file, format!("{}\n", *seed).as_bytes())?;
    Ok(key.public_key())
}

/// The `authorization` section of the `nats-server` configuration for the processes of a cluster.
/// Each process may do what it needs and nothing else.
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
        let mut publish = vec![subjects.all_up_from(NodeKind::of(roles), node)];
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

    #[test]
    fn a_new_key_is_private_and_can_be_used() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("bus.nk");
        let public = new_bus_key(&file).unwrap();
        assert!(nats_config("shard", &[user("a", &public)]).unwrap().contains(&public));
        let seed = std::fs::read_to_string(&file).unwrap();
        assert_eq!(KeyPair::from_seed(seed.trim()).unwrap().public_key(), public);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = std::fs::metadata(&file).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        let again = new_bus_key(&file).unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), seed, "it is not replaced");
    }
}
