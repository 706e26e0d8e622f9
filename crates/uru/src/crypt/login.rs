//! The login hashes that a client sends to the auth server. For compatibility only.
//!
//! Two digests represent a password: one of the password alone ([`PasswordHash::sha1`], P1 below)
//! and one of password and account name ([`PasswordHash::sha0`], P0). If the account name looks
//! like an e-mail address, the client proves that it knows the digest by hashing it together with
//! two challenges. For all other names it sends the digest itself, so an eavesdropper can log in.
//!
//! Both digests are equivalent to the password, and neither can be salted: protect them.

use std::fmt;

use ctutils::{Choice, CtEq};
use sha1::{Digest, Sha1};
use zeroize::Zeroizing;

use super::secret::Secret;
use super::sha0::{DIGEST_BYTES, Sha0};

/// The number of UTF-16 units of an account name that clients hash; the rest is ignored.
pub const NAME_UNITS: usize = 63;
/// The number of UTF-16 units of a password that clients hash; the rest is ignored.
pub const PASSWORD_UNITS: usize = 15;

/// Computes the fields of `AcctLoginRequest` as the H'uru client does.
///
/// `client_challenge` is the client's random number, `server_challenge` the one from
/// `ClientRegisterReply`. For a name that is not an e-mail name, neither is used, and the client
/// sends the challenge 0. Unless [`hashes_agree`], H'uru itself sends a different hash.
///
/// ```
/// use worldwire_uru::crypt::login::login_fields;
///
/// let fields = login_fields("tester", "secretpw", 1946657530, 483309697);
/// assert_eq!(fields.client_challenge, 0);
/// assert_eq!(fields.challenge_hash[..4], [0x6d, 0xeb, 0xfd, 0x64]);
/// ```
#[must_use]
pub fn login_fields(
    name: &str,
    password: &str,
    client_challenge: u32,
    server_challenge: u32,
) -> LoginFields {
    fields(name, &PasswordHashes::new(name, password), (client_challenge, server_challenge))
}

/// Like [`login_fields`], but with the untruncated password. Some current clients do not truncate
/// it, and accounts created with them store that digest.
#[must_use]
pub fn uncut_login_fields(
    name: &str,
    password: &str,
    client_challenge: u32,
    server_challenge: u32,
) -> LoginFields {
    fields(name, &PasswordHashes::uncut(name, password), (client_challenge, server_challenge))
}

fn fields(
    name: &str,
    hashes: &PasswordHashes,
    (client_challenge, server_challenge): (u32, u32),
) -> LoginFields {
    if is_email_name(name) {
        let challenge_hash = hashes.sha0.challenge(client_challenge, server_challenge);
        LoginFields { client_challenge, challenge_hash }
    } else {
        LoginFields { client_challenge: 0, challenge_hash: *hashes.sha1.as_bytes() }
    }
}

/// Server: checks whether `challenge_hash` proves knowledge of the password of `name`, and returns
/// the form of the proof.
///
/// For e-mail names, a challenge hash made with either digest is accepted (recent OpenUru clients
/// try P1 first); for other names, either digest itself (OpenUru falls back to P0). Clients
/// truncate long names, and a truncated e-mail name may no longer look like one; all four forms are
/// therefore accepted for names of 63 units or more.
///
/// The running time does not depend on the digests. Look accounts up case-insensitively (see
/// [`folded_name`]), and give the same reply to unknown names and wrong passwords.
#[must_use]
pub fn verify(
    name: &str,
    hashes: &PasswordHashes,
    client_challenge: u32,
    server_challenge: u32,
    challenge_hash: &[u8; DIGEST_BYTES],
) -> Option<LoginForm> {
    let long = name.encode_utf16().count() >= NAME_UNITS;
    let email = is_email_name(name);
    let challenged = Choice::from_u8_lsb(u8::from(email || long));
    let direct = Choice::from_u8_lsb(u8::from(!email || long));

    let mut accepted = None;
    let mut check = |form: LoginForm, allowed: Choice, wanted: &[u8; DIGEST_BYTES]| {
        // Every form is computed and compared, even if an earlier one matched.
        if bool::from(wanted.ct_eq(challenge_hash) & allowed) {
            accepted = Some(form);
        }
    };
    let proof = hashes.sha1.challenge(client_challenge, server_challenge);
    check(LoginForm::ChallengeSha1, challenged, &proof);
    let proof = hashes.sha0.challenge(client_challenge, server_challenge);
    check(LoginForm::ChallengeSha0, challenged, &proof);
    check(LoginForm::Sha0, direct, hashes.sha0.as_bytes());
    check(LoginForm::Sha1, direct, hashes.sha1.as_bytes());
    accepted
}

/// The login fields that a client computes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct LoginFields {
    /// The client's challenge, or 0 if none is used.
    pub client_challenge: u32,
    /// The proof. For names other than e-mail names it is equivalent to the password.
    pub challenge_hash: [u8; DIGEST_BYTES],
}

impl fmt::Debug for LoginFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoginFields")
            .field("client_challenge", &self.client_challenge)
            .finish_non_exhaustive()
    }
}

/// How a client proved its password. Useful for statistics on clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LoginForm {
    /// Challenge with P0: H'uru and original clients, for e-mail names.
    ChallengeSha0,
    /// Challenge with P1: first attempt of recent OpenUru clients, for e-mail names.
    ChallengeSha1,
    /// P0 itself: fallback of OpenUru clients, for all other names.
    Sha0,
    /// P1 itself: all clients, for all other names.
    Sha1,
}

/// Both digests of a password. A server needs both to accept every client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PasswordHashes {
    /// P0, of password and account name.
    pub sha0: PasswordHash,
    /// P1, of the password alone.
    pub sha1: PasswordHash,
}

impl PasswordHashes {
    /// Computes the digests to store for a new account or a changed password.
    ///
    /// Name and password are truncated as clients do. Warn the user unless [`hashes_agree`].
    #[must_use]
    pub fn new(name: &str, password: &str) -> Self {
        Self { sha0: PasswordHash::sha0(name, password), sha1: PasswordHash::sha1(password) }
    }

    /// Computes the digests of the whole password, as sent by clients that do not truncate it.
    #[must_use]
    pub fn uncut(name: &str, password: &str) -> Self {
        let sha0 = PasswordHash::sha0_of(name, password.encode_utf16());
        Self { sha0, sha1: PasswordHash::sha1_of_bytes(password.as_bytes()) }
    }
}

/// A password digest. Cleared on drop, hidden by `Debug`, compared in constant time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PasswordHash(Secret<[u8; DIGEST_BYTES]>);

impl PasswordHash {
    /// P0: SHA-0 of password and account name in UTF-16LE, with the last unit of each replaced by
    /// zero and the name in lower case (ASCII letters only). An empty part contributes nothing.
    ///
    /// The zero was originally a mistake in the client and is now part of the format. H'uru
    /// truncates one byte of UTF-8 earlier instead, so its result differs if either part ends in a
    /// non-ASCII character. This function follows the original; see [`hashes_agree`].
    ///
    /// The name is always converted to lower case. Servers that hash it as typed will later reject
    /// its owner.
    #[must_use]
    pub fn sha0(name: &str, password: &str) -> Self {
        Self::sha0_of(name, password.encode_utf16().take(PASSWORD_UNITS))
    }

    fn sha0_of(name: &str, password: impl Iterator<Item = u16>) -> Self {
        let mut hash = Sha0::new();
        hash_units(&mut hash, password);
        let lowered = name.encode_utf16().map(|unit| match unit {
            0x41..=0x5a => unit + 0x20,
            _ => unit,
        });
        hash_units(&mut hash, lowered.take(NAME_UNITS));
        Self(Secret(hash.finish()))
    }

    /// P1: SHA-1 of the password in UTF-8, with the bytes of each word reversed, as transmitted.
    ///
    /// Unverified: if truncation at 15 units splits a character outside the basic plane, that
    /// character is dropped here; the behaviour of clients is unknown.
    #[must_use]
    pub fn sha1(password: &str) -> Self {
        Self::sha1_of_bytes(cut(password, PASSWORD_UNITS).as_bytes())
    }

    // OpenUru encodes the password in the user's Windows code page instead of UTF-8.
    fn sha1_of_bytes(password: &[u8]) -> Self {
        let mut digest: [u8; DIGEST_BYTES] = Sha1::digest(password).into();
        for word in digest.as_chunks_mut::<4>().0 {
            word.reverse();
        }
        Self(Secret(digest))
    }

    /// A stored digest, in transmission order.
    #[must_use]
    pub fn from_bytes(bytes: [u8; DIGEST_BYTES]) -> Self {
        Self(Secret(bytes))
    }

    /// The digest in transmission order, for storage: P0 as returned by SHA-0, P1 with reversed
    /// words. dirtsand stores P1 with its words in original order.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; DIGEST_BYTES] {
        &self.0.0
    }

    /// Proves knowledge of this digest: SHA-0 of both challenges, little-endian, and the digest.
    #[must_use]
    pub fn challenge(&self, client_challenge: u32, server_challenge: u32) -> [u8; DIGEST_BYTES] {
        let mut hash = Sha0::new();
        hash.update(&client_challenge.to_le_bytes());
        hash.update(&server_challenge.to_le_bytes());
        hash.update(&self.0.0);
        hash.finish()
    }
}

/// Whether clients treat the account name as an e-mail address and prove its password with a
/// challenge.
///
/// An e-mail address has text before and after an at sign, and the last two labels are not empty.
/// Names whose second-to-last label is `gametap` in any case are not e-mail names, since that
/// reseller's accounts used the other form. The name is tested before truncation to 63 units.
#[must_use]
pub fn is_email_name(name: &str) -> bool {
    let Some(at) = name.char_indices().skip(1).find(|(_, c)| *c == '@') else { return false };
    let mut labels = name[at.0 + 1..].rsplit('.');
    let (Some(last), Some(second)) = (labels.next(), labels.next()) else { return false };
    !last.is_empty() && !second.is_empty() && !second.eq_ignore_ascii_case("gametap")
}

/// The form in which account names are looked up. Clients do not distinguish `A` from `a`, so
/// servers must not either. Only ASCII letters are folded, as in the password digest.
#[must_use]
pub fn folded_name(name: &str) -> String {
    name.to_ascii_lowercase()
}

/// Whether all clients compute the same P0. If not, warn the user who creates the account: if a
/// name or password ends (after truncation) in a non-ASCII character, H'uru clients compute a
/// different digest, and no server can fix that.
#[must_use]
pub fn hashes_agree(name: &str, password: &str) -> bool {
    let ascii_end =
        |text: &str, units| text.encode_utf16().take(units).last().is_none_or(|unit| unit < 0x80);
    ascii_end(name, NAME_UNITS) && ascii_end(password, PASSWORD_UNITS)
}

/// Hashes UTF-16 units in little-endian order, with the last one replaced by zero.
fn hash_units(hash: &mut Sha0, units: impl Iterator<Item = u16>) {
    let mut units = units.peekable();
    let mut bytes = Zeroizing::new([0; 2]);
    while let Some(unit) = units.next() {
        *bytes = if units.peek().is_some() { unit.to_le_bytes() } else { [0; 2] };
        hash.update(&*bytes);
    }
}

/// The prefix of the text that fits into `units` UTF-16 units.
fn cut(text: &str, units: usize) -> &str {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += c.len_utf16();
        if used > units {
            return &text[..at];
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|b| format!("{b:02x}")).collect()
    }

    #[test]
    fn passwords_are_optionally_truncated() {
        let hash = |fields: LoginFields| fields.challenge_hash;
        let (short, long) = ("0123456789abcde", "0123456789abcdef");
        for name in ["tester", "ann@example.org"] {
            assert_eq!(
                hash(login_fields(name, short, 1, 2)),
                hash(uncut_login_fields(name, short, 1, 2))
            );
            assert_eq!(hash(login_fields(name, long, 1, 2)), hash(login_fields(name, short, 1, 2)));
            assert_ne!(
                hash(uncut_login_fields(name, long, 1, 2)),
                hash(login_fields(name, long, 1, 2))
            );
        }
    }

    /// From the login hash vectors.
    #[test]
    fn plain_name() {
        let hashes = PasswordHashes::new("tester", "secretpw");
        assert_eq!(hex(hashes.sha1.as_bytes()), "6debfd64676e2b17a411656e9b8d6dcc4f1f54a6");
        assert_eq!(hex(hashes.sha0.as_bytes()), "f7cae85333ed087f5b42c78711301da6cdc04d08");
        let (client, server) = (1_946_657_530, 483_309_697);
        assert_eq!(
            hex(&hashes.sha0.challenge(client, server)),
            "ddf57893d35581db93a04d1018e773501ab3002e"
        );
        assert_eq!(
            hex(&hashes.sha1.challenge(client, server)),
            "c4d67f2672ec964e40e66f4e485ce1704cd7078a"
        );
        let fields = login_fields("tester", "secretpw", client, server);
        assert_eq!(fields.client_challenge, 0);
        assert_eq!(fields.challenge_hash, *hashes.sha1.as_bytes());

        let check = |proof: &[u8; 20]| verify("tester", &hashes, client, server, proof);
        assert_eq!(check(hashes.sha1.as_bytes()), Some(LoginForm::Sha1));
        assert_eq!(check(hashes.sha0.as_bytes()), Some(LoginForm::Sha0));
        assert_eq!(check(&hashes.sha0.challenge(client, server)), None);
        assert_eq!(check(&hashes.sha1.challenge(client, server)), None);
        assert_eq!(check(&[0; 20]), None);
    }

    /// From the login hash vectors.
    #[test]
    fn email_name_in_mixed_case() {
        let hashes = PasswordHashes::new("Mixed.Case@Example.ORG", "Pa55 word");
        assert_eq!(hashes, PasswordHashes::new("mixed.case@example.org", "Pa55 word"));
        assert_eq!(hex(hashes.sha1.as_bytes()), "be2495aa613d4c9ee3d2f844501df911b3fd1a26");
        assert_eq!(hex(hashes.sha0.as_bytes()), "5add782b8485f7a6691151cec49c78bda129292f");
        let (client, server) = (2_960_844_029, 3_828_202_622);
        let fields = login_fields("MIXED.case@example.org", "Pa55 word", client, server);
        assert_eq!(fields.client_challenge, client);
        assert_eq!(hex(&fields.challenge_hash), "f4cc70e5715948a0699add70747c451c1b5a6f12");

        let name = "mixed.case@example.org";
        let check = |server, proof: &[u8; 20]| verify(name, &hashes, client, server, proof);
        assert_eq!(check(server, &fields.challenge_hash), Some(LoginForm::ChallengeSha0));
        let proof = hashes.sha1.challenge(client, server);
        assert_eq!(check(server, &proof), Some(LoginForm::ChallengeSha1));
        // Sending the digest itself would be a replay.
        assert_eq!(check(server, hashes.sha0.as_bytes()), None);
        assert_eq!(check(server, hashes.sha1.as_bytes()), None);
        assert_eq!(check(server + 1, &fields.challenge_hash), None);
    }

    /// From the login hash vectors: an empty password contributes nothing to P0.
    #[test]
    fn empty_password() {
        let hashes = PasswordHashes::new("x@y.zz", "");
        assert_eq!(hex(hashes.sha1.as_bytes()), "eea339da0d4b6b5eefbf5532901860950907d8af");
        assert_eq!(hex(hashes.sha0.as_bytes()), "28d1a8dd9ad6b5df40842fdbb868f5136dcd03f3");
    }

    /// From the login hash vectors: both parts are truncated, and the name is tested before that.
    #[test]
    fn long_name_and_password() {
        let name = "longaccountnamegoingwellpastthelimitofsixtythreecodeunitsyesreally@example.com";
        let hashes = PasswordHashes::new(name, "correct horse battery staple");
        assert_eq!(hex(hashes.sha1.as_bytes()), "b573145737d1d3c92e707801a017edff0d260ded");
        assert_eq!(hex(hashes.sha0.as_bytes()), "dba28ec046733e8a9202bc6e367f29d7cb67b1b0");
        let (client, server) = (1_500_427_418, 3_281_695_770);
        let fields = login_fields(name, "correct horse battery staple", client, server);
        assert_eq!(hex(&fields.challenge_hash), "adf619bbd28e30c9c4653552fea8929e376533b2");
        // The server sees the truncated name, which has no at sign left.
        let cut_name = &name[..63];
        assert!(!is_email_name(cut_name));
        assert_eq!(
            verify(cut_name, &hashes, client, server, &fields.challenge_hash),
            Some(LoginForm::ChallengeSha0)
        );
    }

    #[test]
    fn email_names() {
        for name in [
            "a@b.c",
            "noreply@example.co.uk",
            "noreply@gametap.co.uk",
            "a@gametap.spam.net",
            "a@b@c.d",
            "@a@b.c",
            "a@@b.c",
        ] {
            assert!(is_email_name(name), "{name}");
        }
        for name in [
            "",
            "@",
            "account",
            "@example.com",
            "noreply@example",
            "noreply@example.",
            "noreply@.com",
            "a@..",
            "noreply@gametap.com",
            "noreply@GameTap.COM",
            "a@spam.gametap.net",
        ] {
            assert!(!is_email_name(name), "{name}");
        }
    }

    #[test]
    fn characters_outside_ascii() {
        assert!(hashes_agree("käse@example.org", "päss"));
        assert!(hashes_agree("", ""));
        assert!(!hashes_agree("tester", "passwordé"));
        assert!(!hashes_agree("testeré", "password"));
        // This part is truncated, so it is irrelevant.
        assert!(hashes_agree("tester", "fifteen letters\u{e9}"));
        // Fourteen letters and half a character: truncation splits it.
        assert_eq!(
            PasswordHash::sha1("fourteen letrs\u{1f600}"),
            PasswordHash::sha1("fourteen letrs")
        );
        // Only ASCII letters are converted to lower case.
        assert_eq!(PasswordHash::sha0("A\u{c4}b", "p"), PasswordHash::sha0("a\u{c4}b", "p"));
        assert_ne!(PasswordHash::sha0("\u{c4}b", "p"), PasswordHash::sha0("\u{e4}b", "p"));
        assert_eq!(folded_name("\u{c4}B@Example.org"), "\u{c4}b@example.org");
    }

    #[test]
    fn debug_hides_digests() {
        let hashes = PasswordHashes::new("tester", "secretpw");
        assert_eq!(
            format!("{hashes:?}"),
            "PasswordHashes { sha0: PasswordHash(..), sha1: PasswordHash(..) }"
        );
        let fields = login_fields("tester", "secretpw", 0, 0);
        assert_eq!(format!("{fields:?}"), "LoginFields { client_challenge: 0, .. }");
    }
}
