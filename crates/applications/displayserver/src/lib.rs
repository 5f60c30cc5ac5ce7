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
//! | [`papers`] | what only the papers need: PUP, blasts, V's I/O, the internet server, NGP |
//! | [`program_check`] | whether programs that are served can be started |
//! | [`raw_terminal`] | a terminal that takes bytes as they are |
//! | [`agent`] | an agent between clients and a display, which outlives the display |
//! | [`server`] | clients' bytes to the machine and back |
//! | [`transport`] | what carries a connection, as each transport does it |
//! | [`view`] | the page and the WebSocket by which browsers look on |
//! | [`client`] | a connection to a display: requests, credit, answers |
//! | `late_answers` | answers to wrong secrets by V's messages, which wait |
//! | [`send_level`] | the four levels at which a picture is sent |
//! | [`bench`](mod@bench) | the paper's benchmarks at these levels |
//! | [`terminal`] | programs on pseudo-terminals over TELNET, and the other end |
//! | [`experiment`] | a display in virtual time as a person says it, and which of that matters |
//! | [`simulated`] | the same in virtual time, on hosts with processors, in five classes of application |

pub mod address;
pub mod agent;
pub mod bench;
pub mod client;
pub mod experiment;
mod late_answers;
pub mod listener;
pub mod message_stream;
pub mod messages;
pub mod papers;
pub mod program_check;
pub mod raw_terminal;
pub mod send_level;
pub mod server;
pub mod simulated;
pub mod stream;
pub mod terminal;
pub mod transport;
pub mod view;
