//! Any bytes as messages of V's block I/O: what is one is written as it was read.
#![no_main]

use stackline_proto::vio::{Reply, Request};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Some(request) = Request::read(bytes) {
        assert_eq!(Request::read(&request.bytes()), Some(request));
    }
    if let Some(reply) = Reply::read(bytes) {
        let _ = reply.created();
        assert_eq!(Reply::read(&reply.bytes()), Some(reply));
    }
});
