//! The parts of the benchmark: what is compared (`cases`), how (`runner`), how it is shown (`table`), and the sides:
//! `bare` loops, `peer` tools, `subject` (stackline itself). `sys` and `process` hold every system call.

pub(crate) mod args;
pub(crate) mod bare;
pub(crate) mod cases;
pub(crate) mod figure;
pub(crate) mod memory;
pub(crate) mod neighbours;
pub(crate) mod peer;
pub(crate) mod place;
pub(crate) mod process;
pub(crate) mod runner;
pub(crate) mod subject;
pub(crate) mod sys;
pub(crate) mod table;
