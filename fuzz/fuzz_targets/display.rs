//! A display and a client that sends whatever bytes say: it panics nowhere, and takes no more memory than it may.
#![no_main]

use stackline_display::machine::DisplayMachine;
use stackline_display::protocol::{
    DisplayAnswer, DisplayInput, DisplayRequest, VERSION, write_request,
};
use stackline_display::symbols::DisplayClientLimits;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let limits = DisplayClientLimits {
        bytes: 1 << 16,
        symbols: 64,
        windows: 2,
    };
    let mut display = DisplayMachine::new(limits, Vec::new());
    let client = display.connect();
    let mut hello = Vec::new();
    write_request(
        &mut hello,
        &DisplayRequest::Hello {
            version: VERSION,
            token: b"",
        },
        false,
    );
    let _ = display.receive(client, &hello, &mut || 0);
    for piece in bytes.chunks(97) {
        if display.receive(client, piece, &mut || 0).is_err() {
            return;
        }
        assert!(display.memory(client) <= 1 << 16);
        display.input(client, 1, DisplayInput::Press(5, 5));
        let out = display.output(client);
        let mut rest = out.as_slice();
        while let Some((_, length)) =
            DisplayAnswer::take(rest).expect("what a display says is well formed")
        {
            rest = &rest[length..];
        }
    }
    display.draw(client, 1);
});
