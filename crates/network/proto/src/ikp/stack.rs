//! The stack `ikp` (the message passing of the V system) as experiments name it: its options, and the mapping of the communication
//! operations to its messages. The live and the simulated world share it.
//!
//! The initiator is always the client: an operation of the responder handles the client's next message. The first byte
//! of a message is its request ([`Verb`]), then comes its number: where duplicates are delivered, the responder
//! recognises a message it has handled and repeats its answer, without counting it twice.

use super::options::{BESIDE, IkpOptions, PACKET};
use crate::blast::stack::{
    BELOW, INTERVAL, PATIENCE, PORT, RECEIVE, STRATEGIES_APART, name, strategy,
};
use crate::blast::wire::HEADER;
use crate::blast::{BlastStrategy, BlastTimeout};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use stackline_core::catalogue::{OptionKind, OptionTable, ServiceMapping, StackTable};
use stackline_core::error::Error;
use stackline_core::plan::Stack;
use stackline_core::time::Duration;

/// V's message passing.
pub const TABLE: StackTable = StackTable {
    name: "ikp",
    summary: "V's message passing: Send, Receive, Reply, with data moved by blasts (Lantz 1985, Zwaenepoel 1985)",
    options: &[
        OptionTable::new(
            "packet",
            OptionKind::Bytes(IkpOptions::SHORTEST, IkpOptions::LONGEST),
            "1024 B",
            "bytes of data in a packet, in addition to a message of 32 B",
        ),
        OptionTable::flag(
            "full",
            "retransmits an incomplete blast as a whole, after the interval",
        ),
        OptionTable::flag(
            "full_nak",
            "like full, but as soon as the receiver reports the loss",
        ),
        OptionTable::flag(
            "partial",
            "retransmits from the first missing packet onwards (default)",
        ),
        OptionTable::flag("selective", "retransmits only the missing data"),
        OptionTable::new(
            "size",
            OptionKind::Bytes(1, 1 << 30),
            "64 KiB",
            "bytes per blast of a move",
        ),
        OptionTable::new(
            "flight",
            OptionKind::Number(1, 1024),
            "1",
            "blasts of a move that may be in flight",
        ),
        INTERVAL,
        PATIENCE,
        OptionTable::new(
            "duplicates",
            OptionKind::Word(&["suppressed", "allowed"]),
            "suppressed",
            "allowed: a message whose reply was lost is delivered again, as in V; its effect is counted once",
        ),
        RECEIVE,
        PORT,
    ],
    mapping: ServiceMapping(
        "\
ConnectRequest -> Send with the token, until the Reply
AwaitConnectIndication -> Receive it, Reply
DataRequest (initiator) -> Send with a readable segment, until the Reply
AwaitDataIndication (responder) -> Receive, MoveFrom, Reply
DataRequest (responder) -> Receive, MoveTo, Reply
AwaitDataIndication (initiator) -> Send with a writable segment, until the Reply
RPCCall -> Send with a readable request and space for the response
RPCAwaitCallInd -> Receive, MoveFrom of the data that did not come with the message
RPCReturn -> MoveTo, Reply; one packet if the response fits into it
StartBulkGet, StartBulkPut -> nothing: the first Send implies it
AwaitStartBulkGet, AwaitStartBulkPut -> Receive
StopBulkGet, StopBulkPut -> nothing: every data unit is replied to
end of stream (time limit) -> a Send that signals it; at the responder, the Reply
DisconnectRequest -> Send, until the Reply
AwaitDisconnectIndication -> Receive, Reply",
    ),
    exclusive: &[STRATEGIES_APART],
    least_mtu: |stack| {
        (BELOW + HEADER) as u64
            + u64::from(BESIDE)
            + stack.number("packet").unwrap_or(PACKET.into())
    },
    unreported: (
        &[
            "cwnd_segments",
            "busy_s",
            "receive_window_limited_s",
            "send_buffer_limited_s",
            "bytes_acked",
        ],
        "the protocol has no such mechanism",
    ),
    ..StackTable::RELIABLE
};

/// The options of a stack. `packet`: the most data bytes in a packet of the path; 0 where that is not known yet.
///
/// # Errors
/// A message, when the options contradict each other or do not fit the path.
pub fn options(stack: &Stack, packet: u32) -> Result<IkpOptions, String> {
    let most = if packet == 0 {
        u64::from(u32::MAX)
    } else {
        u64::from(packet)
    };
    let wanted = stack.number("packet").unwrap_or(u64::from(PACKET));
    if wanted < IkpOptions::SHORTEST || wanted > most {
        let least = IkpOptions::SHORTEST;
        return Err(format!(
            "this path cannot carry a packet with {wanted} B of data: the range is {least} to {most} B"
        ));
    }
    let number = |name: &str, usual: u32| {
        stack
            .number(name)
            .map_or(usual, |written| u32::try_from(written).unwrap_or(u32::MAX))
    };
    let base = IkpOptions::once();
    let patience = stack
        .seconds("patience")
        .map_or(base.patience, Duration::from_seconds);
    Ok(IkpOptions {
        packet: wanted as u32,
        strategy: strategy(stack, BlastStrategy::Partial)?,
        size: number("size", base.size),
        flight: number("flight", base.flight),
        interval: stack
            .seconds("interval")
            .map(Duration::from_seconds)
            .map_or(BlastTimeout::Adaptive, BlastTimeout::Fixed),
        patience,
        once: stack.word("duplicates") != Some("allowed"),
        memory: base.memory.max(Duration(patience.0.saturating_mul(3))),
    }
    .fitted())
}

/// The settings in force, by option name.
#[must_use]
pub fn settings(options: &IkpOptions) -> Vec<(&'static str, String)> {
    let bytes = |bytes: u32| stackline_core::units::format_size(u64::from(bytes));
    let interval = match options.interval {
        BlastTimeout::Fixed(interval) => interval.to_string(),
        BlastTimeout::Adaptive => "adaptive".to_string(),
    };
    alloc::vec![
        ("packet", bytes(options.packet)),
        ("strategy", name(options.strategy).to_string()),
        ("size", bytes(options.size)),
        ("flight", options.flight.to_string()),
        ("interval", interval),
        (
            "duplicates",
            if options.once {
                "suppressed"
            } else {
                "allowed"
            }
            .to_string()
        ),
    ]
}

/// Bytes of a message without a token: the request (1) and the number (8).
pub const MESSAGE: usize = 9;
/// Bytes of the message that connects: a message and the token (16).
pub const CONNECT: usize = MESSAGE + 16;

/// The request of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Verb {
    /// Open a connection; the token follows.
    Connect = 1,
    /// The server is to take the data unit in the readable segment.
    Put = 2,
    /// The server is to move a data unit into the writable segment.
    Get = 3,
    /// Both: the server is to take a request and to move a response.
    Call = 4,
    /// No more data units come.
    End = 5,
    /// The client closes the connection.
    Close = 6,
    /// The client waits for the server to end the connection.
    Closing = 7,
}

const VERBS: [Verb; 7] = [
    Verb::Connect,
    Verb::Put,
    Verb::Get,
    Verb::Call,
    Verb::End,
    Verb::Close,
    Verb::Closing,
];

/// The error when both sides wait: the responder for `awaited`, while the initiator has sent another request.
#[must_use]
pub fn both_wait(awaited: &str, verb: Verb) -> Error {
    Error::measurement(format!("both sides wait: the responder for {awaited}, the initiator in {verb:?}"))
        .hint("V's message passing handles one message at a time; make one side send while the other receives")
}

impl Verb {
    /// The message of that number with this request.
    #[must_use]
    pub fn message(self, number: u64) -> [u8; MESSAGE] {
        let mut message = [self as u8; MESSAGE];
        message[1..].copy_from_slice(&number.to_le_bytes());
        message
    }

    /// The message that connects.
    #[must_use]
    pub fn connect(token: &[u8; 16]) -> [u8; CONNECT] {
        let mut message = [0; CONNECT];
        message[..MESSAGE].copy_from_slice(&Self::Connect.message(0));
        message[MESSAGE..].copy_from_slice(token);
        message
    }

    /// Request, number and token of a message; `None` if it has another format.
    #[must_use]
    pub fn read(message: &[u8]) -> Option<(Self, u64, &[u8])> {
        let (said, token) = message.split_first_chunk::<MESSAGE>()?;
        let verb = VERBS.into_iter().find(|verb| *verb as u8 == said[0])?;
        let number = u64::from_le_bytes([
            said[1], said[2], said[3], said[4], said[5], said[6], said[7], said[8],
        ]);
        (token.len() == if verb == Self::Connect { 16 } else { 0 }).then_some((verb, number, token))
    }
}

/// The content of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IkpReplyContent {
    /// It has been done: the reply is empty.
    Done,
    /// No more data units come.
    Over,
}

impl IkpReplyContent {
    /// The bytes of that reply.
    #[must_use]
    pub const fn reply(self) -> &'static [u8] {
        match self {
            Self::Done => &[],
            Self::Over => &[1],
        }
    }

    /// The content of a reply; `None` if it has another format.
    #[must_use]
    pub fn read(reply: &[u8]) -> Option<Self> {
        match reply {
            [] => Some(Self::Done),
            [1] => Some(Self::Over),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop, prop_assert_eq, proptest};
    use stackline_core::catalogue::OptionValue;

    fn written(options: &[(&str, OptionValue)]) -> Stack {
        let options = options
            .iter()
            .map(|(name, value)| ((*name).to_string(), value.clone()))
            .collect();
        Stack {
            name: "ikp".to_string(),
            options,
            ..Stack::default()
        }
    }

    #[test]
    fn stack_options_choose_the_machine() {
        let plain = options(&Stack::plain("ikp"), 1440).unwrap();
        assert_eq!(
            (plain.packet, plain.strategy, plain.once),
            (1024, BlastStrategy::Partial, true)
        );
        let v = written(&[
            ("duplicates", OptionValue::Word("allowed".into())),
            ("selective", OptionValue::Set),
        ]);
        let v = options(&v, 1440).unwrap();
        assert_eq!((v.strategy, v.once), (BlastStrategy::Selective, false));
        let fixed = options(&written(&[("interval", OptionValue::Seconds(0.1))]), 0).unwrap();
        assert_eq!(fixed.interval, BlastTimeout::Fixed(Duration(100_000_000)));
    }

    #[test]
    fn contradictions_are_reported() {
        let both = written(&[("full", OptionValue::Set), ("partial", OptionValue::Set)]);
        assert_eq!(
            options(&both, 1440).unwrap_err(),
            "ikp takes either full or partial, not both"
        );
        let long = options(&written(&[("packet", OptionValue::Number(9000))]), 1440).unwrap_err();
        assert!(long.contains("32 to 1440 B"), "{long}");
    }

    #[test]
    fn a_message_is_read_as_it_was_meant() {
        for verb in VERBS.into_iter().skip(1) {
            assert_eq!(Verb::read(&verb.message(7)), Some((verb, 7, &[][..])));
        }
        assert_eq!(
            Verb::read(&Verb::connect(&[9; 16])),
            Some((Verb::Connect, 0, &[9; 16][..]))
        );
        for answer in [IkpReplyContent::Done, IkpReplyContent::Over] {
            assert_eq!(IkpReplyContent::read(answer.reply()), Some(answer));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_message_or_not(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Some((verb, number, token)) = Verb::read(&bytes) {
                prop_assert_eq!(&verb.message(number)[..], &bytes[..MESSAGE]);
                prop_assert_eq!(token, &bytes[MESSAGE..]);
            }
        }
    }
}
