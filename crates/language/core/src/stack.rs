//! A stack as a plan has it: its name, the options that are written, and the facts that answers need.
//!
//! Which options there are and what they accept is the table's, in `catalogue`.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use serde::{Deserialize, Serialize};

/// A stack and its options.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stack {
    /// Its name.
    pub name: String,
    /// Options in the order of their names.
    pub options: BTreeMap<String, OptionValue>,
    /// What answers have to know of it, out of its table.
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

    /// Whether a flag is set.
    #[must_use]
    pub fn flag(&self, name: &str) -> bool {
        self.options.contains_key(name)
    }

    /// A number or a number of bytes.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<u64> {
        match self.options.get(name) {
            Some(OptionValue::Number(n)) => Some(*n),
            _ => None,
        }
    }

    /// A time in seconds.
    #[must_use]
    pub fn seconds(&self, name: &str) -> Option<f64> {
        match self.options.get(name) {
            Some(OptionValue::Seconds(s)) => Some(*s),
            _ => None,
        }
    }

    /// A word.
    #[must_use]
    pub fn word(&self, name: &str) -> Option<&str> {
        match self.options.get(name) {
            Some(OptionValue::Word(w)) => Some(w),
            _ => None,
        }
    }
}

/// The value an option was given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OptionValue {
    /// A flag that is set.
    Set,
    /// Bytes, or a whole number.
    Number(u64),
    /// Seconds.
    Seconds(f64),
    /// A word or a name.
    Word(String),
}

/// How the packets of a stack show which data units they carry, so that events of the network can be joined to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PacketContent {
    /// They do not, or not to us.
    #[default]
    Unknown,
    /// By TCP's sequence numbers.
    Stream,
    /// A datagram is a data unit and carries its number.
    Datagrams,
    /// By the headers of blasts.
    Blasts,
}

/// Which closed form predicts a stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClosedForm {
    /// None.
    #[default]
    None,
    /// TCP as Linux has it.
    Tcp,
    /// TCP as smoltcp has it.
    SmolTcp,
    /// Plain datagrams.
    Udp,
    /// QUIC.
    Quic,
    /// The Host-Host protocol over IMPs.
    Messages,
}

/// What bounds the data on its way from a sender to a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FlowControl {
    /// The options `send_buffer` and `receive_buffer`.
    #[default]
    Buffers,
    /// The same; without them the kernel's settings of TCP.
    KernelBuffers,
    /// What the receiver grants: the option `buffer`, and these bytes when it is not written.
    Grant(u64),
}

/// A bound on packets that are not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PacketsInFlight {
    /// This many.
    Fixed(u64),
    /// As many as the option `n` says.
    OptionN,
    /// Messages of so many bytes: one on each of as many links as the option `links` says, at least 1.
    Links(u64),
}

/// What answers have to know of a stack; a plan carries it, so that a run can be explained elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StackFacts {
    /// Whether both ends have to be on one host.
    pub one_host: bool,
    /// How packets show what they carry.
    pub packets: PacketContent,
    /// What predicts it.
    pub form: ClosedForm,
    /// What bounds the data on its way.
    pub flow_control: FlowControl,
    /// A bound on packets on their way.
    pub in_flight: Option<PacketsInFlight>,
}
