//! Both ends of the display's compact protocol, and the agent of a client, hear whatever bytes say.
#![no_main]

use stackline_display::agent::DisplayClientAgent;
use stackline_display::ngp::{Far, Near};
use stackline_display::symbols::DisplayClientLimits;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((how, bytes)) = bytes.split_first() else {
        return;
    };
    let limits = DisplayClientLimits {
        bytes: 1 << 16,
        symbols: 64,
        windows: 2,
    };
    let (mut far, mut near) = (Far::default(), Near::new(&[7; 16], Default::default()));
    let mut agent = DisplayClientAgent::new(limits, Vec::new());
    // A right greeting first, or not.
    if how & 1 == 1 {
        let _ = far.receive(&near.output(), |_| Default::default());
        let _ = near.receive(&far.output());
    }
    for piece in bytes.chunks(1 + usize::from(how >> 1)) {
        let gone =
            far.receive(piece, |_| Default::default()).is_err() && near.receive(piece).is_err();
        let _ = (far.output(), near.output());
        if agent.from_client(piece).is_err() || agent.from_display(piece).is_err() || gone {
            return;
        }
    }
});
