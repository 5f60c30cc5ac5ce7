//! The ring of received frames: it wraps, it is full, it wakes, and waits for it end.

use super::*;
use std::sync::atomic::{AtomicU32, Ordering};

in_rooms! {
    the_ring_wraps
    frames_beyond_a_full_ring_are_lost
    a_frame_is_there_when_it_wakes
    a_frame_without_the_wake_flag_is_still_received
    waits_end
}

fn the_ring_wraps() {
    let small = FrameCarrierOptions {
        receive_buffer: 0,
        ..options()
    };
    let (mut left, mut right) = pair("near", "far", NUMBER, small);
    let slots = right.rx_ring.ring().slots();
    assert!((LEAST_SLOTS..2 * LEAST_SLOTS).contains(&slots));
    // Never a divisor of the ring, so that every slot is the first and the last of a send once.
    for round in 0..40 {
        let packets = 97 + round % 3;
        crosses(
            &mut left,
            &mut right,
            packets,
            &bytes(packets * 100 + round),
            100,
        );
    }
    assert_eq!(right.counters().lost, 0);
}

fn frames_beyond_a_full_ring_are_lost() {
    let small = FrameCarrierOptions {
        receive_buffer: 0,
        ..options()
    };
    let (mut left, mut right) = pair("near", "far", NUMBER, small);
    let packets = right.rx_ring.ring().slots() + 150;
    // The last frame received holds one slot.
    right.release();
    right.rx_ring.clear_wakes();
    let heads = vec![head(BlastPacketKind::Data, NUMBER); packets];
    let data = bytes(packets * 10);
    assert_eq!(
        left.send(PacketRun {
            head: HEAD,
            heads: &heads,
            payload: &data,
            each: 10
        })
        .unwrap(),
        packets
    );
    // The last frame wakes: when it is here, all are, or were.
    let (wakes, end) = (
        packets.div_ceil(WAKE_EVERY),
        Instant::now() + Duration::from_secs(120),
    );
    while right.rx_ring.wakes() < wakes && Instant::now() < end {}
    assert_eq!(right.rx_ring.wakes(), wakes);
    let mut came = 0;
    while came + 150 < packets {
        let n = right.receive(HEAD, &mut [], &[], CarrierWait::No).unwrap();
        assert!((1..=MOST).contains(&n));
        came += n;
    }
    assert_eq!(
        right
            .receive(
                HEAD,
                &mut [],
                &[],
                CarrierWait::Block(Duration::from_millis(1))
            )
            .unwrap(),
        0
    );
    assert_eq!((came + 150, right.counters().lost), (packets, 150));
    crosses(&mut left, &mut right, 100, &data[..1000], 10);
}

fn a_frame_is_there_when_it_wakes() {
    const FRAMES: u32 = 500;
    let (mut left, mut right) = veth();
    right.release();
    right.rx_ring.clear_wakes();
    let (ready, mut early) = (AtomicU32::new(0), 0);
    thread::scope(|scope| {
        // From another thread, so that this one checks while the kernel is between the two sockets.
        scope.spawn(|| {
            for frame in 1..=FRAMES {
                while ready.load(Ordering::Acquire) < frame {
                    thread::yield_now();
                }
                say(&mut left, BlastPacketKind::Data, NUMBER, b"");
            }
        });
        for frame in 1..=FRAMES {
            ready.store(frame, Ordering::Release);
            while right.rx_ring.wakes() == 0 {
                std::hint::spin_loop();
            }
            if right.rx_ring.take().is_none() {
                early += 1;
                while right.rx_ring.take().is_none() {}
            }
            right.rx_ring.release();
            right.rx_ring.clear_wakes();
        }
    });
    assert_eq!(early, 0, "frames that woke before they were there");
}

fn a_frame_without_the_wake_flag_is_still_received() {
    let (left, mut right) = veth();
    let mut unmarked = frame(left.local(), right.local(), NUMBER, b"asleep");
    unmarked[format::FLAGS_AT] = 0;
    forger("near").send(&unmarked).unwrap();
    assert_eq!(hear(&mut right).1, b"asleep");
}

fn waits_end() {
    let (mut left, _right) = veth();
    for wait in [
        CarrierWait::No,
        CarrierWait::Block(Duration::from_millis(5)),
        CarrierWait::Spin(Duration::from_micros(100)),
    ] {
        let start = Instant::now();
        assert_eq!(left.receive(HEAD, &mut [], &[], wait).unwrap(), 0);
        let least = if let CarrierWait::Block(time) | CarrierWait::Spin(time) = wait {
            time
        } else {
            Duration::ZERO
        };
        assert!(start.elapsed() >= least, "{wait:?}");
    }
}
