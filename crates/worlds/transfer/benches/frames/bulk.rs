//! Bulk by a channel over frames: reliable, from true memory to true memory.

use crate::flood::{pin, processor_time};
use crate::{Failure, median};
use stackline_proto::blast::BlastStrategy;
use stackline_transfer::frames::{self, FrameCarrier};
use stackline_transfer::{BlastChannel, BlastChannelOptions};
use std::thread;
use std::time::Instant;

/// Bytes of a transfer.
const BYTES: usize = 256 << 20;

/// What came of a transfer.
struct Bulk {
    seconds: f64,
    packets: u64,
    repeated: u64,
    sender: f64,
    receiver: f64,
}

/// Prints what selective blasts over frames reach.
pub(crate) fn row(rounds: usize) -> Result<(), Failure> {
    let data: Vec<u8> = (0..BYTES).map(|at| (at / 7 + at) as u8).collect();
    let mut into = vec![0; BYTES];
    let bulks = (0..rounds)
        .map(|_| bulk(&data, &mut into))
        .collect::<Result<Vec<_>, _>>()?;
    let of = |figure: fn(&Bulk) -> f64| median(bulks.iter().map(figure).collect());
    let gib = BYTES as f64 / f64::from(1 << 30);
    println!(
        "a channel, selective blasts: {:.0} frames/s, {:.2} Gbit/s, {:.2} % repeated, CPU s/GiB {:.2} tx, {:.2} rx\n",
        of(|bulk| bulk.packets as f64 / bulk.seconds),
        of(|bulk| BYTES as f64 * 8e-9 / bulk.seconds),
        of(|bulk| bulk.repeated as f64 / bulk.packets as f64 * 100.0),
        of(|bulk| bulk.sender) / gib,
        of(|bulk| bulk.receiver) / gib,
    );
    Ok(())
}

fn bulk(data: &[u8], into: &mut [u8]) -> Result<Bulk, Failure> {
    let options = &BlastChannelOptions::new(BlastStrategy::Selective);
    into.fill(0);
    let far = FrameCarrier::listen("far", None, frames::FrameCarrierOptions::default())?;
    thread::scope(|scope| {
        let receiver = scope.spawn(|| -> Result<f64, Failure> {
            pin(1)?;
            let mut channel = BlastChannel::answer(far, options)?;
            let before = processor_time()?;
            let came = channel.receive_into(into)?;
            let after = processor_time()?;
            channel.receive_into(&mut [0])?;
            if came == data.len() && *into == *data {
                Ok(after - before)
            } else {
                Err("the bytes are others".into())
            }
        });
        let sender = scope.spawn(|| -> Result<Bulk, Failure> {
            pin(0)?;
            let mut channel = BlastChannel::connect_over(
                FrameCarrier::connect("near", frames::FrameCarrierOptions::default())?,
                options,
            )?;
            let (before, begin) = (processor_time()?, Instant::now());
            channel.send(data)?;
            let (seconds, sender) = (begin.elapsed().as_secs_f64(), processor_time()? - before);
            let sent = channel.facts().connection.sent;
            channel.close()?;
            Ok(Bulk {
                seconds,
                packets: sent.packets,
                repeated: sent.repeated,
                sender,
                receiver: 0.0,
            })
        });
        let bulk = sender.join().map_err(|_| "the sender panicked")??;
        let receiver = receiver.join().map_err(|_| "the receiver panicked")??;
        Ok(Bulk { receiver, ..bulk })
    })
}
