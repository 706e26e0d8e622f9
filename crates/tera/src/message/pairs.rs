//! The order of two lists whose elements are written in pairs: each element of the first list is
//! followed by those of the second that begin with the same number. Only the client message
//! `C_CHANGE_EQUIP_PRESET` uses this, for items and the crystals in their slots.

/// For each number of the second list, its first index in the first list, or `u32::MAX`, so that
/// unmatched ones come last.
pub(super) fn places(firsts: &[u32], seconds: &[u32]) -> Vec<u32> {
    let mut sorted: Vec<(u32, u32)> = firsts.iter().copied().zip(0..).collect();
    sorted.sort_unstable();
    let place = |number: &u32| {
        let at = sorted.partition_point(|(found, _)| found < number);
        sorted.get(at).filter(|(found, _)| found == number).map_or(u32::MAX, |(_, place)| *place)
    };
    seconds.iter().map(place).collect()
}

/// The elements of both lists in byte order, as the index of the list and the index in it.
pub(super) fn order(firsts: &[u32], seconds: &[u32]) -> Vec<(usize, usize)> {
    let after = places(firsts, seconds);
    let firsts = (0..).take(firsts.len()).enumerate().map(|(index, place)| (place, 0, index));
    let seconds = after.into_iter().enumerate().map(|(index, place)| (place, 1, index));
    let mut order: Vec<(u32, usize, usize)> = firsts.chain(seconds).collect();
    order.sort_unstable();
    order.into_iter().map(|(_, list, index)| (list, index)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_with_the_same_number_follow() {
        let wanted = [(0, 0), (1, 1), (1, 3), (0, 1), (0, 2), (1, 2), (0, 3), (1, 0)];
        assert_eq!(order(&[5, 9, 7, 5], &[1, 5, 7, 5]), wanted);
        assert_eq!(order(&[], &[3, 2]), [(1, 0), (1, 1)]);
    }
}
