//! Posts to a web server outside the run: alerts to a webhook, metrics and traces to a collector. A queue of its own thread waits for the
//! server, so that nobody else does.
//!
//! | module | one idea |
//! | --- | --- |
//! | `push_url` | an address, which may hold a secret, so that only its server is ever named |
//! | `push_client` | one connection, kept between requests, with a limit on the time of each |
//! | `push_queue` | a bounded queue: what is oldest gives way, and all that is lost is counted |

mod push_client;
mod push_queue;
mod push_url;

pub use push_queue::{PushCounts, PushQueue, PushedPost};
pub use push_url::PushUrl;
