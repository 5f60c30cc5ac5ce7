//! Papers made again: a paper's formulas and experiments, and its tables and figures beside what was printed.

pub mod blast;
