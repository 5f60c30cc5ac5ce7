//! Peers that send anything: no panic, nothing beyond the grants, nothing unbounded, and honest peers are served.

use crate::blast::{BlastHeader, BlastPacketKind};
use crate::ikp::client::IkpClientState;
use crate::ikp::server::{self, IkpMoveProgress};
use crate::ikp::{Grants, IkpClient, IkpOptions, IkpOutput, IkpServer, client};
use alloc::vec::Vec;
use proptest::prelude::*;
use stackline_core::time::{Duration, Instant};

const GRANTS: Grants = Grants {
    readable: 3000,
    writable: 5000,
};
const KINDS: [BlastPacketKind; 9] = [
    BlastPacketKind::Data,
    BlastPacketKind::Answer,
    BlastPacketKind::Probe,
    BlastPacketKind::Send,
    BlastPacketKind::Reply,
    BlastPacketKind::Pending,
    BlastPacketKind::MoveFrom,
    BlastPacketKind::Refuse,
    BlastPacketKind::Close,
];

/// A header that is often nearly right.
fn header() -> impl Strategy<Value = BlastHeader> {
    let small = prop_oneof![0_u32..4, Just(1024), Just(3000), Just(5000), any::<u32>()];
    let start = prop_oneof![
        (0_u64..6000).prop_map(|at| 1 << 32 | at),
        0_u64..6000,
        Just(IkpOptions::v().fitted()).prop_map(|options| {
            crate::ikp::options::ClientParameters::from_options(&options).pack()
        }),
        any::<u64>()
    ];
    let index = prop_oneof![0_u16..8, Just(32), any::<u16>()];
    (
        0..KINDS.len(),
        any::<u8>(),
        0_u16..3,
        0_u32..9,
        small.clone(),
        start,
        index,
        small,
    )
        .prop_map(|(kind, flags, round, blast, length, start, index, check)| {
            let connection = 7 + u32::from(flags == 77);
            BlastHeader {
                kind: KINDS[kind],
                flags,
                round,
                connection,
                blast,
                length,
                start,
                index,
                check,
            }
        })
}

/// Packets: a header, what follows it, and how much time passes first.
fn packets() -> impl Strategy<Value = Vec<(BlastHeader, Vec<u8>, u64)>> {
    let length = prop_oneof![0_usize..40, Just(952), Just(1024), 0_usize..2000];
    let body = length.prop_map(|length| alloc::vec![0xa5; length]);
    prop::collection::vec((header(), body, 0_u64..30_000_000), 0..60)
}

/// The output of a machine now; far less than a hostile peer could request.
fn drain(mut poll: impl FnMut() -> Option<IkpOutput>) -> Vec<IkpOutput> {
    let said: Vec<_> = core::iter::from_fn(&mut poll).take(10_000).collect();
    assert!(said.len() < 10_000);
    said
}

proptest! {
    #[test]
    fn no_server_touches_a_client_beyond_its_grants(packets in packets()) {
        let mut client = IkpClient::new(&IkpOptions::v(), 7, 0);
        let mut now = Instant(1);
        client.send(now, 32, GRANTS).unwrap();
        drain(|| client.poll(now, 64));
        for (header, body, passed) in packets {
            now += Duration(passed);
            if client.state() != IkpClientState::Sending {
                break;
            }
            for (at, bytes) in client.expected().take(100) {
                prop_assert!(u64::from(at) + u64::from(bytes) <= 5000);
            }
            match client.handle(now, &header, &body, body.len()) {
                client::IkpClientArrival::Place(at) => prop_assert!(at as usize + body.len() <= 5000),
                client::IkpClientArrival::Reply { message, offset, data } => {
                    prop_assert_eq!((message + data) as usize, body.len());
                    prop_assert!(u64::from(offset) + u64::from(data) <= 5000);
                }
                client::IkpClientArrival::Nothing | client::IkpClientArrival::Refused => {}
            }
            for output in drain(|| client.poll(now, 64)) {
                if let IkpOutput::Run(run) = output {
                    let (at, bytes) = run.span(run.count() - 1);
                    prop_assert!(u64::from(at) + u64::from(bytes) <= 3000);
                }
            }
            if let Some((at, _)) = client.deadline(now) {
                prop_assert!(at > now, "it would turn in place");
            }
        }
    }

    #[test]
    fn no_client_makes_a_server_exceed_its_requests(packets in packets(), to: bool) {
        let mut server = IkpServer::new(&IkpOptions::v(), 7);
        let mut honest = IkpClient::new(&IkpOptions::v(), 7, 0);
        let mut now = Instant(1);
        honest.send(now, 32, GRANTS).unwrap();
        let Some(IkpOutput::Message(send)) = honest.poll(now, 1) else { panic!() };
        let bytes = 32 + honest.carried() as usize;
        prop_assert!(matches!(server.handle(now, &send, &[], bytes), server::IkpServerArrival::Message(_)));
        if to { server.move_to(1, 100, 4000).unwrap() } else { server.move_from(now, 1, 100, 2500).unwrap() }
        for (header, body, passed) in packets {
            now += Duration(passed);
            for (at, bytes) in server.expected().take(100) {
                prop_assert!(u64::from(at) + u64::from(bytes) <= 2500);
            }
            match server.handle(now, &header, &body, body.len()) {
                server::IkpServerArrival::Place(at) => prop_assert!(at as usize + body.len() <= 2500),
                server::IkpServerArrival::Message(message) => {
                    prop_assert_eq!((message.bytes + message.carried) as usize, body.len());
                    prop_assert!(message.room <= 1056);
                }
                server::IkpServerArrival::Nothing | server::IkpServerArrival::Refused => {}
            }
            for output in drain(|| server.poll(now, 64)) {
                if let IkpOutput::Run(run) = output {
                    let (at, bytes) = run.span(run.count() - 1);
                    prop_assert!(at >= 100 && at + bytes <= 4100);
                }
            }
            if let Some((at, _)) = server.deadline(now) {
                prop_assert!(at > now, "it would turn in place");
            }
            let open = server.open().unwrap_or(1);
            prop_assert!(open == 1 || server.progress(1) == IkpMoveProgress::Gone);
        }
    }

    #[test]
    fn honest_clients_are_served_among_strangers(packets in packets()) {
        let mut server = IkpServer::new(&IkpOptions::v(), 9);
        let mut client = IkpClient::new(&IkpOptions::v(), 9, 0);
        let mut now = Instant(1);
        client.send(now, 32, GRANTS).unwrap();
        for (header, body, passed) in packets {
            // Of other connections: 7 and 8.
            now += Duration(passed);
            prop_assert_eq!(server.handle(now, &header, &body, body.len()), server::IkpServerArrival::Nothing);
            prop_assert_eq!(client.handle(now, &header, &body, body.len()), client::IkpClientArrival::Nothing);
        }
        let Some(IkpOutput::Message(send)) = client.poll(now, 1) else { panic!() };
        let bytes = 32 + client.carried() as usize;
        prop_assert!(matches!(server.handle(now, &send, &[], bytes), server::IkpServerArrival::Message(_)));
        server.reply(now, 1, 32, 0, 0).unwrap();
        let Some(IkpOutput::Message(reply)) = server.poll(now, 1) else { panic!() };
        let replied = matches!(client.handle(now, &reply, &[0; 32], 32), client::IkpClientArrival::Reply { message: 32, .. });
        prop_assert!(replied);
    }
}
