//! The ways to a display that only the experiments of the V-System need, beside TCP.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`blast_stream`] | streams of blasts |
//! | [`internet`] | streams of TCP and PUP for programs that speak V's messages alone |
//! | [`ngp`] | the network graphics protocol on a stream |
//! | [`pup`] | streams of PUP over UDP |
//! | [`vio`] | a client's side of V's I/O protocol: blocks as a stream of bytes |

pub mod blast_stream;
pub mod internet;
pub mod ngp;
pub mod pup;
pub mod vio;
