//! Packets and events of sockets with any content, at any time.

use super::*;
use proptest::prelude::*;
use proptest::{collection, sample};

/// Bytes of both sides that begin as those of some protocol, or are any.
fn said() -> impl Strategy<Value = Vec<u8>> {
    let words: Vec<Vec<u8>> = vec![
        GET.into(),
        ANSWER.into(),
        b"*1\r\n$4\r\nPING\r\n".to_vec(),
        b"+PONG\r\n".to_vec(),
    ];
    prop_oneof![sample::select(words), collection::vec(any::<u8>(), 0..40)]
}

proptest! {
    #[test]
    fn any_packets_at_any_time_are_harmless(
        packets in collection::vec((any::<u64>(), any::<u8>(), any::<u32>(), said(), any::<[u16; 2]>()), 0..80),
    ) {
        let mut path = Path::new();
        path.builder = path.builder.remembering_origins();
        for (at_ns, what, sequence, data, [window, bytes]) in packets {
            let bit = |bit: u8| what >> bit & 1 == 1;
            // Near each other, or anywhere.
            let (at_ns, sequence) = if bit(0) { (at_ns % (1 << 32), sequence % (1 << 12)) } else { (at_ns, sequence) };
            let direction = usize::from(bit(1));
            let flags = [("S", 2), ("F", 3), ("R", 4)].map(|(flag, place)| if bit(place) && bit(5) { flag } else { "" });
            let length = data.len() as u64 + if bit(6) { u64::from(bytes) } else { 0 };
            let segment = DissectedSegment {
                sequence,
                window,
                selectively_acknowledged: None,
                window_scale: bit(2).then_some(bytes as u8),
                acknowledged: bit(7).then_some(sequence.wrapping_add(window.into())),
                ..path.segment(direction, 0, length, &flags.concat())
            };
            path.builder.segment(usize::from(bit(6)), bit(5), at_ns, &segment, &data);
            let ends = [(address(CLIENT), address(SERVER)), (address(SERVER), address(CLIENT))][direction];
            let event = match what % 5 {
                0 => SocketEvent::Opened(ends.0, ends.1),
                1 => SocketEvent::Found(ends.0, ends.1),
                2 => SocketEvent::Wrote(at_ns),
                3 => SocketEvent::Read(window.into()),
                _ => SocketEvent::Closed,
            };
            path.builder.socket(at_ns, direction as u64, 7, event);
            if bit(3) {
                path.builder.advance(at_ns);
            }
        }
        let names = ["a".to_owned(), "b".to_owned()];
        for exchange in path.finish() {
            let _ = account_time(&exchange);
            let known = crate::exchange_events::ExchangeContext::default();
            crate::exchange_events::emit_exchange(&exchange, &known, &names, &mut |_| ());
        }
    }
}
