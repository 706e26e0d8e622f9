//! Decides which matches are certain.

use super::Matched;

/// Minimum lead of a certain match over the second best.
pub(super) const CLEAR: f64 = 2.0;
/// Minimum score of a certain match.
const ENOUGH: f64 = 1.5;
/// Maximum number of times that doubts are propagated to other matches. Each pass takes as long as
/// matching once; captures with a hundred names need at most five.
const ROUNDS: usize = 12;

/// The certain matches among those made with these scores. `scores_by` returns the scores if only
/// the given matches are known.
///
/// If two requests are mistaken for each other, they support mistaking the two answers after them
/// for each other, too. So evidence for a certain match must itself be certain.
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

/// How far a match is ahead of all others for its opcode, and of all others for its name.
pub(super) fn margin(scores: &[Vec<f64>], new: usize, old: usize) -> f64 {
    let row = scores.get(new).into_iter().flatten().enumerate();
    let others = row.filter(|(other, _)| *other != old).map(|(_, score)| *score);
    let rows = (0..scores.len()).filter(|other| *other != new);
    let rivals = rows.map(|other| at(scores, other, old));
    at(scores, new, old) - others.chain(rivals).fold(f64::NEG_INFINITY, f64::max)
}

/// Whether swapping this match with another would not clearly be worse in total: for example two
/// messages with the same layout, or two that occur once each.
fn may_be_exchanged(scores: &[Vec<f64>], matched: &Matched, new: usize, old: usize) -> bool {
    let own = at(scores, new, old);
    matched.iter().filter(|(other, _)| **other != new).any(|(other_new, other_old)| {
        let other = at(scores, *other_new, *other_old);
        let exchanged = at(scores, new, *other_old) + at(scores, *other_new, old);
        own + other - exchanged < 2.0 * CLEAR
    })
}

/// The second-best names for uncertain opcodes, where they fit at least as well as the matched
/// ones.
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

    /// The third opcode gets the remaining name, but fits the first name at least as well.
    #[test]
    fn a_name_that_fits_another_opcode_is_uncertain() {
        let none = f64::NEG_INFINITY;
        let fits =
            |score: f64| [vec![9.0, none, none], vec![none, 9.0, none], vec![score, none, 1.0]];
        assert_eq!(sure_of(&fits(0.5), &fits(0.5)), [0, 1]);
        assert_eq!(sure_of(&fits(1.5), &fits(1.5)), [1]);
    }
}
