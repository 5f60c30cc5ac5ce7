//! Plays a range of blocks: requests them ahead, holds some, and gives them out in order at a steady pace (smooth playout; Tierney et al.
//! 1996, section 2.1). `stackline_blocks::playout` decides which block is due when.

use crate::client::{BlockClient, BlockClientEvent, OpenSet, ReceivedBlock};
use crate::server::now;
use stackline_blocks::limits;
pub use stackline_blocks::playout::MissingBlockPolicy;
use stackline_blocks::playout::{Playout, PlayoutStep};
use stackline_blocks::wire::message::Why;
use stackline_core::error::{Error, Result};
use stackline_core::time::Duration;
use std::ops::Range;
use std::time::Instant;

/// The silence after which a block that is waited for is given up.
const SILENCE: std::time::Duration = std::time::Duration::from_secs(30);
/// How often to check whether more blocks have to be requested (ns).
const ASK: Duration = Duration(100_000_000);

/// The options of a playout.
#[derive(Clone, Debug)]
pub struct BlockPlayoutOptions {
    /// The numbers of the blocks.
    pub numbers: Range<u64>,
    /// Playing begins when this many blocks are held; twice as many are requested ahead.
    pub depth: usize,
    /// The time between two blocks.
    pub interval: Duration,
    /// What happens when a block is due and has not come.
    pub missing: MissingBlockPolicy,
}

/// Counts of blocks that were not there in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockPlayoutCounts {
    /// Blocks that came after their turn.
    pub late: u64,
    /// Blocks that were skipped.
    pub skipped: u64,
    /// How often playing stopped to wait for a block.
    pub stalls: u64,
}

/// Calls `give` with each block when it is due, or without a block if it is skipped.
///
/// # Errors
/// If nothing can be requested, a block that is waited for cannot be had or does not come for half a minute, or the error of `give`.
pub fn play(
    client: &BlockClient,
    set: &OpenSet,
    pace: &BlockPlayoutOptions,
    give: impl FnMut(u64, Option<Box<ReceivedBlock>>) -> Result<()>,
) -> Result<BlockPlayoutCounts> {
    let result = play_all(client, set, pace, give);
    if result.is_err() || client.waiting(set.id) > 0 {
        // The rest is not wanted any more. If this fails, nothing can be requested, so nothing comes either.
        let _ = client.withdraw(set.id);
    }
    result
}

fn cannot_be_read(set: &OpenSet, number: u64, why: Why) -> Error {
    let name = &set.about.name;
    Error::measurement(format!(
        "cannot read block {number} of {name}: {}",
        why.words()
    ))
    .hint("skip missing blocks, or check `stackline blocks list`")
}

/// The error if a block that is waited for does not come.
fn nothing_comes(awaited: &str, comes: &str, set: &OpenSet) -> Error {
    Error::measurement(format!("{awaited} of {} {comes}", set.about.name))
        .hint("`stackline blocks list` shows which servers are up")
}

fn play_all(
    client: &BlockClient,
    set: &OpenSet,
    pace: &BlockPlayoutOptions,
    mut give: impl FnMut(u64, Option<Box<ReceivedBlock>>) -> Result<()>,
) -> Result<BlockPlayoutCounts> {
    let end = pace.numbers.end.min(set.about.blocks());
    let mut playout = Playout::new(
        pace.numbers.start,
        end,
        pace.depth,
        pace.interval,
        pace.missing,
    );
    let ahead = (2 * pace.depth.max(4)).min(limits::LONGEST_LIST) as u64;
    let (mut asked, mut turn) = (pace.numbers.start, pace.numbers.start);
    let mut heard = Instant::now();
    loop {
        let until = match playout.step(now()) {
            PlayoutStep::Over => break,
            PlayoutStep::Give(number, block) => {
                turn = number + 1;
                give(number, Some(block))?;
                continue;
            }
            PlayoutStep::Skipped(number) => {
                turn = number + 1;
                give(number, None)?;
                continue;
            }
            PlayoutStep::Wait(until) => until,
        };
        let most = (turn + ahead).min(end);
        // Requests go out when half has come, so that some blocks are always on their way.
        if asked < most && (asked < turn + ahead / 2 || asked == pace.numbers.start) {
            client.request(set.id, (asked..most).collect(), false)?;
            asked = most;
        }
        let left = until.map_or(ASK, |until| until.since(now()).min(ASK));
        match client.next(Some(std::time::Duration::from_nanos(left.0))) {
            Some(BlockClientEvent::Block(block)) if block.head.set == set.id => {
                heard = Instant::now();
                playout.came(block.head.number, block);
            }
            Some(BlockClientEvent::Failed {
                set: of,
                number,
                why,
            }) if of == set.id && pace.missing == MissingBlockPolicy::Wait => {
                return Err(cannot_be_read(set, number, why));
            }
            None if pace.missing == MissingBlockPolicy::Wait
                && until.is_none()
                && heard.elapsed() >= SILENCE =>
            {
                return Err(nothing_comes(
                    &format!("block {turn}"),
                    "did not arrive",
                    set,
                ));
            }
            Some(_) | None => {}
        }
        if pace.missing == MissingBlockPolicy::Skip && until.is_none() && heard.elapsed() >= SILENCE
        {
            return Err(nothing_comes("no block", "arrived", set));
        }
    }
    Ok(counts_of(&playout))
}

fn counts_of(playout: &Playout<Box<ReceivedBlock>>) -> BlockPlayoutCounts {
    let (late, skipped, stalls) = playout.counts();
    BlockPlayoutCounts {
        late,
        skipped,
        stalls,
    }
}
