//! The setting of a program's event recording by its environment: `STACKLINE_EVENTS=file:PATH`, `text:PATH` or `off`.
//!
//! `%p` in the path stands for the process id, for programs that start others with the same environment.

use crate::file_sinks::{EventLogFile, EventTextFile};
use crate::recorder::EventRecorder;
use crate::sink::EventSink;
use std::io;
use std::path::PathBuf;

/// The name of the environment variable.
pub const VARIABLE: &str = "STACKLINE_EVENTS";

/// The destination of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventsSetting {
    /// No events are recorded.
    Off,
    /// Into that file, in the binary form.
    EventLog(PathBuf),
    /// Into that file, in the text form.
    Text(PathBuf),
}

impl EventsSetting {
    /// Parses a setting; `process` replaces `%p`.
    ///
    /// # Errors
    /// One sentence that says what is wrong, with the possible values.
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
    /// Starts the recorder that `STACKLINE_EVENTS` asks for; `None` when it is not set, empty or `off`. The caller
    /// keeps the result until the program ends.
    ///
    /// # Errors
    /// When the variable cannot be parsed, the file cannot be written, or this process is recording already.
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

/// The host name of this machine, or of this process's UTS namespace; `localhost` when it is unknown.
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
