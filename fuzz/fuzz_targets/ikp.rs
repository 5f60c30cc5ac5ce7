//! A client and a server of V's message passing, and whatever bytes say happens between them: strangers change nothing, and
//! who knows the client neither panics a machine nor reaches a byte that was not granted.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| stackline_walks::ikp::packets(bytes));
