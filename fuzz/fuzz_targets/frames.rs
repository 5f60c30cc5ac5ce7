//! Whatever bytes a host sends: the emulator reads, marks, doubles and cuts them without harm.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| stackline_emu::engine::fuzzing::frame(bytes));
