//! Two sides of a connection say whatever bytes say, and a capture misses some of it: what is found of their exchanges is in order,
//! within what was said, and of bounded size.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    stackline_walks::conversation::fuzz_conversation(bytes);
});
