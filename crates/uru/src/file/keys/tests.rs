//! Tests that cover all formats together.

use super::*;
use crate::crypt::key::{KEY_BYTES, KeyError, Modulus};
use crate::file::secure::SecureKeyError;

/// The auth server of the key exchange vectors.
const N: &str =
    "2ex/F+FhkABZbwXBWZ5BUC0XEWUfkPOUU243+uzCQV65CVbu/OLZ5C9ySBUhDE0dzQZoI+y4OHGGfm2ArRgLDQ==";
const A: &str =
    "YGSjhQky5CVn/i4DSkpEMKjkFb8w4ZiuASq8ub7T2kI51Vksn3iaTMQSEkfJ+0QneIbO7t+ADolOSqPUp/arhQ==";
const X: &str =
    "Aey6/90p143sjSG7eH6j9aOWEI7LLYVT78W+LCPIcnW2bCpG1bjDYbDviNVA1J6RBj6I2nO2fCUDaaJg4aZg6g==";
const DROID: &str = "31415926535897932384626433832795";

/// A ring with three key pairs, a public key and a droid key. All use the vector's numbers, since
/// any secret is valid with any modulus.
fn ring() -> KeyRing {
    let mut ring = KeyRing::new();
    for (kind, secret) in
        [(ServerKind::Gatekeeper, 2), (ServerKind::Auth, 3), (ServerKind::Game, 200)]
    {
        ring.insert_private(PrivateKey::new(kind, modulus(), &[secret; KEY_BYTES]).unwrap());
    }
    ring.insert_public(PublicKey::new(ServerKind::Csr, modulus(), &[7; KEY_BYTES]).unwrap());
    ring.set_droid(DROID.parse().unwrap());
    ring
}

fn modulus() -> Modulus {
    let text = format!("Key.Auth.N = {N}\nKey.Auth.X = {X}\n");
    KeyRing::parse(&text).unwrap().public(ServerKind::Auth).unwrap().n().clone()
}

fn faults(text: &str) -> Vec<(usize, usize, KeyFault)> {
    let errors = KeyRing::parse(text).unwrap_err();
    errors.errors().iter().map(|e| (e.line, e.column, e.fault.clone())).collect()
}

fn lines(text: &str) -> String {
    KeyRing::parse(text).unwrap_err().to_string()
}

#[test]
fn a_pair_in_every_format() {
    let texts = [
        format!("# dirtsand\nKey.Auth.N = {N}\nKey.Auth.K = {A}\nDb.User = dirtsand\n"),
        format!("auth.n = \"{N}\"\nauth.k = \"{A}\" # moulars\n"),
        format!("[crypt]\nauth.n = \"{N}\"\nauth.k = \"{A}\"\n"),
        format!("[crypt_keys.auth]\nn = '{N}'\nk = '{A}'\n[other]\nn = 5\n"),
        format!("[auth]\nkey_n = {N}\nkey_a = {A}\n"),
        format!("[server.auth]\nkey_n={N}\r\nkey_a={A}\r\n[a.window]\nx = 5\n"),
        format!("[nobody.thought.of.auth.this]\nn: {N}\na: {A}\n"),
        format!("[uru.auth]\nn = \"{N}\"\na = \"{A}\"\nx = \"{X}\"\n[tera]\nn = 5\n"),
        format!("uru.auth = {{ n = \"{N}\", k = \"{A}\" }}\n"),
        format!("\u{feff}Key.Auth.N {N}\n; other\n// other\n key.AUTH.k   {A}"),
        // Output of a key tool that prints the server's and the client's part together.
        format!("Key.Auth.N = {N}\nKey.Auth.K = {A}\nServer.Auth.N \"{N}\"\nServer.Auth.X \"{X}\""),
    ];
    for text in texts {
        let ring = KeyRing::parse(&text).unwrap_or_else(|e| panic!("{text}\n{e}"));
        let key = ring.private(ServerKind::Auth).unwrap_or_else(|| panic!("{text}"));
        assert_eq!(key.kind(), ServerKind::Auth);
        assert_eq!(key.n().to_be_bytes()[..2], [0xd9, 0xec]);
        assert_eq!(key.a()[..2], [0x60, 0x64]);
        assert_eq!(key.x()[..2], [0x01, 0xec]);
        assert!(ring.private(ServerKind::Game).is_none());
    }
}

#[test]
fn public_keys_for_clients() {
    let ini = format!(
        "Server.DispName \"x\"\nServer.Gate.N \"{N}\"\nServer.Gate.X \"{X}\"\n\
         Server.Status \"http://example.org\"\n"
    );
    let ring = KeyRing::parse(&ini).unwrap();
    assert!(ring.private(ServerKind::Gatekeeper).is_none());
    assert_eq!(ring.public(ServerKind::Gatekeeper).unwrap().x()[..2], [0x01, 0xec]);
    // A file without keys is valid.
    assert!(KeyRing::parse("Server.DispName \"x\"\n").unwrap().is_empty());
    assert!(KeyRing::parse("").unwrap().is_empty());
}

#[test]
fn openuru_source_code() {
    let text = ring().format(KeyFileFormat::OpenUru);
    assert!(text.contains("static const unsigned kGateKeeperDhGValue = 4;\n"));
    // Little-endian: the modulus ends in 0x0d.
    assert!(text.contains("kAuthDhNData[] = {\n    0x0d, 0x0b, 0x18,"));
    let same = |text: &str| {
        let ring = KeyRing::parse(text).unwrap();
        let key = ring.public(ServerKind::Auth).unwrap();
        assert_eq!(key, self::ring().public(ServerKind::Auth).unwrap());
    };
    same(&text);
    // For names without a server, the preceding base or namespace determines it.
    let auth = text.split("\n\n").find(|part| part.contains("kAuth")).unwrap();
    let bare = auth.replace("kAuth", "k");
    same(&format!("/* {{ */ extern const unsigned char kDhNData[64];\n{bare}"));
    let (_, arrays) = bare.split_once(";\n").unwrap();
    same(&format!("namespace Auth {{ // it\n{arrays}}}"));
    assert_eq!(
        faults(arrays).into_iter().map(|(.., fault)| fault).collect::<Vec<_>>(),
        [KeyFault::NoServer, KeyFault::NoServer]
    );
    assert_eq!(
        lines("int x;\nbyte kGameDhXData[] = { 1, 0x02, 256 };\nbyte kGameDhNData[] = { 1, 2 };"),
        "line 2, column 23: kGameDhXData: array element 3 is not a number from 0 to 255\n\
         line 3, column 23: kGameDhNData: wanted 64 bytes, found 2"
    );
}

#[test]
fn rings_conflict_where_one_file_would() {
    let droid = |last: char| {
        let text = format!("Key.Droid = 3141592653589793238462643383279{last}\n");
        KeyRing::parse(&text).unwrap()
    };
    assert_eq!(droid('5').conflict(&droid('5')), None);
    assert_eq!(droid('5').conflict(&droid('6')).as_deref(), Some("the droid key"));
    // The public key of a pair does not conflict with it, nor do keys of other servers.
    let public = KeyRing::parse(&ring().format(KeyFileFormat::ServerIni)).unwrap();
    assert_eq!((ring().conflict(&public), public.conflict(&ring())), (None, None));
}

#[test]
fn written_keys_read_back_the_same() {
    let ring = ring();
    for format in KeyFileFormat::ALL {
        let text = ring.format(format);
        let again = KeyRing::parse(&text).unwrap_or_else(|e| panic!("{format:?}\n{e}"));
        assert_eq!(again.format(format), text, "{format:?}");
        let is_public = matches!(
            format,
            KeyFileFormat::TomlPublic | KeyFileFormat::ServerIni | KeyFileFormat::OpenUru
        );
        let has_secrets = !is_public;
        for kind in [ServerKind::Gatekeeper, ServerKind::Auth, ServerKind::Game] {
            assert_eq!(again.public(kind), ring.public(kind), "{format:?}");
            let (pair, known) = (again.private(kind), ring.private(kind).unwrap());
            assert_eq!(pair.is_some(), has_secrets, "{format:?}");
            assert!(pair.is_none_or(|pair| pair.a() == known.a()), "{format:?}");
        }
        let has_droid = matches!(format, KeyFileFormat::Toml | KeyFileFormat::Dirtsand);
        assert_eq!(again.droid().is_some(), has_droid, "{format:?}");
        assert!(KeyRing::new().format(format).is_empty());
        assert!(text.capacity() == 16 << 10, "the buffer was reallocated");
    }
}

#[test]
fn written_formats() {
    let mut ring = KeyRing::parse(&format!("Key.Gate.N = {N}\nKey.Gate.K = {A}\n")).unwrap();
    let key = ring.private(ServerKind::Gatekeeper).unwrap().clone();
    let x = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, key.x());
    ring.set_droid(DROID.parse().unwrap());
    let text = |format| ring.format(format).to_string();
    assert_eq!(
        text(KeyFileFormat::Toml),
        format!(
            "[uru]\ndroid = \"{DROID}\"\n\n\
             [uru.gatekeeper]\nn = \"{N}\"\na = \"{A}\"\nx = \"{x}\"\n"
        )
    );
    assert_eq!(
        text(KeyFileFormat::TomlPublic),
        format!("[uru.gatekeeper]\nn = \"{N}\"\nx = \"{x}\"\n")
    );
    assert_eq!(
        text(KeyFileFormat::Dirtsand),
        format!("Key.Gate.N = {N}\nKey.Gate.K = {A}\nKey.Droid = {DROID}\n")
    );
    assert_eq!(text(KeyFileFormat::Moulars), format!("gate.n = \"{N}\"\ngate.k = \"{A}\"\n"));
    assert_eq!(
        text(KeyFileFormat::Nagus),
        format!("[gatekeeper]\nkey_n = \"{N}\"\nkey_a = \"{A}\"\n")
    );
    assert_eq!(
        text(KeyFileFormat::ServerIni),
        format!("Server.Gate.N \"{N}\"\nServer.Gate.X \"{x}\"\n")
    );
}

#[test]
fn errors_in_lines() {
    let even = N.replace("gLDQ==", "gLDA==");
    let small = N.replacen("2ex", "Eex", 1);
    let cases = [
        (format!("Key.Auth.K = {A}"), vec![(1, 14, KeyFault::MissingModulus)]),
        (format!("\nServer.Auth.X \"{X}\""), vec![(2, 16, KeyFault::MissingModulus)]),
        (format!("auth.n = \"{N}\""), vec![(1, 11, KeyFault::MissingOther)]),
        (format!("key_n = {N}"), vec![(1, 9, KeyFault::NoServer)]),
        (
            format!("Key.Auth.N = {even}\nKey.Auth.K = {A}"),
            vec![(1, 14, KeyFault::Key(KeyError::ModulusEven))],
        ),
        (
            format!("Key.Auth.N = {small}\nKey.Auth.K = {A}"),
            vec![(1, 14, KeyFault::Key(KeyError::ModulusBits { found: 509 }))],
        ),
        (
            format!("Key.Auth.N = {N}\nKey.Auth.K = {A}\nKey.Auth.X = {A}"),
            vec![(3, 14, KeyFault::Key(KeyError::Mismatch))],
        ),
        (
            format!("Key.Auth.N = {N}\nKey.Auth.X = {N}"),
            vec![(2, 14, KeyFault::Key(KeyError::PublicRange))],
        ),
        (
            format!("Key.Auth.N = {N}\nKey.Auth.K = {}==", "A".repeat(86)),
            vec![(2, 14, KeyFault::Key(KeyError::SecretZero))],
        ),
        (
            format!("Key.Auth.N = {N}\nKey.Auth.K = {A}\nKey.Auth.N = {X}"),
            vec![(3, 14, KeyFault::Conflict { line: 1 })],
        ),
        (
            "Key.Auth.N\nKey.Auth.K = \"open\n Key.Droid: 31x".to_owned(),
            vec![
                (1, 1, KeyFault::NoValue),
                (2, 15, KeyFault::Unterminated),
                (3, 13, KeyFault::Droid(SecureKeyError::Digit { at: 2, found: 'x' })),
            ],
        ),
        (
            "Key.Auth.N = AAA*AAAA\nKey.Auth.K = A\nKey.Auth.X = \u{e4}".to_owned(),
            vec![
                (1, 14, KeyFault::Base64Character { at: 4, found: '*' }),
                (2, 14, KeyFault::Base64End { found: 1 }),
                (3, 14, KeyFault::Base64Character { at: 1, found: '\u{e4}' }),
            ],
        ),
    ];
    for (text, wanted) in cases {
        assert_eq!(faults(&text), wanted, "{text}");
    }
}

#[test]
fn errors_in_tables() {
    assert_eq!(
        lines(
            "[tera]\nkey = 1\n[uru]\ndroid = 5\ngatekeper = 1\n[uru.auth]\nn = [1]\n\
             secret = \"\"\n  x = \"AAAA\"\n"
        ),
        "line 4, column 9: uru.droid: wanted a string of hex digits, found integer\n\
         line 5, column 1: uru.gatekeper: unknown key; use one of gatekeeper, auth, game, csr, \
         droid, session\n\
         line 7, column 5: uru.auth.n: wanted a string in base64, found array\n\
         line 8, column 1: uru.auth.secret: unknown key; use one of n, a, x\n\
         line 9, column 7: uru.auth.x: wanted 64 bytes, found 3"
    );
    assert_eq!(lines("uru = 5"), "line 1, column 7: uru: wanted a table, found integer");
    assert_eq!(
        lines("[uru.auth]\nn = \"\nx == 2\n"),
        "line 2, column 6: invalid basic string, expected `\"`\n\
         line 3, column 4: extra `=`, expected nothing\n\
         line 3, column 6: unexpected key or value, expected newline, `#`"
    );
}

/// For generated files with very many errors, both the list and the running time are bounded.
#[test]
fn errors_are_bounded() {
    let texts = [
        "Key.Auth.N = ?\n".repeat(1000),
        "[uru.auth]\n".to_owned() + &"x == 1\n".repeat(1000),
        "[uru.auth]\n".to_owned() + &(0..1000).map(|i| format!("u{i} = 1\n")).collect::<String>(),
        format!("uru = {{{}}}", "a = , ".repeat(1000)),
        "kAuthDhNData[] = {1};".repeat(1000),
    ];
    for text in texts {
        let errors = KeyRing::parse(&text).unwrap_err();
        let last = errors.errors().last().unwrap();
        assert!(errors.errors().len() <= 101);
        assert_eq!(last.fault == KeyFault::TooMany, errors.errors().len() == 101, "{last}");
        assert!(last.line > 50 || last.column > 500, "{last}");
    }
}

#[test]
fn merging() {
    let mut ring = KeyRing::parse(&format!("Key.Auth.N = {N}\nKey.Auth.K = {A}")).unwrap();
    // The public key of a known pair does not replace the pair.
    ring.merge(KeyRing::parse(&format!("Server.Auth.N \"{N}\"\nServer.Auth.X \"{X}\"")).unwrap());
    assert!(ring.private(ServerKind::Auth).is_some());
    ring.merge(self::ring());
    assert_eq!(ring.private(ServerKind::Auth).unwrap().a()[..], [3; KEY_BYTES]);
    assert!(ring.droid().is_some() && ring.public(ServerKind::Csr).is_some());
}

#[test]
fn no_secret_is_shown() {
    let ring = KeyRing::parse(&format!("Key.Auth.N = {N}\nKey.Auth.K = {A}\nKey.Droid {DROID}"));
    let text = format!("{:?}", ring.unwrap()).to_lowercase();
    assert!(text.contains("d9ec7f17") && !text.contains("6064a385") && !text.contains("31415926"));
    let broken = format!("Key.Auth.K = {A}\nKey.Game.K = {A}A\nKey.Droid {DROID}0");
    let errors = KeyRing::parse(&broken).unwrap_err();
    let text = format!("{errors} {errors:?}");
    assert!(!text.contains(&A[..4]) && !text.contains(&DROID[..4]), "{text}");
}
