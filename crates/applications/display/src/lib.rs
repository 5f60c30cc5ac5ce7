//! A structured display, as the V-System's VGTS (Lantz, Nowicki and Theimer 1985, sections 2.2 and 5.3): a display file of symbols, each a
//! list of items and of calls of other symbols, windows that show a symbol, and the protocol (VGTP) by which clients change them.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`protocol`] | what is on the wire: requests and answers, as bytes and back |
//! | [`item`] | an item in 20 bytes, as the wire has it |
//! | [`symbols`] | a client's symbols, their memory, what may not be |
//! | [`pixels`] | vectors, stippled rectangles, letters, areas: pixel by pixel |
//! | [`draw`] | a symbol with all that it calls, as pixels |
//! | [`hit_test`] | which items are at a place |
//! | [`budget`] | the memory of all displays of a service together |
//! | [`machine`] | clients, windows, batches, credit, answers, input: bytes in, bytes out, time an argument |
//! | [`agent`] | between a client and its display: has the picture, and gives it again to a display that was started again |
//! | [`ngp`] | below the protocol: a definition that the other end has had is named by its digest |
//! | [`scenes`] | the pictures of the paper's benchmarks |
//!
//! Nothing here reads a socket or a clock.

pub mod agent;
pub mod budget;
pub mod draw;
pub mod font;
pub mod hit_test;
pub mod item;
pub mod machine;
pub mod ngp;
pub mod pixels;
pub mod protocol;
pub mod scenes;
pub mod symbols;
