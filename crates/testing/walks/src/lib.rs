//! Machines on paths that bytes control, with what must hold at each step: fuzz targets and tests share these walks.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`blast`] | two ends of a blast connection |
//! | [`ikp`] | a client and a server of V's message passing |
//! | `fuzz_path` | packets in transit between two ends, and forged ones, for both |
//! | [`conversation`] | a connection whose two sides say what bytes say, and its dissector |
//! | [`ftam`] | a peer of OSI's file transfer |
//! | [`ftp`] | lines of FTP, as commands and as replies |
//! | [`quic`] | the same of QUIC: datagrams, and what opened packets hold |

pub mod blast;
pub mod conversation;
pub mod ftam;
pub mod ftp;
mod fuzz_path;
pub mod ikp;
pub mod quic;
