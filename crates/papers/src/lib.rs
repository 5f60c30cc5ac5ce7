//! Papers made again: a paper's formulas and experiments, and its tables and figures beside what was printed.
//!
//! A paper is a module and its line in [`PAPERS`]. It never prints and writes no files: the command does.

pub mod blast;
mod paper;

pub use paper::{Paper, Reproduction, Settings};

/// All papers.
pub const PAPERS: &[Paper] = &[blast::PAPER];
