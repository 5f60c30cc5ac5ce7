//! A log of keys and what both sides of a TLS connection say: any bytes of either are harmless, and what is held is bounded.
#![no_main]

use stackline_dissect::conversation::connection::Conversation;
use stackline_dissect::conversation::reassembly::MOST_HELD;
use stackline_dissect::conversation::tls::session_secrets::Secrets;
use stackline_events::unit_ids::EventStreamDirection;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some(end) = bytes.iter().position(|byte| *byte == 0) else {
        return;
    };
    let (log, mut rest) = (&bytes[..end], &bytes[end + 1..]);
    let secrets = Secrets::default();
    secrets.learn(&String::from_utf8_lossy(log));
    let mut conversation = Conversation::new(443).with_secrets(Some(secrets));
    let (mut found, mut at) = (Vec::new(), [0_u64; 2]);
    while let [what, high, low, more @ ..] = rest {
        let side = if what & 1 == 0 {
            EventStreamDirection::There
        } else {
            EventStreamDirection::Back
        };
        let length = usize::from(*high) << 8 | usize::from(*low);
        let (said, behind) = more.split_at(length.min(more.len()));
        rest = behind;
        let own = &mut at[side as usize];
        let unseen = if what & 2 == 0 {
            0
        } else {
            u64::from(what >> 2)
        };
        conversation.segment(side, *own, said, said.len() as u64 + unseen, &mut found);
        *own += said.len() as u64 + unseen;
        assert!(conversation.held() <= 2 * MOST_HELD + (2 << 20));
    }
    conversation.end(EventStreamDirection::There, at[0], &mut found);
    conversation.end(EventStreamDirection::Back, at[1], &mut found);
});
