//! Properties of ciphers, key exchange, logins and key files, for arbitrary input.

use proptest::prelude::*;
use rc4::{KeyInit as _, StreamCipher as _};
use worldwire_uru::crypt::exchange::SessionKey;
use worldwire_uru::crypt::key::{Modulus, PrivateKey, ServerKind};
use worldwire_uru::crypt::login::{LoginForm, PasswordHashes, is_email_name, login_fields, verify};
use worldwire_uru::crypt::rc4::Rc4;
use worldwire_uru::crypt::sha0::{Sha0, sha0};
use worldwire_uru::file::keys::{KeyFileFormat, KeyRing};
use worldwire_uru::file::secure::{Magic, SecureError, SecureFile, SecureKey, open, open_with};

const LIMIT: u64 = 1 << 20;

fn kind() -> impl Strategy<Value = ServerKind> {
    prop::sample::select(ServerKind::ALL.to_vec())
}

fn magic() -> impl Strategy<Value = Magic> {
    prop::sample::select(vec![Magic::NotTheDroids, Magic::WhatDoYouSee, Magic::BriceIsSmart])
}

fn number() -> impl Strategy<Value = [u8; 64]> {
    prop::array::uniform32(any::<[u8; 2]>()).prop_map(|pairs| {
        let mut bytes = [0; 64];
        bytes.copy_from_slice(pairs.as_flattened());
        bytes
    })
}

/// Any odd 512-bit number; the arithmetic does not require primes.
fn modulus() -> impl Strategy<Value = Modulus> {
    number().prop_map(|mut bytes| {
        bytes[0] |= 0x80;
        bytes[63] |= 1;
        Modulus::from_be_bytes(&bytes).expect("odd, and of 512 bits")
    })
}

/// Lines resembling those of key files, to get further into the parsers.
fn key_file() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "Key",
        "Server",
        "Auth",
        "Gate",
        "game",
        "csr",
        "N",
        "K",
        "x",
        "a",
        "key_n",
        "Droid",
        "uru",
        ".",
        "_",
        " ",
        " = ",
        ": ",
        "\"",
        "'",
        "[",
        "]",
        "{",
        "}",
        ",",
        ";",
        "#",
        "//",
        "/*",
        "*/",
        "\n",
        "\r\n",
        "kAuthDhNData[]",
        "kDhXData",
        "kDhGValue",
        "namespace",
        "0x41",
        "41",
        "AAAA",
        "ä",
        "\u{1f600}",
        "2ex/F+FhkABZbwXBWZ5BUC0XEWUfkPOUU243+uzCQV65CVbu/OLZ5C9ySBUhDE0dzQZoI+y4OHGGfm2ArRgLDQ==",
        "[uru.auth]\nn = \"",
        "Key.Auth.K = ",
    ]);
    prop::collection::vec(word, 0..60).prop_map(|words| words.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn both_ends_agree(
        kind in kind(),
        n in modulus(),
        a in number(),
        b in number(),
        seed in any::<[u8; 7]>(),
    ) {
        let Ok(server) = PrivateKey::new(kind, n, &a) else { return Ok(()) };
        let Ok((y, shared)) = server.public().client_begin(&b) else { return Ok(()) };
        prop_assert!((1..=64).contains(&y.as_bytes().len()));
        prop_assert_ne!(y.as_bytes().last(), Some(&0));
        let key = shared.session_key(seed);
        prop_assert_eq!(&server.server_answer(y.as_bytes(), seed).unwrap(), &key);
        prop_assert_eq!(&server.captured_key(y.as_bytes(), seed).unwrap(), &key);
        let mut padded = y.as_bytes().to_vec();
        padded.resize(64, 0);
        prop_assert_eq!(&server.server_answer(&padded, seed).unwrap(), &key);
    }

    /// Any client number yields a key or an error, and observers compute the same key.
    #[test]
    fn any_number_from_a_client(
        n in modulus(),
        a in number(),
        y in prop::collection::vec(any::<u8>(), 0..70),
        seed in any::<[u8; 7]>(),
    ) {
        let Ok(server) = PrivateKey::new(ServerKind::Game, n, &a) else { return Ok(()) };
        let captured = server.captured_key(&y, seed);
        prop_assert_eq!(captured.is_ok(), y.len() <= 64);
        if let Ok(key) = server.server_answer(&y, seed) {
            prop_assert_eq!(Ok(key), captured);
        }
    }
}

proptest! {
    #[test]
    fn streams_are_rc4_however_they_are_split(
        key in any::<[u8; 7]>(),
        data in prop::collection::vec(any::<u8>(), 0..600),
        sizes in prop::collection::vec(0_usize..50, 0..40),
    ) {
        let mut expected = data.clone();
        rc4::Rc4::new_from_slice(&key).unwrap().apply_keystream(&mut expected);
        let key = SessionKey::new(key);
        let mut whole = data.clone();
        Rc4::new(&key).apply(&mut whole);
        prop_assert_eq!(&whole, &expected);
        let mut cut = data.clone();
        let mut rest = cut.as_mut_slice();
        let mut rc4 = Rc4::new(&key);
        for size in sizes {
            let (piece, after) = rest.split_at_mut(size.min(rest.len()));
            rc4.apply(piece);
            rest = after;
        }
        rc4.apply(rest);
        prop_assert_eq!(&cut, &whole);
        Rc4::new(&key).apply(&mut whole);
        prop_assert_eq!(whole, data);
    }

    #[test]
    fn splitting_a_message_does_not_change_the_digest(
        data in prop::collection::vec(any::<u8>(), 0..400),
        cut in 0_usize..400,
    ) {
        let (head, tail) = data.split_at(cut.min(data.len()));
        let mut hash = Sha0::new();
        hash.update(head);
        hash.update(tail);
        prop_assert_eq!(hash.finish(), sha0(&data));
    }

    #[test]
    fn only_matching_logins_are_accepted(
        name in "[a-zA-Z0-9@.é\u{1f600}]{0,80}",
        password in "[ -~é\u{1f600}]{0,20}",
        other in "[ -~]{0,20}",
        client in any::<u32>(),
        server in any::<u32>(),
    ) {
        let hashes = PasswordHashes::new(&name, &password);
        let upper = name.to_ascii_uppercase();
        for typed in [&name, &upper] {
            let fields = login_fields(typed, &password, client, server);
            let proof = &fields.challenge_hash;
            let form = verify(&name, &hashes, fields.client_challenge, server, proof);
            let email = is_email_name(&name);
            prop_assert_eq!(
                form,
                Some(if email { LoginForm::ChallengeSha0 } else { LoginForm::Sha1 })
            );
        }
        // Equal after truncation or, in rare cases, equal except for the last unit of P0.
        if PasswordHashes::new(&name, &other) != hashes {
            let fields = login_fields(&name, &other, client, server);
            let same = PasswordHashes::new(&name, &other).sha0 == hashes.sha0;
            let proof = &fields.challenge_hash;
            let form = verify(&name, &hashes, fields.client_challenge, server, proof);
            prop_assert!(form.is_none() || same);
        }
    }

    #[test]
    fn encrypted_files_can_be_decrypted(
        magic in magic(),
        words in any::<[u32; 4]>(),
        plain in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let key = SecureKey::from_words(words);
        let sealed = SecureFile::new(magic, plain.clone()).seal(&key).unwrap();
        prop_assert_eq!(sealed.len(), 16 + plain.len().next_multiple_of(8));
        let file = open_with(&sealed, &key, LIMIT).unwrap();
        prop_assert!(file.is_canonical());
        prop_assert_eq!(file.seal(&key).unwrap(), sealed);
        prop_assert_eq!(file.into_plain(), plain);
        prop_assert_eq!(&key.to_hex().parse::<SecureKey>().unwrap(), &key);
    }

    /// Everything that can be decrypted encrypts to the same bytes, with any key.
    #[test]
    fn any_file(
        magic in magic(),
        length in 0_u32..80,
        body in prop::collection::vec(any::<u8>(), 0..80),
        words in any::<[u32; 4]>(),
    ) {
        let key = SecureKey::from_words(words);
        let data = [magic.bytes().as_slice(), &length.to_le_bytes(), &body].concat();
        match open_with(&data, &key, 70) {
            Ok(file) => prop_assert_eq!(file.seal(&key).unwrap(), data),
            Err(SecureError::TooLarge { .. }) => prop_assert!(length > 70),
            Err(_) => prop_assert!((length as usize).next_multiple_of(8) > body.len()),
        }
        // Files without a magic cannot be decrypted.
        prop_assert!(open(&body, Some(&key), LIMIT).is_err());
    }

    #[test]
    fn key_files_never_panic(text in "\\PC*", lines in key_file()) {
        for text in [&text, &lines] {
            match KeyRing::parse(text) {
                Ok(ring) => {
                    let toml = ring.format(KeyFileFormat::Toml);
                    prop_assert_eq!(KeyRing::parse(&toml).unwrap().format(KeyFileFormat::Toml), toml);
                }
                Err(errors) => {
                    prop_assert!(!errors.errors().is_empty());
                    let lines = text.lines().count().max(1);
                    for error in errors.errors() {
                        prop_assert!((1..=lines + 1).contains(&error.line), "{error}");
                        prop_assert!(error.column >= 1);
                    }
                    prop_assert!(!errors.to_string().is_empty());
                }
            }
        }
    }
}
