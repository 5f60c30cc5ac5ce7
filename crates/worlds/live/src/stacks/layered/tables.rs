//! What the tables of the stacks over TCP have in common: facts and options.

use super::tls;
use crate::stacks::tcp;
use stackline_core::catalogue::{
    ClosedForm, FlowControl, OptionKind, OptionTable, PacketContent, StackFacts, StackTable,
};

/// The base of the tables here. Packets show their bytes of TCP's stream; the ends record which of them are the records and frames of a
/// data unit (`UNIT_FRAMED`).
pub(crate) const TABLE: StackTable = StackTable {
    ecn: true,
    facts: StackFacts {
        packets: PacketContent::Framed,
        form: ClosedForm::None,
        flow_control: FlowControl::KernelBuffers,
        ..StackTable::RELIABLE.facts
    },
    ..StackTable::RELIABLE
};

/// The options of TCP that every stack here has.
pub(crate) const TCP_OPTIONS: [OptionTable; 13] = StackTable::joined(
    &[OptionTable::new(
        "nagle",
        OptionKind::Flag,
        "off: TCP_NODELAY is set, as clients and servers of these protocols do",
        "Nagle's algorithm holds back small segments",
    )],
    &tcp::TABLE.only([
        "congestion",
        "send_buffer",
        "notsent_lowat",
        "receive_buffer",
        "mss",
        "port",
        "keepalive",
        "dscp",
        "source",
        "source_port",
        "interface",
        "ttl",
    ]),
);

/// What stacks have that run over TLS when it is asked for.
pub(super) const WITH_TLS: [OptionTable; 17] = StackTable::joined(
    &TCP_OPTIONS,
    &StackTable::joined::<4>(
        &[OptionTable::flag(
            "tls",
            "over TLS, as on the Internet, with a certificate that is made for the run",
        )],
        &tls::OPTIONS,
    ),
);

pub(super) use super::tls::{EXCLUSIVE, EXCLUSIVE_WITH_STREAMS, NEED_TLS};
