//! Any bytes as packets: of flows that are known or learned, as segments and datagrams at the doors of hosts, as messages of DNS.
#![no_main]

use stackline_dissect::conversation::dns;
use stackline_dissect::frame_locator::{Carries, FlowAt, FrameLocator};
use stackline_requests::{Builder, ObservedHost, SocketEvent};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let responder = "10.0.0.2:80".parse().expect("an address");
    let flow = |carries| {
        FrameLocator::new(&[FlowAt {
            responder,
            flow: 5,
            carries,
        }])
    };
    let carries = [
        Carries::Stream,
        Carries::Units { both_ways: true },
        Carries::Calls,
        Carries::Blasts { sealed: true },
    ];
    let mut frames: Vec<FrameLocator> = carries
        .into_iter()
        .map(flow)
        .chain([FrameLocator::learning()])
        .collect();
    let host = |name: &str, address: &str| ObservedHost {
        name: name.into(),
        addresses: vec![address.parse().expect("one")],
    };
    let mut builder =
        Builder::new(vec![host("a", "10.0.0.1"), host("b", "10.0.0.2")]).remembering_origins();
    let (mut rest, mut at_ns) = (bytes, 0);
    while let [what, length, more @ ..] = rest {
        let (piece, behind) = more.split_at(usize::from(*length).min(more.len()));
        rest = behind;
        at_ns += u64::from(*what) << 20;
        // Any bytes, or those of a segment or a datagram between the two hosts.
        let mut packet = piece.to_vec();
        if what & 3 > 0 && packet.len() > 24 {
            let protocol = if what & 3 == 1 { 6 } else { 17 };
            packet[..20].copy_from_slice(&[
                0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
            ]);
            packet[22..24].copy_from_slice(&if what & 4 == 0 { [0, 80] } else { [0, 53] });
        }
        for frames in &mut frames {
            let _ = frames.range(&packet, u32::from(what >> 4));
        }
        builder.packet(
            usize::from(what >> 3 & 1),
            what & 16 == 0,
            at_ns,
            &packet,
            packet.len() as u64,
        );
        builder.socket(
            at_ns,
            u64::from(what & 3),
            7,
            SocketEvent::Wrote(u64::from(*length)),
        );
        let _ = (dns::read_message(piece), builder.advance(at_ns));
    }
    for exchange in builder.finish().0 {
        let _ = stackline_requests::time_account::account_time(&exchange);
    }
});
