//! The Interface Message Processor of the ARPANET in 1973, as a machine (BBN Report 2499; RFC 442, 449, 528, 626).
//!
//! A host's message of up to 8063 bits is sent as up to eight packets of 1008 bits. Each IMP holds a packet until the next one has
//! acknowledged it. The last IMP reassembles the message in buffers that were reserved, delivers it to its host, and answers with an
//! RFNM (Request For Next Message).
//!
//! | module | one idea |
//! | --- | --- |
//! | [`packet`] | packets and frames between IMPs |
//! | [`options`] | the options of an IMP: processor, memory, rules |
//! | [`line`](mod@line) | one end of a line: channels, acknowledgements, retransmission |
//! | [`routing`] | which line leads to which IMP |
//! | `message_source` | outgoing messages: numbers, window, reserved buffers |
//! | `reassembly` | incoming messages: buffers, order, answers |
//! | `processor` | the queue of jobs, each of which takes time |
//! | [`machine`] | the IMP that is made of these |

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
