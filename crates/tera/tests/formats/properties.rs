//! Properties of all definitions and messages.

use proptest::prelude::*;
use worldwire_core::Sampler;
use worldwire_tera::message::{Head, HeaderForm};
use worldwire_tera::schema::diff::diff;
use worldwire_tera::schema::format::canonical;
use worldwire_tera::schema::{Definition, FileName, ParseOptions, Problem, Set};

use crate::boundaries;
use crate::definitions::Message;
use crate::synthetic::{self, SyntheticDefinition};

fn parse(made: &SyntheticDefinition, text: &str) -> Result<Definition, Vec<Problem>> {
    let options =
        ParseOptions { dialect: Some(made.dialect), patch: made.patch, ..ParseOptions::default() };
    Definition::parse(&FileName::parse("S_SYNTHETIC.1.def").unwrap(), text, &options)
}

fn definition(made: &SyntheticDefinition) -> Definition {
    let text = made.text();
    parse(made, &text).unwrap_or_else(|problems| panic!("{problems:?}\n{text}"))
}

/// Runs 512 cases unless `PROPTEST_CASES` is set.
fn config() -> ProptestConfig {
    let mut config = ProptestConfig::default();
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = 512;
    }
    config
}

proptest! {
    #![proptest_config(config())]

    /// Checks bytes and values, JSON, truncated messages, and viewing every field in place.
    #[test]
    fn messages_round_trip(made in synthetic::definitions(), seed: u64) {
        let definition = definition(&made);
        let sampler = &mut Sampler::new(seed);
        for form in [HeaderForm::Plain, HeaderForm::Integrity] {
            let message = Message { plan: definition.plan(), opcode: 0x1234, form };
            let value = definition.plan().sample(sampler);
            message.round_trip(&value).map_err(|why| {
                TestCaseError::fail(format!("{why}\n{}", made.text()))
            })?;
        }
    }

    /// Changes counts, offsets and links.
    #[test]
    fn a_damaged_word_affects_only_its_message(made in synthetic::definitions(), seed: u64) {
        let definition = definition(&made);
        let value = definition.plan().sample(&mut Sampler::new(seed));
        let message = Message { plan: definition.plan(), opcode: 7, form: HeaderForm::Plain };
        let mut bytes = Vec::new();
        definition.plan().encode(Head::plain(7), &value, &mut bytes).unwrap();
        // Checking every word takes time, so only short messages are used.
        if bytes.len() <= 160 {
            message.damaged(&bytes).map_err(|why| {
                TestCaseError::fail(format!("{why}\n{}", made.text()))
            })?;
        }
    }

    /// Links are followed wherever the bodies are.
    #[test]
    fn the_order_of_bodies_does_not_matter(made in synthetic::definitions(), seed: u64) {
        let definition = definition(&made);
        let plan = definition.plan();
        let sampler = &mut Sampler::new(seed);
        let value = plan.sample(sampler);
        let mut canonical = Vec::new();
        plan.encode(Head::plain(0), &value, &mut canonical).unwrap();
        let Some(bytes) = synthetic::shuffled(plan, &value, sampler) else { return Ok(()) };
        let read = plan.read(&bytes, HeaderForm::Plain).unwrap();
        prop_assert_eq!(format!("{:?}", read.fields()), format!("{value:?}"));
        let mut again = Vec::new();
        plan.encode(Head::plain(0), read.fields(), &mut again).unwrap();
        prop_assert_eq!(&again, &canonical);
        again.clear();
        read.encode(plan, &mut again).unwrap();
        prop_assert_eq!(&again, &bytes);
        // The same holds field by field in place, and through JSON.
        let message = Message { plan, opcode: 0, form: HeaderForm::Plain };
        message.stays(&bytes).map_err(TestCaseError::fail)?;
    }

    /// Formatting changes no layout, and a definition does not differ from itself.
    #[test]
    fn formatting_is_stable(made in synthetic::definitions()) {
        let text = made.text();
        let definition = definition(&made);
        let formatted = canonical("S_SYNTHETIC.1.def", &text).unwrap();
        let again = parse(&made, &formatted).unwrap();
        prop_assert_eq!(again.plan(), definition.plan());
        prop_assert_eq!(&canonical("S_SYNTHETIC.1.def", &formatted).unwrap(), &formatted);
        prop_assert_eq!(diff(definition.lines(), definition.lines()), []);
    }

    /// A definition is the same alone and in a set, and the set can be compiled for any patch.
    #[test]
    fn sets_contain_the_definitions_loaded(made in synthetic::definitions()) {
        let text = made.text();
        let options =
            ParseOptions { dialect: Some(made.dialect), patch: made.patch, ..ParseOptions::default() };
        let set = Set::load([("S_SYNTHETIC.1.def", &text)], options);
        let alone = definition(&made);
        prop_assert_eq!(set.get("S_SYNTHETIC", 1).unwrap().plan(), alone.plan());
        for patch in boundaries(&set) {
            let set = set.with(ParseOptions { patch: Some(patch), ..set.options().clone() });
            prop_assert!(set.get("S_SYNTHETIC", 1).is_some());
        }
    }
}
