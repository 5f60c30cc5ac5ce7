//! Zwaenepoel 1985, *Protocols for large data transfers over local networks*: Tables 1 to 3 and Figures 4 to 6, and the naive
//! times of section 2.1 that lead to them.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`formulas`] | every formula of the paper, and the exact forms beside them |
//! | [`transfers`] | experiments with the bare machines of `proto::blast` |
//! | `printed` | the numbers that survived of its tables |
//! | `profile` | its hosts as networks of the language, and what they cost |
//! | `case` | what a row asks to be simulated; rows before their columns are filled in |
//! | `tables`, `figures` | the rows: printed and formula |
//! | `simulated` | the column `simulated` |
//! | `interfaces` | who copies, and what a slower receiver loses |
//! | `measure` | its programs on this machine |
//! | `measured_column` | the column `here` |
//! | `charts` | Figures 4 to 6 as pictures |
//! | `reproduce` | all of it together |

mod case;
mod charts;
mod figures;
pub mod formulas;
mod interfaces;
mod measure;
mod measured_column;
mod printed;
mod profile;
mod reproduce;
mod simulated;
mod tables;
pub mod transfers;

use crate::paper::PaperExperiment;

/// Its line in the list of papers.
pub const PAPER: PaperExperiment = PaperExperiment {
    name: "blast",
    title: "Zwaenepoel 1985, Protocols for large data transfers over local networks: Tables 1 to 3, Figures 4 to 6",
    profile: profile::TEXT,
    reproduce: reproduce::reproduce,
    measure: Some(measure::measure),
    measured: &[
        "Section 2.1",
        "Table 1",
        "Table 2",
        "Table 3",
        "Figure 4",
        "Figure 5",
        "Figure 6",
    ],
    compare: None,
};
