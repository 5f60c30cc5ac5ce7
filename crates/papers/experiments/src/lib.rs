//! Reproductions of papers: their formulas and experiments, and their tables and figures beside the printed values.
//!
//! A paper is a module and a line in [`PAPERS`]. Nothing is printed and no files are written here: the command does
//! that.

pub mod arpanet;
pub mod blast;
pub mod magic;
mod measuring;
mod paper;
mod parallel;
mod printed_and_here;
mod profile;
pub mod vsystem;

pub use paper::{
    Compared, PaperComparison, PaperExperiment, PaperSession, Reproduction, ReproductionSettings,
};

/// All papers that can be reproduced.
pub const PAPERS: &[PaperExperiment] =
    &[blast::PAPER, magic::PAPER, arpanet::PAPER, vsystem::PAPER];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::printed_and_here::{DIFFERENCE_NEEDS_REASON, lacks};
    use stackline_report::paper::{PaperFigure, PaperReport};

    fn made(paper: &PaperExperiment) -> PaperReport {
        let settings = ReproductionSettings {
            seed: 1,
            transfers: 100,
            most_seeds: Some(1),
            precision: 1.0,
            measured: None,
            only: None,
            progress: &|_, _| {},
        };
        (paper.reproduce)(&settings).unwrap().tables
    }

    /// What tables of a paper lack of the columns that compare print with here.
    fn missing(report: &PaperReport) -> Vec<String> {
        let rows = report.exhibits.iter().flat_map(|exhibit| {
            exhibit.rows.iter().filter_map(|row| {
                let Some(PaperFigure::Here(..)) = row.printed else {
                    return None;
                };
                let explained = row
                    .off_percent
                    .is_some_and(|off| off.abs() <= DIFFERENCE_NEEDS_REASON || row.why.is_some());
                (!explained).then(|| format!("{}: {}", exhibit.name, row.subject))
            })
        });
        let sheets = report
            .sheets
            .iter()
            .filter_map(|sheet| Some(format!("{}: {}", sheet.name, lacks(sheet)?)));
        rows.chain(sheets).collect()
    }

    #[test]
    fn tables_of_blast_and_arpanet_say_how_far_off_and_why() {
        for paper in [blast::PAPER, arpanet::PAPER] {
            assert_eq!(missing(&made(&paper)), Vec::<String>::new());
        }
    }

    #[test]
    fn tables_of_magic_say_how_far_off_and_why() {
        assert_eq!(missing(&made(&magic::PAPER)), Vec::<String>::new());
    }

    #[test]
    fn tables_of_vsystem_say_how_far_off_and_why() {
        assert_eq!(missing(&made(&vsystem::PAPER)), Vec::<String>::new());
        assert_eq!(PAPERS.len(), 4, "each paper has its tables looked at");
    }
}
