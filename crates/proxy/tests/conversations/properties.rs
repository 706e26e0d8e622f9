//! Rules of any kind never panic, in any conversation.

use proptest::prelude::*;

use crate::samples::{tera, uru_age};

fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("5".to_owned()),
        Just("-1.5".to_owned()),
        Just("\"text\"".to_owned()),
        Just("v".to_owned()),
        Just("null".to_owned()),
        Just("hex\"00ff\"".to_owned()),
        Just("message".to_owned()),
        Just("gameId".to_owned()),
        Just("18446744073709551615".to_owned()),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            (inner.clone(), prop_oneof!["\\+", "-", "\\*"], inner.clone())
                .prop_map(|(a, operator, b)| format!("({a} {operator} {b})")),
            prop::collection::vec(inner.clone(), 0..3)
                .prop_map(|items| format!("[{}]", items.join(", "))),
            inner.prop_map(|value| format!("{{ x: {value}, \"y\": v }}")),
        ]
    })
}

fn statement() -> impl Strategy<Value = String> {
    let field = prop_oneof![
        Just("message"),
        Just("channel"),
        Just("fields"),
        Just("skill"),
        Just("loc.x"),
        Just("fields.message"),
        Just("gameId"),
    ];
    prop_oneof![
        (field, value()).prop_map(|(field, value)| format!("set {field} = {value}")),
        value().prop_map(|value| format!("let v = {value}")),
        Just("drop".to_owned()),
        Just("delay 15ms".to_owned()),
        Just("pause".to_owned()),
        Just("log \"{v} {channel}\"".to_owned()),
        Just("count \"c\"".to_owned()),
        value().prop_map(|value| format!("inject client S_CHAT {{ message: {value} }}")),
        value().prop_map(|value| format!("inject back C_CHAT {{ channel: {value} }}")),
    ]
}

fn rule() -> impl Strategy<Value = String> {
    let head = prop_oneof![
        Just("when tera.*"),
        Just("when S_CHAT"),
        Just("when C_* and channel == v"),
        Just("when * and channel in {v, 0}"),
        Just("when *"),
    ];
    (head, prop::collection::vec(statement(), 1..4))
        .prop_map(|(head, body)| format!("{head} {{ {} }}", body.join("; ")))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn rules_never_break_a_conversation(rules in prop::collection::vec(rule(), 1..5)) {
        let sample = tera();
        let text = format!("let v = 0\n{}", rules.join("\n"));
        if let Ok(rules) = worldwire_proxy::Rules::parse("my.rules", &text, &sample.definitions) {
            let outcomes = sample.run_with(&mut || rules.handler(), &mut |_, _| {});
            prop_assert!(outcomes[0].counts.messages >= 8);
            // Without the client's first message, its build is unknown.
            let names = outcomes[0].names();
            if names.first() == Some(&"tera.C_CHECK_VERSION") {
                prop_assert_eq!(&outcomes[0].notes, &[""; 0]);
            }
        }
    }
}

#[test]
fn any_text_is_rules_or_mistakes() {
    let sample = uru_age();
    proptest!(ProptestConfig::with_cases(64), |(text in "(when|every|on|let|set|[{}();=+*#\"\\\\\\[\\]a-z0-9 \n.é-]){0,40}")| {
        let outcome = worldwire_proxy::Rules::parse("my.rules", &text, &sample.definitions);
        if let Err(mistakes) = outcome {
            prop_assert!(!mistakes.is_empty());
        }
    });
}
