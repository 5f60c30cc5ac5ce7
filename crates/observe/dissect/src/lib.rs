//! Reads packets: from the bytes of a captured packet to its protocol, its stream, the offset in that stream and the data unit; and reads
//! and writes capture files.
//!
//! The crate opens no file itself and makes no decisions. Packets that are foreign, cut short or carry no part of a stream yield `None`.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`pcapng`] | capture files: written as pcapng, read as pcapng and pcap |
//! | `encapsulation` | where the innermost IP packet begins in a link-layer frame: link headers, VLAN tags, MPLS labels, tunnels |
//! | [`segment`] | from a packet of any link type to its TCP segment or UDP datagram |
//! | [`connections`] | the stream and offset of each TCP segment of a capture, and which bytes were sent again |
//! | [`conversation`] | what the two sides of a connection say: requests and responses as byte ranges, protocol by protocol |
//! | [`quic`] | QUIC: the handshake from datagrams, and the requests where the secrets of the session are known |
//! | [`frame_locator`] | from IPv4 packets of flows that are given beforehand or learned, including this project's own protocols over UDP, to streams, offsets and units |
//! | [`fragments`] | reassembly of IP fragments |
//! | [`left_out`] | every limit of the readers, and how much was left out at each |
//! | [`sequence_position`] | TCP sequence numbers of one direction to stream offsets |
//! | [`stream_holes`] | gaps in one direction and how long they were open: they show losses before the capture point |

pub mod connections;
pub mod conversation;
mod encapsulation;
pub mod fragments;
pub mod frame_locator;
pub mod left_out;
pub mod pcapng;
pub mod quic;
pub mod segment;
pub mod sequence_position;
pub mod stream_holes;
