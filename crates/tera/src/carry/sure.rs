//! Which matches are sure.

use super::Matched;

/// How far the second best has to be behind a match that is sure.
pub(super) const CLEAR: f64 = 2.0;
/// What a match that is sure has at least.
const ENOUGH: f64 = 1.5;
/// How often the doubts about some matches are looked at as doubts about others. Each time takes as
/// long as matching once; captures with a hundred names need five at most.
const ROUNDS: usize = 12;

/// Of what is matched by these scores, what is sure. `scores_by` has the scores when no other matches
/// than the given ones count as known.
///
/// Two requests that were taken for each other speak for the two answers behind them being taken for
/// each other, too. So whatever speaks for a match must not be in doubt itself.
pub(super) fn sure(
    scores: &[Vec<f64>],
    matched: &Matched,
    scores_by: impl Fn(&Matched) -> Vec<Vec<f64>>,
) -> Matched {
    let mut sure = matched.clone();
    sure.retain(|new, old| margin(scores, *new, *old) >= CLEAR && at(scores, *new, *old) >= ENOUGH);
    for _ in 0..ROUNDS {
        let before = sure.len();
        let proven = scores_by(&sure);
        sure.retain(|new, old| {
            margin(&proven, *new, *old) >= 0.0 && !may_be_exchanged(&proven, matched, *new, *old)
        });
        let doubted = doubted(scores, matched, &sure);
        sure.retain(|_, old| !doubted.contains(old));
        if sure.len() == before {
            break;
        }
    }
    sure
}

/// How far a match is ahead of all others of its opcode, and of all others of its name.
pub(super) fn margin(scores: &[Vec<f64>], new: usize, old: usize) -> f64 {
    let row = scores.get(new).into_iter().flatten().enumerate();
    let others = row.filter(|(other, _)| *other != old).map(|(_, score)| *score);
    let rows = (0..scores.len()).filter(|other| *other != new);
    let rivals = rows.map(|other| at(scores, other, old));
    at(scores, new, old) - others.chain(rivals).fold(f64::NEG_INFINITY, f64::max)
}

/// Whether another match could be exchanged with this one, and both together would not clearly be
/// worse: two messages of one layout, or two that were there once each.
fn may_be_exchanged(scores: &[Vec<f64>], matched: &Matched, new: usize, old: usize) -> bool {
    let own = at(scores, new, old);
    matched.iter().filter(|(other, _)| **other != new).any(|(other_new, other_old)| {
        let other = at(scores, *other_new, *other_old);
        let exchanged = at(scores, new, *other_old) + at(scores, *other_new, old);
        own + other - exchanged < 2.0 * CLEAR
    })
}

/// The names that come next for opcodes that are not sure, where they fit no worse than the names that
/// these have.
fn doubted(scores: &[Vec<f64>], matched: &Matched, sure: &Matched) -> Vec<usize> {
    let unsure = matched.iter().filter(|(new, _)| !sure.contains_key(new));
    let next = unsure.filter_map(|(new, old)| {
        let row = scores.get(*new)?.iter().enumerate().filter(|(other, _)| other != old);
        let (next, score) = row.max_by(|a, b| a.1.total_cmp(b.1))?;
        (*score >= at(scores, *new, *old)).then_some(next)
    });
    next.collect()
}

fn at(scores: &[Vec<f64>], new: usize, old: usize) -> f64 {
    scores.get(new).and_then(|row| row.get(old)).copied().unwrap_or(f64::NEG_INFINITY)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sure_of(scores: &[Vec<f64>], proven: &[Vec<f64>]) -> Vec<usize> {
        let matched = (0..scores.len()).map(|at| (at, at)).collect();
        sure(scores, &matched, |_| proven.to_vec()).into_keys().collect()
    }

    #[test]
    fn what_is_clear_is_sure() {
        let clear = [vec![9.0, 1.0], vec![2.0, 8.0]];
        assert_eq!(sure_of(&clear, &clear), [0, 1]);
        // Too close, for the one name or the other; and too little in all.
        assert_eq!(sure_of(&[vec![9.0, 7.5], vec![0.0, 9.0]], &clear), [0; 0]);
        assert_eq!(sure_of(&[vec![1.0, -9.0], vec![-9.0, 9.0]], &clear), [1]);
    }

    /// Each of the two is clear of what comes next, but only by what is not known for sure.
    #[test]
    fn neighbours_that_are_not_sure_prove_nothing() {
        let scores = [vec![9.0, 1.0, 0.0], vec![2.0, 8.0, 0.0], vec![0.0, 0.0, 9.0]];
        let proven = [vec![4.0, 1.0, 0.0], vec![2.0, 1.5, 0.0], vec![0.0, 0.0, 9.0]];
        assert_eq!(sure_of(&scores, &scores), [0, 1, 2]);
        assert_eq!(sure_of(&scores, &proven), [2]);
    }

    /// Two messages of one layout, in both captures about as often.
    #[test]
    fn two_that_could_be_exchanged_are_not_sure() {
        let clear = [vec![9.0, 1.0, 0.0], vec![2.0, 8.0, 0.0], vec![0.0, 0.0, 9.0]];
        let alike = [vec![9.0, 7.5, 0.0], vec![6.0, 8.0, 0.0], vec![0.0, 0.0, 9.0]];
        assert_eq!(sure_of(&clear, &alike), [2]);
        let other = [vec![9.0, 7.5, 0.0], vec![5.0, 8.0, 0.0], vec![0.0, 0.0, 9.0]];
        assert_eq!(sure_of(&clear, &other), [0, 1, 2]);
    }

    /// The third opcode is called what is left; it fits the first name no worse.
    #[test]
    fn a_name_that_another_may_have_is_not_sure() {
        let none = f64::NEG_INFINITY;
        let fits =
            |score: f64| [vec![9.0, none, none], vec![none, 9.0, none], vec![score, none, 1.0]];
        assert_eq!(sure_of(&fits(0.5), &fits(0.5)), [0, 1]);
        assert_eq!(sure_of(&fits(1.5), &fits(1.5)), [1]);
    }
}
