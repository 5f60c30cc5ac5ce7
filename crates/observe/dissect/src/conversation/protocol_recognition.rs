//! The list of protocols, and the recognition of a TCP connection's protocol by its first bytes, never by the port alone. (Datagrams of
//! the DNS ports are read as DNS, others are tried as QUIC.) To add a protocol, add its file and an entry in [`ALL`].

use super::Dissector;
use super::amqp::Amqp;
use super::dns::Dns;
use super::ftp::Ftp;
use super::http1::Http1;
use super::http2::Http2;
use super::kafka::Kafka;
use super::memcached::Memcached;
use super::mongodb::MongoDb;
use super::mqtt::Mqtt;
use super::mysql::Mysql;
use super::nats::Nats;
use super::opening::{ConversationOpening, ProtocolVerdict};
use super::postgres::Postgres;
use super::resp::Resp;
use super::tls::TlsDissector;
use super::tunnel::Tunnel;
use super::turn_dissector::TurnDissector;
use stackline_events::unit_ids::EventStreamDirection;

/// A protocol that can be recognised.
struct KnownProtocol {
    recognise: fn(&ConversationOpening<'_>) -> ProtocolVerdict,
    start: fn() -> Box<dyn Dissector>,
}

/// All protocols; those that are recognised by more bytes come first.
const ALL: &[KnownProtocol] = &[
    KnownProtocol {
        recognise: super::http2::recognise,
        start: || Box::new(Http2::default()),
    },
    KnownProtocol {
        recognise: super::http1::recognise,
        start: || Box::new(Http1::with_tunnels(|| Box::new(Tunnel::new(recognise)))),
    },
    KnownProtocol {
        recognise: super::mysql::recognise,
        start: || Box::new(Mysql::default()),
    },
    KnownProtocol {
        recognise: super::postgres::recognise,
        start: || Box::new(Postgres::default()),
    },
    KnownProtocol {
        recognise: super::dns::recognise,
        start: || Box::new(Dns::default()),
    },
    KnownProtocol {
        recognise: super::resp::recognise,
        start: || Box::new(Resp::default()),
    },
    KnownProtocol {
        recognise: super::memcached::recognise,
        start: || Box::new(Memcached::default()),
    },
    KnownProtocol {
        recognise: super::nats::recognise,
        start: || Box::new(Nats::default()),
    },
    KnownProtocol {
        recognise: super::ftp::recognise,
        start: || Box::new(Ftp::default()),
    },
    KnownProtocol {
        recognise: super::mongodb::recognise,
        start: || Box::new(MongoDb::default()),
    },
    KnownProtocol {
        recognise: super::kafka::recognise,
        start: || Box::new(Kafka::default()),
    },
    KnownProtocol {
        recognise: super::mqtt::recognise,
        start: || Box::new(Mqtt::default()),
    },
    KnownProtocol {
        recognise: super::amqp::recognise,
        start: || Box::new(Amqp::default()),
    },
    KnownProtocol {
        recognise: super::tls::recognise,
        start: || Box::new(TlsDissector::default()),
    },
];

/// The number of bytes of a side after which the decision is made.
pub const ENOUGH: usize = 64;

/// The number of bytes of the client after which it has said its first word, where the server speaks first.
const WORD: usize = 6;

/// The dissector for a connection that begins with these bytes; `None` if more bytes are needed and `ended` does not say that none will
/// come. An unknown protocol is read by turns.
#[must_use]
pub fn recognise(opening: &ConversationOpening<'_>, ended: bool) -> Option<Box<dyn Dissector>> {
    let mut open = false;
    for protocol in ALL {
        match (protocol.recognise)(opening) {
            ProtocolVerdict::Yes => return Some((protocol.start)()),
            ProtocolVerdict::No => {}
            ProtocolVerdict::Perhaps => open = true,
        }
    }
    let enough = opening.there.len() >= ENOUGH || opening.back.len() >= ENOUGH;
    let turned = opening.there.len() >= WORD && !opening.back.is_empty();
    (!open || ended || enough || turned).then(by_turns)
}

/// The dissector for unknown protocols.
#[must_use]
pub fn by_turns() -> Box<dyn Dissector> {
    Box::new(TurnDissector::new(
        "alternating",
        EventStreamDirection::There,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// First bytes of both sides, and the protocol they tell.
    const OPENINGS: &[(&[u8], &[u8], &str)] = &[
        (b"GET / HTTP/1.1\r\n\r\n", b"", "HTTP/1.1"),
        (
            b"\x16\x03\x01\x00\xc8\x01\x00\x00\xc4",
            b"",
            "TLS, alternating",
        ),
        (b"*1\r\n$4\r\nPING\r\n", b"", "RESP"),
        (b"PING\r\n", b"", "RESP"),
        (b"\0\0\0\x0e\0\x03\0\0user\0\0", b"", "PostgreSQL"),
        (b"\0\0\0\x08\x04\xd2\x16\x2f", b"", "PostgreSQL"),
        (b"", b"\x4a\0\0\0\x0a8.0.36\0", "MySQL"),
        (
            b"\0\x13\0\x01\x01\0\0\x01\0\0\0\0\0\0\x01a\0\0\x01\0\x01",
            b"",
            "DNS",
        ),
        (b"get user:7\r\n", b"", "memcached"),
        (b"set k 0 0 2\r\nhi\r\n", b"", "memcached"),
        (
            b"\x80\0\0\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0k",
            b"",
            "memcached",
        ),
        (b"", b"INFO {\"server_id\":1}\r\n", "NATS"),
        (
            b"\x26\0\0\0\x01\0\0\0\0\0\0\0\xdd\x07\0\0\0\0\0\0\0\x11\0\0\0",
            b"",
            "MongoDB",
        ),
        (b"\0\0\0\x0d\0\x12\0\0\0\0\0\x01\0\x03app", b"", "Kafka"),
        (b"\x10\x0d\0\x04MQTT\x04\x02\0\x3c\0\x01a", b"", "MQTT"),
        (b"AMQP\0\0\x09\x01", b"", "AMQP"),
        (b"USER x\r\n", b"220 ready\r\n", "FTP"),
        (b"EHLO x\r\n", b"220 ready\r\n", "alternating"),
        (b"", b"220 ready\r\n", "alternating"),
        (b"hello", b"hi", "alternating"),
    ];

    #[test]
    fn first_bytes_tell_one_protocol() {
        for (there, back, name) in OPENINGS {
            let opening = ConversationOpening {
                there,
                back,
                port: 1,
            };
            let recognised = recognise(&opening, true).map(|dissector| dissector.protocol());
            assert_eq!(recognised, Some(*name));
            let sure = ALL
                .iter()
                .filter(|protocol| (protocol.recognise)(&opening) == ProtocolVerdict::Yes)
                .count();
            assert_eq!(sure, usize::from(*name != "alternating"), "{name}");
        }
    }

    #[test]
    fn nothing_is_chosen_before_the_bytes_tell() {
        for (there, back, name) in OPENINGS.iter().filter(|(.., name)| *name != "alternating") {
            for length in 0..there.len().max(back.len()) {
                let (there, back) = (
                    &there[..length.min(there.len())],
                    &back[..length.min(back.len())],
                );
                let recognised = recognise(
                    &ConversationOpening {
                        there,
                        back,
                        port: 1,
                    },
                    false,
                )
                .map(|dissector| dissector.protocol());
                assert!(
                    recognised.is_none_or(|known| known == *name),
                    "{name} after {length} bytes: {recognised:?}"
                );
            }
        }
    }
}
