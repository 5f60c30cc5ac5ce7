//! Papers made again: a paper's formulas and experiments, and its tables and figures beside what was printed.
//!
//! A paper is a module and its line in [`PAPERS`]. It never prints and writes no files: the command does.

pub mod arpanet;
pub mod blast;
pub mod magic;
mod measuring;
mod paper;
mod parallel;
mod profile;
pub mod vsystem;

pub use paper::{Compared, Comparison, Paper, Reproduction, Session, Settings};

/// All papers.
pub const PAPERS: &[Paper] = &[blast::PAPER, magic::PAPER, arpanet::PAPER, vsystem::PAPER];
