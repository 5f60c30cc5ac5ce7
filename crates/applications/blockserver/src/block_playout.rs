//! Plays a range of blocks: asks for them ahead, holds some, and gives them out in their order at a steady pace (smooth playout;
//! Tierney et al. 1996, section 2.1). Which block is due when is `stackline_blocks::playout`'s to say.

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

/// Silence after which a block that is waited for is given up.
const SILENCE: std::time::Duration = std::time::Duration::from_secs(30);
/// How often it is asked whether more is to be asked for.
const ASK: Duration = Duration(100_000_000);

/// How blocks are played.
#[derive(Clone, Debug)]
pub struct BlockPlayoutOptions {
    /// Which of the set.
    pub numbers: Range<u64>,
    /// It begins when so many are held; twice as many are asked for ahead.
    pub depth: usize,
    /// One is due so long after the one before.
    pub interval: Duration,
    /// What is done about one that is due and not there.
    pub missing: MissingBlockPolicy,
}

/// What became of blocks that were not there in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockPlayoutCounts {
    /// They came behind their turn.
    pub late: u64,
    /// They were left out.
    pub skipped: u64,
    /// All stood still so often.
    pub stalls: u64,
}

/// Gives each block out when it is due; nothing in place of one that is left out.
///
/// # Errors
/// When nothing can be asked for, a block that is waited for cannot be had or does not come for half a minute; what `give` says.
pub fn play(
    client: &BlockClient,
    set: &OpenSet,
    pace: &BlockPlayoutOptions,
    give: impl FnMut(u64, Option<Box<ReceivedBlock>>) -> Result<()>,
) -> Result<BlockPlayoutCounts> {
    let result = play_all(client, set, pace, give);
    if result.is_err() || client.waiting(set.id) > 0 {
        // What is left of it is wanted by nobody; where nothing can be asked for, nothing comes.
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

/// That what is waited for stays away too long.
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
        // In halves, so that there is always some on its way.
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
