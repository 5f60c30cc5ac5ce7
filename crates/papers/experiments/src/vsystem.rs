//! Lantz, Nowicki and Theimer 1985: which factors decide the performance of a distributed application, on a display.
//!
//! | module | one idea |
//! | --- | --- |
//! | `case` | a cell as an experiment: machines, class, picture, rate; its simulation |
//! | `printed` | the tables, each cell with its experiment and with what it sets of the profile |
//! | `internet` | the internet server on another workstation |
//! | `cell_deviations` | how near simulated cells are to printed ones, table by table and all together |
//! | `memory` | Table 5-2: display file against bitmap |
//! | `doubts` | what the paper's own numbers contradict |
//! | `factors` | the ranking of factors by a designed experiment, beside the paper's |
//! | `local_display` | the same pictures on this machine |
//! | `transport` | sections 6, 7 and 9: what a TCP taught its makers |
//! | `reproduce` | all of it together |

mod case;
mod cell_deviations;
mod doubts;
mod factors;
mod internet;
mod local_display;
mod memory;
mod printed;
mod reproduce;
mod transport;

use crate::paper::PaperExperiment;

/// Its line in the list of papers.
pub const PAPER: PaperExperiment = PaperExperiment {
    name: "vsystem",
    title: "Lantz, Nowicki and Theimer 1985, a display as a distributed application: Tables 3-1 to 8-2, its ranking \
            of factors, its lessons about TCP",
    profile: case::PROFILE,
    reproduce: reproduce::reproduce,
    measure: Some(local_display::measure),
    measured: &[local_display::NAME],
    compare: None,
};
