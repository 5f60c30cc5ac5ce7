//! The parallel block server carried out: sockets and threads for the machines of `stackline-blocks`, live and on hosts of
//! an emulated network; and the same machines in virtual time.
//!
//! It decides nothing about blocks, and draws nothing but keys and session numbers. Nothing here is unsafe.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`client`] | start here: open a set, ask for lists, take blocks |
//! | [`load`] | puts a set on the servers |
//! | [`block_source`] | what can be loaded: files, directories, pictures as pyramids of tiles, terrain |
//! | [`restore`] | a set as the file or the directory that it was |
//! | [`block_session`] | a session by the clock: what is asked for, what it came to |
//! | [`network_session`] | which host of a network is what |
//! | [`emulated`] | a session whose parts are processes on hosts of an emulated network |
//! | [`listing`] | what a master knows, as text and JSON |
//! | [`tile`] | one tile of a picture |
//! | [`disk_time`] | what a read of a disk takes, as a person writes it |
//! | [`gateway`] | blocks for any HTTP client |
//! | [`range_read`] | reads a range back |
//! | [`prediction`] | asks for what may be needed next, too |
//! | [`list_replay`] | a session by the clock, its record |
//! | [`block_events`] | the ways of blocks as events |
//! | [`list_file`] | lists of a session as a file |
//! | [`master`] | the master at work |
//! | [`server`] | a disk server at work |
//! | [`disk`] | a file of blocks: read, written, checked |
//! | [`master_store`] | what the master remembers |
//! | [`key`] | the key that writes need |
//! | [`simulated`] | master, servers and a client in virtual time |
//! | [`connection`] | how connections begin and carry messages |
//! | [`datagrams`] | blocks as UDP datagrams, also with RTP's headers |
//! | `blast_transport` | blocks as blasts |
//! | [`reassembly`] | blocks out of datagrams |
//! | [`buffer`] | memory of blocks |
//! | [`connection_slots`] | who gets a place where there are too many connections |
//! | [`notices`] | what servers say while they run |

mod blast_transport;
pub mod block_events;
pub mod block_playout;
pub mod block_session;
pub mod block_source;
pub mod buffer;
pub mod client;
pub mod connection;
pub mod connection_slots;
pub mod datagrams;
pub mod disk;
pub mod disk_time;
pub mod emulated;
pub mod gateway;
pub mod key;
pub mod list_file;
pub mod list_replay;
pub mod listing;
pub mod load;
pub mod master;
pub mod master_store;
pub mod network_session;
pub mod notices;
pub mod prediction;
pub mod range_read;
pub mod reassembly;
pub mod restore;
pub mod server;
pub mod simulated;
pub mod tile;
