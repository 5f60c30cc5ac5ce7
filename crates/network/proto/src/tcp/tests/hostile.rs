//! Segments that no honest peer sends.

use crate::tcp::segment::{Syn, Timestamps};
use crate::tcp::{Recovery, TcpConnection, TcpFlags, TcpOptions, TcpReceived, TcpSegment};
use proptest::prelude::*;
use stackline_core::time::Instant;

/// Numbers near those that mean something, or anywhere.
fn number(near: u32) -> impl Strategy<Value = u32> {
    prop_oneof![4 => (0_u32..20_000).prop_map(move |n| near.wrapping_add(n).wrapping_sub(5000)), 1 => any::<u32>()]
}

fn segment() -> impl Strategy<Value = TcpSegment> {
    let options = (
        any::<u16>(),
        proptest::option::of(any::<u8>()),
        any::<bool>(),
    );
    let stamps = proptest::option::of((any::<u32>(), any::<u32>()));
    let blocks = proptest::collection::vec((number(1000), number(1000)), 0..4);
    let fields = (
        number(9000),
        number(1000),
        0_u8..64,
        any::<u16>(),
        prop_oneof![Just(0_u32), 0_u32..3000, any::<u32>()],
    );
    (fields, options, stamps, blocks).prop_map(
        |((sequence, acknowledged, flags, window, length), (mss, scale, sack), stamps, blocks)| {
            let syn = Syn {
                mss,
                window_scale: scale,
                sack_permitted: sack,
            };
            let timestamps = stamps.map(|(value, echo)| Timestamps { value, echo });
            let flags = TcpFlags(flags).with(if length % 3 > 0 {
                TcpFlags::ACK
            } else {
                TcpFlags(0)
            });
            // No packet is longer than that.
            let length = length % 65_000;
            let mut segment = TcpSegment {
                sequence,
                acknowledged,
                flags,
                window,
                length,
                syn,
                timestamps,
                ..TcpSegment::default()
            };
            for (start, end) in blocks {
                segment.add_block(start, end);
            }
            segment
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn nothing_breaks_and_nothing_is_delivered_that_was_not_sent(
        segments in proptest::collection::vec((segment(), 0_u64..300_000_000), 1..80),
        opened: bool,
        listens: bool,
        counts: bool,
        sent in 0_u64..100_000,
    ) {
        let mut now = Instant(1_000_000_000);
        let recovery = if counts { Recovery::Reno } else { Recovery::Linux };
        let options = TcpOptions { recovery, ..TcpOptions::default() };
        let mut end = if listens {
            TcpConnection::listen(now, options, 80, 1000)
        } else {
            TcpConnection::connect(now, options, (1, 2), 1000)
        };
        end.poll(now);
        if opened {
            let syn = Syn { mss: 1460, window_scale: Some(7), sack_permitted: true };
            let flags = if listens { TcpFlags::SYN } else { TcpFlags::SYN.with(TcpFlags::ACK) };
            end.handle(now, &TcpSegment { sequence: 9000, acknowledged: 1001, flags, syn, window: 1000, ..TcpSegment::default() });
            end.poll(now);
            end.handle(now, &TcpSegment { sequence: 9001, acknowledged: 1001, flags: TcpFlags::ACK, window: 1000, ..TcpSegment::default() });
        }
        end.send(now, sent);
        let (mut could, mut got) = (0_u64, 0_u64);
        for (segment, wait) in segments {
            could += u64::from(segment.length);
            end.handle(now, &segment);
            for _ in 0..1000 {
                if end.poll(now).is_none() {
                    break;
                }
            }
            end.check();
            if let TcpReceived::Bytes(n) = end.receive(now, 1000) {
                got += n;
            }
            prop_assert!(got + end.readable() <= could);
            now = Instant(now.0 + wait);
        }
    }
}
