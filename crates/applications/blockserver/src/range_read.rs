//! Reads a range of blocks back at full speed: many are asked for at once, of all servers, and more as they come.

use crate::client::{BlockClient, BlockClientEvent, OpenSet};
use stackline_blocks::limits;
use stackline_blocks::wire::message::Why;
use stackline_core::error::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::{Duration, Instant};

/// Bytes that are asked for and have not come.
const AHEAD: u64 = 16 << 20;
/// Silence after which a read is given up.
const SILENCE: Duration = Duration::from_secs(30);
/// Ranges and places that are named in one sentence.
const MOST_NAMED: usize = 8;
/// How often it is asked whether a read is to go on.
const ASK: Duration = Duration::from_millis(100);

/// Reads blocks `first` to `first + count` of a set in whatever order they come. `take` gets each once, whole and checked.
///
/// # Errors
/// When blocks cannot be had from any server, after all others have come; when nothing comes for half a minute; what `take` says.
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

/// The same for the blocks of `numbers`, while `goes_on` says so. However it ends, nothing of it is wanted any more.
///
/// # Errors
/// As for [`read_range`], and that it was interrupted.
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
        // Where nothing can be asked for any more, nothing comes.
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
    let ahead = (AHEAD / u64::from(set.about.block_size)).clamp(8, limits::LONGEST_LIST as u64);
    let mut next = first;
    let mut heard = Instant::now();
    while next < end || !waiting.is_empty() {
        if !goes_on() {
            return Err(Error::interrupted());
        }
        // Asked for in halves, so that there is always some on its way.
        let on_its_way = waiting.len() as u64;
        if on_its_way <= ahead / 2 && next < end {
            let more = (next + ahead - on_its_way).min(end);
            client.request(set.id, (next..more).collect(), false)?;
            waiting.extend(next..more);
            next = more;
        }
        match client.next(Some(ASK)) {
            Some(BlockClientEvent::Block(block)) if block.head.set == set.id && block.wanted => {
                // A block may come twice: it was asked for before this read, and came while that asked for it again.
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

/// Which blocks could not be had, why, and where the copies are that failed.
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

/// `3..5, 9`: both ends included, and not more of them than somebody reads.
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
