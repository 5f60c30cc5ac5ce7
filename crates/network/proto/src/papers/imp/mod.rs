//! The Interface Message Processor of the ARPANET in 1973, as a machine (BBN Report 2499; RFC 442, 449, 528, 626).
//!
//! A host's message of up to 8063 bits goes as up to eight packets of 1008. Each is held until the next IMP has acknowledged it;
//! the last IMP puts them together in room that was reserved, gives the message to its host, and answers with an RFNM.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`packet`] | what they send one another |
//! | [`options`] | processor, memory, rules |
//! | [`line`](mod@line) | channels between two of them: held, acknowledged, sent again |
//! | [`routing`] | which line leads where |
//! | `message_source` | numbers of messages, the window, room that is asked for |
//! | `reassembly` | room, order, answers |
//! | `processor` | one thing after the other |
//! | [`machine`] | the IMP around these |

pub mod line;
pub mod machine;
mod message_source;
pub mod options;
pub mod packet;
mod processor;
mod reassembly;
pub mod routing;

pub use machine::{HostKind, ImpInput, ImpNode, ImpOutput};
pub use options::{ImpCycleCosts, ImpHardware, ImpOptions, Rule};
pub use packet::{ImpDeliveryFailure, ImpFrame, ImpFrameLoad, ImpHostAddress, ImpMessage};
