//! The critical path: of items (such as requests) that overlap in time, those that were waited for. It goes from the end backwards,
//! each time to the item that ended last before the chosen one began. Requests of a server, lines of a picture and accounts of time
//! all use this rule.

/// The items that were waited for one after the other, in the order of time. `span` gives the begin and end of an item.
pub(crate) fn waited_for<T>(items: Vec<T>, span: impl Fn(&T) -> (u64, u64)) -> Vec<T> {
    let mut items = items;
    items.sort_by_key(|item| {
        let (begin, end) = span(item);
        std::cmp::Reverse((end, begin))
    });
    let mut until = u64::MAX;
    items.retain(|item| {
        let (begin, end) = span(item);
        let is_before = end <= until;
        if is_before {
            until = begin;
        }
        is_before
    });
    items.reverse();
    items
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn of_two_at_once_the_one_that_ends_last_is_waited_for() {
        let spans = vec![(10, 40), (45, 90), (50, 70), (0, 5)];
        let found = waited_for(spans, |span| *span);
        assert_eq!(found, [(0, 5), (10, 40), (45, 90)]);
        assert_eq!(waited_for(Vec::<(u64, u64)>::new(), |span| *span), []);
    }

    proptest! {
        #[test]
        fn what_is_waited_for_does_not_overlap_and_has_the_last_end(
            spans in prop::collection::vec((0..1000_u64, 0..1000_u64), 1..20)
        ) {
            let spans: Vec<(u64, u64)> = spans.into_iter().map(|(from, ns)| (from, from + ns)).collect();
            let last = spans.iter().map(|(_, to)| *to).max();
            let found = waited_for(spans, |span| *span);
            prop_assert!(found.windows(2).all(|pair| pair[0].1 <= pair[1].0));
            prop_assert_eq!(found.last().map(|(_, to)| *to), last);
        }
    }
}
