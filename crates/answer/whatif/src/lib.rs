//! What would be otherwise: the measurement of a kept run simulated as it was and as it is advised to be, what no closed form covers
//! simulated, and designed experiments in which a specification, or whatever else, is varied.
//!
//! It prints nothing and reads no flag. What runs mean is `stackline-analyze`'s, what effects are `stackline-factors`'s, who makes runs
//! `stackline-runner`.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`advice`] | what a finding's advice is worth |
//! | [`experiment`] | a designed experiment, whatever is run |
//! | [`specification`] | such an experiment over a specification |
//! | [`predicted`] | what no closed form covers |
//! | [`simulated_runs`] | a few simulated runs in a moment, kept nowhere |
//! | [`unattended_runs`] | runs into a run directory that nobody watches |

pub mod advice;
pub mod experiment;
pub mod predicted;
pub mod simulated_runs;
pub mod specification;
pub mod unattended_runs;
