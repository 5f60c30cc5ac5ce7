//! Transports beside TCP that only the experiments of the V-System's papers need.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`blast_stream`] | byte streams over blasts |
//! | [`internet`] | an internet server: TCP and PUP streams for programs that speak only V's messages |
//! | [`ngp`] | the network graphics protocol on a stream |
//! | [`pup`] | PUP byte streams over UDP |
//! | [`vio`] | a client's side of V's I/O protocol: blocks as a byte stream |

pub mod blast_stream;
pub mod internet;
pub mod ngp;
pub mod pup;
pub mod vio;
