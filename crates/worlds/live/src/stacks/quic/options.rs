//! The options that the stacks on QUIC have beside those of every world, and what they need of each other.

use crate::stacks::ip_options::UNMARKED_OPTIONS;
use stackline_core::catalogue::{OptionKind, OptionTable, StackTable};
use stackline_proto::quic;

/// What only real sockets and sessions have.
pub(super) const LIVE_OPTIONS: [OptionTable; 2] = [
    OptionTable::flag(
        "early_data",
        "with `resume`: later connections send their first data with the handshake (0-RTT), a round trip earlier; whoever sees it could replay it",
    ),
    OptionTable::new(
        "migrate",
        OptionKind::Time,
        "the socket keeps its port",
        "the initiator changes its local port every so often, and its connections go on (RFC 9000, 9); 0 s: never",
    ),
];

/// What the options need of each other.
pub(super) const NEEDS: &[(&str, &str)] = &[("early_data", "resume")];
/// Pairs that share a connection share its first data; an address that changes has no port of its own.
pub(super) const EXCLUSIVE: &[&[&str]] = &[&["early_data", "streams"], &["migrate", "source_port"]];

/// The options of `quic`.
pub(super) const QUIC_OPTIONS: [OptionTable; 17] = StackTable::joined(
    &StackTable::joined::<13>(
        quic::TABLE.options,
        &StackTable::joined::<4>(&LIVE_OPTIONS, &DATAGRAM_OPTIONS),
    ),
    &UNMARKED_OPTIONS,
);

/// What only `quic` has: the units of HTTP/3 are in streams.
const DATAGRAM_OPTIONS: [OptionTable; 2] = [
    OptionTable::flag(
        "datagrams",
        "each data unit is an unreliable datagram (RFC 9221): lost ones are counted, not retransmitted; packets of the path limit its size",
    ),
    OptionTable::new(
        "call_timeout",
        OptionKind::Time,
        "1 s",
        "with `datagrams`: a call not answered within this time counts as lost",
    ),
];

/// The same of `quic`.
pub(super) const QUIC_NEEDS: &[(&str, &str)] =
    &[("early_data", "resume"), ("call_timeout", "datagrams")];
/// The same of `quic`; the data of a connection is either in streams or in datagrams.
pub(super) const QUIC_EXCLUSIVE: &[&[&str]] = &[
    &["early_data", "streams"],
    &["migrate", "source_port"],
    &["datagrams", "streams"],
    &["datagrams", "early_data"],
];
