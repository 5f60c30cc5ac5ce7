//! The catalogue of stackline's keywords: who emits each, and its data fields in their order. Documentation,
//! importers, lifelines and findings use this table; an event with a keyword that is not in it is stored and shown all
//! the same.
//!
//! The data of all events on the path of a data unit begin alike: `unit; stream; offset; bytes` (see
//! [`crate::unit_ids`]). A field whose value is unknown is empty. `offset` counts the bytes of the transport's stream
//! from the connection's first byte on.

pub mod block_rows;
pub mod families;
pub mod rows;

pub use rows::ENTRIES;

use crate::event_log::EventRecord;
use crate::value::EventValue;

/// The layer that an event comes from; for stackline's own keywords the first part of the keyword indicates it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// The application: operations of the language.
    Application,
    /// The socket: system calls.
    Socket,
    /// The protocol implementation, stackline's or the kernel's.
    Protocol,
    /// The network: queues, links, hosts' interfaces.
    Network,
    /// A structured display, its clients, and agents or servers between them, live or in virtual time.
    Display,
    /// Monitors of machines. Their events cover an interval: the time stamp is its end, the first data field its
    /// length in ns.
    Monitor,
    /// stackline itself.
    Tool,
}

/// What happened to data other than moving on towards its receiver, according to an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataFate {
    /// All of it, or a part, is retransmitted.
    SentAgain,
    /// All of it, or a part, is dropped.
    Dropped,
    /// The party that waits for it gives up.
    GivenUp,
    /// It is discarded in favour of a newer request.
    Flushed,
}

/// A row of the catalogue.
#[derive(Clone, Copy, Debug)]
pub struct CatalogueEntry {
    /// The keyword.
    pub keyword: &'static str,
    /// The layer that emits it.
    pub layer: Layer,
    /// Names of the data fields, in order.
    pub data: &'static [&'static str],
    /// A description of what happened.
    pub help: &'static str,
    /// What happened to the data, if the event says so.
    pub fate: Option<DataFate>,
    /// Whether the event marks work of the program itself, in which no transport is involved.
    pub is_work: bool,
}

impl CatalogueEntry {
    /// The index of the data field with that name, from 0.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<usize> {
        self.data.iter().position(|field| *field == name)
    }
}

/// The catalogue's row for a keyword.
#[must_use]
pub fn find(keyword: &str) -> Option<&'static CatalogueEntry> {
    ENTRIES.iter().find(|entry| entry.keyword == keyword)
}

/// The value of a record's field by its name; `Absent` if its keyword has no such field or it has no such value.
#[must_use]
pub fn find_value<'t>(record: &EventRecord<'t>, name: &str) -> EventValue<'t> {
    find(record.keyword)
        .and_then(|entry| record.values.get(entry.field(name)?).copied())
        .unwrap_or_default()
}

/// What an event says about the fate of data. For keywords that are not in the catalogue it follows from their names.
/// The beginning or end of a span (`_START`, `_END`) has no fate: it is a part of the data's path.
#[must_use]
pub fn fate(keyword: &str) -> Option<DataFate> {
    match find(keyword) {
        Some(entry) => entry.fate,
        None if is_monitor(keyword) || keyword.ends_with("_START") || keyword.ends_with("_END") => {
            None
        }
        None if keyword.contains("RETRANS") => Some(DataFate::SentAgain),
        None if keyword.ends_with("_GIVEN_UP") => Some(DataFate::GivenUp),
        None if keyword.contains("FLUSH") => Some(DataFate::Flushed),
        None if keyword.contains("DROP") => Some(DataFate::Dropped),
        None => None,
    }
}

/// Whether the event marks work of the program itself; false for keywords that are not in the catalogue.
#[must_use]
pub fn is_work(keyword: &str) -> bool {
    find(keyword).is_some_and(|entry| entry.is_work)
}

/// Whether the keyword is a monitor's. Monitors that are not in the catalogue are recognised by the first part of the
/// keyword.
#[must_use]
pub fn is_monitor(keyword: &str) -> bool {
    const PROGRAMS: [&str; 8] = [
        "VMSTAT", "NETSTAT", "IOSTAT", "MPSTAT", "SNMP", "CPU", "MEM", "NETIF",
    ];
    match find(keyword) {
        Some(entry) => entry.layer == Layer::Monitor,
        None => PROGRAMS.contains(&keyword.split('_').next().unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn rows_are_distinguished_and_their_data_fit_a_record() {
        let keywords: BTreeSet<&str> = ENTRIES.iter().map(|entry| entry.keyword).collect();
        assert_eq!(keywords.len(), ENTRIES.len());
        for entry in ENTRIES {
            assert!(
                entry.data.len() <= crate::table::FIELDS,
                "{}",
                entry.keyword
            );
            let path = matches!(
                entry.layer,
                Layer::Application | Layer::Socket | Layer::Network | Layer::Display
            );
            assert!(
                !path
                    || ["unit", "stream", "offset", "bytes"]
                        .starts_with(&entry.data[..entry.data.len().min(4)]),
                "{}",
                entry.keyword
            );
        }
    }

    #[test]
    fn the_keyword_says_what_became_of_data() {
        for keyword in [
            "TCP_RETRANSMIT",
            "BLAST_RETRANSMIT",
            "IKP_RETRANSMIT",
            "QUIC_LOST",
            "RTP_RETRANSMIT",
        ] {
            assert_eq!(fate(keyword), Some(DataFate::SentAgain), "{keyword}");
        }
        for keyword in ["NET_DROP", "TCP_DROP", "TCP_RCVQ_FULL", "SWITCH_DROPPED"] {
            assert_eq!(fate(keyword), Some(DataFate::Dropped), "{keyword}");
        }
        assert_eq!(
            (fate("APP_LOST"), fate("SERVER_FLUSH")),
            (Some(DataFate::GivenUp), Some(DataFate::Flushed))
        );
        for keyword in [
            "EVENTS_LOST",
            "NETSTAT_TCP",
            "NETSTAT_RETRANSSEGS",
            "NET_MARK",
            "READ",
            "DROP_TABLE_START",
            "FLUSH_END",
        ] {
            assert_eq!(fate(keyword), None, "{keyword}");
        }
        // A new row for such a thing needs its fate.
        for entry in ENTRIES
            .iter()
            .filter(|entry| entry.keyword != "EVENTS_LOST")
        {
            let named = ["_RETRANSMIT", "_DROP", "_LOST"]
                .iter()
                .any(|end| entry.keyword.ends_with(end));
            assert!(!named || entry.fate.is_some(), "{}", entry.keyword);
        }
    }
}
