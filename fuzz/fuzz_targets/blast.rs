//! Two ends of a blast connection, and whatever bytes say happens between them: strangers change nothing, and who knows the
//! connection neither panics a machine nor makes it deliver what never came.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| stackline_walks::blast::packets(bytes));
