//! The communication operations of the language on each protocol stack: one file per stack, and the list of all stacks.

use crate::error::{Error, Result};
use contract::LiveStack;
use stackline_core::catalogue::StackTable;

mod authentication;
mod blast;
mod byte_channel;
mod certificate;
pub mod connection_group;
pub mod contract;
mod endpoint_runtime;
mod far_end;
mod ftam;
mod ftp;
mod handshake_counts;
mod http_exchange;
mod ikp;
mod ip;
mod ip_options;
mod layered;
mod mptcp;
mod pair_queues;
mod plugin;
mod program;
mod quic;
pub(crate) mod server_patience;
mod stream;
mod tcp;
mod tcp_record;
mod traced_connection;
mod udp;
mod unix;

pub use far_end::negotiate_http_version;
pub(crate) use far_end::trusting_client;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use far_end::{answer as answer_far_end, answer_in_datagrams};
pub(crate) use traced_connection::FlowTrace;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use unix::connection_over as stream_over;

/// Every stack that an agent can use.
const ALL: &[&dyn LiveStack] = &[
    &tcp::LiveTcpStack,
    &mptcp::Mptcp,
    &unix::Unix,
    &layered::TLS,
    &layered::WEBSOCKET,
    &layered::HTTP1,
    &layered::HTTP2,
    &layered::GRPC,
    &quic::QUIC,
    &quic::HTTP3,
    &udp::Udp,
    &blast::SAW,
    &blast::WINDOW,
    &blast::BLAST,
    &ikp::LiveIkpStack,
    &ftam::FtamStack,
    &ftp::FtpStack,
    &plugin::PluginStack,
    &program::ProgramStack,
    &far_end::HTTP,
    &far_end::HTTPS,
    &far_end::WS,
    &far_end::WSS,
    &far_end::GRPC,
    &far_end::GRPCS,
    &far_end::IPERF3,
    &far_end::REDIS,
    &far_end::REDISS,
    &far_end::NATS,
    &far_end::NATS_TLS,
    &far_end::MQTT,
    &far_end::MQTTS,
    &far_end::POSTGRES,
    &far_end::MYSQL,
    &far_end::FTP,
    &far_end::FTPS,
    &far_end::ECHO,
    &far_end::DISCARD,
    &far_end::CHARGEN,
    &far_end::TCPCONNECT,
    &far_end::PING,
    &far_end::DNS,
    &far_end::STAMP,
    &far_end::TWAMP,
    &far_end::NTP,
    &far_end::UDPECHO,
];

/// The stack of that name, if there is one.
#[must_use]
pub fn find_stack(name: &str) -> Option<&'static dyn LiveStack> {
    ALL.iter().copied().find(|stack| stack.table().name == name)
}

/// The stack of that name.
///
/// # Errors
/// An [`Error`] when there is none.
pub fn require_stack(name: &str) -> Result<&'static dyn LiveStack> {
    let failure = || {
        Error::input(format!("this agent has no stack named {name}"))
            .hint("`stackline stacks` lists them")
    };
    find_stack(name).ok_or_else(failure)
}

/// The tables of all stacks.
#[must_use]
pub fn stack_tables() -> Vec<StackTable> {
    ALL.iter().map(|stack| *stack.table()).collect()
}
