//! The messages that hooks want to see, and the order of hooks.

use core::cmp::Ordering;
use std::sync::Arc;

use worldwire_core::Side;
use worldwire_dissect::filter::{Filter, Resolver};

use super::link::Link;
use super::protocol::{Flags, Wanted};

/// The messages that a hook wants to see.
#[derive(Clone, Debug)]
pub(crate) struct Subscription {
    pub(crate) id: String,
    pub(crate) order: f64,
    pub(crate) bytes: bool,
    pub(crate) fields: bool,
    filter: Option<Filter>,
    from: Option<Side>,
    flags: Flags<Option<bool>>,
}

/// Subscriptions of one hook with the same order. A message that matches any of them is sent once.
#[derive(Clone, Debug)]
pub(crate) struct Stage {
    pub(crate) place: StagePlace,
    pub(crate) link: Arc<Link>,
    subscriptions: Vec<Arc<Subscription>>,
}

/// The position of a stage among all others: by order, then by hook.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StagePlace {
    order: f64,
    hook: u64,
}

/// A snapshot of all hooks and their subscriptions.
#[derive(Clone, Debug, Default)]
pub(crate) struct HookSet {
    /// The stages, in the order in which messages pass them.
    pub(crate) stages: Vec<Stage>,
    /// A required hook that is not running.
    pub(crate) missing: Option<String>,
    /// Whether any subscription accepts messages that hooks added.
    pub(crate) takes_fakes: bool,
}

/// A stage that messages of one name may have to pass, with the subscriptions in it that may match.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    stage: usize,
    /// The indices of the subscriptions, and whether the filter matches all messages of the name.
    subscriptions: Vec<(usize, bool)>,
}

impl Subscription {
    /// Reads the filter. The error is a text for the hook.
    pub(crate) fn new(wanted: Wanted, resolver: &Resolver<'_>) -> Result<Self, String> {
        let Wanted { id, filter, from, order, bytes, fields, flags } = wanted;
        let parse = |text: &String| Filter::parse(text).map(|filter| filter.resolve(resolver));
        let filter = filter.as_ref().map(parse).transpose();
        let filter = filter.map_err(|error| format!("subscription \"{id}\": {error}"))?;
        // Positive and negative zero are the same order.
        Ok(Self { id, order: order + 0.0, bytes, fields, filter, from, flags })
    }

    /// A warning for the hook about names in the filter that no definition has.
    pub(crate) fn doubts(&self, resolver: &Resolver<'_>) -> Option<String> {
        let filter = self.filter.as_ref()?;
        let (name, near) = filter.unknown_names(resolver).into_iter().next()?;
        let hint = near.map_or(String::new(), |near| format!("; did you mean \"{near}\"?"));
        Some(format!("subscription \"{}\": there is no message named \"{name}\"{hint}", self.id))
    }

    fn admits(&self, from: Side, flags: Flags<bool>) -> bool {
        let fits = |wanted: Option<bool>, is: bool| wanted.is_none_or(|wanted| wanted == is);
        self.from.is_none_or(|wanted| wanted == from)
            && fits(self.flags.modified, flags.modified)
            && fits(self.flags.silenced, flags.silenced)
            && fits(self.flags.fake, flags.fake)
    }
}

impl Stage {
    /// The subscriptions of a candidate that a message matches. `matches` may be slow: it is called
    /// only if the name does not decide.
    pub(crate) fn matching<'s>(
        &'s self,
        candidate: &Candidate,
        (from, flags): (Side, Flags<bool>),
        matches: &dyn Fn(&Filter) -> bool,
    ) -> Vec<&'s Subscription> {
        let own = candidate.subscriptions.iter();
        let admitted = own.filter_map(|(index, is_sure)| {
            let subscription = self.subscriptions.get(*index)?;
            let passes = || *is_sure || subscription.filter.as_ref().is_none_or(matches);
            (subscription.admits(from, flags) && passes()).then_some(&**subscription)
        });
        admitted.collect()
    }
}

impl HookSet {
    /// Sorts the subscriptions of hooks into stages.
    pub(crate) fn new<'h>(
        hooks: impl Iterator<Item = (&'h Arc<Link>, &'h [Arc<Subscription>])>,
        missing: Option<String>,
    ) -> Self {
        let mut stages: Vec<Stage> = Vec::new();
        let mut takes_fakes = false;
        for (link, subscriptions) in hooks {
            let mut sorted = subscriptions.to_vec();
            sorted.sort_by(|one, other| one.order.total_cmp(&other.order));
            for same in sorted.chunk_by(|one, other| one.order == other.order) {
                let Some(first) = same.first() else { continue };
                takes_fakes |= same.iter().any(|it| it.flags.fake != Some(false));
                stages.push(Stage {
                    place: StagePlace { order: first.order, hook: link.number },
                    link: Arc::clone(link),
                    subscriptions: same.to_vec(),
                });
            }
        }
        stages.sort_by_key(|stage| stage.place);
        Self { stages, missing, takes_fakes }
    }

    /// The stages that messages of this name may have to pass.
    pub(crate) fn candidates(&self, family: &str, name: &str) -> Vec<Candidate> {
        let stages = self.stages.iter().enumerate();
        let candidates = stages.map(|(stage, of)| {
            let subscriptions = of.subscriptions.iter().enumerate();
            let may = subscriptions.filter_map(|(index, subscription)| {
                let filter = subscription.filter.as_ref();
                match filter.map_or(Some(true), |filter| filter.by_name(family, name)) {
                    Some(false) => None,
                    known => Some((index, known.is_some())),
                }
            });
            Candidate { stage, subscriptions: may.collect() }
        });
        candidates.filter(|candidate| !candidate.subscriptions.is_empty()).collect()
    }

    /// The stage of a candidate.
    pub(crate) fn stage(&self, candidate: &Candidate) -> Option<&Stage> {
        self.stages.get(candidate.stage)
    }
}

impl PartialEq for StagePlace {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for StagePlace {}

impl PartialOrd for StagePlace {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for StagePlace {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order.total_cmp(&other.order).then(self.hook.cmp(&other.hook))
    }
}

/// Whether a filter that only names messages selects this one.
pub(crate) fn names(filter: &Filter, family: &str, name: &str) -> bool {
    filter.by_name(family, name).unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use worldwire_dissect::Definitions;

    use super::*;

    fn wanted(id: &str, filter: &str, order: f64) -> Wanted {
        let flags = Flags { modified: None, silenced: Some(false), fake: Some(false) };
        let (id, filter) = (id.to_owned(), Some(filter.to_owned()));
        Wanted { id, filter, from: None, order, bytes: false, fields: true, flags }
    }

    fn link(number: u64) -> Arc<Link> {
        let form = Default::default();
        let name = "x".to_owned();
        Arc::new(Link::new((number, name), false, Duration::from_secs(1), false, form))
    }

    fn subscriptions(wanted: impl IntoIterator<Item = Wanted>) -> Vec<Arc<Subscription>> {
        let definitions = Definitions::built_in();
        let resolver = Resolver::new(&definitions);
        let read = |wanted| Arc::new(Subscription::new(wanted, &resolver).unwrap());
        wanted.into_iter().map(read).collect()
    }

    #[test]
    fn stages_are_in_order_and_joined_by_hook() {
        let (one, two) = (link(1), link(2));
        let first = subscriptions([
            wanted("late", "auth.*", 5.0),
            wanted("ping", "auth.PingRequest", 0.0),
            wanted("all", "uru", -0.0),
        ]);
        let second = subscriptions([
            wanted("early", "PingReply", f64::NEG_INFINITY),
            wanted("same", "PingRequest and transId == 1", 0.0),
        ]);
        let hooks = [(&one, &first[..]), (&two, &second[..])];
        let set = HookSet::new(hooks.into_iter(), None);
        let ids: Vec<Vec<_>> = set
            .stages
            .iter()
            .map(|stage| stage.subscriptions.iter().map(|it| it.id.as_str()).collect())
            .collect();
        assert_eq!(ids, [vec!["early"], vec!["ping", "all"], vec!["same"], vec!["late"]]);
        assert!(!set.takes_fakes);
        let candidates = set.candidates("uru", "auth.PingRequest");
        let found: Vec<_> = candidates.iter().map(|it| it.subscriptions.clone()).collect();
        assert_eq!(found, [vec![(0, true), (1, true)], vec![(0, false)], vec![(0, true)]]);
        assert!(set.candidates("ki", "control.KeepAlive").is_empty());
        let flags = |modified, silenced, fake| Flags { modified, silenced, fake };
        let stage = set.stage(&candidates[0]).unwrap();
        let matching = |flags| {
            stage.matching(&candidates[0], (Side::Client, flags), &|_| panic!("not needed")).len()
        };
        assert_eq!(matching(flags(true, false, false)), 2);
        assert_eq!(matching(flags(false, true, false)), 0);
        assert_eq!(matching(flags(false, false, true)), 0);
    }

    #[test]
    fn mistakes_in_filters_are_reported() {
        let definitions = Definitions::built_in();
        let resolver = Resolver::new(&definitions);
        let error = Subscription::new(wanted("a", "result = 3", 0.0), &resolver).unwrap_err();
        assert!(error.starts_with("subscription \"a\": filter, column 8"), "{error}");
        let doubtful = Subscription::new(wanted("a", "auth.PingRequst", 0.0), &resolver);
        let doubts = doubtful.unwrap().doubts(&resolver).unwrap();
        assert!(doubts.ends_with("did you mean \"auth.PingRequest\"?"), "{doubts}");
    }
}
