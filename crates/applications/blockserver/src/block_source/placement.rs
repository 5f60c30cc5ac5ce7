//! Parses the placement of blocks on disks, as a person writes it.

use stackline_blocks::placement::BlockPlacementPolicy;
use stackline_core::error::{Error, Result};

/// A placement policy, and the disk of each block if the policy is that they are given.
pub type Placed = (BlockPlacementPolicy, Option<Vec<u32>>);

/// Parses the text of `--placement`. Without it, pictures are placed by tiles, everything else round-robin.
///
/// # Errors
/// If there is no such placement.
pub fn parse_placement(text: Option<&str>, is_picture: bool) -> Result<Placed> {
    let Some(text) = text else {
        return Ok((
            if is_picture {
                BlockPlacementPolicy::Tiles
            } else {
                BlockPlacementPolicy::RoundRobin
            },
            None,
        ));
    };
    let (word, rest) = text
        .split_once(':')
        .map_or((text, None), |(word, rest)| (word, Some(rest)));
    match (word, rest) {
        ("round-robin", None) => Ok((BlockPlacementPolicy::RoundRobin, None)),
        ("hash", None) => Ok((BlockPlacementPolicy::Hash, None)),
        ("tiles", None) if is_picture => Ok((BlockPlacementPolicy::Tiles, None)),
        ("tiles", None) => Err(Error::input("only a picture has tiles")
            .hint("--placement round-robin works for all sets")),
        ("random", seed) => {
            let seed = seed.map_or(Some(1), |seed| seed.parse().ok());
            Ok((
                BlockPlacementPolicy::Random(seed.ok_or_else(|| unknown(text))?),
                None,
            ))
        }
        ("given", Some(disks)) => Ok((BlockPlacementPolicy::Given, Some(given(disks)?))),
        _ => Err(unknown(text)),
    }
}

fn unknown(text: &str) -> Error {
    Error::input(format!("unknown placement {text}"))
        .hint("use round-robin, random, random:SEED, hash, tiles, given:DISK,DISK... or given:FILE")
}

/// Parses a list of disk numbers, from the text itself or from the file that it names.
fn given(text: &str) -> Result<Vec<u32>> {
    let numbers = |text: &str| -> Option<Vec<u32>> {
        let words = text
            .split(|c: char| c == ',' || c.is_whitespace())
            .filter(|word| !word.is_empty());
        words
            .map(|word| word.parse().ok())
            .collect::<Option<Vec<u32>>>()
            .filter(|disks| !disks.is_empty())
    };
    // A file whose name looks like a list can be given as ./NAME.
    if !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_ascii_digit() || matches!(c, ',' | '-' | '+' | ' '))
    {
        let disks = text
            .split(',')
            .map(|word| word.parse().ok())
            .collect::<Option<Vec<u32>>>();
        return disks.ok_or_else(|| {
            Error::input(format!("given:{text} is not a list of disks"))
                .hint("write comma-separated numbers, counted from 0, as in given:0,0,1")
        });
    }
    let read = stackline_guard::files::read_text(std::path::Path::new(text), 64 << 20).map_err(
        |error| {
            Error::input(format!(
                "cannot read the placement {text}: {error}"
            ))
            .hint(
                "the file in given:FILE lists one disk number per block and is repeated as needed; given:0,0,1 is an inline list",
            )
        },
    )?;
    numbers(&read).ok_or_else(|| {
        Error::input(format!("{text} is not a list of disks"))
            .hint("write numbers counted from 0, separated by commas or white space")
    })
}

/// Checks that all disk numbers exist. Disks are counted over the first disk of each running server, then the second of each, and so on.
///
/// # Errors
/// If a number is too large.
pub fn check_disks(given: &[u32], disks: usize) -> Result<()> {
    match given.iter().find(|disk| **disk as usize >= disks) { Some(disk) => Err(Error::input(format!("the placement names disk {disk}, but the number of disks is {disks}"))
.hint("disks are numbered from 0: the first of each server that is up, then the second of each, and so on")), None => Ok(()), }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_lists() {
        assert_eq!(
            parse_placement(None, true).unwrap(),
            (BlockPlacementPolicy::Tiles, None)
        );
        assert_eq!(
            parse_placement(None, false).unwrap(),
            (BlockPlacementPolicy::RoundRobin, None)
        );
        assert_eq!(
            parse_placement(Some("random:9"), false).unwrap(),
            (BlockPlacementPolicy::Random(9), None)
        );
        assert_eq!(
            parse_placement(Some("given:0,2,1"), false).unwrap(),
            (BlockPlacementPolicy::Given, Some(vec![0, 2, 1]))
        );
        for text in [
            "tiles",
            "given",
            "given:",
            "given:1,x",
            "given:-1",
            "given:0,,1",
            "given:4294967296",
            "random:x",
            "hash:1",
            "elsewhere",
        ] {
            assert!(parse_placement(Some(text), false).is_err(), "{text}");
        }
        assert!(check_disks(&[0, 1], 2).is_ok());
        assert!(check_disks(&[2], 2).is_err() && check_disks(&[0], 0).is_err());
    }
}
