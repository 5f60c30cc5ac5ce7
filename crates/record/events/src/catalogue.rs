//! Every keyword of stackline: who emits it, what its data are, in their order. Docs, importers, lifelines and findings read
//! this table; an event with a keyword that is not in it is kept and shown all the same.
//!
//! The data of everything on the path of a data unit begin alike: `unit; stream; offset; bytes` (see [`crate::unit_ids`]). A
//! field that is not known is empty. `offset` counts bytes of the transport's stream from the connection's first byte on.

pub mod block_rows;
pub mod rows;

pub use rows::ENTRIES;

/// Where an event comes from; the first part of its keyword names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// The application: operations of the language.
    Application,
    /// The socket: system calls.
    Socket,
    /// The protocol machine, of ours or the kernel's.
    Protocol,
    /// The network: queues, links, hosts' interfaces.
    Network,
    /// A structured display, its clients and what stands between, live or in virtual time.
    Display,
    /// Monitors of machines: intervals, stamped with their end; their first data field is the interval in ns.
    Monitor,
    /// stackline itself.
    Tool,
}

/// What an event says became of data beside its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataFate {
    /// It, or a part of it, is sent again.
    SentAgain,
    /// It, or a part of it, is dropped.
    Dropped,
    /// It is given up by who waits for it.
    GivenUp,
    /// It is discarded in favour of a newer request.
    Flushed,
}

/// One row.
#[derive(Clone, Copy, Debug)]
pub struct CatalogueEntry {
    /// The keyword.
    pub keyword: &'static str,
    /// Who emits it.
    pub layer: Layer,
    /// Names of its data, in order.
    pub data: &'static [&'static str],
    /// What happened, for people.
    pub help: &'static str,
    /// What became of data beside its way, if it is about that.
    pub fate: Option<DataFate>,
    /// Whether a program has done work of its own when it happens, and no transport has taken anything.
    pub is_work: bool,
}

impl CatalogueEntry {
    /// Which data field has that name, from 0.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<usize> {
        self.data.iter().position(|field| *field == name)
    }
}

/// The row of a keyword.
#[must_use]
pub fn find(keyword: &str) -> Option<&'static CatalogueEntry> {
    ENTRIES.iter().find(|entry| entry.keyword == keyword)
}

/// What an event with a keyword says became of data beside its way; for keywords of others it follows from their names. One
/// end of a span is none: what has a beginning and an end is a part of the way.
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

/// Whether a program has done work of its own when such an event happens; of keywords of others that is not known.
#[must_use]
pub fn is_work(keyword: &str) -> bool {
    find(keyword).is_some_and(|entry| entry.is_work)
}

/// Whether it is a monitor's, of stackline's own or of others: those are known by the program that the first part names.
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
