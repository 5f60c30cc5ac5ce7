//! The paths of a run's events: a Parquet file for each host, and event logs that have not been converted to one yet.

use crate::{Error, files};
use std::path::{Path, PathBuf};

/// The extension of an event log's file name, after its host's name.
pub(crate) const EVENT_LOG_EXTENSION: &str = "tape";

/// The longest part of an encoded host name that a file name takes over, in bytes.
const LONGEST_NAME: usize = 200;

/// The path of a host's events in a run. In the host's name, a `.` at the beginning and every byte other than a
/// letter, digit, `_`, `-` or `.` becomes `%` and two hexadecimal digits. A name that is too long after that is cut,
/// and `~` and a hash of the host's name are added.
///
/// # Errors
/// When the name is empty.
pub fn events_path(run: &Path, host: &str) -> Result<PathBuf, Error> {
    if host.is_empty() {
        return Err(Error::new(
            "a host has an empty name",
            "give it a name with `--host NAME=LOG`",
        ));
    }
    let mut name = String::new();
    for (at, byte) in host.bytes().enumerate() {
        let plain =
            byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-') || (byte == b'.' && at > 0);
        if plain {
            name.push(char::from(byte));
        } else {
            name.push_str(&format!("%{byte:02X}"));
        }
    }
    if name.len() > LONGEST_NAME {
        name.truncate(LONGEST_NAME - 40);
        name.push_str(&format!("~{:016x}", fnv(host.as_bytes())));
    }
    Ok(run.join(files::EVENTS).join(format!("{name}.parquet")))
}

/// The 64-bit hash FNV-1a (Fowler, Noll and Vo).
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// The Parquet files of a run's events, ordered by name.
///
/// # Errors
/// When the run has no events at all.
pub fn event_files(run: &Path) -> Result<Vec<PathBuf>, Error> {
    let found = files::of_events(run, files::SORTED)?;
    if found.is_empty() && event_log_files(run)?.is_empty() {
        let message = format!("the run at {} has no events", run.display());
        return Err(Error::new(
            message,
            "`stackline run SPEC --trace` records them",
        ));
    }
    Ok(found)
}

/// The event logs of a run.
pub(super) fn event_log_files(run: &Path) -> Result<Vec<PathBuf>, Error> {
    files::of_events(run, EVENT_LOG_EXTENSION)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_one_of_a_file_within_the_directory() {
        let name = |host: &str| {
            let path = events_path(Path::new("run"), host).unwrap();
            assert_eq!(path.parent(), Some(Path::new("run/events")));
            path.file_name().unwrap().to_str().unwrap().to_owned()
        };
        assert_eq!(name("dpss1.lbl.gov"), "dpss1.lbl.gov.parquet");
        assert_eq!(name("../x"), "%2E.%2Fx.parquet");
        assert_eq!(name("a b"), "a%20b.parquet");
        let (long, other) = (name(&"x".repeat(4000)), name(&"x".repeat(4001)));
        assert!(long != other && long.len() < 255);
        assert!(events_path(Path::new("run"), "").is_err());
    }
}
