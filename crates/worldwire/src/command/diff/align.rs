//! Aligns two sequences.

use std::collections::HashMap;
use std::collections::VecDeque;
use std::hash::Hash;

use imara_diff::{Algorithm, Diff, InternedInput, Interner};

/// An element of an alignment: the indices of two elements that belong together, or of one that
/// has no counterpart.
pub(super) type Pair = (Option<usize>, Option<usize>);

/// Aligns two sequences by a key, without changing their order. Elements with equal keys form
/// pairs, as found by a histogram diff. The time is linear in the length of the sequences, even if
/// they have nothing in common.
pub(super) fn align<T, K: Hash + Eq>(
    before: &[T],
    after: &[T],
    key: impl Fn(&T) -> K,
) -> Vec<Pair> {
    let mut input = InternedInput {
        before: Vec::new(),
        after: Vec::new(),
        interner: Interner::new(before.len().saturating_add(after.len())),
    };
    input.update_before(before.iter().map(&key));
    input.update_after(after.iter().map(&key));
    let diff = Diff::compute(Algorithm::Histogram, &input);
    let (mut pairs, mut old, mut new) = (Vec::new(), 0_usize, 0_usize);
    let same = |old: &mut usize, new: &mut usize, until: usize, pairs: &mut Vec<Pair>| {
        while *old < until && *new < after.len() {
            pairs.push((Some(*old), Some(*new)));
            (*old, *new) = (*old + 1, *new + 1);
        }
    };
    for hunk in diff.hunks() {
        let [start, old_end, new_end] =
            [hunk.before.start, hunk.before.end, hunk.after.end].map(|at| at as usize);
        same(&mut old, &mut new, start, &mut pairs);
        pairs.extend((old..old_end).map(|at| (Some(at), None)));
        pairs.extend((new..new_end).map(|at| (None, Some(at))));
        (old, new) = (old_end, new_end);
    }
    same(&mut old, &mut new, before.len(), &mut pairs);
    pairs
}

/// Aligns, by a second key, the elements that an alignment left without a counterpart. Existing
/// pairs are kept.
pub(super) fn refine<T, K: Hash + Eq>(
    pairs: Vec<Pair>,
    before: &[T],
    after: &[T],
    key: impl Fn(&T) -> K,
) -> Vec<Pair> {
    let (mut out, mut olds, mut news) = (Vec::with_capacity(pairs.len()), Vec::new(), Vec::new());
    let flush = |olds: &mut Vec<usize>, news: &mut Vec<usize>, out: &mut Vec<Pair>| {
        let elements = |list: &[T], at: &[usize]| -> Vec<K> {
            at.iter().filter_map(|at| list.get(*at)).map(&key).collect()
        };
        let (old_keys, new_keys) = (elements(before, olds), elements(after, news));
        let (old_keys, new_keys) =
            (old_keys.iter().collect::<Vec<_>>(), new_keys.iter().collect::<Vec<_>>());
        for (old, new) in align(&old_keys, &new_keys, |key| *key) {
            let of = |at: Option<usize>, list: &[usize]| at.and_then(|at| list.get(at).copied());
            out.push((of(old, olds), of(new, news)));
        }
        olds.clear();
        news.clear();
    };
    for pair in pairs {
        match pair {
            (Some(old), None) => olds.push(old),
            (None, Some(new)) => news.push(new),
            pair => {
                flush(&mut olds, &mut news, &mut out);
                out.push(pair);
            }
        }
    }
    flush(&mut olds, &mut news, &mut out);
    out
}

/// Pairs elements regardless of their order, by several keys: first all that agree in the first
/// key, then all remaining ones that agree in the second, and so on. Elements with the same key are
/// paired in order.
pub(super) fn pair_up<T, K: Hash + Eq>(
    before: &[T],
    after: &[T],
    keys: &[&dyn Fn(&T) -> K],
) -> Vec<Pair> {
    let mut partner: Vec<Option<usize>> = vec![None; before.len()];
    let mut is_taken = vec![false; after.len()];
    for key in keys {
        let mut free: HashMap<K, VecDeque<usize>> = HashMap::new();
        for (at, element) in after.iter().enumerate().filter(|(at, _)| !is_taken[*at]) {
            free.entry(key(element)).or_default().push_back(at);
        }
        for (element, partner) in before.iter().zip(&mut partner).filter(|(_, it)| it.is_none()) {
            if let Some(at) = free.get_mut(&key(element)).and_then(VecDeque::pop_front) {
                *partner = Some(at);
                is_taken[at] = true;
            }
        }
    }
    let pairs = partner.into_iter().enumerate().map(|(at, partner)| (Some(at), partner));
    let rest = is_taken.iter().enumerate().filter(|(_, is_taken)| !**is_taken);
    pairs.chain(rest.map(|(at, _)| (None, Some(at)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(pairs: &[Pair]) -> String {
        let side = |at: Option<usize>| at.map_or_else(|| "-".to_owned(), |at| at.to_string());
        let pairs = pairs.iter().map(|(old, new)| format!("{}{}", side(*old), side(*new)));
        pairs.collect::<Vec<_>>().join(" ")
    }

    fn chars(text: &str) -> Vec<char> {
        text.chars().collect()
    }

    #[test]
    fn an_inserted_element_does_not_shift_the_rest() {
        let pairs = align(&chars("abcd"), &chars("abxcd"), |it| *it);
        assert_eq!(shown(&pairs), "00 11 -2 23 34");
        let pairs = align(&chars("abcd"), &chars("acd"), |it| *it);
        assert_eq!(shown(&pairs), "00 1- 21 32");
        assert_eq!(shown(&align(&chars(""), &chars("a"), |it| *it)), "-0");
        assert_eq!(shown(&align(&chars("a"), &chars(""), |it| *it)), "0-");
    }

    #[test]
    fn changed_elements_are_paired_by_the_second_key() {
        let (before, after) = (["a1", "b1", "c1", "d1"], ["a1", "b2", "x1", "d1"]);
        let first = align(&before, &after, |it| *it);
        let refined = refine(first, &before, &after, |it| it.get(..1).map(str::to_owned));
        assert_eq!(shown(&refined), "00 11 2- -2 33");
    }

    #[test]
    fn every_element_occurs_once_and_in_order() {
        let mut seed = 1_u64;
        let mut next = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % below
        };
        for _ in 0..200 {
            let [before, after]: [Vec<u64>; 2] =
                [next(30), next(30)].map(|length| (0..length).map(|_| next(6)).collect());
            let pairs = refine(align(&before, &after, |it| *it), &before, &after, |it| it % 2);
            let olds: Vec<usize> = pairs.iter().filter_map(|(old, _)| *old).collect();
            let news: Vec<usize> = pairs.iter().filter_map(|(_, new)| *new).collect();
            assert_eq!(olds, (0..before.len()).collect::<Vec<_>>());
            assert_eq!(news, (0..after.len()).collect::<Vec<_>>());
            for (old, new) in pairs.into_iter().filter_map(|(old, new)| old.zip(new)) {
                assert_eq!(before[old] % 2, after[new] % 2);
            }
        }
    }

    #[test]
    fn elements_in_another_order_are_paired() {
        let pairs = pair_up(
            &["a1", "b1", "b2"],
            &["b2", "a3", "c1"],
            &[&|it: &&str| (*it).to_owned(), &|it: &&str| it.chars().take(1).collect()],
        );
        assert_eq!(shown(&pairs), "01 1- 20 -2");
    }
}
