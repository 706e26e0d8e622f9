//! The recipes of `docs/proxy.md`.

use std::sync::Arc;
use std::time::Duration;

use worldwire_proxy::RuleFile;

use crate::samples::{Outcome, Sample, only, tera, uru, uru_age};

/// The rules of a recipe.
pub fn recipe(name: &str) -> String {
    let page = include_str!("../../../../docs/proxy.md");
    let start = format!("<!-- recipe: {name} -->\n```text\n");
    let (_, rest) = page.split_once(&start).unwrap_or_else(|| panic!("no recipe {name}"));
    rest.split_once("```").expect("the end of the recipe").0.to_owned()
}

#[test]
fn every_recipe_is_tested() {
    let page = include_str!("../../../../docs/proxy.md");
    let names = page.lines().filter_map(|line| line.strip_prefix("<!-- recipe: "));
    let names: Vec<&str> = names.filter_map(|line| line.strip_suffix(" -->")).collect();
    assert_eq!(names, ["ticket", "platform", "mute", "mute-uru", "reveal", "slow", "fights"]);
    for name in names {
        // TERA's definitions are data; the other families' are built in.
        assert!(tera().rules(&recipe(name)).warnings().is_empty(), "{name}");
    }
}

#[test]
fn the_platform_is_spoofed() {
    let outcomes = uru().run(&recipe("platform"));
    let auth = only(&outcomes, |outcome| outcome.counts.changed > 0);
    assert_eq!(auth.fields("auth.AcctLoginRequest")[0]["os"], "mac");
}

/// Runs a recipe and also returns the counters.
fn run(sample: &Sample, name: &str) -> (Vec<Outcome>, Vec<(String, u64)>) {
    let definitions = Arc::clone(&sample.definitions);
    let file = RuleFile::new("my.rules", &recipe(name), definitions).unwrap();
    (sample.run_with(&mut || file.handler(), &mut |_, _| {}), file.counts())
}

#[test]
fn players_are_muted() {
    let (outcomes, counts) = run(&tera(), "mute");
    assert!(outcomes[0].fields("tera.S_CHAT").is_empty());
    assert_eq!(counts, [("muted".to_owned(), 1)]);
    let (outcomes, counts) = run(&uru_age(), "mute-uru");
    let game = only(&outcomes, |outcome| outcome.counts.dropped > 0);
    assert!(game.messages.iter().all(|line| !line.to_string().contains("Shorah!")));
    assert_eq!(counts, [("muted".to_owned(), game.counts.dropped)]);
}

#[test]
fn hidden_messages_are_revealed() {
    let rules = format!("when S_CHAT {{ set channel = 27 }}\n{}", recipe("reveal"));
    let outcomes = tera().run(&rules);
    let chat = outcomes[0].fields("tera.S_CHAT")[0];
    assert_eq!((&chat["channel"], &chat["message"]), (&0.into(), &"[27] Hello!".into()));
}

#[test]
fn a_slow_network_is_simulated() {
    let before = tera().run("");
    let after = tera().run(&recipe("slow"));
    // Each side's messages take 150 ms longer.
    for side in ["client", "server"] {
        let times = |outcome: &Outcome| {
            let messages = outcome.messages.iter().zip(&outcome.times);
            let own = messages.filter(|(line, _)| line["from"] == side);
            own.map(|(line, at)| (line["name"].to_string(), *at)).collect::<Vec<_>>()
        };
        let later = times(&before[0]);
        let later: Vec<_> =
            later.into_iter().map(|(name, at)| (name, at + Duration::from_millis(150))).collect();
        assert_eq!(times(&after[0]), later);
    }
    assert_eq!(before[0].counts.held + after[0].counts.held, after[0].counts.messages);
}

#[test]
fn only_fights_are_logged() {
    let (outcomes, counts) = run(&tera(), "fights");
    let logs = outcomes[0].logs();
    assert_eq!(logs[0], "tera.C_START_SKILL: 47 bytes");
    assert_eq!(logs.len(), 6, "{logs:?}");
    assert_eq!(counts, [("skills".to_owned(), 2)]);
}
