//! A display and a client that sends whatever bytes say: it panics nowhere, and takes no more memory than it may.
#![no_main]

use stackline_display::machine::Display;
use stackline_display::protocol::{Answer, Input, Request, VERSION, put};
use stackline_display::symbols::Limits;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let limits = Limits {
        bytes: 1 << 16,
        symbols: 64,
        windows: 2,
    };
    let mut display = Display::new(limits, Vec::new());
    let client = display.connect();
    let mut hello = Vec::new();
    put(
        &mut hello,
        &Request::Hello {
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
        display.input(client, 1, Input::Press(5, 5));
        let out = display.output(client);
        let mut rest = out.as_slice();
        while let Some((_, length)) =
            Answer::take(rest).expect("what a display says is well formed")
        {
            rest = &rest[length..];
        }
    }
    display.draw(client, 1);
});
