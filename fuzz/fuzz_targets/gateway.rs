//! What a stranger asks of the gateway: paths and ranges of any form are read without harm, and a part lies within its set.
#![no_main]

libfuzzer_sys::fuzz_target!(|asked: (&str, Option<&str>, u64)| {
    let (path, range, length) = asked;
    stackline_blockserver::gateway::fuzzing::request(path, range, length);
});
