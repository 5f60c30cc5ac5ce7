//! An end of a PUP connection that hears whatever bytes say, with checksums that are right: it never says more than it hears and timers
//! make it, keeps no more than it has room for, and always comes to an end.
#![no_main]

use stackline_core::time::{Duration, Instant};
use stackline_proto::papers::pup::{PupConnection, PupOptions, PupPacket, PupPort, PupReceived};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = PupPacket::read(bytes);
    let options = PupOptions {
        receive_buffer: 4096,
        tries: 3,
        ..PupOptions::default()
    };
    let (own, to) = (
        PupPort {
            socket: 1,
            ..PupPort::default()
        },
        PupPort {
            socket: 2,
            ..PupPort::default()
        },
    );
    let mut now = Instant(0);
    let mut end = PupConnection::connect(now, options, 7, own, to);
    end.send(&[0; 3000]);
    end.mark(1);
    end.interrupt(2);
    while end.poll(now).is_some() {}
    let mut read = 0;
    for piece in bytes.chunks(24) {
        let (head, data) = piece.split_at(piece.len().min(6));
        let mut packet = PupPacket {
            kind: stackline_proto::papers::pup::PupPacketKind::Data,
            id: 7,
            to: own,
            from: to,
            data,
        }
        .bytes(false);
        if let [kind, steps, id @ ..] = head {
            packet[3] = *kind;
            now = now + Duration(u64::from(*steps) * 40_000_000);
            let near = id
                .iter()
                .fold(0_u32, |all, byte| all << 3 ^ u32::from(*byte));
            packet[4..8].copy_from_slice(&near.to_be_bytes());
        }
        if let Ok(packet) = PupPacket::read(&packet) {
            end.handle(now, &packet);
        }
        let mut said = 0;
        while end.poll(now).is_some() {
            said += 1;
            assert!(said < 4000, "it never stops");
        }
        if let PupReceived::Data(data) = end.receive(100) {
            read += data.len();
        }
    }
    // What nobody has read is no more than the buffer holds.
    let mut unread = 0;
    loop {
        match end.receive(4096) {
            PupReceived::Data(data) => unread += data.len(),
            PupReceived::Mark(_) => {}
            PupReceived::End | PupReceived::Nothing => break,
        }
    }
    assert!(unread <= 4096);
    assert!(read + unread <= bytes.len());
    end.end();
    for _ in 0..200 {
        while end.poll(now).is_some() {}
        let Some(at) = end.deadline() else { break };
        now = now.max(at);
    }
    assert!(end.is_closed(), "{:?}", end.state());
});
