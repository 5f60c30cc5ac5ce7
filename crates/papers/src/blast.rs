//! Zwaenepoel 1985, *Protocols for large data transfers over local networks*.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`formulas`] | every formula of the paper, and the exact forms beside them |
//! | [`transfers`] | experiments with the bare machines of `proto::blast` |

pub mod formulas;
pub mod transfers;
