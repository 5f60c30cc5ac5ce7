//! Networks of IMPs, the packet switches of the ARPANET, in virtual time. Only the experiments of its paper need them.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`imps`] | networks of IMPs, and what their hosts send |
//! | `host_messages` | packets as messages over IMPs |
//! | `imp_log` | what IMPs report of themselves, as events |

pub(crate) mod host_messages;
pub(crate) mod imp_log;
pub mod imps;
