//! A structured display like the V-System's VGTS (Lantz, Nowicki and Theimer 1985, sections 2.2 and 5.3). Each client has symbols: lists of
//! items (lines, rectangles, text) and of calls of other symbols. Windows show a symbol each, and clients change all of it by a protocol,
//! VGTP.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`protocol`] | what is on the wire: requests and answers, as bytes and back |
//! | [`symbols`] | a client's symbols: their items, their memory, what is refused |
//! | [`symbols`] | a client's symbols, their memory, what may not be |
//! | [`pixels`] | vectors, stippled rectangles, letters, areas: pixel by pixel |
//! | [`draw`] | a symbol with all that it calls, as pixels |
//! | [`hit_test`] | which items are at a point of a window |
//! | [`budget`] | the memory of all displays of a service together |
//! | [`machine`] | the display as a state machine: clients, windows, batches, credit, answers, input; the time is an argument |
//! | [`agent`] | between a client and its display: keeps the picture, and sends it again to a display that was restarted |
//! | [`ngp`] | a layer below the protocol: a definition that the other end has is named by its digest |
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
