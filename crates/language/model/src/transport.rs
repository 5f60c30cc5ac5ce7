//! What each stack adds to the data: headers, the packets of its control exchanges, windows, congestion control.

use crate::count_to_f64;
use crate::overhead::{IPV4, UDP, quic_headers, tcp_headers, udp_headers};
use crate::slow_start::INITIAL_SEGMENTS;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use stackline_core::catalogue::ClosedForm;
use stackline_core::plan::Stack;
use stackline_core::socket_memory;

/// SYN and SYN/ACK: 40 bytes of headers and 20 of options (maximum segment size, SACK, timestamps, window scale).
const SYN_BYTES: u64 = 60;
/// A control datagram of the stack `udp`: 25 bytes behind the headers.
const UDP_CONTROL_BYTES: u64 = 25 + IPV4 + UDP;
/// The least datagram with which a QUIC connection begins (RFC 9000 section 14.1), with its headers.
const QUIC_INITIAL_BYTES: u64 = 1200 + IPV4 + UDP;

/// Least retransmission timeout in seconds, as Linux has it.
const LEAST_TIMEOUT_S: f64 = 0.2;
/// The same of smoltcp, and of RFC 6298 section 2.4.
const SMOLTCP_LEAST_TIMEOUT_S: f64 = 1.0;
/// Segments in the first window of smoltcp.
const SMOLTCP_INITIAL_SEGMENTS: u64 = 2;

/// Full packets in the first window of QUIC: ten of those that it begins with, before it has searched for larger ones.
const QUIC_INITIAL_SEGMENTS: u64 = 8;

/// Buffers of smoltcp and of QUIC, where none are written.
const SMOLTCP_BUFFER: u64 = 4 << 20;
const QUIC_RECEIVE_BUFFER: u64 = 1_250_000;
const QUIC_SEND_BUFFER: u64 = 10_000_000;

/// How a sender reacts to loss.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CongestionModel {
    /// It does not: data goes out as it is handed over, or as the window lets it.
    None,
    /// RFC 9438.
    Cubic,
    /// RFC 5681.
    Reno,
    /// One these forms know nothing of.
    Other(String),
}

/// A stack as numbers, on a path of a given MTU.
#[derive(Clone, Debug, PartialEq)]
pub struct TransportModel {
    /// Header bytes of a packet with data.
    pub header_bytes: u64,
    /// Payload bytes of the largest packet.
    pub segment_bytes: u64,
    /// Whether data units run together in a stream; else each is a datagram.
    pub stream: bool,
    /// Bytes of a packet that only acknowledges.
    pub ack_bytes: u64,
    /// Segments in its first window.
    pub initial_segments: u64,
    /// Whether it learns of each segment that arrived (RFC 2018, RFC 9002), so that timeouts are rare.
    pub selective: bool,
    /// Its least retransmission timeout in seconds, beside the round trip.
    pub least_timeout_s: f64,
    /// How it reacts to loss.
    pub congestion: CongestionModel,
    /// Largest window in bytes, where one is written.
    pub window_bytes: Option<f64>,
    /// Packets of connect and disconnect that are waited for: bytes there, bytes back.
    pub connect: Vec<(u64, u64)>,
    /// Bytes of the packet that starts a bulk transfer, and of the one that confirms it.
    pub control_bytes: u64,
    /// Whether the start of a bulk transfer is answered before data goes.
    pub start_is_answered: bool,
    /// What was taken for granted of it.
    pub assumptions: Vec<String>,
}

impl TransportModel {
    /// The numbers of a stack on a path whose largest packet is `mtu_bytes`.
    ///
    /// # Errors
    /// One sentence, for a stack these forms know nothing of or a path too narrow for its headers.
    pub fn of(stack: &Stack, mtu_bytes: u64) -> Result<Self, String> {
        let form = stack.facts.form;
        let mut transport = match form {
            ClosedForm::Tcp => tcp(stack),
            ClosedForm::SmolTcp => smoltcp(stack),
            ClosedForm::Udp => udp(),
            ClosedForm::Quic => quic(stack),
            ClosedForm::None | ClosedForm::Messages => {
                let name = &stack.name;
                return Err(format!(
                    "closed-form formulas cover tcp, udp and quic, not {name}"
                ));
            }
        };
        let room = mtu_bytes.saturating_sub(transport.header_bytes);
        if room == 0 {
            return Err(format!(
                "a packet of {mtu_bytes} bytes leaves no room for data after the headers of {}",
                stack.name
            ));
        }
        let options = if matches!(form, ClosedForm::Tcp | ClosedForm::SmolTcp) {
            tcp_headers(true) - tcp_headers(false)
        } else {
            0
        };
        let written = stack
            .number("mss")
            .map(|mss| mss.saturating_sub(options).max(1));
        transport.segment_bytes = written.map_or(room, |mss| mss.min(room));
        if form == ClosedForm::Tcp {
            transport.window_bytes = kernel_window(stack, transport.segment_bytes);
        }
        Ok(transport)
    }
}

fn tcp(stack: &Stack) -> TransportModel {
    TransportModel {
        header_bytes: tcp_headers(true),
        segment_bytes: 0,
        stream: true,
        ack_bytes: tcp_headers(true),
        initial_segments: INITIAL_SEGMENTS,
        selective: true,
        least_timeout_s: LEAST_TIMEOUT_S,
        congestion: congestion(stack),
        window_bytes: None,
        connect: vec![(SYN_BYTES, SYN_BYTES)],
        control_bytes: tcp_headers(true) + 1,
        start_is_answered: false,
        assumptions: vec![
            "IPv4, TCP timestamps, an initial window of 10 segments that doubles each round trip (RFC 6928, RFC 5681)"
                .to_string(),
            kernel_windows(stack),
            "a small last segment does not wait for an acknowledgement (Nagle's algorithm with Minshall's modification, or nodelay)"
                .to_string(),
        ],
    }
}

fn smoltcp(stack: &Stack) -> TransportModel {
    let mut transport = TransportModel {
        initial_segments: SMOLTCP_INITIAL_SEGMENTS,
        selective: false,
        least_timeout_s: SMOLTCP_LEAST_TIMEOUT_S,
        window_bytes: Some(library_window(stack, SMOLTCP_BUFFER, SMOLTCP_BUFFER)),
        ..tcp(stack)
    };
    let opening = "IPv4, TCP timestamps, no selective acknowledgements, an initial window of 2 segments that doubles each round trip (smoltcp)";
    for (stated, ours) in transport
        .assumptions
        .iter_mut()
        .zip([opening.to_string(), windows(stack)])
    {
        *stated = ours;
    }
    transport
}

fn quic(stack: &Stack) -> TransportModel {
    TransportModel {
        header_bytes: quic_headers(),
        connect: vec![(QUIC_INITIAL_BYTES, QUIC_INITIAL_BYTES)],
        ack_bytes: quic_headers(),
        control_bytes: quic_headers() + 1,
        initial_segments: QUIC_INITIAL_SEGMENTS,
        window_bytes: Some(library_window(
            stack,
            QUIC_RECEIVE_BUFFER,
            QUIC_SEND_BUFFER,
        )),
        assumptions: vec![
            "IPv4, QUIC short headers with an 8-byte connection ID and a 16-byte AEAD tag, packets as large as the path allows, an initial window of 12,000 bytes (RFC 9002)".to_string(),
            "a QUIC handshake of one round trip, one full datagram each way".to_string(),
            windows(stack),
        ],
        ..tcp(stack)
    }
}

fn udp() -> TransportModel {
    TransportModel {
        header_bytes: udp_headers(),
        segment_bytes: 0,
        stream: false,
        ack_bytes: UDP_CONTROL_BYTES,
        initial_segments: u64::MAX,
        selective: false,
        least_timeout_s: LEAST_TIMEOUT_S,
        congestion: CongestionModel::None,
        window_bytes: None,
        connect: vec![(UDP_CONTROL_BYTES, UDP_CONTROL_BYTES); 2],
        control_bytes: UDP_CONTROL_BYTES,
        start_is_answered: true,
        assumptions: vec![
            "IPv4; the sender hands over datagrams at least as fast as the path carries them"
                .to_string(),
        ],
    }
}

fn congestion(stack: &Stack) -> CongestionModel {
    match stack.word("congestion") {
        None | Some("cubic") => CongestionModel::Cubic,
        Some("none") => CongestionModel::None,
        Some("reno" | "newreno" | "new_reno") => CongestionModel::Reno,
        Some(other) => CongestionModel::Other(other.to_string()),
    }
}

/// The least of the buffers written: what is in flight fits into both.
fn window(stack: &Stack) -> Option<f64> {
    ["window", "receive_buffer", "send_buffer"]
        .into_iter()
        .filter_map(|name| stack.number(name))
        .min()
        .map(count_to_f64)
}

/// The least of the buffers of a stack whose buffers are so large where none are written.
fn library_window(stack: &Stack, receive: u64, send: u64) -> f64 {
    let of = |name, default| stack.number(name).unwrap_or(default);
    count_to_f64(of("receive_buffer", receive).min(of("send_buffer", send)))
}

/// The window of Linux's TCP, where one is written. A send buffer bounds nothing by itself ([`super::predict`] says so).
fn kernel_window(stack: &Stack, segment: u64) -> Option<f64> {
    let offered =
        |asked| socket_memory::offered_window(socket_memory::receive_memory(asked), segment);
    stack
        .number("receive_buffer")
        .map(offered)
        .map(count_to_f64)
}

fn kernel_windows(stack: &Stack) -> String {
    match stack.number("receive_buffer") {
        Some(_) => {
            "the window is what Linux offers for the specified receive buffer and the frame size"
                .to_string()
        }
        None => windows(stack),
    }
}

fn windows(stack: &Stack) -> String {
    match window(stack) {
        Some(_) => "the window is the smallest buffer size specified".to_string(),
        None => "unspecified buffers are tuned to the needs of the path".to_string(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use stackline_core::catalogue::{OptionValue, StackFacts};

    pub(crate) fn stack(name: &str, options: &[(&str, OptionValue)]) -> Stack {
        let options = options
            .iter()
            .map(|(name, value)| ((*name).to_string(), value.clone()));
        let form = match name {
            "tcp" => ClosedForm::Tcp,
            "smoltcp" => ClosedForm::SmolTcp,
            "udp" => ClosedForm::Udp,
            "quic" => ClosedForm::Quic,
            _ => ClosedForm::None,
        };
        let facts = StackFacts {
            form,
            ..StackFacts::default()
        };
        Stack {
            name: name.into(),
            options: options.collect(),
            facts,
        }
    }

    #[test]
    fn segments_fill_the_path() {
        let segment = |name, mtu| {
            TransportModel::of(&stack(name, &[]), mtu)
                .unwrap()
                .segment_bytes
        };
        assert_eq!(
            [
                segment("tcp", 1500),
                segment("udp", 1500),
                segment("quic", 1500)
            ],
            [1448, 1472, 1439]
        );
        let short = stack("tcp", &[("mss", OptionValue::Number(536))]);
        assert_eq!(TransportModel::of(&short, 1500).unwrap().segment_bytes, 524);
        assert!(
            TransportModel::of(&stack("tcp", &[]), 52)
                .unwrap_err()
                .contains("no room")
        );
        assert!(
            TransportModel::of(&stack("unix", &[]), 1500)
                .unwrap_err()
                .contains("unix")
        );
    }

    #[test]
    fn options_count() {
        let options = [
            ("receive_buffer", OptionValue::Number(65_536)),
            ("congestion", OptionValue::Word("reno".into())),
        ];
        let tcp = TransportModel::of(&stack("tcp", &options), 1500).unwrap();
        assert_eq!(
            (tcp.window_bytes, tcp.congestion),
            (Some(84_058.0), CongestionModel::Reno)
        );
        let bbr = stack("tcp", &[("congestion", OptionValue::Word("bbr".into()))]);
        assert_eq!(
            TransportModel::of(&bbr, 1500).unwrap().congestion,
            CongestionModel::Other("bbr".into())
        );
    }
}
