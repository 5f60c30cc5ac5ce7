//! Blocks for any HTTP client: a client of the block server that answers HTTP/1.1 (RFC 9110, RFC 9112) on its other side.
//!
//! All requests share one client; a block that several wait for is asked for once. It writes nothing, and the only names it
//! takes are those of sets, which it gives to the master: no file can be named. What it serves: `docs/GATEWAY.md`.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`limits`] | what bounds memory and patience |
//! | `listen` | connections |
//! | `answer` | a request becomes an answer |
//! | `route` | paths |
//! | `range` | the header Range |
//! | `server_timing` | the header Server-Timing |
//! | `entity_tag` | the headers ETag and If-None-Match |
//! | `fault` | what went wrong, as a status and words |
//! | `body` | a range or a list of blocks as they come |
//! | `bounded_body` | a body that gets nothing for too long ends |
//! | `block_requests` | who waits for which block |
//! | `memory_limit` | how much is held for all |
//! | `request_check` | what is no request |
//! | `session` | the client that all share, and the sets it has open |
//! | `viewers` | a list supersedes the one before |
//! | `picture` | pixels as PNG |
//! | `pages` | the list of sets, and the page that shows a picture |

mod answer;
mod block_requests;
mod body;
mod bounded_body;
mod entity_tag;
mod fault;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub mod limits;
mod listen;
mod memory_limit;
mod pages;
mod picture;
mod range;
mod request_check;
mod route;
mod server_timing;
mod session;
mod viewers;
mod write_timeout;

pub use listen::{GatewayOptions, RunningGateway, start};
