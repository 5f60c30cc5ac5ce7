//! Any texts and bytes as the kernel writes them (`/proc`, tracefs, a page of its trace, `tcp_info`): they are read without harm.
#![no_main]

use stackline_monitor::fuzzing;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut parts = bytes.splitn(3, |byte| *byte == 0);
    let mut text = || String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
    let (layout, format) = (text(), text());
    fuzzing::text(&layout);
    fuzzing::text(&format);
    fuzzing::bytes(&layout, &format, parts.next().unwrap_or_default());
});
