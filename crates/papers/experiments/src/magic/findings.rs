//! The findings of `diagnose` (statements about what limits a session) for sessions whose limit the paper names: the port's
//! buffer in the collapse, the receiver or the disk on the LAN.

use super::case::MagicCase;
use super::session_runner::Lab;
use super::{lan, remedies, wan};
use crate::printed_and_here::nothing_printed;
use stackline_core::error::Result;
use stackline_report::sheet::{Sheet, SheetCell};

/// The number of findings that are shown for each session.
const SHOWN: usize = 2;

/// The table of findings.
pub(super) fn sheet(lab: &Lab) -> Result<Sheet> {
    let cases: [(&str, MagicCase); 4] = [
        ("collapse", wan::collapse()?),
        ("cells paced", remedies::build_paced_case()?),
        ("LAN, receiver 39 Mbit/s", lan::receiver_limited()?),
        ("LAN, one disk", lan::disk_limited()?),
    ];
    let mut sheet = Sheet::new(
        "Findings",
        "what `stackline diagnose` reports for these sessions, from their events alone",
        &[
            ("case", "case"),
            ("rank", ""),
            ("kind", "finding"),
            ("share_percent", "% of unit time"),
            ("sure_percent", "confidence, %"),
        ],
    );
    for (name, case) in cases {
        let findings = case.findings(lab.seed)?;
        for (rank, finding) in (1..).zip(findings.iter().take(SHOWN)) {
            let name = if rank == 1 { name } else { "" };
            let percent = |share: f64| SheetCell::Number(100.0 * share, 0);
            let first = [
                SheetCell::text(name),
                SheetCell::Number(f64::from(rank), 0),
                SheetCell::text(finding.kind),
            ];
            sheet.rows.push(
                first
                    .into_iter()
                    .chain([percent(finding.share), percent(finding.confidence)])
                    .collect(),
            );
        }
        sheet.notes.extend(
            findings
                .first()
                .map(|finding| format!("{name}: {}", finding.sentence)),
        );
    }
    Ok(sheet.note(nothing_printed(
        "the paper describes the limits only in words",
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limits_that_the_paper_names_come_first() {
        let first = |case: MagicCase| {
            case.findings(1)
                .unwrap()
                .first()
                .map(|finding| (finding.kind, finding.sentence.clone()))
                .unwrap()
        };
        let (_, collapse) = first(wan::collapse().unwrap());
        assert!(collapse.contains("asx>onyx"), "{collapse}");
        let (kind, receiver) = first(lan::receiver_limited().unwrap());
        assert!(kind.contains("receiver"), "{kind}: {receiver}");
        let (_, disk) = first(lan::disk_limited().unwrap());
        assert!(
            disk.contains("ss20") && disk.contains("DPSS_START_READ"),
            "{disk}"
        );
    }
}
