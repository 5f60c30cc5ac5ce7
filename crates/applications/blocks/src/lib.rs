//! A parallel block server as pure machines: the master names blocks, disk servers read and send them, clients ask for
//! lists that supersede one another (DPSS; Tierney et al. 1996).
//!
//! Nothing here reads a clock or a disk, opens a socket, starts a thread or draws a number: time and what came are
//! arguments, what is to be done is the result. `blockserver` carries it out with sockets and threads, and in virtual time.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`set`] | what a data set is |
//! | [`pyramid`] | a picture at several resolutions, cut into tiles |
//! | [`placement`] | on which disk a block is put |
//! | [`wire`] | messages, as bytes |
//! | [`limits`] | what a peer may ask for at most |
//! | [`master`] | sets, sessions, where blocks are |
//! | [`server`] | read queues, cache, write queues, discarding |
//! | [`send_window`] | how much a connection may hold before another block begins |
//! | [`client`] | what is outstanding, what came in time |
//! | [`block_history`] | when a block passed which point |
//! | [`score`] | what a session got |
//! | [`session_record`] | what is kept of a session |
//! | [`demand`] | what a session asks for, list by list |
//! | [`playout`] | blocks in their order, at a steady pace |
//! | [`pyramid_viewer`] | what somebody who looks at a picture needs |

#![no_std]

extern crate alloc;

pub mod block_history;
pub mod client;
pub mod demand;
pub mod limits;
pub mod master;
pub mod placement;
pub mod playout;
pub mod pyramid;
pub mod pyramid_viewer;
pub mod score;
pub mod send_window;
pub mod server;
pub mod session_record;
pub mod set;
pub mod wire;

pub use client::BlockClientMachine;
pub use master::Master;
pub use server::DiskServerMachine;
pub use set::BlockSet;
