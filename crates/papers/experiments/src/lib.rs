//! Papers made again: a paper's formulas and experiments, and its tables and figures beside what was printed.
//!
//! A paper is a module and its line in [`PAPERS`]. It never prints and writes no files: the command does.

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

/// All papers.
pub const PAPERS: &[PaperExperiment] =
    &[blast::PAPER, magic::PAPER, arpanet::PAPER, vsystem::PAPER];
