//! Packets handled as rows and one by one: the receivers never differ.

use crate::blast::{
    BlastArrival, BlastOptions, BlastPacketRun, BlastReceiver, BlastSender, BlastStrategy,
};
use alloc::vec::Vec;
use proptest::prelude::*;
use stackline_core::time::{Duration, Instant};

/// Packets `from..to` of a run, as a driver that receives them together hands them over.
fn hand_over(
    receiver: &mut BlastReceiver,
    now: Instant,
    run: &BlastPacketRun,
    from: u32,
    to: u32,
) -> (Vec<u64>, u32) {
    let mut places = Vec::new();
    let mut rows = 0;
    let mut at = from;
    while at < to {
        let row = if run.requests_ack {
            to.min(run.count - 1)
        } else {
            to
        };
        if let Some(position) = (row > at)
            .then(|| receiver.handle_row(now, &run.header(at, 0), row - at))
            .flatten()
        {
            places.extend((at..row).map(|n| position + run.span(n).0 - run.span(at).0));
            (rows, at) = (rows + 1, row);
        } else {
            places.extend(one(receiver, now, run, at));
            at += 1;
        }
    }
    (places, rows)
}

fn one(receiver: &mut BlastReceiver, now: Instant, run: &BlastPacketRun, n: u32) -> Option<u64> {
    match receiver.handle(now, &run.header(n, 0), run.span(n).1 as usize) {
        BlastArrival::Place { position, .. } => Some(position),
        BlastArrival::Nothing => None,
        BlastArrival::Refused => panic!("what the sender sends is never refused"),
    }
}

proptest! {
    #[test]
    fn rows_equal_their_single_packets(
        strategy in prop::sample::select(&[BlastStrategy::Full, BlastStrategy::FullNak, BlastStrategy::Partial, BlastStrategy::Selective][..]),
        lengths in prop::collection::vec(1_u64..9000, 1..5),
        fates in prop::collection::vec((0_u32..30, 0_u32..30, any::<bool>(), 0_u64..3), 1..60),
    ) {
        let options = BlastOptions { flight: 3, ..BlastOptions::blast(strategy, 100, 2500) };
        let mut sender = BlastSender::new(&options, 7, options.buffer);
        let (mut rows, mut singles) = (BlastReceiver::new(&options, 7), BlastReceiver::new(&options, 7));
        lengths.iter().for_each(|length| sender.send(*length));
        let mut now = Instant(1_000_000);
        for (from, to, again, later) in fates {
            now += Duration(1000 * later);
            let Some(run) = sender.poll(now, 30) else {
                now = sender.deadline(now).map_or(now, |(at, _)| now.max(at));
                continue;
            };
            let (from, to) = (from.min(run.count), to.min(run.count));
            for _ in 0..=u32::from(again) {
                let places: Vec<u64> = (from..to).filter_map(|n| one(&mut singles, now, &run, n)).collect();
                prop_assert_eq!(hand_over(&mut rows, now, &run, from, to).0, places);
                prop_assert_eq!(rows.counters(), singles.counters());
                prop_assert_eq!(rows.deadline(now), singles.deadline(now));
                let expected = |receiver: &BlastReceiver| receiver.expected().take(100).collect::<Vec<_>>();
                prop_assert_eq!(expected(&rows), expected(&singles));
            }
            while let Some((header, body)) = singles.poll(now) {
                prop_assert_eq!(rows.poll(now), Some((header, body.clone())));
                sender.handle(now, &header, &body);
            }
            prop_assert_eq!(rows.poll(now), None);
        }
    }
}

#[test]
fn most_of_a_long_blast_is_rows() {
    let options = BlastOptions::blast(BlastStrategy::Selective, 100, 40_000);
    let (mut sender, mut receiver) = (
        BlastSender::new(&options, 7, options.buffer),
        BlastReceiver::new(&options, 7),
    );
    sender.send(40_000);
    let mut taken = 0;
    while let Some(run) = sender.poll(Instant(1_000_000), 45) {
        let (places, rows) = hand_over(&mut receiver, Instant(1_000_000), &run, 0, run.count);
        assert_eq!(places.len() as u32, run.count);
        taken += rows;
    }
    assert_eq!(
        (taken, receiver.delivered(), receiver.counters().packets),
        (9, 40_000, 400)
    );
}
