//! Any bytes from the peer of a byte stream: whole data units are counted, everything else is an error, nothing hangs.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((unit, bytes)) = bytes.split_first() else {
        return;
    };
    let unit = usize::from(*unit) + 1;
    if let Ok(units) = stackline_live::fuzzing::stream(bytes, unit) {
        assert!(units as usize * unit <= bytes.len());
    }
});
