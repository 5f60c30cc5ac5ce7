//! The structured display of `stackline_display` on sockets and in virtual time: a server with a thread a client, a view of its windows for browsers, and
//! clients that draw at one of four levels.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`address`] | where a display is, and connecting there |
//! | [`stream`] | a connection, whatever carries it |
//! | [`listener`] | where connections come |
//! | [`messages`] | the same by V's messages: each is answered when it is carried out |
//! | [`message_stream`] | a client's side of them |
//! | [`ngp`] | the network graphics protocol on a stream |
//! | [`program_check`] | whether programs that are served can be started |
//! | [`pup`] | streams of PUP over UDP |
//! | [`raw_terminal`] | a terminal that takes bytes as they are |
//! | [`agent`] | an agent between clients and a display, which outlives the display |
//! | [`blast_stream`] | streams of blasts |
//! | [`server`] | clients' bytes to the machine and back |
//! | [`vio`] | a client's side of that: blocks as a stream of bytes |
//! | [`view`] | the page and the WebSocket by which browsers look on |
//! | [`client`] | a connection to a display: requests, credit, answers |
//! | [`internet`] | streams of TCP and PUP for programs that speak V's messages alone |
//! | `late_answers` | answers to wrong secrets by V's messages, which wait |
//! | [`send_level`] | the four levels at which a picture is sent |
//! | [`bench`](mod@bench) | the paper's benchmarks at these levels |
//! | [`terminal`] | programs on pseudo-terminals over TELNET, and the other end |
//! | [`experiment`] | a display in virtual time as a person says it, and which of that matters |
//! | [`simulated`] | the same in virtual time, on hosts with processors, in five classes of application |

pub mod address;
pub mod agent;
pub mod bench;
pub mod blast_stream;
pub mod client;
pub mod experiment;
pub mod internet;
mod late_answers;
pub mod listener;
pub mod message_stream;
pub mod messages;
pub mod ngp;
pub mod program_check;
pub mod pup;
pub mod raw_terminal;
pub mod send_level;
pub mod server;
pub mod simulated;
pub mod stream;
pub mod terminal;
pub mod view;
pub mod vio;
