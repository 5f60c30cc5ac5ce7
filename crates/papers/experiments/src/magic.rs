//! Tierney et al. 1996: the parallel block server over the MAGIC network, why it collapsed there, and each remedy.
//!
//! | module | one idea |
//! | --- | --- |
//! | `printed` | the numbers of the paper |
//! | `setting` | its networks, the TCP of its hosts, its viewer: what every experiment begins with |
//! | `case` | one simulated session, and the figures that the tables show of it |
//! | `session_runner` | who runs the sessions |
//! | `formulas` | what is printed as a formula |
//! | `latency` | section 4.2.3 and Figure 3: where a block's time goes |
//! | `table2` | throughput of a server by platform, from copies alone and simulated |
//! | `lan` | Figures 4 to 6: one and two servers beside the receiver |
//! | `wan` | section 4.3.3: one to three servers far away, and the collapse |
//! | `remedies` | section 4.3.4, and what is done today |
//! | `sweeps` | Figures 11 and 13: packet size, streams and interfaces |
//! | `memory_copies` | Figure 14: memory copies on this machine and the rule of a third |
//! | `worlds` | the same sessions emulated and simulated |
//! | `findings` | what `diagnose` says of the sessions whose limit is known |
//! | `charts` | pictures |
//! | `reproduce` | all of it together |

mod case;
mod charts;
mod findings;
mod formulas;
mod lan;
mod latency;
mod memory_copies;
mod printed;
mod remedies;
mod reproduce;
mod session_runner;
mod setting;
mod sweeps;
mod table2;
mod wan;
mod worlds;

use crate::paper::PaperExperiment;

/// Its line in the list of papers.
pub const PAPER: PaperExperiment = PaperExperiment {
    name: "magic",
    title: "Tierney et al. 1996, the MAGIC testbed and its parallel block server: Table 2, Figures 3 to 14, section 4.3",
    profile: setting::TEXT,
    reproduce: reproduce::reproduce,
    measure: Some(memory_copies::measure),
    measured: &["Table 2", "Figure 14"],
    compare: Some(worlds::COMPARISON),
};
