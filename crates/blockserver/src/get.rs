//! Reads a range of blocks back at full speed: many are asked for at once, of all servers, and more as they come.

use crate::client::{Client, Event, OpenSet};
use stackline_blocks::limits;
use stackline_core::error::{Error, Result};
use std::ops::Range;
use std::time::{Duration, Instant};

/// Bytes that are asked for and have not come.
const AHEAD: u64 = 16 << 20;
/// Silence after which a read is given up.
const SILENCE: Duration = Duration::from_secs(30);
/// How often it is asked whether a read is to go on.
const ASK: Duration = Duration::from_millis(100);

/// Reads blocks `first` to `first + count` of a set in whatever order they come. `take` gets each once, whole and checked.
///
/// # Errors
/// When a block cannot be had from any server, or nothing comes for half a minute; what `take` says.
pub fn range(
    client: &Client,
    set: &OpenSet,
    first: u64,
    count: u64,
    take: impl FnMut(u64, Vec<u8>) -> Result<()>,
) -> Result<()> {
    range_while(client, set, first..first.saturating_add(count), || true, take)
}

/// The same for the blocks of `numbers`, while `goes_on` says so.
///
/// # Errors
/// As for [`range`], and that it was interrupted.
pub fn range_while(
    client: &Client,
    set: &OpenSet,
    numbers: Range<u64>,
    goes_on: impl Fn() -> bool,
    mut take: impl FnMut(u64, Vec<u8>) -> Result<()>,
) -> Result<()> {
    let (first, end) = (numbers.start, numbers.end.min(set.about.blocks()));
    let ahead = (AHEAD / u64::from(set.about.block_size)).clamp(8, limits::LONGEST_LIST as u64);
    let (mut next, mut taken, mut waiting) = (first, first, 0_u64);
    let mut heard = Instant::now();
    while taken < end {
        if !goes_on() {
            return Err(Error::interrupted());
        }
        // Asked for in halves, so that there is always some on its way.
        if waiting <= ahead / 2 && next < end {
            let more = (next + ahead - waiting).min(end);
            client.request(set.id, (next..more).collect(), false)?;
            waiting += more - next;
            next = more;
        }
        match client.next(Some(ASK)) {
            Some(Event::Block(block)) if block.head.set == set.id && block.wanted => {
                waiting -= 1;
                taken += 1;
                take(block.head.number, block.data)?;
                heard = Instant::now();
            }
            Some(Event::Failed { number, why, .. }) => {
                let name = &set.about.name;
                return Err(Error::measurement(format!("block {number} of {name} cannot be read: {}", why.words()))
                    .hint("`stackline blocks list` shows which servers and disks are there"));
            }
            None if heard.elapsed() >= SILENCE => {
                return Err(Error::measurement(format!("{waiting} blocks of {} do not come", set.about.name))
                    .hint("`stackline blocks list` shows which servers are there"));
            }
            Some(_) | None => {}
        }
    }
    Ok(())
}
