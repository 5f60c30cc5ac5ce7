//! BBN Report 2499 (January 1973): what limits throughput in the ARPANET.
//!
//! | module | one idea |
//! | --- | --- |
//! | `printed` | the numbers of the report |
//! | `network_setup` | machines, lines, senders: what every experiment begins with |
//! | `in_flight` | Table 1: messages that must be under way, and what each bound costs |
//! | `terminals` | Table 2: buffers of terminals |
//! | `internal` | Table 3: what the processors do alone |
//! | `line_experiments` | Table 4 and section 2.2.1: one line, many sources, two paths, fast lines |
//! | `paths` | Table 5: path lengths of the map |
//! | `hosts` | Tables 6 and 7: hosts and transfers between them |
//! | `lockup` | what reservation is for |
//! | `calculated` | section 2.1.2 as numbers: what lines carry and hold, several paths together |
//! | `charts` | Figures 1 and 2 |
//! | `scale` | what would have broken first: networks of many more IMPs |
//! | `reproduce` | all of it together |

mod calculated;
mod charts;
mod hosts;
mod in_flight;
mod internal;
mod line_experiments;
mod lockup;
mod network_setup;
mod paths;
mod printed;
mod reproduce;
mod scale;
mod terminals;

use crate::paper::PaperExperiment;

/// Its line in the list of papers.
pub const PAPER: PaperExperiment = PaperExperiment {
    name: "arpanet",
    title: "BBN Report 2499, 1973, throughput of the ARPANET: Tables 1 to 7, section 2.2.1, larger networks",
    profile: network_setup::MAP,
    reproduce: reproduce::reproduce,
    measure: None,
    measured: &[],
    compare: None,
};
