//! Transport protocols as numbers: header sizes, packets of control exchanges, windows and congestion control of each
//! stack that the formulas cover.

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

/// Bytes of a SYN or SYN/ACK: 40 of headers and 20 of options (maximum segment size, SACK, timestamps, window scale).
const SYN_BYTES: u64 = 60;
/// Bytes of a control datagram of the stack `udp`: 25 behind the headers.
const UDP_CONTROL_BYTES: u64 = 25 + IPV4 + UDP;
/// Bytes of the smallest datagram with which a QUIC connection may begin (RFC 9000 section 14.1), headers included.
const QUIC_INITIAL_BYTES: u64 = 1200 + IPV4 + UDP;

/// Linux's minimum retransmission timeout, in seconds.
const LEAST_TIMEOUT_S: f64 = 0.2;
/// The minimum retransmission timeout of smoltcp and of RFC 6298 section 2.4, in seconds.
const SMOLTCP_LEAST_TIMEOUT_S: f64 = 1.0;
/// Segments in the first window of smoltcp.
const SMOLTCP_INITIAL_SEGMENTS: u64 = 2;

/// Full packets in the first window of QUIC. The window is ten packets of 1200 bytes, the size before path MTU
/// discovery; these bytes fill about eight packets of 1439 bytes.
const QUIC_INITIAL_SEGMENTS: u64 = 8;

/// smoltcp's buffer in each direction where none is written, in bytes.
const SMOLTCP_BUFFER: u64 = 4 << 20;
/// QUIC's receive buffer where none is written, in bytes.
const QUIC_RECEIVE_BUFFER: u64 = 1_250_000;
/// QUIC's send buffer where none is written, in bytes.
const QUIC_SEND_BUFFER: u64 = 10_000_000;

/// How a sender reacts to loss.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CongestionModel {
    /// It does not: data is sent as it is handed over, or as the window allows.
    None,
    /// CUBIC (RFC 9438).
    Cubic,
    /// Reno (RFC 5681).
    Reno,
    /// An algorithm that the formulas do not cover, with its name.
    Other(String),
}

/// The numbers of a stack on a path with a given MTU.
#[derive(Clone, Debug, PartialEq)]
pub struct TransportModel {
    /// Header bytes of a packet with data.
    pub header_bytes: u64,
    /// Payload bytes of the largest packet.
    pub segment_bytes: u64,
    /// Whether data units form one stream of bytes; otherwise each unit is a datagram.
    pub stream: bool,
    /// Bytes of a packet that only carries an acknowledgement, headers included.
    pub ack_bytes: u64,
    /// Segments in the first window; `u64::MAX` where there is no window.
    pub initial_segments: u64,
    /// Whether the sender learns which segments arrived (RFC 2018, RFC 9002), so that timeouts are rare.
    pub selective: bool,
    /// Minimum retransmission timeout in seconds; the formulas add the round-trip time to it.
    pub least_timeout_s: f64,
    /// How the sender reacts to loss.
    pub congestion: CongestionModel,
    /// Largest window in bytes, from the written buffers or a library's defaults; `None` where Linux tunes it or there
    /// is none.
    pub window_bytes: Option<f64>,
    /// The exchanges that connect and disconnect wait for: bytes of the packet there, and of the packet back.
    pub connect: Vec<(u64, u64)>,
    /// Bytes of the packet that starts a bulk transfer, and of the one that confirms it.
    pub control_bytes: u64,
    /// Whether the start of a bulk transfer is answered before data is sent.
    pub start_is_answered: bool,
    /// The assumptions about the stack.
    pub assumptions: Vec<String>,
}

impl TransportModel {
    /// The numbers of a stack on a path whose largest packet is `mtu_bytes`.
    ///
    /// # Errors
    /// One sentence, for a stack that the formulas do not cover, or an MTU that is too small for its headers.
    pub fn from_stack(stack: &Stack, mtu_bytes: u64) -> Result<Self, String> {
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
        .zip([opening.to_string(), library_windows(stack)])
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
            library_windows(stack),
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

/// The window of a stack in a library, in bytes: the smaller of its two buffers. `receive` and `send` are their sizes
/// where none are written.
fn library_window(stack: &Stack, receive: u64, send: u64) -> f64 {
    let of = |name, default| stack.number(name).unwrap_or(default);
    count_to_f64(of("receive_buffer", receive).min(of("send_buffer", send)))
}

/// The window of Linux's TCP, in bytes, if a receive buffer is written. The send buffer is left out:
/// `predict::uncovered` refuses transfers that it limits.
fn kernel_window(stack: &Stack, segment: u64) -> Option<f64> {
    let offered =
        |asked| socket_memory::offered_window(socket_memory::receive_memory(asked), segment);
    stack
        .number("receive_buffer")
        .map(offered)
        .map(count_to_f64)
}

/// The assumption about the window of Linux's TCP.
fn kernel_windows(stack: &Stack) -> String {
    let words = match stack.number("receive_buffer") {
        Some(_) => {
            "the window is what Linux offers for the specified receive buffer and the frame size"
        }
        None => "unspecified receive buffers are tuned to the needs of the path",
    };
    words.to_string()
}

/// The assumption about the window of a stack in a library.
fn library_windows(stack: &Stack) -> String {
    let is_written = |name: &&str| stack.number(name).is_some();
    let words = match ["receive_buffer", "send_buffer"].iter().any(is_written) {
        true => "the window is the smaller of the receive buffer and the send buffer",
        false => {
            "the window is the smaller of the stack's two default buffers, which have a fixed size"
        }
    };
    words.to_string()
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
    fn the_assumption_about_the_window_is_what_is_computed_with() {
        let assumed = |name, options: &[(&str, OptionValue)], words: &str| {
            let model = TransportModel::from_stack(&stack(name, options), 1500).unwrap();
            let said = model.assumptions.iter().any(|one| one.contains(words));
            assert!(said, "{:?}", model.assumptions);
            model.window_bytes
        };
        let send = [("send_buffer", OptionValue::Number(30_000))];
        assert_eq!(assumed("tcp", &send, "receive buffers are tuned"), None);
        assert_eq!(
            assumed("quic", &send, "the smaller of the receive"),
            Some(30_000.0)
        );
        assert!(assumed("quic", &[], "default buffers").is_some());
    }

    #[test]
    fn segments_fill_the_path() {
        let segment = |name, mtu| {
            TransportModel::from_stack(&stack(name, &[]), mtu)
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
        assert_eq!(
            TransportModel::from_stack(&short, 1500)
                .unwrap()
                .segment_bytes,
            524
        );
        assert!(
            TransportModel::from_stack(&stack("tcp", &[]), 52)
                .unwrap_err()
                .contains("no room")
        );
        assert!(
            TransportModel::from_stack(&stack("unix", &[]), 1500)
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
        let tcp = TransportModel::from_stack(&stack("tcp", &options), 1500).unwrap();
        assert_eq!(
            (tcp.window_bytes, tcp.congestion),
            (Some(84_058.0), CongestionModel::Reno)
        );
        let bbr = stack("tcp", &[("congestion", OptionValue::Word("bbr".into()))]);
        assert_eq!(
            TransportModel::from_stack(&bbr, 1500).unwrap().congestion,
            CongestionModel::Other("bbr".into())
        );
    }
}
