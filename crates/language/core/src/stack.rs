//! A stack as a plan holds it: its name, the options that are written, and facts that reports and predictions need.
//!
//! Which options exist and which values they accept is in `catalogue`.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use serde::{Deserialize, Serialize};

/// A stack and its options.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stack {
    /// The stack's name.
    pub name: String,
    /// The options that are written, ordered by name.
    pub options: BTreeMap<String, OptionValue>,
    /// Facts from the stack's table.
    #[serde(default)]
    pub facts: StackFacts,
}

impl fmt::Display for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        let written: Vec<String> = self
            .options
            .iter()
            .map(|(name, value)| match value {
                OptionValue::Set => name.clone(),
                OptionValue::Number(n) => alloc::format!("{name} = {n}"),
                OptionValue::Seconds(s) => {
                    alloc::format!("{name} = {}", crate::units::format_time(*s))
                }
                OptionValue::Word(w) => alloc::format!("{name} = {w}"),
                OptionValue::Text(text) => alloc::format!("{name} = \"{text}\""),
            })
            .collect();
        if written.is_empty() {
            Ok(())
        } else {
            write!(f, "({})", written.join(", "))
        }
    }
}

impl Stack {
    /// A stack with no option written.
    #[must_use]
    pub fn plain(name: &str) -> Self {
        Self {
            name: name.to_string(),
            ..Self::default()
        }
    }

    /// Whether the option is written.
    #[must_use]
    pub fn flag(&self, name: &str) -> bool {
        self.options.contains_key(name)
    }

    /// The option's value, when it is a number or a number of bytes.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<u64> {
        match self.options.get(name) {
            Some(OptionValue::Number(n)) => Some(*n),
            _ => None,
        }
    }

    /// How many consecutive pairs of a part share a connection, at least 1.
    #[must_use]
    pub fn pairs_per_connection(&self) -> u32 {
        let streams = self
            .number("streams")
            .filter(|_| self.facts.shares_connections);
        streams.map_or(1, |streams| {
            u32::try_from(streams).unwrap_or(u32::MAX).max(1)
        })
    }

    /// The option's value in seconds, when it is a time.
    #[must_use]
    pub fn seconds(&self, name: &str) -> Option<f64> {
        match self.options.get(name) {
            Some(OptionValue::Seconds(s)) => Some(*s),
            _ => None,
        }
    }

    /// The option's value, when it is a word.
    #[must_use]
    pub fn word(&self, name: &str) -> Option<&str> {
        match self.options.get(name) {
            Some(OptionValue::Word(w)) => Some(w),
            _ => None,
        }
    }

    /// The option's value, when it is a quoted text.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.options.get(name) {
            Some(OptionValue::Text(text)) => Some(text),
            _ => None,
        }
    }
}

/// The value an option was given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OptionValue {
    /// A flag, which has no value.
    Set,
    /// Bytes, or a whole number.
    Number(u64),
    /// A time in seconds.
    Seconds(f64),
    /// A word or a name.
    Word(String),
    /// A text that is written in quotation marks.
    Text(String),
}

/// How the packets of a stack show which data units they carry, so that network events can be associated with units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PacketContent {
    /// They do not show it, or only encrypted.
    #[default]
    Unknown,
    /// By TCP sequence numbers.
    Stream,
    /// By TCP sequence numbers, of a stream that has data units in records or frames of a protocol above TCP.
    Framed,
    /// Each datagram is a data unit and carries its number.
    Datagrams,
    /// By the headers of the blast protocol.
    Blasts,
}

/// Which closed-form model predicts a stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClosedForm {
    /// No model.
    #[default]
    None,
    /// TCP as implemented by Linux.
    Tcp,
    /// TCP as implemented by smoltcp.
    SmolTcp,
    /// UDP datagrams.
    Udp,
    /// QUIC.
    Quic,
    /// The Host-Host protocol (NCP) over IMPs.
    Messages,
}

/// What limits the data in flight from a sender to a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FlowControl {
    /// The options `send_buffer` and `receive_buffer`.
    #[default]
    Buffers,
    /// The same options; when they are not written, the kernel's TCP settings.
    KernelBuffers,
    /// The credit that the receiver grants: the option `buffer`, or this number of bytes when it is not written.
    Grant(u64),
}

/// A limit on unacknowledged packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PacketsInFlight {
    /// This number of packets.
    Fixed(u64),
    /// The number that the option `n` gives.
    OptionN,
    /// Messages of this number of bytes: one on each of as many connections as the option `links` gives, at least 1.
    Links(u64),
}

/// Facts of a stack that reports and predictions need; a plan carries them, so that a run can be explained on another
/// machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StackFacts {
    /// Whether both ends have to be on one host.
    pub one_host: bool,
    /// How packets show which data units they carry.
    pub packets: PacketContent,
    /// Which model predicts it.
    pub form: ClosedForm,
    /// What limits the data in flight.
    pub flow_control: FlowControl,
    /// The limit on unacknowledged packets, if there is one.
    pub in_flight: Option<PacketsInFlight>,
    /// Whether its option `streams` makes consecutive pairs of a part share a connection.
    pub shares_connections: bool,
}

/// What a stack is with an option that changes what it carries: units that may be lost, in place of a byte stream.
#[derive(Clone, Copy, Debug)]
pub struct StackVariant {
    /// The option.
    pub option: &'static str,
    /// With it, the smallest data unit in a bulk transfer, in bytes.
    pub least_bulk_unit: u64,
    /// With it, the largest data unit, in bytes.
    pub largest_unit: u64,
}
