//! One option of a stack: the kind of its value, its bounds and its help.

use crate::stack::OptionValue;
use crate::units;
use alloc::format;
use alloc::string::String;
use serde::Serialize;

/// The kind of value an option takes, and its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OptionKind {
    /// Present or absent; takes no value.
    Flag,
    /// A number of bytes between the two bounds (inclusive), written with size units.
    Bytes(u64, u64),
    /// A whole number between the two bounds (inclusive).
    Number(u64, u64),
    /// A time, written with units.
    Time,
    /// One of the listed words.
    Word(&'static [&'static str]),
    /// A name that the system resolves, such as a congestion control.
    Name,
    /// A text in quotation marks, such as a path: at most so many bytes.
    Text(u64),
}

impl OptionKind {
    /// The size of a socket buffer: Linux takes no more than half of the largest `int`.
    pub const BUFFER: Self = Self::Bytes(1, 1 << 30);
    /// A port number.
    pub const PORT: Self = Self::Number(1, 65_535);
    /// A path: Linux takes fewer than 4096 bytes (`PATH_MAX`).
    pub const PATH: Self = Self::Text(4095);

    /// Whether a value is of this kind and within its bounds.
    #[must_use]
    pub fn takes(self, value: &OptionValue) -> bool {
        match (self, value) {
            (Self::Flag, OptionValue::Set) | (Self::Name, OptionValue::Word(_)) => true,
            (Self::Bytes(least, most) | Self::Number(least, most), OptionValue::Number(n)) => {
                (least..=most).contains(n)
            }
            (Self::Time, OptionValue::Seconds(s)) => s.is_finite() && *s >= 0.0,
            (Self::Word(words), OptionValue::Word(word)) => words.contains(&word.as_str()),
            (Self::Text(most), OptionValue::Text(text)) => {
                (1..=most).contains(&(text.len() as u64)) && text.chars().all(is_quotable)
            }
            _ => false,
        }
    }

    /// The permitted values as text: `1 B to 1 GiB`.
    #[must_use]
    pub fn values(self) -> String {
        match self {
            Self::Flag => "no value".into(),
            Self::Bytes(least, most) => format!(
                "{} to {}",
                units::format_size(least),
                units::format_size(most)
            ),
            Self::Number(least, most) => format!("a whole number from {least} to {most}"),
            Self::Time => "a time of zero or more".into(),
            Self::Word(words) => format!("one of {}", words.join(", ")),
            Self::Name => "a name".into(),
            Self::Text(most) => format!("a text in quotation marks, 1 to {most} bytes of one line"),
        }
    }
}

/// Whether a character may stand in a quoted text: there is no way to write a quotation mark in it.
fn is_quotable(c: char) -> bool {
    c != '"' && !c.is_control()
}

/// One option of a stack.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct OptionTable {
    /// Its name in the language.
    pub name: &'static str,
    /// The kind of its value.
    pub kind: OptionKind,
    /// The value that holds when the option is not written, as text.
    pub default: &'static str,
    /// One line of help.
    pub help: &'static str,
}

impl OptionTable {
    /// An option with its name, kind of value, default and line of help.
    #[must_use]
    pub const fn new(
        name: &'static str,
        kind: OptionKind,
        default: &'static str,
        help: &'static str,
    ) -> Self {
        Self {
            name,
            kind,
            default,
            help,
        }
    }

    /// The option of stacks that [share connections](crate::catalogue::StackTable::shares_connections).
    pub const STREAMS: Self = Self::new(
        "streams",
        OptionKind::Number(1, 128),
        "1",
        "so many pairs share a connection, each on a stream of its own",
    );

    /// The option of clients that share connections with other parts: pairs of one number are on one connection.
    pub const CONNECTION: Self = Self::new(
        "connection",
        OptionKind::Name,
        "each part has its own",
        "parts that write the same name share connections: the first pairs of each, the second, and so on",
    );

    /// A flag that is off when it is not written.
    #[must_use]
    pub const fn flag(name: &'static str, help: &'static str) -> Self {
        Self::new(name, OptionKind::Flag, "off", help)
    }
}
