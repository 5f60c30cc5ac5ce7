//! Datagrams of QUIC, and packets that were opened, hold whatever bytes say: what is found of their exchanges is in order, and what is
//! held is bounded.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    stackline_walks::quic::fuzz_quic(bytes);
});
