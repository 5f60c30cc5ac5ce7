//! Converts between events and the formats of other tools: reads their logs and captures into event tables, and writes lifelines in their
//! formats. A lifeline is the sequence of events of one unit, such as a request.
//!
//! Readers and writers decide nothing: a value that another tool does not record stays absent, and input that cannot be read is counted
//! and reported. Stackline's own formats (text, binary, Parquet) are in `stackline-events` and `stackline-runs`.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`import`] | start here: imports the logs of other tools into a run |
//! | [`formats`] | all formats that are read or written, by name |
//! | [`openmetrics`] | metrics for Prometheus and others, written and served |
//! | [`otlp`] | OpenTelemetry spans, read and written |
//! | [`jaeger`] | traces in the JSON that Jaeger's page downloads, read |
//! | [`netlogger`] | lines of `name=value`: NetLogger's ULM and BP formats, read |
//! | [`qlog`] | logs of a QUIC stack, read |
//! | [`capture`] | packets of pcapng and pcap files and the requests in them, read |
//! | [`access`] | access logs of servers, read and matched with requests of captures |
//! | [`probe_metrics`] | the metrics of a series of probes |
//! | [`foreign_network`] | networks of tc, mahimahi and mininet, as text of the language |
//! | [`perfetto`] | traces for Perfetto's viewer, one file per host, written |

pub mod access;
pub mod capture;
pub mod foreign_network;
pub mod formats;
pub mod import;
pub mod jaeger;
mod mistakes;
mod moment;
pub mod netlogger;
pub mod openmetrics;
pub mod otlp;
pub mod perfetto;
pub mod probe_metrics;
pub mod qlog;

pub use mistakes::ImportMistakes;
use stackline_dissect::left_out::{Bound, LeftOut};
use stackline_events::{EventTable, catalogue};
use std::fmt;

/// The longest keyword, in characters, that is made of another program's names.
const LONGEST_KEYWORD: usize = Bound::Keyword.most();
/// The most mistakes that are kept in words; all are counted.
const REPORTED: usize = 10;

/// The result of reading a log.
#[derive(Clone, Debug, Default)]
pub struct Imported {
    /// The events.
    pub table: EventTable,
    /// The parts that could not be read.
    pub mistakes: ImportMistakes,
    /// What was left out because a limit was reached.
    pub left_out: LeftOut,
    /// The number of spans that name no trace.
    pub without_ids: u64,
}

impl Imported {
    pub(crate) fn mistake(&mut self, what: String) {
        self.mistakes.add(REPORTED, || what);
    }
}

/// Why nothing could be read or written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// One sentence without a full stop.
    pub message: String,
    /// The message of the library that failed; may be empty.
    pub cause: String,
}

impl Error {
    pub(crate) fn new(message: &str, cause: impl fmt::Display) -> Self {
        Self {
            message: message.to_owned(),
            cause: cause.to_string(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.cause.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.message, self.cause)
        }
    }
}

impl std::error::Error for Error {}

/// The kind and the place of a mistake in JSON that begins after `lines` lines. The library's own message is not used: it quotes values.
pub(crate) fn json_mistake(cause: &serde_json::Error, lines: usize) -> String {
    let what = match cause.classify() {
        serde_json::error::Category::Io => "it cannot be read",
        serde_json::error::Category::Syntax => "invalid JSON",
        serde_json::error::Category::Data => "a value has the wrong type",
        serde_json::error::Category::Eof => "it ends too early",
    };
    let line = lines + cause.line();
    format!("{what} at line {line}, column {}", cause.column())
}

/// The byte offset at which JSON could not be read.
pub(crate) fn json_mistake_place(bytes: &[u8], cause: &serde_json::Error) -> usize {
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    let before: usize = lines
        .take(cause.line().saturating_sub(1))
        .map(<[u8]>::len)
        .sum();
    (before + cause.column()).min(bytes.len())
}

/// The keyword for an event of another program, from its names, with its `end` (`_START`) if it is one end of a span.
///
/// The keyword must not be one of stackline's own, which have their own fields: if it is, or if it would pair with one, it gets the
/// prefix `OTHER_`. It may be a monitor's keyword only if it is written exactly like one: `VMSTAT_USER_TIME` is, `cpu.start` is not.
pub(crate) fn keyword_of_others(names: &[&str], end: &str, left_out: &mut LeftOut) -> String {
    const ENDS: [&str; 3] = ["_START", "_END", "_STOP"];
    let keyword = keyword_of(names, left_out) + end;
    let is_ours = |keyword: &str| catalogue::find(keyword).is_some();
    let stem = ENDS.iter().find_map(|end| keyword.strip_suffix(end));
    let has_our_end =
        stem.is_some_and(|stem| ENDS.iter().any(|end| is_ours(&format!("{stem}{end}"))));
    let monitors = catalogue::is_monitor(&keyword) && names.join("_") != keyword;
    if is_ours(&keyword) || has_our_end || monitors {
        format!("OTHER_{keyword}")
    } else {
        keyword
    }
}

/// Makes a keyword of names: `checkout` and `GET /cart` become `CHECKOUT_GET_CART`.
fn keyword_of(names: &[&str], left_out: &mut LeftOut) -> String {
    let (mut keyword, all) = (String::new(), names.join("_"));
    left_out.add(
        Bound::Keyword,
        u64::from(all.chars().nth(LONGEST_KEYWORD).is_some()),
    );
    for c in all.chars().take(LONGEST_KEYWORD) {
        if c.is_ascii_alphanumeric() {
            keyword.push(c.to_ascii_uppercase());
        } else if !keyword.is_empty() && !keyword.ends_with('_') {
            keyword.push('_');
        }
    }
    let keyword = keyword.trim_end_matches('_');
    if keyword.is_empty() {
        "SPAN".to_owned()
    } else {
        keyword.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keyword_of_others(names: &[&str], end: &str) -> String {
        super::keyword_of_others(names, end, &mut LeftOut::default())
    }

    #[test]
    fn no_name_of_others_is_one_of_our_own() {
        for entry in catalogue::ENTRIES {
            let keyword = keyword_of_others(&[&entry.keyword.to_lowercase().replace('_', ".")], "");
            assert!(
                catalogue::find(&keyword).is_none() && !catalogue::is_monitor(&keyword),
                "{keyword}"
            );
            assert!(
                catalogue::find(&keyword_of_others(&[entry.keyword], "")).is_none(),
                "{}",
                entry.keyword
            );
        }
        let both = |names: &[&str]| ["_START", "_END"].map(|end| keyword_of_others(names, end));
        assert_eq!(both(&["app"]), ["OTHER_APP_START", "OTHER_APP_END"]);
        assert_eq!(both(&["run"]), ["OTHER_RUN_START", "OTHER_RUN_END"]);
        assert_eq!(both(&["cpu"]), ["OTHER_CPU_START", "OTHER_CPU_END"]);
        assert_eq!(both(&["app", "get"]), ["APP_GET_START", "APP_GET_END"]);
        assert_eq!(
            keyword_of_others(&["VMSTAT_USER_TIME"], ""),
            "VMSTAT_USER_TIME"
        );
    }
}
