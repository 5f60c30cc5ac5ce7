//! Refuses records whose numbers would overflow when summed. A run may have been made or changed by somebody else, and
//! readers add up the counts, bytes and times of all records: if their sum is beyond a limit, the run is damaged.

use serde_json::Value;
use stackline_core::run_record::RunRecord;

/// The limit on the sum of all numbers of all records: over a hundred years in ns (2^62 ns is 146 years).
const MOST: u128 = 1 << 62;

/// Whether the sum over all whole numbers of these records is within the limit.
pub(crate) fn can_be_summed(records: &[RunRecord]) -> bool {
    let of =
        |record: &RunRecord| serde_json::to_value(record).map_or(u128::MAX, |value| total(&value));
    records.iter().map(of).fold(0, u128::saturating_add) <= MOST
}

/// The sum of the absolute values of all whole numbers in a JSON value.
fn total(value: &Value) -> u128 {
    match value {
        Value::Number(number) => {
            let whole = number
                .as_u64()
                .or_else(|| number.as_i64().map(i64::unsigned_abs));
            whole.unwrap_or(0).into()
        }
        Value::Array(all) => all.iter().map(total).fold(0, u128::saturating_add),
        Value::Object(all) => all.values().map(total).fold(0, u128::saturating_add),
        Value::Null | Value::Bool(_) | Value::String(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackline_core::run_record::Histogram;

    #[test]
    fn counts_that_overflow_together_are_noticed() {
        let record = |received_bytes| {
            let mut record = RunRecord {
                elapsed_ns: 3_600_000_000_000,
                ..RunRecord::default()
            };
            record.responder.received_bytes = received_bytes;
            record.calls = Histogram {
                counts: vec![(100_000, 7)],
                sum: 700_000,
                ..Histogram::default()
            };
            record
        };
        assert!(can_be_summed(&[]) && can_be_summed(&vec![record(1 << 50); 100]));
        assert!(!can_be_summed(&[record(u64::MAX)]));
        assert!(!can_be_summed(&vec![record(1 << 60); 5]));
    }
}
