//! What a stack can do, which options it takes and how it maps operations, as data.
//!
//! The stack's own file fills one [`StackTable`]; `check` refuses by it, `stackline stacks` prints it.

use alloc::string::String;
use serde::{Deserialize, Serialize};

/// What an option's value looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OptionKind {
    /// Present or absent; takes no value.
    Flag,
    /// A number of bytes, with size units.
    Bytes,
    /// A whole number from the first to the second.
    Number(u64, u64),
    /// A time, with units.
    Time,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A name the system knows, such as a congestion control.
    Name,
}

/// One option of a stack.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct OptionTable {
    /// Its name in the language.
    pub name: &'static str,
    /// Its value.
    pub kind: OptionKind,
    /// What holds when it is not written.
    pub default: &'static str,
    /// One line of help.
    pub help: &'static str,
}

/// One row of the mapping from operations to the protocol's own services.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Mapping {
    /// The operation of the language.
    pub operation: &'static str,
    /// What the stack does for it.
    pub services: &'static str,
}

/// Everything `check` and `stackline stacks` need of a stack.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct StackTable {
    /// Its name in the language.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// Least size of a data unit it carries, in bytes.
    pub least_unit: u64,
    /// Largest.
    pub largest_unit: u64,
    /// Least size of a data unit in bulk, where sequence numbers need room.
    pub least_bulk_unit: u64,
    /// Whether everything sent arrives, once and in order.
    pub reliable: bool,
    /// Whether both ends have to be on one host.
    pub one_host: bool,
    /// Whether file ends work over it.
    pub files: bool,
    /// Its options.
    pub options: &'static [OptionTable],
    /// Its mapping.
    pub mapping: &'static [Mapping],
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
