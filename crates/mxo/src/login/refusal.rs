//! Why a login is refused.

use core::fmt;

use super::auth::LoginStatus;

/// Why one of the login state machines ends a connection. The other side is at fault, unless stated
/// otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoginRefusal {
    /// A message that does not belong to this step of the login.
    OutOfOrder {
        /// Its opcode.
        opcode: u8,
    },
    /// The server reports this status, or this side is the server and refuses the login with it.
    Status(LoginStatus),
    /// The client encrypted its request with another server's key, because its `pubkey.dat` does
    /// not belong to this server, or did not encrypt it properly.
    OtherServerKey,
    /// The client's proof cannot be decrypted or does not answer this challenge.
    WrongProof,
    /// The server's public key is not signed by the signing key that the client trusts.
    UnsignedKey,
    /// The server sent no public key, and the client has none.
    NoKey,
    /// The certificate is not signed by this server's key.
    UnsignedCertificate,
    /// The certificate has expired: the client waited too long between the auth server and the
    /// margin server.
    Expired {
        /// When it expired, in seconds since 1970.
        at: u32,
    },
    /// The certificate contains a key that is not a user key.
    InvalidUserKey,
    /// The challenge was not returned, so the client does not have the certificate's key.
    WrongChallenge,
    /// A reply from the server contains a secret that cannot be decrypted or used.
    InvalidSecret,
    /// This side is at fault: it could not build a message from its own values.
    Internal,
}

impl fmt::Display for LoginRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfOrder { opcode } => {
                write!(f, "message {opcode:#04x} does not belong to this step of the login")
            }
            Self::Status(status) => write!(f, "the login was refused: {status}"),
            Self::OtherServerKey => f.write_str(
                "the request is not encrypted with this server's key; the client needs this \
                 server's pubkey.dat",
            ),
            Self::WrongProof => f.write_str("the proof does not match the challenge"),
            Self::UnsignedKey => f.write_str(
                "the server's key is not signed by the signing key that this client trusts",
            ),
            Self::NoKey => f.write_str("the server sent no public key, and none was supplied"),
            Self::UnsignedCertificate => {
                f.write_str("the certificate is not signed by this server's key")
            }
            Self::Expired { at } => write!(f, "the certificate expired at {at}"),
            Self::InvalidUserKey => f.write_str("the certificate's key is not a user key"),
            Self::WrongChallenge => f.write_str("the challenge was not returned"),
            Self::InvalidSecret => f.write_str("the server's secret cannot be decrypted"),
            Self::Internal => f.write_str("a reply could not be encoded"),
        }
    }
}

impl core::error::Error for LoginRefusal {}
