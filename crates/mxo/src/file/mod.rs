//! Files with keys.
//!
//! | file | contents | |
//! | --- | --- | --- |
//! | `pubkey.dat` | the server's signed public key, in the client's folder | [`PublicKeyFile`] |
//! | a private key | PKCS#8 as DER or PEM, PKCS#1 as PEM, or `RSAKeyValue` XML | [`parse_private_key`] |

#[cfg(feature = "login")]
mod private_key;
mod public_key;

#[cfg(feature = "login")]
pub use private_key::{
    MAX_PRIVATE_KEY_BYTES, PrivateKeyError, format_private_key, parse_private_key,
};
pub use public_key::PublicKeyFile;
