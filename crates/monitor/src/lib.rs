//! What this machine is and does while something is measured: counters, events of its kernel, switches by SNMP, and the
//! facts that explain a result.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`watch`] | monitors of the machine, exact events of its kernel |
//! | [`environment`] | what the machine is and does (SPIMS section 5) |
//! | [`clock`] | clocks of the kernel |
//! | `sys` | the only unsafe code |
//!
//! It changes nothing on the machine but one instance of the kernel's tracing, and never decides what its events mean.

pub mod clock;
pub mod environment;
mod sys;
pub mod watch;
