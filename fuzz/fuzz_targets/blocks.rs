//! Any bytes as messages of the block server: reading never panics, what is one is written as it was read, and neither the
//! master nor a disk server fails on a sequence of them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stackline_blocks::server::Write;
use stackline_blocks::wire::handshake::BlockPeerRole;
use stackline_blocks::wire::message::{Message, check_message_bounds};
use stackline_blocks::{DiskServerMachine, Master};
use stackline_blockserver::reassembly::BlockReassembly;
use stackline_core::time::Instant;

fuzz_target!(|bytes: &[u8]| {
    let mut master = Master::default();
    let mut server: DiskServerMachine<()> = DiskServerMachine::new(0, 2, 1 << 20);
    for (connection, role) in [
        (1, BlockPeerRole::Client),
        (2, BlockPeerRole::Loader),
        (3, BlockPeerRole::Server),
    ] {
        let _ = master.connected(connection, role, u128::from(connection));
    }
    let _ = server.attach(1, 1, None);
    let mut rest = bytes;
    let mut now = Instant(0);
    let mut under_way = None;
    while let [connection, length, kind, more @ ..] = rest {
        let (body, next) = more.split_at(usize::from(*length).min(more.len()));
        rest = next;
        now.0 += 1_000_000;
        let Ok(message) = Message::read(*kind, body) else {
            continue;
        };
        assert_eq!(&message.bytes()[5..], body);
        if check_message_bounds(&message).is_err() {
            continue;
        }
        if let Message::Requests(list) = message.clone() {
            let _ = server.requests(now, now, list);
            if let Some(unit) = under_way.take() {
                if server.is_superseded(1, unit) {
                    server.cut(1, unit);
                }
            }
            let mut woken = Default::default();
            while let Some(read) = server.next_read(now, u16::from(*connection) % 2, &mut woken) {
                let _ = server.read_done(now, read.spot, Ok(()));
            }
            // What the transport takes, what it has no room for, and what is cut off.
            for at in 0..u64::from(*connection) {
                match server.next_write(now, 1, &mut woken) {
                    Some(Write::Block(head, ())) if at % 3 == 0 => {
                        server.write_done(now, 1, head.unit)
                    }
                    Some(Write::Block(head, ())) if at % 3 == 1 => under_way = Some(head.unit),
                    Some(_) => {}
                    None => break,
                }
            }
            server.not_begun(1, under_way);
        }
        let _ = master.handle(now, u64::from(connection % 4), message);
    }
    let mut reassembly = BlockReassembly::new(bytes.first().is_some_and(|first| first % 2 == 1));
    for datagram in bytes.chunks(64) {
        let _ = reassembly.datagram(datagram);
    }
});
