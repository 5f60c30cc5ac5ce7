//! A peer of OSI's file transfer says what bytes say, as TPDUs or as one TSDU: nothing panics, every call takes bytes or wants more, and data
//! units are as long as they said.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = stackline_walks::ftam::fuzz_ftam(bytes);
});
