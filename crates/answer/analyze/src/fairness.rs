//! How equally parts that run at the same time share the throughput: the fairness index of Jain, Chiu and Hawe (DEC TR-301, 1984).
//!
//! Each part counts as one, however many pairs it has: a record holds the sum over the pairs of a part.

use crate::groups::{GroupRun, SummaryGroup};
use crate::statistics::{SampleStatistics, to_f64};

/// Statistics over runs of the index, taken over the throughputs of the parts that move data units; `None` with fewer than two such
/// parts.
pub(crate) fn fairness(
    group: &SummaryGroup<'_>,
    runs: &[GroupRun<'_>],
) -> Option<SampleStatistics> {
    if !group.aggregate {
        return None;
    }
    let alone = |(index, part)| SummaryGroup {
        indices: vec![index],
        parts: vec![part],
        aggregate: false,
    };
    let parts = group
        .indices
        .iter()
        .copied()
        .zip(group.parts.iter().copied())
        .map(alone);
    let parts: Vec<SummaryGroup<'_>> = parts.filter(SummaryGroup::moves_data).collect();
    let of_run = |run: &GroupRun<'_>| {
        let shares: Option<Vec<f64>> = parts
            .iter()
            .map(|part| throughput_bit_s(part, run))
            .collect();
        index(&shares?)
    };
    SampleStatistics::from_values(&runs.iter().filter_map(of_run).collect::<Vec<_>>())
}

/// The throughput of a part in a run; zero if none of its data arrived.
fn throughput_bit_s(part: &SummaryGroup<'_>, run: &GroupRun<'_>) -> Option<f64> {
    let alone = part.runs(run.records.iter().copied()).pop()?;
    if alone.bytes() == 0 {
        Some(0.0)
    } else {
        alone.throughput_bit_s()
    }
}

/// The index `(sum x)^2 / (n sum x^2)`: 1 if all shares are equal, `1 / n` if one part has all.
fn index(shares: &[f64]) -> Option<f64> {
    let (sum, squares) = shares
        .iter()
        .fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    (shares.len() > 1 && squares > 0.0).then(|| sum * sum / (to_f64(shares.len() as u64) * squares))
}

#[cfg(test)]
mod tests {
    use super::index;
    use crate::summarise::summarise;
    use crate::summarise::tests::moved;

    #[test]
    fn equal_shares_are_one_and_one_that_has_all_is_one_over_n() {
        assert_eq!(index(&[5.0, 5.0, 5.0]), Some(1.0));
        assert_eq!(index(&[8.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(index(&[3.0, 1.0]), Some(0.8));
        assert_eq!((index(&[5.0]), index(&[0.0, 0.0])), (None, None));
    }

    #[test]
    fn it_is_over_the_parts_that_move_data_of_each_run() {
        let of = |text: &str, mb: [u64; 3]| {
            let records: Vec<_> = (0..3).map(|part| moved(part, 0, mb[part])).collect();
            summarise(&crate::testing::plan(text), &records)
                .into_iter()
                .map(|s| s.fairness)
                .collect::<Vec<_>>()
        };
        let rows = of(
            "1 parallel: bulk_get 1024*10 | bulk_get 2048*10 | rr 32*10",
            [300, 100, 7],
        );
        assert!(rows[..3].iter().all(Option::is_none), "{rows:?}");
        assert!((rows[3].unwrap().mean - 0.8).abs() < 1e-12, "{rows:?}");
        let starved = of(
            "1 parallel: bulk_get 1024*10 | bulk_get 2048*10 | rr 32*10",
            [300, 0, 7],
        );
        assert!(
            (starved[3].unwrap().mean - 0.5).abs() < 1e-12,
            "{starved:?}"
        );
        assert_eq!(
            of(
                "1 parallel: bulk_get 1024*10 | rr 32*10 | rr 64*10",
                [300, 1, 7]
            )[3],
            None
        );
    }
}
