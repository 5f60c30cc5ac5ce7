//! The law in virtual time: one bottleneck, senders of blasts and TCP connections across it.

mod across;
mod alone;
mod beside;
mod blasts;
mod link;
mod tcp;

use crate::blast::BlastPacing;
use across::{Across, Flow};
use alloc::boxed::Box;
use alloc::vec::Vec;
use blasts::Blasts;
use stackline_core::time::Instant;
use tcp::Tcp;

/// Of a full packet, what is data: 1440 of 1500 bytes, or 1448 of TCP's.
const DATA_SHARE: f64 = 0.96;

fn ours(now: Instant) -> Flow {
    Flow::Blasts(Box::new(Blasts::new(now, BlastPacing::Auto, u64::MAX / 2)))
}

fn theirs(now: Instant) -> Flow {
    Flow::Tcp(Box::new(Tcp::new(now)))
}

/// What each flow gets of the link in so many seconds, as shares.
fn shares(across: &mut Across, seconds: f64) -> Vec<f64> {
    let all = |across: &Across| -> Vec<u64> {
        (0..across.flows.len()).map(|n| across.useful(n)).collect()
    };
    let before = all(across);
    across.run(seconds);
    let whole = across.link.rate / 8.0 * seconds * DATA_SHARE;
    before
        .iter()
        .zip(all(across))
        .map(|(before, after)| (after - before) as f64 / whole)
        .collect()
}
