//! What an event with a given keyword says about a unit: that it passes a point of its path, that something happened to it beside
//! the path (a drop, a retransmission), or nothing.

use stackline_events::catalogue::block_rows::SOURCE_KEYWORD;
use stackline_events::catalogue::{self, CatalogueEntry, DataFate, Layer};

/// What an event with a keyword says about the unit it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventClass {
    /// The unit passes a point of its path.
    OnPath,
    /// Something happens to the unit: the given fate, or without one that it is marked, duplicated, waited for or logged.
    Beside(Option<DataFate>),
    /// It says which other unit, or which foreign trace, the unit was made for.
    Parent,
    /// It says nothing about where a unit is: it is about a machine, or about several units at once.
    Elsewhere,
}

/// The role of a keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeywordRole {
    pub(crate) class: EventClass,
    /// Where on one direction of the path it lies, from 1 (the call) to 9 (received); 0 for foreign keywords and those off the path.
    pub(crate) stage: u8,
    /// Its row in the catalogue; `usize::MAX` for foreign keywords.
    pub(crate) row: usize,
    /// Its layer in the catalogue; `None` for foreign keywords.
    pub(crate) layer: Option<Layer>,
    /// Whether its events say if a server had the unit in memory (of block servers).
    pub(crate) says_source: bool,
    /// Whether its events say which bytes of a stream are the frames of a unit.
    pub(crate) is_framing: bool,
    /// Whether packets of both directions are seen there, as at a captured interface (NET_SEEN).
    pub(crate) is_watched: bool,
}

/// The stage at which a sending call returns: the unit may already be further along its path then.
const RETURNS: u8 = 3;

impl KeywordRole {
    /// The role of a keyword.
    pub(crate) fn from_keyword(keyword: &str) -> Self {
        let row = catalogue::ENTRIES
            .iter()
            .position(|entry| entry.keyword == keyword);
        let Some(row) = row else {
            return Self::foreign(keyword);
        };
        let entry = &catalogue::ENTRIES[row];
        let (class, stage) = if entry.data.first() == Some(&"unit") {
            own(entry)
        } else {
            (EventClass::Elsewhere, 0)
        };
        Self {
            class,
            stage,
            row,
            layer: Some(entry.layer),
            says_source: false,
            is_framing: keyword == "UNIT_FRAMED",
            is_watched: keyword == "NET_SEEN",
        }
    }

    /// The role of a keyword that is not in the catalogue.
    fn foreign(keyword: &str) -> Self {
        let class = match catalogue::fate(keyword) {
            _ if catalogue::is_monitor(keyword) => EventClass::Elsewhere,
            None => EventClass::OnPath,
            fate => EventClass::Beside(fate),
        };
        Self {
            class,
            stage: 0,
            row: usize::MAX,
            layer: None,
            says_source: keyword == SOURCE_KEYWORD,
            is_framing: false,
            is_watched: false,
        }
    }

    /// Whether the keyword is one of stackline's own, from the catalogue.
    pub(crate) const fn is_own(&self) -> bool {
        self.layer.is_some()
    }

    /// Whether a sending call returns at this point.
    pub(crate) const fn returns(&self) -> bool {
        self.stage == RETURNS
    }

    /// Whether a unit at this point has left the sender's system call.
    pub(crate) const fn is_beyond(&self) -> bool {
        self.stage > RETURNS
    }

    /// Whether its events carry bytes of a stream that may be parts of several units.
    pub(crate) const fn carries_bytes(&self) -> bool {
        matches!(
            self.layer,
            Some(Layer::Socket | Layer::Protocol | Layer::Network)
        )
    }
}

/// Class and stage of a keyword of the catalogue.
fn own(entry: &CatalogueEntry) -> (EventClass, u8) {
    let stage = match entry.keyword {
        "APP_CALL" | "APP_SEND" | "APP_REPLY" | "APP_TURN" | "APP_CONNECT" | "DISPLAY_CALL" => 1,
        "SOCK_SEND"
        | "DISPLAY_SEND"
        | "STREAM_BLOCKED"
        | "STREAM_RELEASED"
        | "CONNECTION_BLOCKED"
        | "CONNECTION_RELEASED" => 2,
        "SOCK_SENT" | "APP_SENT" | "APP_REPLIED" => RETURNS,
        "TCP_SEGMENT" | "BLAST_SEND" | "QUIC_SENT" => 4,
        // DISPLAY_AGENT and DISPLAY_ARRIVE alternate from host to host, so they share a stage: time orders them.
        "NET_ENQUEUE" | "NET_DEQUEUE" | "NET_SEEN" | "DISPLAY_ARRIVE" | "DISPLAY_INTERNET"
        | "DISPLAY_AGENT" => 5,
        "NET_DELIVER" | "DISPLAY_PARSE" => 6,
        "TCP_CONNECTED" | "TLS_CONNECTED" | "QUIC_CONNECTED" => 7,
        "QUIC_RECEIVED" | "DISPLAY_STORE" => 7,
        "SOCK_RECEIVED" | "DISPLAY_RENDER" => 8,
        "APP_INDICATION" | "APP_RECEIVED" | "APP_RESPONSE" | "APP_CONNECTED" | "DISPLAY_DONE" => 9,
        _ => 0,
    };
    let class = match entry.keyword {
        _ if stage > 0 => EventClass::OnPath,
        _ if entry.fate.is_some() => EventClass::Beside(entry.fate),
        // The initiator's connect can return before or after the responder's accept, so it is not on the path.
        "APP_ACCEPTED" => EventClass::Beside(None),
        // A log line of the program about the unit.
        "LOG" => EventClass::Beside(None),
        "REQUEST_PARENT" | "REQUEST_TRACE" => EventClass::Parent,
        // It says which bytes are a unit's, and not where the unit is.
        "UNIT_FRAMED" => EventClass::Elsewhere,
        // It acknowledges all bytes before it, so it belongs to no single unit.
        "BLAST_ACK" => EventClass::Elsewhere,
        _ if matches!(entry.layer, Layer::Protocol | Layer::Network) => EventClass::Beside(None),
        // Events about waiting of the application or of a system call.
        _ => EventClass::Elsewhere,
    };
    (class, stage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_of_our_own() {
        for keyword in [
            "APP_CALL",
            "SOCK_SEND",
            "TCP_SEGMENT",
            "NET_ENQUEUE",
            "NET_DELIVER",
            "SOCK_RECEIVED",
            "APP_RESPONSE",
        ] {
            assert_eq!(
                KeywordRole::from_keyword(keyword).class,
                EventClass::OnPath,
                "{keyword}"
            );
        }
        for keyword in [
            "DISPLAY_CALL",
            "DISPLAY_AGENT",
            "DISPLAY_PARSE",
            "DISPLAY_DONE",
        ] {
            assert_eq!(
                KeywordRole::from_keyword(keyword).class,
                EventClass::OnPath,
                "{keyword}"
            );
        }
        for keyword in [
            "APP_START",
            "UNIT_FRAMED",
            "APP_AWAIT",
            "SOCK_RECEIVE",
            "TCP_INFO",
            "QUIC_INFO",
            "CPU_USE",
            "RUN_START",
        ] {
            assert_eq!(
                KeywordRole::from_keyword(keyword).class,
                EventClass::Elsewhere,
                "{keyword}"
            );
        }
        for keyword in [
            "TCP_RETRANSMIT",
            "BLAST_RETRANSMIT",
            "IKP_RETRANSMIT",
            "QUIC_LOST",
        ] {
            assert_eq!(
                KeywordRole::from_keyword(keyword).class,
                EventClass::Beside(Some(DataFate::SentAgain)),
                "{keyword}"
            );
        }
        assert_eq!(
            KeywordRole::from_keyword("NET_MARK").class,
            EventClass::Beside(None)
        );
    }

    #[test]
    fn keywords_of_others() {
        assert_eq!(
            KeywordRole::from_keyword("DPSS_START_READ").class,
            EventClass::OnPath
        );
        assert_eq!(
            KeywordRole::from_keyword("VMSTAT_SYS_CALLS").class,
            EventClass::Elsewhere
        );
        assert_eq!(
            KeywordRole::from_keyword("NETSTAT_RETRANSSEGS").class,
            EventClass::Elsewhere
        );
        assert_eq!(
            KeywordRole::from_keyword("RTP_RETRANSMIT").class,
            EventClass::Beside(Some(DataFate::SentAgain))
        );
    }
}
