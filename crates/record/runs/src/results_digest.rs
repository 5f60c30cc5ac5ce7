//! A digest of a run's results: two runs with the same digest have the same records to the last bit.

use crate::Error;
use crate::sha256::DigestSum;
use stackline_core::run_record::RunRecord;
use std::io::Write;

/// The SHA-256 of all records in the order of measurement, warm-up, run and part, each as a line of JSON as in the
/// journal. The order in which parallel runs ended has no influence.
///
/// # Errors
/// When a record has a number that JSON cannot express.
pub fn results_digest(records: &[RunRecord]) -> Result<String, Error> {
    let mut ordered: Vec<&RunRecord> = records.iter().collect();
    ordered.sort_by_key(|one| (one.measurement, !one.warmup, one.run, one.part));
    let mut sum = DigestSum::default();
    let unwritten = |cause: &dyn std::fmt::Display| {
        Error::new(
            "cannot compute the digest of the results",
            "repeat the run; its records have a number that is not finite",
        )
        .because(cause)
    };
    for record in ordered {
        serde_json::to_writer(&mut sum, record).map_err(|cause| unwritten(&cause))?;
        sum.write_all(b"\n").map_err(|cause| unwritten(&cause))?;
    }
    Ok(sum.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(run: u32, elapsed_ns: u64) -> RunRecord {
        RunRecord {
            run,
            elapsed_ns,
            ..RunRecord::default()
        }
    }

    #[test]
    fn order_does_not_matter_and_one_nanosecond_does() {
        let digest = |records: &[RunRecord]| results_digest(records).unwrap();
        let first = digest(&[record(0, 10), record(1, 11)]);
        assert_eq!(first, digest(&[record(1, 11), record(0, 10)]));
        assert_ne!(first, digest(&[record(0, 10), record(1, 12)]));
        assert_ne!(first, digest(&[record(0, 10)]));
    }
}
