//! Random specifications whose limits are known, for testing what names limits.
//!
//! A [`Scenario`] is drawn at random: a network, a transfer or calls over it, and perhaps planted causes. It can be written as a
//! specification, and each [`LimitCause`] takes one possible cause away from it. Whoever runs both knows how much time the cause
//! cost: that is the truth that [`judge`] compares findings with. This crate draws, writes and judges; it runs nothing.
//!
//! | module | one idea |
//! | --- | --- |
//! | `scenario` | what is drawn, and from which ranges |
//! | `specification_text` | a scenario as a specification |
//! | `limit_cause` | what can be taken away, and which findings name it |
//! | `question` | specifications drawn over the whole space of the language, to be predicted |
//! | `dice` | random numbers in ranges |
//! | `judge` | what is true by removal, and whether findings say so |
//! | `calibration` | how often what was said with some confidence was right |

pub mod calibration;
mod dice;
pub mod judge;
pub mod limit_cause;
pub mod question;
pub mod scenario;
mod specification_text;

pub use limit_cause::LimitCause;
pub use question::Question;
pub use scenario::Scenario;
