//! Every request and reply survives its encoding, and malformed ones are refused.

#![allow(clippy::unwrap_used, reason = "panics are failures of the test")]

use proptest::prelude::*;
use worldwire_core::{ErrorKind, Sampler};

use super::{Ask, ForKind, KINDS, Wire, decoded, encoded, for_kind};
use crate::uru::vault::Notice;

/// Checks samples of a request and its reply.
struct RoundTrip(u64);

impl ForKind for RoundTrip {
    type Output = ();

    fn run<A: Ask>(self) {
        let mut sampler = Sampler::new(self.0);
        round_trip(&A::sample(&mut sampler));
        round_trip(&A::Reply::sample(&mut sampler));
    }
}

fn round_trip<W: Wire>(value: &W) {
    let bytes = encoded(value).unwrap();
    assert!(bytes.len() >= W::LEAST, "{value:?}: {} bytes", bytes.len());
    assert_eq!(decoded::<W>(&bytes).unwrap(), *value);
    // Later versions may append fields.
    assert_eq!(decoded::<W>(&[&bytes[..], &[7; 9]].concat()).unwrap(), *value);
    for end in 0..bytes.len() {
        let error = decoded::<W>(&bytes[..end]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed, "{end} of {} bytes: {error}", bytes.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn requests_and_replies_round_trip(seed in any::<u64>()) {
        for kind in KINDS {
            for_kind(*kind, RoundTrip(seed)).unwrap();
        }
        round_trip(&Notice::sample(&mut Sampler::new(seed)));
    }
}

/// Processes of different versions exchange these numbers, so they never change.
#[test]
fn numbers_of_requests_never_change() {
    struct Name;

    impl ForKind for Name {
        type Output = &'static str;

        fn run<A: Ask>(self) -> &'static str {
            std::any::type_name::<A>().rsplit(':').next().unwrap()
        }
    }

    let names: Vec<_> =
        KINDS.iter().map(|kind| format!("{kind} {}", for_kind(*kind, Name).unwrap())).collect();
    let expected = "1 LogIn, 2 ChangePassword, 3 SetPlayer, 4 CreatePlayer, 5 DeletePlayer, \
        6 KickPlayer, 7 CreateNode, 8 FetchNode, 9 SaveNode, 10 AddRef, 11 RemoveRef, 12 ReadRefs, \
        13 FindNodes, 14 SendNode, 15 MakeAge, 16 RequestAge, 17 LeaveAge, 18 ListPublicAges, \
        19 SetPublic, 20 CreateScore, 21 GetScores, 22 AddPoints, 23 TransferPoints, \
        24 SetPoints, 25 HighScores, 100 Watch, 101 ReadNodes, 102 ReadState, 103 ReadSettings, \
        104 SaveState, 105 SaveObjects, 106 FindPlayer, 107 RecordLeft, 120 CarryOut, \
        121 NameGames, 122 CleanUp, 123 KeepGames, 130 KeepTicket, 131 Resume, 132 Identify";
    assert_eq!(names.join(", "), expected);
    assert!(for_kind(0, Name).is_none());
}

#[test]
fn malformed_values_are_refused() {
    let refused = |error: worldwire_core::Error| error.to_string();
    let promised = [255, 255, 255, 255, 1];
    let text = decoded::<String>(&promised).map_err(refused);
    assert_eq!(text.unwrap_err(), "at byte 4: wanted 4294967295 bytes, found 1");
    let list = decoded::<Vec<u32>>(&promised).map_err(refused).unwrap_err();
    assert_eq!(list, "at byte 4: wanted at most 16777216 (elements), found 4294967295");
    let list = decoded::<Vec<u32>>(&[2, 0, 0, 0, 1, 0, 0, 0, 1]).map_err(refused).unwrap_err();
    assert_eq!(list, "[1] at byte 8: wanted 4 bytes, found 1");
    let utf8 = decoded::<String>(&[2, 0, 0, 0, b'a', 0xff]).map_err(refused).unwrap_err();
    assert_eq!(utf8, "at byte 5: wanted UTF-8, found other bytes");
    let flag = decoded::<Option<u32>>(&[2]).map_err(refused).unwrap_err();
    assert_eq!(flag, "at byte 0: wanted 0 or 1, found 2");
    let notice = decoded::<Notice>(&[9]).map_err(refused).unwrap_err();
    assert_eq!(notice, "at byte 0: wanted the number of a Notice, found 9");
    let set = decoded::<std::collections::BTreeSet<u8>>(&[2, 0, 0, 0, 5, 5]).map_err(refused);
    assert_eq!(
        set.unwrap_err(),
        "at byte 6: wanted elements in ascending order, found a different order"
    );
    let number = encoded(&f64::NAN).unwrap();
    assert!(decoded::<f64>(&number).is_err());
}
