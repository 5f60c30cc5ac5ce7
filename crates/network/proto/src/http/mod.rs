//! HTTP/1.1 (RFC 9112) and HTTP/2 (RFC 9113) as hyper and h2 speak them: pure machines of one end. They count bytes and carry none: what an
//! end writes are pieces with their lengths, whose meaning the other end learns when their last byte has come.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`contract`] | what both versions offer: exchanges, their heads and bodies, and pieces to write |
//! | [`http1`] | HTTP/1.1: one exchange at a time, bodies with a length or in chunks |
//! | [`http2`] | HTTP/2: streams, their windows, and the frames in the order in which h2 writes them |
//! | [`hpack`] | how long a block of fields is (RFC 7541) |
//! | [`windows`] | when a receiver offers new room |
//! | [`options`] | the options of both worlds |

pub mod contract;
pub mod hpack;
pub mod http1;
pub mod http2;
pub mod options;
#[cfg(test)]
mod tests;
pub mod windows;

pub use contract::{
    HttpArrival, HttpFrame, HttpHead, HttpMachine, HttpPiece, HttpRequestKind, HttpWait,
};
pub use http1::Http1End;
pub use http2::Http2End;
pub use options::{HTTP2_OPTIONS, Http2Windows};
