//! Protocols that only the experiments of the papers need. Nobody who measures TCP, UDP, QUIC or blasts needs them.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`ftam`] | OSI's file transfer over all of OSI's upper layers, on TCP |
//! | [`imp`] | the ARPANET of 1973: an IMP (packet switch), its lines, messages and routing |
//! | [`ncp`] | one end of a connection between hosts of the ARPANET: links, allocations |
//! | [`pup`] | Xerox PUP: packets, a byte stream with marks and interrupts |
//! | [`telnet`] | one end of a TELNET connection: data, commands, options |
//! | [`vio`] | V's I/O protocol: blocks are read and written by messages, each exactly once |

pub mod ftam;
pub mod imp;
pub mod ncp;
pub mod pup;
pub mod telnet;
pub mod vio;
