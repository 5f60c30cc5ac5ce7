//! What-if questions: simulates a kept run with and without an advised change, predicts by simulation what no formula covers, and
//! runs designed experiments in which parts of a specification are varied.
//!
//! It prints nothing and reads no command-line flag. Results of runs are computed by `stackline-analyze`, effects by
//! `stackline-factors`; runs are made by `stackline-runner`.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`advice`] | the gain of a finding's advice, by simulation |
//! | [`traced_answers`] | the answers for a run that was just traced |
//! | [`bufferbloat`] | whether latency grows under load, and what another queue would change |
//! | [`offered_load`] | latency against offered load, and the highest rate that meets an expectation |
//! | [`experiment`] | a designed experiment, independent of what is run |
//! | [`specification`] | a designed experiment over a specification |
//! | [`predicted`] | predictions by simulation where no formula applies |
//! | [`simulated_runs`] | a few simulated runs, kept only in memory |
//! | [`unattended_runs`] | runs into a run directory, without a progress display |

pub mod advice;
pub mod bufferbloat;
pub mod experiment;
pub mod offered_load;
pub mod predicted;
pub mod simulated_runs;
pub mod specification;
pub mod traced_answers;
pub mod unattended_runs;
