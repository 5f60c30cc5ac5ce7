//! Reads a range of blocks at full speed: many blocks are requested ahead, from all servers, and more as they come.

use crate::client::{BlockClient, BlockClientEvent, OpenSet};
use stackline_blocks::limits;
use stackline_blocks::wire::message::Why;
use stackline_core::error::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::{Duration, Instant};

/// Bytes that are requested ahead.
const AHEAD: u64 = 16 << 20;
/// The silence after which a read fails.
const SILENCE: Duration = Duration::from_secs(30);
/// The limit on ranges and places named in one error message.
const MOST_NAMED: usize = 8;
/// How often `goes_on` is asked.
const ASK: Duration = Duration::from_millis(100);

/// Reads the blocks `first` to `first + count` of a set in the order in which they come. `take` gets each once, whole and checked.
///
/// # Errors
/// If blocks cannot be had from any server (after all others have come), if nothing comes for half a minute, or the error of `take`.
pub fn read_range(
    client: &BlockClient,
    set: &OpenSet,
    first: u64,
    count: u64,
    take: impl FnMut(u64, Vec<u8>) -> Result<()>,
) -> Result<()> {
    range_while(
        client,
        set,
        first..first.saturating_add(count),
        || true,
        take,
    )
}

/// Reads the blocks `numbers` while `goes_on` returns true. Afterwards nothing of the range is wanted any more.
///
/// # Errors
/// As for [`read_range`], and an interruption.
pub fn range_while(
    client: &BlockClient,
    set: &OpenSet,
    numbers: Range<u64>,
    goes_on: impl Fn() -> bool,
    take: impl FnMut(u64, Vec<u8>) -> Result<()>,
) -> Result<()> {
    let (mut waiting, mut lost) = (BTreeSet::new(), BTreeMap::new());
    let result = read(client, set, numbers, &mut waiting, &mut lost, goes_on, take);
    if !waiting.is_empty() {
        // If this fails, nothing can be requested, so nothing comes either.
        let _ = client.withdraw(set.id);
    }
    result?;
    if lost.is_empty() {
        Ok(())
    } else {
        Err(cannot_be_read(client, set, &lost))
    }
}

fn read(
    client: &BlockClient,
    set: &OpenSet,
    numbers: Range<u64>,
    waiting: &mut BTreeSet<u64>,
    lost: &mut BTreeMap<u64, Why>,
    goes_on: impl Fn() -> bool,
    mut take: impl FnMut(u64, Vec<u8>) -> Result<()>,
) -> Result<()> {
    let (first, end) = (numbers.start, numbers.end.min(set.about.blocks()));
    // A set with a block size of 0 cannot be opened.
    let ahead = (AHEAD / u64::from(set.about.block_size)).clamp(8, limits::LONGEST_LIST as u64);
    let mut next = first;
    let mut heard = Instant::now();
    while next < end || !waiting.is_empty() {
        if !goes_on() {
            return Err(Error::interrupted());
        }
        // Requests go out when half has come, so that some blocks are always on their way.
        let on_its_way = waiting.len() as u64;
        if on_its_way <= ahead / 2 && next < end {
            let more = (next + ahead - on_its_way).min(end);
            client.request(set.id, (next..more).collect(), false)?;
            waiting.extend(next..more);
            next = more;
        }
        match client.next(Some(ASK)) {
            Some(BlockClientEvent::Block(block)) if block.head.set == set.id && block.wanted => {
                // A block may come twice if it was requested before this read and is requested again by it.
                if waiting.remove(&block.head.number) {
                    take(block.head.number, block.data)?;
                    heard = Instant::now();
                }
            }
            Some(BlockClientEvent::Failed {
                set: of,
                number,
                why,
            }) if of == set.id => {
                if waiting.remove(&number) {
                    lost.insert(number, why);
                    heard = Instant::now();
                }
            }
            None if heard.elapsed() >= SILENCE => {
                return Err(Error::measurement(format!(
                    "not all blocks of {} arrived: {} missing",
                    set.about.name,
                    waiting.len()
                ))
                .hint("`stackline blocks list` shows which servers are up"));
            }
            Some(_) | None => {}
        }
    }
    Ok(())
}

/// The error that names the blocks that could not be had, the reasons, and where their damaged copies are.
fn cannot_be_read(client: &BlockClient, set: &OpenSet, lost: &BTreeMap<u64, Why>) -> Error {
    let name = &set.about.name;
    let mut reasons: BTreeMap<Why, Vec<u64>> = BTreeMap::new();
    lost.iter()
        .for_each(|(number, why)| reasons.entry(*why).or_default().push(*number));
    let words = match (lost.len(), reasons.first_key_value()) {
        (1, Some((why, numbers))) => format!(
            "cannot read block {} of {name}: {}",
            numbers[0],
            why.words()
        ),
        (count, _) => {
            let each = reasons
                .iter()
                .map(|(why, numbers)| format!("{}: {}", ranges(numbers), why.words()));
            format!(
                "cannot read {count} blocks of {name}: {}",
                each.collect::<Vec<_>>().join("; ")
            )
        }
    };
    let damaged = lost.iter().filter(|(_, why)| **why == Why::Corrupt);
    let places: BTreeSet<String> = damaged
        .flat_map(|(number, _)| client.failed_copies(set.id, *number))
        .collect();
    let named: Vec<&str> = places.iter().take(MOST_NAMED).map(String::as_str).collect();
    Error::measurement(words).hint(match named.is_empty() {
        true => "`stackline blocks list` shows which servers and disks are up".to_owned(),
        false => {
            format!(
                "damaged copies are on {}; to get an intact set, load the data again under another name",
                named.join("; ")
            )
        }
    })
}

/// Ranges as in `3..5, 9`, both ends included, but not more than [`MOST_NAMED`] of them.
fn ranges(numbers: &[u64]) -> String {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => ranges.push((*number, *number)),
        }
    }
    let word = |(first, last): &(u64, u64)| {
        if first == last {
            first.to_string()
        } else {
            format!("{first}..{last}")
        }
    };
    let words: Vec<String> = ranges.iter().take(MOST_NAMED).map(word).collect();
    let others: u64 = ranges
        .iter()
        .skip(MOST_NAMED)
        .map(|(first, last)| last - first + 1)
        .sum();
    let others = if others > 0 {
        format!(" and {others} others")
    } else {
        String::new()
    };
    words.join(", ") + &others
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_named_as_ranges() {
        assert_eq!(ranges(&[3, 4, 5, 9]), "3..5, 9");
        let even: Vec<u64> = (0..40).map(|n| 2 * n).collect();
        assert_eq!(ranges(&even), "0, 2, 4, 6, 8, 10, 12, 14 and 32 others");
    }
}
