//! Captures with changed bytes: each is read to its end or refused, without a panic and within bounds of memory, and what is found in one
//! has shares and confidences between 0 and 1.

use super::{exchanges, try_import};
use stackline_exchange::capture::{
    CaptureEventReader, CapturePlan, CaptureReadOptions, StreamRegistry, Survey,
};
use std::collections::BTreeMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// How many are read; more with `STACKLINE_MUTATED=100000 cargo test -p stackline-exchange --test doors mutated`.
const COUNT: usize = 1_000;
/// Of so many, one is imported into a run and diagnosed too.
const DIAGNOSED: usize = 50;
/// The most memory that reading them all may add, bytes.
const MOST_MEMORY: usize = 256 << 20;

/// Random numbers (splitmix64), the same ones in each run.
struct Random(u64);

impl Random {
    /// A number below `bound`.
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }
}

/// Captures as they are: all exchanges, and the seeds of the fuzz targets.
fn seeds() -> Vec<Vec<u8>> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus/importers");
    let stored = ["pcap", "pcapng"].map(|name| fs::read(corpus.join(name)).unwrap());
    let exchanges = exchanges().into_iter().flat_map(|one| one.wire.captures());
    exchanges.chain(stored).collect()
}

/// A seed with some changes: bits and numbers, pieces that are cut, doubled or come from another one.
fn mutate(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut bytes = seeds[random.below(seeds.len())].clone();
    for _ in 0..=random.below(7) {
        if bytes.is_empty() {
            break;
        }
        let at = random.below(bytes.len());
        let until = (at + 1 + random.below(400)).min(bytes.len());
        match random.below(7) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = random.below(256) as u8,
            2 => bytes.truncate(at),
            3 => drop(bytes.drain(at..until)),
            4 => {
                let piece = bytes[at..until].to_vec();
                bytes.splice(at..at, piece);
            }
            5 => {
                let other = &seeds[random.below(seeds.len())];
                let from = random.below(other.len());
                let piece = &other[from..(from + until - at).min(other.len())];
                bytes.splice(at..until, piece.iter().copied());
            }
            // A length, a count or a time of four bytes becomes an extreme one.
            _ => {
                let number = [0, 1, 0xffff, 0x7fff_ffff, u32::MAX][random.below(5)];
                let number: [u8; 4] = u32::to_le_bytes(number);
                let until = (at + 4).min(bytes.len());
                bytes[at..until].copy_from_slice(&number[..until - at]);
            }
        }
    }
    bytes
}

/// Reads a capture to its end; false if it is refused.
fn is_read(bytes: &[u8]) -> bool {
    let Ok(survey) = Survey::read(bytes, "a", None) else {
        return false;
    };
    let plan = CapturePlan::from_surveys(&[survey], &BTreeMap::new());
    let streams = StreamRegistry::new(BTreeMap::new(), 0);
    let options = CaptureReadOptions::default();
    let Ok(mut reader) = CaptureEventReader::open(vec![Box::new(bytes)], &plan, streams, options)
    else {
        return false;
    };
    while reader.next_batch().is_some() {}
    let _ = reader.finish();
    true
}

/// The most memory that this process has used, bytes.
fn most_memory() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    kilobytes.unwrap().trim().parse::<usize>().unwrap() << 10
}

#[test]
fn mutated_captures_do_no_harm() {
    let count = std::env::var("STACKLINE_MUTATED").map_or(COUNT, |count| count.parse().unwrap());
    let seeds = seeds();
    let mut random = Random(7);
    let before = most_memory();
    let (mut read, mut refused) = (0, 0);
    for number in 0..count {
        let bytes = mutate(&seeds, &mut random);
        let done = catch_unwind(AssertUnwindSafe(|| {
            if is_read(&bytes) {
                read += 1;
            } else {
                refused += 1;
            }
        }));
        assert!(done.is_ok(), "capture {number} of that seed");
        if number % DIAGNOSED == 0 && is_read(&bytes) {
            let Ok(loaded) = try_import(&[("mutated.pcap", &bytes)], &[]) else {
                continue; // There is nothing in it.
            };
            for found in loaded.findings() {
                let is_part = |share: f64| (0.0..=1.0).contains(&share);
                assert!(
                    is_part(found.share) && is_part(found.confidence),
                    "{number}: {found:?}"
                );
            }
        }
    }
    let more = most_memory().saturating_sub(before);
    println!("{read} read, {refused} refused, {} MiB more", more >> 20);
    assert!(read > count / 4, "{read} of {count}");
    assert!(more < MOST_MEMORY, "{more}");
}
