//! Lines of FTP, as commands and as replies: nothing panics, and what was read is written as what reads the same.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = stackline_walks::ftp::fuzz_ftp(bytes);
});
