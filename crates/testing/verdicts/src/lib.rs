//! How often findings and predictions are right: what is asked, what is judged, and the table of it.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`question`] | specifications drawn over the whole space of the language, to be predicted |
//! | [`verdict`] | whether findings say what is true by removal |
//! | [`calibration`] | how often what was said with some confidence was right |

pub mod calibration;
pub mod question;
pub mod verdict;

pub use question::Question;
pub use verdict::{FindingJudge, FindingVerdict, ReportedFinding};
