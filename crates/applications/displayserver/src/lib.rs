//! The structured display of `stackline_display` with I/O: on sockets and in virtual time. It has a server with a thread per client, a view
//! of its windows for browsers, and clients that send pictures at one of four levels.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`address`] | the addresses of displays, and connecting to them |
//! | [`stream`] | a connection, over any transport |
//! | [`listener`] | accepts connections at an address |
//! | [`messages`] | a display over V's messages, where each request is answered when it is carried out |
//! | [`message_stream`] | a client's side of V's messages, as a byte stream |
//! | [`papers`] | what only the papers' experiments need: PUP, blasts, V's I/O, the internet server, NGP |
//! | [`program_check`] | whether a program can be started |
//! | [`raw_terminal`] | a terminal in raw mode |
//! | [`agent`] | an agent between clients and a display, which outlives the display |
//! | [`server`] | the server: moves bytes between clients and the display's state machine |
//! | [`transport`] | what a connection can do, for each transport |
//! | [`view`] | the page and the WebSocket with which browsers look on |
//! | [`page_relay`] | passes browsers on to the page of a display elsewhere |
//! | [`client`] | a connection to a display: requests, credit, answers |
//! | `acceptor` | what accepts connections of one scheme |
//! | `terminal_stream` | the connection behind this program's terminal or pipes |
//! | `delayed_refusals` | delayed answers to wrong secrets over V's messages |
//! | [`send_level`] | the four levels at which a picture is sent |
//! | [`bench`](mod@bench) | the paper's benchmarks at these levels |
//! | [`live_bench`] | these benchmarks of a live display |
//! | [`terminal`] | programs on pseudo-terminals over TELNET, and the other end |
//! | [`experiment`] | experiments with a display in virtual time, and which factors matter |
//! | [`simulated`] | the display in virtual time, on hosts with processors, in five classes of application |

mod acceptor;
pub mod address;
pub mod agent;
pub mod bench;
pub mod client;
mod delayed_refusals;
pub mod experiment;
pub mod listener;
pub mod live_bench;
pub mod message_stream;
pub mod messages;
pub mod page_relay;
pub mod papers;
pub mod program_check;
pub mod raw_terminal;
pub mod send_level;
pub mod server;
pub mod simulated;
pub mod stream;
pub mod terminal;
mod terminal_stream;
pub mod transport;
pub mod view;
