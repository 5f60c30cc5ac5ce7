//! A paper's text against a golden file, and its JSON.

use super::*;
use crate::testing::golden;

fn sample() -> PaperReport {
    let bare = PaperRow {
        subject: "stop-and-wait".into(),
        packets: Some(1),
        ..PaperRow::default()
    };
    let elapsed = Exhibit {
        name: "Table 1".into(),
        title: "elapsed times".into(),
        subject: "protocol",
        digits: 2,
        rows: vec![
            PaperRow {
                printed: Some(PaperFigure::Here("4.08", 4.08e-3)),
                formula: Some(3.91e-3),
                profile: Some(3.93e-3),
                simulated: Some(SimulatedTransfers { seconds: 3.93e-3, error: None, transfers: 1 }),
                measured: Some(MeasuredTransfers { n: 3, mean: 24.3e-6, sd: 5.9e-6, min: 20e-6, median: 22e-6, max: 31e-6 }),
                ..bare.clone()
            },
            PaperRow { packets: Some(64), printed: Some(PaperFigure::Lost), formula: Some(0.250_24), ..bare.clone() },
        ],
        notes: vec![
            "A sentence about the table, long enough to show what becomes of it where it has to be broken, \
                     which is at the end of a line."
                .into(),
        ],
    };
    let deviation = Exhibit {
        name: "Figure 6".into(),
        title: "standard deviations".into(),
        subject: "strategy",
        digits: 3,
        rows: vec![PaperRow {
            subject: "full".into(),
            loss: Some(1e-4),
            interval: Some(("10 To(D)".into(), 1.7282)),
            printed: Some(PaperFigure::Lost),
            as_printed: Some(28.09e-3),
            formula: Some(28.00e-3),
            profile: Some(28.0e-3),
            simulated: Some(SimulatedTransfers {
                seconds: 27.3e-3,
                error: Some(0.21e-3),
                transfers: 10_000,
            }),
            ..PaperRow::default()
        }],
        notes: Vec::new(),
    };
    let notes = vec!["The profile: C 1.35 ms.".into()];
    PaperReport {
        name: "blast".into(),
        title: "Author 1985: title".into(),
        notes,
        exhibits: vec![elapsed, deviation],
        sheets: Vec::new(),
    }
}

#[test]
fn a_paper_as_text() {
    golden("paper.txt", &paper(&sample()));
}

#[test]
fn a_paper_as_json() {
    let json = paper_json(&sample());
    let row = &json["exhibits"][0]["rows"][0];
    assert_eq!(
        (&row["printed_s"], &row["lost"], &row["simulated_transfers"]),
        (&4.08e-3.into(), &false.into(), &1.into())
    );
    assert_eq!(
        (&row["apart"], &row["measured"]["n"]),
        (&0.0.into(), &3.into())
    );
    let lost = &json["exhibits"][0]["rows"][1];
    assert_eq!(
        (&lost["printed_s"], &lost["lost"]),
        (&Value::Null, &true.into())
    );
    assert_eq!(
        (&lost["simulated_s"], &lost["apart"], &lost["measured"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );
    assert_eq!(json["exhibits"][1]["rows"][0]["interval"], "10 To(D)");
}
