//! A parallel block server (DPSS; Tierney et al. 1996) as state machines without I/O. A master translates block numbers into places on
//! disks, disk servers read and send the blocks, and clients send lists of the blocks they want. A newer list supersedes the older ones.
//!
//! Nothing here reads a clock or a disk, opens a socket, starts a thread or draws a random number: a call takes the time and an event, and
//! returns what its caller has to do. `stackline_blockserver` does it with sockets and threads, and in virtual time.
//!
//! A *session* is one client's connection to the master and what it asks for. A *unit* is the number that a client gives to one request for
//! one block, so that the events of that request can be distinguished from those of others.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`set`] | what a data set is |
//! | [`pyramid`] | a picture at several resolutions, cut into tiles |
//! | [`placement`] | on which disk a block is put |
//! | [`wire`] | messages, as bytes |
//! | [`limits`] | what a peer may ask for at most |
//! | [`master`] | the sets, the sessions, and the places of all blocks |
//! | [`server`] | a disk server: read queues, cache, write queues, what a newer list discards |
//! | [`send_window`] | how many bytes a connection may hold before the next part of a block begins |
//! | [`client`] | which blocks a client waits for, and which came in time |
//! | [`block_history`] | when one block passed each point of its way |
//! | [`score`] | what a session received: blocks in time, throughput, times |
//! | [`session_record`] | the score and the block histories of a session |
//! | [`demand`] | which blocks a session asks for, list by list |
//! | [`playout`] | blocks given out in their order at a steady pace |
//! | [`pyramid_viewer`] | which tiles a person who looks at a picture needs |

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
