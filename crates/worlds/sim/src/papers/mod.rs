//! Networks of IMPs, the packet switches of the ARPANET, in virtual time. Only the experiments of its paper need them.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`imps`] | networks of IMPs, and traffic between their hosts |
//! | `host_messages` | carries the hosts' packets as messages over IMPs |
//! | `imp_log` | writes the IMPs' status reports to the trace |

pub(crate) mod host_messages;
pub(crate) mod imp_log;
pub mod imps;
