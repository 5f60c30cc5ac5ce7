//! Any bytes as messages of V's block I/O: what is one is written as it was read.
#![no_main]

use stackline_proto::papers::vio::{VioReply, VioRequest};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Some(request) = VioRequest::read(bytes) {
        assert_eq!(VioRequest::read(&request.bytes()), Some(request));
    }
    if let Some(reply) = VioReply::read(bytes) {
        let _ = reply.created();
        assert_eq!(VioReply::read(&reply.bytes()), Some(reply));
    }
});
