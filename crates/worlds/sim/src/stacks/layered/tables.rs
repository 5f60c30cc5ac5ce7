//! What the tables of the stacks over TCP have in common: facts and options.

use crate::stacks::linux_tcp;
use stackline_core::catalogue::{
    ClosedForm, FlowControl, OptionKind, OptionTable, PacketContent, StackFacts, StackTable,
};
use stackline_proto::tls;

/// The base of the tables here. Packets show their bytes of TCP's stream; the ends record which of them are the records and frames of a
/// data unit (`UNIT_FRAMED`).
pub(super) const TABLE: StackTable = StackTable {
    files: false,
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
pub(super) const TCP_OPTIONS: [OptionTable; 12] = StackTable::joined(
    &[OptionTable::new(
        "nagle",
        OptionKind::Flag,
        "off: TCP_NODELAY is set, as clients and servers of these protocols do",
        "Nagle's algorithm holds back small segments",
    )],
    &linux_tcp::TABLE.only([
        "congestion",
        "send_buffer",
        "notsent_lowat",
        "receive_buffer",
        "mss",
        "delayed_ack",
        "timeout",
        "dscp",
        "first_window",
        "quickack",
        "least_timeout",
    ]),
);

/// What stacks have that run over TLS when it is asked for.
pub(super) const WITH_TLS: [OptionTable; 15] = StackTable::joined(
    &TCP_OPTIONS,
    &StackTable::joined::<3>(
        &[OptionTable::flag(
            "tls",
            "over TLS, as on the Internet, with a certificate that is made for the run",
        )],
        &tls::OPTIONS,
    ),
);
