//! An HTTP gateway to the block server: a block client that serves blocks over HTTP/1.1 (RFC 9110, RFC 9112).
//!
//! All requests share one block client, and a block that several requests wait for is requested once. The gateway writes nothing, and the
//! only names it takes are those of sets, which it passes to the master: no file can be named. `docs/GATEWAY.md` lists what it serves.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`limits`] | all limits on memory and time |
//! | `listen` | accepts connections and runs the threads |
//! | `answer` | turns a request into an answer |
//! | `route` | parses paths |
//! | `range` | the header Range |
//! | `server_timing` | the header Server-Timing |
//! | `entity_tag` | the headers ETag, If-Match and If-None-Match |
//! | `fault` | an error as a status and words |
//! | `body` | bodies: a block, a range, or a list of blocks as they come |
//! | `bounded_body` | ends a body that gets nothing for too long |
//! | `block_requests` | which requests wait for which block |
//! | `memory_limit` | the limit on memory for all clients together |
//! | `request_check` | refuses malformed requests |
//! | `session` | the client that all requests share, and its open sets |
//! | `viewers` | a viewer's new list supersedes the one before |
//! | `picture` | tiles as PNG |
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
