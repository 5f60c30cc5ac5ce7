//! Bytes of a packet to protocol, stream, offset and unit; files of packets both ways.
//!
//! It opens no file and decides nothing: what is foreign, cut short or says nothing of a stream is nothing.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`pcapng`] | files of packets: written as pcapng, read as pcapng and pcap |
//! | `encapsulation` | the packet of IP within a packet of a link: links, tags, labels, tunnels |
//! | [`segment`] | a packet of any link to its TCP segment |
//! | [`connections`] | streams and offsets of all connections of a capture, and what came again |
//! | [`conversation`] | what two sides say to each other: requests and responses by byte ranges, protocol by protocol |
//! | [`quic`] | datagrams of QUIC to its handshake, and to what is said where its secrets are known |
//! | [`frame_locator`] | IPv4 packets of flows that are known beforehand, ours over UDP among them, or that are learned, to streams, offsets and units |
//! | [`fragments`] | fragments of packets of IP to whole packets |
//! | [`left_out`] | every bound, and how much was left out at it |
//! | [`sequence_position`] | sequence numbers of one way of a connection to offsets |
//! | [`stream_holes`] | how long holes in a direction were open: losses before the place of the capture |

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
