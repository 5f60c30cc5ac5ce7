//! The values of the paper's tables that survived, as printed, in milliseconds. A value missing here is lost.

use stackline_report::paper::PaperFigure;

/// Each number: the exhibit, the subject of its row, N or D where the exhibit varies it, and the number.
const NUMBERS: &[(&str, &str, Option<u32>, &str)] = &[
    ("Section 2.1", "stop-and-wait", Some(64), "57.024"),
    ("Section 2.1", "sliding window", Some(64), "55.764"),
    ("Section 2.1", "blast", Some(64), "52.551"),
    ("Table 1", "stop-and-wait", Some(1), "4.08"),
    ("Table 2", "Copy data into sender's interface", None, "1.35"),
    ("Table 2", "Transmit data", None, "0.82"),
    (
        "Table 2",
        "Copy data out of receiver's interface",
        None,
        "1.35",
    ),
    (
        "Table 2",
        "Copy ack into receiver's interface",
        None,
        "0.17",
    ),
    ("Table 2", "Transmit ack", None, "0.05"),
    (
        "Table 2",
        "Copy ack out of sender's interface",
        None,
        "0.17",
    ),
    ("Table 2", "Total", None, "3.91"),
    ("Table 2", "Observed elapsed time", None, "4.08"),
    // These two are quoted from Table 3 in Figure 5.
    ("Table 3", "MoveTo", Some(1), "5.9"),
    ("Table 3", "MoveTo", Some(64), "173"),
];

/// The number that the paper prints in a row of an exhibit, in seconds, with its text; lost if it is not in `NUMBERS`.
pub(super) fn printed(exhibit: &str, subject: &str, packets: Option<u32>) -> PaperFigure {
    let row = NUMBERS
        .iter()
        .find(|row| (row.0, row.1, row.2) == (exhibit, subject, packets));
    let number = row.and_then(|row| Some((row.3, format!("{}e-3", row.3).parse().ok()?)));
    number.map_or(PaperFigure::Lost, |(text, seconds)| {
        PaperFigure::Here(text, seconds)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_found_by_its_row() {
        for (exhibit, subject, packets, number) in NUMBERS {
            let PaperFigure::Here(text, seconds) = printed(exhibit, subject, *packets) else {
                panic!("{exhibit} {subject}")
            };
            assert_eq!(
                (text, format!("{:.3}", 1e3 * seconds)),
                (*number, format!("{:.3}", number.parse::<f64>().unwrap()))
            );
        }
        assert_eq!(printed("Table 1", "blast", Some(1)), PaperFigure::Lost);
    }
}
