//! Private keys in the formats that the game's servers use.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rsa::pkcs1::DecodeRsaPrivateKey as _;
use rsa::pkcs8::{DecodePrivateKey as _, EncodePrivateKey as _, LineEnding};
use zeroize::Zeroizing;

use crate::crypt::{EXPONENT, KeyUse, PrivateKey, RsaError};

/// The maximum size of a file with a private key. A signing key takes less than 2 KiB.
pub const MAX_PRIVATE_KEY_BYTES: usize = 16 * 1024;

/// Why a file with a private key cannot be used. The fault lies with the file, or with the operator
/// who chose it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PrivateKeyError {
    /// The file is longer than [`MAX_PRIVATE_KEY_BYTES`].
    #[error("a private key cannot have {0} bytes; the limit is {MAX_PRIVATE_KEY_BYTES}")]
    TooLong(usize),
    /// The file is in none of the known formats.
    #[error("not a private key; supply PKCS#8 as DER or PEM, PKCS#1 as PEM, or RSAKeyValue XML")]
    Form,
    /// The key is protected by a password.
    #[error(
        "the key is encrypted with a password; \
         `openssl pkcs8 -topk8 -nocrypt -in FILE` removes it"
    )]
    Encrypted,
    /// The file contains only the public half.
    #[error("the file contains only a public key; supply the private one")]
    PublicOnly,
    /// An element of the XML is missing or is not base64.
    #[error("the element {0} is missing or is not base64")]
    Element(&'static str),
    /// The key itself is unsuitable.
    #[error(transparent)]
    Key(#[from] RsaError),
}

/// Parses a private key for this purpose. The format is recognised from the contents.
///
/// # Errors
/// See [`PrivateKeyError`].
pub fn parse_private_key(purpose: KeyUse, file: &[u8]) -> Result<PrivateKey, PrivateKeyError> {
    if file.len() > MAX_PRIVATE_KEY_BYTES {
        return Err(PrivateKeyError::TooLong(file.len()));
    }
    let Some(text) =
        core::str::from_utf8(file).ok().map(|text| text.trim_start_matches('\u{feff}'))
    else {
        return parse_der(purpose, file);
    };
    let text = text.trim();
    match text.strip_prefix("-----BEGIN ") {
        Some(label) => parse_pem(purpose, text, label),
        None if text.starts_with('<') => parse_xml(purpose, text),
        None => parse_der(purpose, file),
    }
}

/// Formats a private key as PKCS#8 PEM.
///
/// # Errors
/// None in practice; [`RsaError::Invalid`] if the key is inconsistent.
pub fn format_private_key(key: &PrivateKey) -> Result<Zeroizing<String>, RsaError> {
    key.inner().to_pkcs8_pem(LineEnding::LF).map_err(|_| RsaError::Invalid)
}

fn parse_der(purpose: KeyUse, der: &[u8]) -> Result<PrivateKey, PrivateKeyError> {
    let key = rsa::PrivateKey::from_pkcs8_der(der).map_err(|_| PrivateKeyError::Form)?;
    Ok(PrivateKey::of(purpose, key)?)
}

/// `label` begins with the label of the first block.
fn parse_pem(purpose: KeyUse, text: &str, label: &str) -> Result<PrivateKey, PrivateKeyError> {
    let is =
        |wanted: &str| label.strip_prefix(wanted).is_some_and(|rest| rest.starts_with("-----"));
    let key = if is("PRIVATE KEY") {
        rsa::PrivateKey::from_pkcs8_pem(text).map_err(|_| PrivateKeyError::Form)?
    } else if is("RSA PRIVATE KEY") && text.contains("Proc-Type:") || is("ENCRYPTED PRIVATE KEY") {
        return Err(PrivateKeyError::Encrypted);
    } else if is("RSA PRIVATE KEY") {
        rsa::PrivateKey::from_pkcs1_pem(text).map_err(|_| PrivateKeyError::Form)?
    } else if is("PUBLIC KEY") || is("RSA PUBLIC KEY") {
        return Err(PrivateKeyError::PublicOnly);
    } else {
        return Err(PrivateKeyError::Form);
    };
    Ok(PrivateKey::of(purpose, key)?)
}

/// Parses `RSAKeyValue` XML, which .NET programs write: elements with base64, without attributes.
fn parse_xml(purpose: KeyUse, text: &str) -> Result<PrivateKey, PrivateKeyError> {
    let inner = element(text, "RSAKeyValue").ok_or(PrivateKeyError::Form)?;
    let number = |name| {
        let error = PrivateKeyError::Element(name);
        let digits: Zeroizing<String> =
            Zeroizing::new(element(inner, name).ok_or(error)?.split_ascii_whitespace().collect());
        BASE64.decode(&*digits).map(Zeroizing::new).map_err(|_| error)
    };
    let (modulus, exponent) = (number("Modulus")?, number("Exponent")?);
    if element(inner, "D").is_none() {
        return Err(PrivateKeyError::PublicOnly);
    }
    let significant = exponent.iter().position(|byte| *byte != 0);
    if significant.and_then(|at| exponent.get(at..)) != Some(&EXPONENT.to_be_bytes()[1..]) {
        return Err(RsaError::Exponent.into());
    }
    Ok(PrivateKey::from_exponent(purpose, &modulus, &number("D")?)?)
}

/// The content of the first element with this name.
fn element<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    rest.split_once(&format!("</{name}>")).map(|(content, _)| content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypt::Random;

    fn key() -> PrivateKey {
        PrivateKey::generate(KeyUse::User, &mut Random::new([9; 32])).unwrap()
    }

    fn xml(key: &PrivateKey, exponent: &str) -> String {
        let (modulus, private) =
            (BASE64.encode(key.public().modulus()), BASE64.encode(&*key.exponent()));
        format!(
            "\u{feff}<RSAKeyValue>\n <Modulus>{modulus}</Modulus><Exponent>{exponent}</Exponent>\
             <P>ignored</P><D>{private}</D>\n</RSAKeyValue>\n"
        )
    }

    #[test]
    fn every_form_is_read() {
        let key = key();
        let pem = format_private_key(&key).unwrap();
        assert!(pem.starts_with("-----BEGIN PRIVATE KEY-----\n"));
        let der = key.inner().to_pkcs8_der().unwrap();
        let pkcs1 = rsa::pkcs1::EncodeRsaPrivateKey::to_pkcs1_pem(key.inner(), LineEnding::CRLF);
        let (pkcs1, xml) = (pkcs1.unwrap(), xml(&key, "EQ=="));
        for file in [pem.as_bytes(), der.as_bytes(), pkcs1.as_bytes(), xml.as_bytes()] {
            let parsed = parse_private_key(KeyUse::User, file).unwrap();
            assert_eq!((parsed.public(), parsed.exponent()), (key.public(), key.exponent()));
        }
    }

    #[test]
    fn unsuitable_files_are_refused_by_name() {
        let key = key();
        let parse = |file: &[u8]| parse_private_key(KeyUse::User, file).map(drop);
        assert_eq!(parse(&[b'x'; 20_000]), Err(PrivateKeyError::TooLong(20_000)));
        for file in [&b""[..], b"\x30\x82\xff", b"<html>", b"-----BEGIN CERTIFICATE-----", b"hello"]
        {
            assert_eq!(parse(file), Err(PrivateKeyError::Form));
        }
        for label in ["ENCRYPTED PRIVATE KEY-----", "RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED"]
        {
            assert_eq!(
                parse(format!("-----BEGIN {label}").as_bytes()),
                Err(PrivateKeyError::Encrypted)
            );
        }
        let public = "-----BEGIN PUBLIC KEY-----\n";
        assert_eq!(parse(public.as_bytes()), Err(PrivateKeyError::PublicOnly));
        let whole = xml(&key, "EQ==");
        let (begin, end) = (whole.find("<D>").unwrap(), whole.find("</RSA").unwrap());
        let public = [&whole[..begin], &whole[end..]].concat();
        assert_eq!(parse(public.as_bytes()), Err(PrivateKeyError::PublicOnly));
        let odd = whole.replace("Modulus>", "Module>");
        assert_eq!(parse(odd.as_bytes()), Err(PrivateKeyError::Element("Modulus")));
        assert_eq!(parse(xml(&key, "AQAB").as_bytes()), Err(RsaError::Exponent.into()));
        let pem = format_private_key(&key).unwrap();
        let size = RsaError::Size { wanted: KeyUse::Server, bits: 768 };
        for file in [pem.as_bytes(), whole.as_bytes()] {
            let refused = parse_private_key(KeyUse::Server, file).map(drop);
            assert_eq!(refused, Err(size.into()));
        }
    }
}
