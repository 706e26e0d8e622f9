//! Decides which matches are certain.

use super::{AROUND, Matched, Scores};

/// Minimum lead of a certain match over the second best.
pub(super) const CLEAR: f64 = 2.0;
/// Minimum score of a certain match.
const ENOUGH: f64 = 1.5;
/// Maximum number of times that doubts are propagated to other matches. Each pass takes as long as
/// matching once; captures with a hundred names need at most five.
const ROUNDS: usize = 12;

/// Minimum score that neighbours contribute to a certain match: a third of their maximum.
const PLACED: f64 = 2.0;

/// The maximum that two matches can add to each other's scores and their own.
const MAX_SUPPORT: f64 = 4.0 * AROUND;

/// A new opcode and its name, as indices.
type Match = (usize, usize);

/// What is known about all possible matches.
pub(super) struct Evidence<'e, By, Support, Fixed> {
    /// The scores without neighbours.
    pub(super) base: &'e Scores,
    /// The scores with which the opcodes were matched.
    pub(super) scores: &'e Scores,
    /// Returns the scores if only the given matches are known.
    pub(super) scores_by: By,
    /// The amount that a second match adds to the score of the first, if both are right.
    pub(super) support: Support,
    /// Whether an opcode is the same in every build.
    pub(super) is_fixed: Fixed,
}

impl<By, Support, Fixed> Evidence<'_, By, Support, Fixed>
where
    By: Fn(&Matched) -> Scores,
    Support: Fn(Match, Match) -> f64,
    Fixed: Fn(usize) -> bool,
{
    /// The certain ones among the matches.
    ///
    /// If two requests are mistaken for each other, that makes it more likely that the two replies
    /// after them are mistaken for each other too. So evidence for a certain match must itself be
    /// certain.
    pub(super) fn sure(&self, matched: &Matched) -> Matched {
        let Self { base, scores, .. } = *self;
        let mut sure = matched.clone();
        sure.retain(|new, old| {
            let score = at(scores, *new, *old);
            let is_placed = score - at(base, *new, *old) >= PLACED || (self.is_fixed)(*new);
            is_placed && score >= ENOUGH && margin(scores, *new, *old) >= CLEAR
        });
        for _ in 0..ROUNDS {
            let before = sure.clone();
            let proven = (self.scores_by)(&sure);
            sure.retain(|new, old| {
                margin(&proven, *new, *old) >= 0.0
                    && !self.may_be_exchanged(&proven, matched, &before, (*new, *old))
            });
            let doubted = doubted(scores, matched, &sure);
            sure.retain(|_, old| !doubted.contains(old));
            if sure.len() == before.len() {
                break;
            }
        }
        sure
    }

    /// Whether swapping a match with another would not be clearly worse in total: for example, if
    /// two messages have the same layout or occur once each. `proven` are the scores if only the
    /// matches in `known` count.
    fn may_be_exchanged(
        &self,
        proven: &Scores,
        matched: &Matched,
        known: &Matched,
        (new, old): Match,
    ) -> bool {
        matched.iter().filter(|(other, _)| **other != new).any(|(other_new, other_old)| {
            let (one, other) = ((new, old), (*other_new, *other_old));
            let exchanged = [(new, *other_old), (*other_new, old)];
            let plain = |pair: [Match; 2]| -> f64 {
                pair.iter().map(|(new, old)| at(proven, *new, *old)).sum()
            };
            // Two messages that follow each other support each other, whichever is which. So the
            // support from known matches is replaced by the support that both matches would lend if
            // they were right.
            let lent = |of: Match| -> f64 {
                let known = [one, other].into_iter().filter(|(new, _)| known.contains_key(new));
                known.map(|by| (self.support)(of, by)).sum()
            };
            let own = |of: Match, pair: [Match; 2]| -> f64 {
                pair.iter().map(|by| (self.support)(of, *by)).sum()
            };
            let total = |pair: [Match; 2]| -> f64 {
                plain(pair) + pair.iter().map(|of| own(*of, pair) - lent(*of)).sum::<f64>()
            };
            // Most pairs are too far apart for support to matter.
            plain([one, other]) - plain(exchanged) < 2.0 * CLEAR + MAX_SUPPORT
                && total([one, other]) - total(exchanged) < 2.0 * CLEAR
        })
    }
}

/// The lead of a match over all others for its opcode, and over all others for its name.
pub(super) fn margin(scores: &Scores, new: usize, old: usize) -> f64 {
    let row = scores.get(new).into_iter().flatten().enumerate();
    let others = row.filter(|(other, _)| *other != old).map(|(_, score)| *score);
    let rows = (0..scores.len()).filter(|other| *other != new);
    let rivals = rows.map(|other| at(scores, other, old));
    at(scores, new, old) - others.chain(rivals).fold(f64::NEG_INFINITY, f64::max)
}

/// The second-best names for uncertain opcodes, where they fit at least as well as the matched
/// ones.
fn doubted(scores: &Scores, matched: &Matched, sure: &Matched) -> Vec<usize> {
    let unsure = matched.iter().filter(|(new, _)| !sure.contains_key(new));
    let next = unsure.filter_map(|(new, old)| {
        let row = scores.get(*new)?.iter().enumerate().filter(|(other, _)| other != old);
        let (next, score) = row.max_by(|a, b| a.1.total_cmp(b.1))?;
        (*score >= at(scores, *new, *old)).then_some(next)
    });
    next.collect()
}

fn at(scores: &Scores, new: usize, old: usize) -> f64 {
    scores.get(new).and_then(|row| row.get(old)).copied().unwrap_or(f64::NEG_INFINITY)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The certain matches of each opcode with the name of the same index.
    fn sure_with(
        base: &Scores,
        scores: &Scores,
        proven: &Scores,
        support: impl Fn(Match, Match) -> f64,
    ) -> Vec<usize> {
        let matched = (0..scores.len()).map(|at| (at, at)).collect();
        let (scores_by, is_fixed) = (|_: &Matched| proven.clone(), |_| false);
        let evidence = Evidence { base, scores, scores_by, support, is_fixed };
        evidence.sure(&matched).into_keys().collect()
    }

    fn sure_of<const N: usize>(scores: &[Vec<f64>; N], proven: &[Vec<f64>; N]) -> Vec<usize> {
        let base = scores.clone().map(|row| row.iter().map(|score| score - PLACED).collect());
        sure_with(&base.to_vec(), &scores.to_vec(), &proven.to_vec(), |_, _| 0.0)
    }

    #[test]
    fn a_clear_lead_is_certain() {
        let clear = [vec![9.0, 1.0], vec![2.0, 8.0]];
        assert_eq!(sure_of(&clear, &clear), [0, 1]);
        // Too close for one name or the other, and too low in total.
        assert_eq!(sure_of(&[vec![9.0, 7.5], vec![0.0, 9.0]], &clear), [0; 0]);
        assert_eq!(sure_of(&[vec![1.0, -9.0], vec![-9.0, 9.0]], &clear), [1]);
    }

    /// Both are clearly ahead, but only thanks to uncertain neighbours.
    #[test]
    fn uncertain_neighbours_prove_nothing() {
        let scores = [vec![9.0, 1.0, 0.0], vec![2.0, 8.0, 0.0], vec![0.0, 0.0, 9.0]];
        let proven = [vec![4.0, 1.0, 0.0], vec![2.0, 1.5, 0.0], vec![0.0, 0.0, 9.0]];
        assert_eq!(sure_of(&scores, &scores), [0, 1, 2]);
        assert_eq!(sure_of(&scores, &proven), [2]);
    }

    /// Two messages with the same layout, about equally frequent in both captures.
    #[test]
    fn interchangeable_matches_are_uncertain() {
        let clear = [vec![9.0, 1.0, 0.0], vec![2.0, 8.0, 0.0], vec![0.0, 0.0, 9.0]];
        let alike = [vec![9.0, 7.5, 0.0], vec![6.0, 8.0, 0.0], vec![0.0, 0.0, 9.0]];
        assert_eq!(sure_of(&clear, &alike), [2]);
        let other = [vec![9.0, 7.5, 0.0], vec![5.0, 8.0, 0.0], vec![0.0, 0.0, 9.0]];
        assert_eq!(sure_of(&clear, &other), [0, 1, 2]);
    }

    /// The third opcode is left with the remaining name, but fits the first name at least as well.
    #[test]
    fn a_name_that_fits_another_opcode_is_uncertain() {
        let none = f64::NEG_INFINITY;
        let fits =
            |score: f64| [vec![9.0, none, none], vec![none, 9.0, none], vec![score, none, 1.0]];
        assert_eq!(sure_of(&fits(0.5), &fits(0.5)), [0, 1]);
        assert_eq!(sure_of(&fits(1.5), &fits(1.5)), [1]);
    }

    /// The old capture lacks the name of the first opcode, and another one has the same layout.
    #[test]
    fn a_match_without_its_neighbours_is_uncertain() {
        let scores = vec![vec![9.0, 1.0], vec![2.0, 8.0]];
        let base = vec![vec![7.1, 1.0], vec![2.0, 6.0]];
        assert_eq!(sure_with(&base, &scores, &scores, |_, _| 0.0), [1]);
    }

    /// Two messages with the same layout that alternate: whichever is which, each follows the other.
    #[test]
    fn two_that_follow_each_other_may_be_exchanged() {
        let base = vec![vec![5.0, 5.0], vec![5.0, 5.0]];
        let scores = vec![vec![11.0, 5.0], vec![5.0, 11.0]];
        let support = |(new, old): Match, (by_new, by_old): Match| {
            let follows = new != by_new && old != by_old;
            if follows { 6.0 } else { 0.0 }
        };
        assert_eq!(sure_with(&base, &scores, &scores, support), [0; 0]);
        // A third message, which is known to precede one of them, tells them apart.
        let base = vec![vec![5.0, 1.0], vec![1.0, 5.0]];
        let scores = vec![vec![11.0, 1.0], vec![1.0, 11.0]];
        assert_eq!(sure_with(&base, &scores, &scores, support), [0, 1]);
    }
}
