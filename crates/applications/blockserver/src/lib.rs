//! The parallel block server with I/O: the state machines of `stackline_blocks` are run with sockets and threads (live, and on hosts of an
//! emulated network) or in virtual time. A master knows where the blocks of each set are, disk servers hold them, clients request lists.
//!
//! All decisions about blocks are made in `stackline_blocks`; this crate's own randomness is keys, nonces and identities. It has no unsafe
//! code.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`client`] | start here: open a set, ask for lists, take blocks |
//! | [`load`] | puts a set on the servers |
//! | [`block_source`] | what can be loaded: files, directories, pictures as pyramids of tiles, generated terrain |
//! | [`restore`] | reads a set back into a file or directory |
//! | [`block_session`] | a measured session: lists at fixed times, and the figures of what came |
//! | [`network_session`] | which host of a network has which role |
//! | [`emulated`] | a session whose parts are processes on hosts of an emulated network |
//! | [`listing`] | a master's sets and servers, as text and JSON |
//! | [`tile`] | one tile of a picture, also as PNG |
//! | [`disk_time`] | parses how long a read of a disk takes |
//! | [`gateway`] | blocks for any HTTP client |
//! | [`range_read`] | reads a range of blocks at full speed |
//! | [`prediction`] | requests also what may be needed next |
//! | [`list_replay`] | sends lists at fixed times, and records what comes |
//! | [`block_events`] | the histories of blocks as events |
//! | [`list_file`] | the lists of a session as a file |
//! | [`master`] | runs the master |
//! | [`server`] | runs a disk server |
//! | [`disk`] | a disk: blocks are read, written and checked |
//! | [`master_store`] | the file in which the master stores its state |
//! | [`key`] | the key that writing needs |
//! | [`simulated`] | master, servers and a client in virtual time |
//! | [`connection`] | connections: their greeting, and messages on them |
//! | [`datagrams`] | sends blocks as UDP datagrams, also with RTP headers |
//! | `blast_transport` | sends blocks as blasts |
//! | [`reassembly`] | reassembles blocks from datagrams |
//! | [`buffer`] | page-aligned memory for blocks |
//! | [`connection_slots`] | which connections are admitted, and which one is closed when there are too many |
//! | [`notices`] | what servers print while they run |

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
