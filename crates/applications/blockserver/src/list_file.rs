//! The lists of a session as a text file: one line per list, `SECONDS SET BLOCK BLOCK ...`; lines that begin with `#` are comments.
//!
//! A client writes the file as it sends lists ([`BlockListWriter`]); a replay reads it ([`read_lists`]).

use stackline_blocks::limits;
use stackline_core::error::{Error, Result};
use stackline_core::time::{Duration, Instant};
use stackline_guard::files;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;

/// The longest line, bytes.
const LONGEST: u64 = 1 << 20;
/// The largest file, bytes.
const MOST: u64 = 256 << 20;

/// Writes lists as they are sent.
#[derive(Debug)]
pub struct BlockListWriter {
    file: BufWriter<File>,
    began: Option<Instant>,
}

impl BlockListWriter {
    /// Creates the file.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn create(path: &Path) -> Result<Self> {
        let failed =
            |error| Error::environment(format!("cannot write {}: {error}", path.display()));
        let mut file = BufWriter::new(File::create(path).map_err(failed)?);
        writeln!(file, "# lists of a session: seconds, set, blocks").map_err(failed)?;
        Ok(Self { file, began: None })
    }

    /// Appends a list that is sent now.
    pub fn list(&mut self, now: Instant, set: &str, blocks: &[u64]) {
        let began = *self.began.get_or_insert(now);
        let numbers: Vec<String> = blocks.iter().map(ToString::to_string).collect();
        // An error is ignored: the session goes on without the capture.
        let _ = writeln!(
            self.file,
            "{:.6} {set} {}",
            now.since(began).seconds(),
            numbers.join(" ")
        );
        let _ = self.file.flush();
    }
}

/// The lists of each set, by its name: the time after the beginning, and the blocks.
pub type Lists = BTreeMap<String, Vec<(Duration, Vec<u64>)>>;

/// Reads a file of lists.
///
/// # Errors
/// If it cannot be read, or a line is malformed; the error names the line's number.
pub fn read_lists(path: &Path) -> Result<Lists> {
    use std::io::Read;
    let failed = |error| Error::input(format!("cannot read {}: {error}", path.display()));
    let mut reader = BufReader::new(files::open(path).map_err(failed)?.take(MOST + 1));
    let mut all = 0;
    let mut lists = Lists::new();
    let mut line = String::new();
    for number in 1.. {
        line.clear();
        match (&mut reader)
            .take(LONGEST)
            .read_line(&mut line)
            .map_err(failed)?
        {
            0 => break,
            bytes => all += bytes as u64,
        }
        if all > MOST {
            let error = Error::input(format!(
                "{} has more than {} MiB of lists",
                path.display(),
                MOST >> 20
            ));
            return Err(error.hint("split it into several traces"));
        }
        let words = line.trim();
        if words.is_empty() || words.starts_with('#') {
            continue;
        }
        let wrong = |what: &str| {
            Error::input(format!("line {number} of {}: {what}", path.display()))
                .hint("a line is `SECONDS SET BLOCK BLOCK ...`, as `stackline blocks replay --capture FILE` writes it")
        };
        let mut words = words.split_whitespace();
        let at: f64 = words
            .next()
            .and_then(|word| word.parse().ok())
            .ok_or_else(|| wrong("no time at the start"))?;
        if !(0.0..=1e9).contains(&at) {
            return Err(wrong("its time is invalid"));
        }
        let set = words.next().ok_or_else(|| wrong("no set"))?;
        let blocks: Option<Vec<u64>> = words.map(|word| word.parse().ok()).collect();
        let blocks = blocks.ok_or_else(|| wrong("a block number is invalid"))?;
        if blocks.len() > limits::LONGEST_LIST {
            return Err(wrong(
                "it has more than 8192 blocks, the maximum for a list",
            ));
        }
        let of_set = lists.entry(set.to_owned()).or_default();
        let at = Duration::from_seconds(at);
        if of_set.last().is_some_and(|(before, _)| at < *before) {
            return Err(wrong("it is earlier than the list above it"));
        }
        of_set.push((at, blocks));
    }
    Ok(lists)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_captured_is_replayed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trace");
        let mut writer = BlockListWriter::create(&path).unwrap();
        writer.list(Instant(5_000_000_000), "map", &[1, 2]);
        writer.list(Instant(5_200_000_000), "map", &[]);
        writer.list(Instant(5_400_000_000), "other", &[7]);
        let lists = read_lists(&path).unwrap();
        let ms = |ms: u64| Duration(ms * 1_000_000);
        assert_eq!(lists["map"], [(ms(0), vec![1, 2]), (ms(200), vec![])]);
        assert_eq!(lists["other"], [(ms(400), vec![7])]);
    }

    #[test]
    fn what_is_no_list_is_named_by_its_line() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trace");
        for (text, what) in [
            ("0 map 1\nx map 1\n", "line 2"),
            ("0 map 1 y\n", "block number is invalid"),
            ("0\n", "no set"),
            ("1 map 1\n0 map 1\n", "earlier than the list above"),
            ("-1 map 1\n", "time is invalid"),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = read_lists(&path).unwrap_err();
            assert!(error.message.contains(what), "{text:?}: {error:?}");
        }
    }
}
