//! Any bytes from a server that is no part of the run: they are an answer or an error, and nothing hangs or grows.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = stackline_live::fuzzing::far_end(bytes);
    let _ = stackline_live::fuzzing::far_end_in_datagrams(bytes);
});
