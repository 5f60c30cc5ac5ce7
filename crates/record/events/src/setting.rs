//! Where a program's events go, by its environment: `STACKLINE_EVENTS=file:PATH`, `text:PATH` or `off`.
//!
//! `%p` in the path stands for the process's number, for programs that start others with the same environment.

use crate::recorder::EventRecorder;
use crate::sink::EventSink;
use crate::sinks::{EventLogFile, EventTextFile};
use std::io;
use std::path::PathBuf;

/// The variable.
pub const VARIABLE: &str = "STACKLINE_EVENTS";

/// Where events go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventsSetting {
    /// Nowhere.
    Off,
    /// The binary form, into that file.
    EventLog(PathBuf),
    /// The text form, into that file.
    Text(PathBuf),
}

impl EventsSetting {
    /// Reads one; `process` is what stands for `%p`.
    ///
    /// # Errors
    /// One sentence: what is wrong, and what it could be.
    pub fn parse(text: &str, process: u32) -> Result<Self, String> {
        let path = |path: &str| PathBuf::from(path.replace("%p", &process.to_string()));
        match text.split_once(':') {
            None if text == "off" || text.is_empty() => Ok(Self::Off),
            Some(("file", to)) if !to.is_empty() => Ok(Self::EventLog(path(to))),
            Some(("text", to)) if !to.is_empty() => Ok(Self::Text(path(to))),
            _ => Err(format!(
                "unknown event destination `{}`; hint: use file:PATH, text:PATH or off",
                text.escape_debug()
            )),
        }
    }

    fn sink(&self) -> io::Result<Option<Box<dyn EventSink>>> {
        match self {
            Self::Off => Ok(None),
            Self::EventLog(path) => Ok(Some(Box::new(EventLogFile::open(path)?))),
            Self::Text(path) => Ok(Some(Box::new(EventTextFile::open(path)?))),
        }
    }
}

impl EventRecorder {
    /// Starts what `STACKLINE_EVENTS` says; nothing when it is not set or `off`. Keep what it returns until the program ends.
    ///
    /// # Errors
    /// When the variable makes no sense, the file cannot be written, or this process records already.
    pub fn from_env() -> io::Result<Option<Self>> {
        let about = |error: io::Error| io::Error::new(error.kind(), format!("{VARIABLE}: {error}"));
        let Some(text) = std::env::var_os(VARIABLE) else {
            return Ok(None);
        };
        let setting = EventsSetting::parse(&text.to_string_lossy(), std::process::id());
        let setting =
            setting.map_err(|cause| about(io::Error::new(io::ErrorKind::InvalidInput, cause)))?;
        let Some(sink) = setting.sink().map_err(about)? else {
            return Ok(None);
        };
        Self::start(&host(), sink).map(Some)
    }
}

/// What this machine, or this namespace of it, calls itself.
#[must_use]
pub fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() {
        "localhost".into()
    } else {
        name.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_may_be() {
        let read = |text| EventsSetting::parse(text, 17);
        assert_eq!(read("off"), Ok(EventsSetting::Off));
        assert_eq!(read(""), Ok(EventsSetting::Off));
        assert_eq!(
            read("file:/a b/c-%p.tape"),
            Ok(EventsSetting::EventLog("/a b/c-17.tape".into()))
        );
        assert_eq!(read("text:C:x"), Ok(EventsSetting::Text("C:x".into())));
        for wrong in ["on", "file:", "text:", "tcp:1", "file"] {
            assert!(read(wrong).unwrap_err().contains("hint: "), "{wrong}");
        }
    }
}
