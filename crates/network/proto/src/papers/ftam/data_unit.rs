//! F-DATA: one data unit of an unstructured binary file as a P-DATA of its own, whose bytes stay with the caller.
//!
//! ```text
//! TPKT  DT TPDU  | GIVE TOKENS  DATA TRANSFER | fully encoded data  PDV-list  context 5  single type | OCTET STRING | the unit's bytes
//! ```
//! Where a unit is longer than a TPDU, each further piece has a TPKT's head and that of a TPDU before it.

use super::ber::{ReadLength, length_bytes, read_length, write_length};
use super::cotp::{TpduSize, data_head};
use super::osi_error::{OsiError, OsiLayer};
use super::presentation::CONTENTS_CONTEXT;
use super::session::DATA_PREFIX;
use alloc::vec::Vec;
use core::ops::Range;

/// `[APPLICATION 1]`, constructed: fully encoded data.
const FULLY_ENCODED: u8 = 0x61;
/// SEQUENCE: a PDV-list.
const SEQUENCE: u8 = 0x30;
/// INTEGER, one byte, the number of the context.
const CONTEXT: [u8; 3] = [2, 1, CONTENTS_CONTEXT as u8];
/// `[0]`, constructed: a single ASN.1 type.
const SINGLE_TYPE: u8 = 0xA0;
/// OCTET STRING, primitive.
const OCTET_STRING: u8 = 4;

/// Most bytes before a unit's own: the session's prefix, four tags, the context, four lengths.
pub(super) const MOST_UNIT_HEAD: usize = DATA_PREFIX.len() + 4 + CONTEXT.len() + 4 * 5;

/// Appends what goes before the bytes of a unit in its TSDU.
pub fn write_unit_head(unit: usize, out: &mut Vec<u8>) {
    let string = 1 + length_bytes(unit) + unit;
    let single = 1 + length_bytes(string) + string;
    let list = CONTEXT.len() + single;
    let all = 1 + length_bytes(list) + list;
    out.extend_from_slice(&DATA_PREFIX);
    for (tag, length) in [(FULLY_ENCODED, all), (SEQUENCE, list)] {
        out.push(tag);
        write_length(length, out);
    }
    out.extend_from_slice(&CONTEXT);
    for (tag, length) in [(SINGLE_TYPE, string), (OCTET_STRING, unit)] {
        out.push(tag);
        write_length(length, out);
    }
}

/// What the beginning of a TSDU is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitHead {
    /// An F-DATA: so many bytes, then a unit of so many.
    Unit {
        /// Bytes before the unit's own.
        head: usize,
        /// Bytes of the unit.
        bytes: u64,
    },
    /// Something else.
    Other,
    /// Too short to say.
    Partial,
}

/// Reads the beginning of a TSDU.
///
/// # Errors
/// An [`OsiError`] if it is an F-DATA whose lengths contradict each other.
pub fn read_unit_head(tsdu: &[u8]) -> Result<UnitHead, OsiError> {
    let mut at = 0;
    let mut lengths = [(0, 0); 4];
    let steps: [(&[u8], bool); 6] = [
        (&DATA_PREFIX, false),
        (&[FULLY_ENCODED], true),
        (&[SEQUENCE], true),
        (&CONTEXT, false),
        (&[SINGLE_TYPE], true),
        (&[OCTET_STRING], true),
    ];
    let mut read = 0;
    for (expected, with_length) in steps {
        let rest = &tsdu[at..];
        let compared = expected.len().min(rest.len());
        if rest[..compared] != expected[..compared] {
            return Ok(UnitHead::Other);
        }
        if compared < expected.len() {
            return Ok(UnitHead::Partial);
        }
        at += compared;
        if with_length {
            match read_length(&tsdu[at..]) {
                ReadLength::Definite { length, bytes } => {
                    at += bytes;
                    lengths[read] = (length, at);
                    read += 1;
                }
                ReadLength::Partial => return Ok(UnitHead::Partial),
                ReadLength::Other => return Ok(UnitHead::Other),
            }
        }
    }
    let [.., (unit, _)] = lengths;
    // Each value ends where the one in it does.
    if lengths
        .iter()
        .any(|(length, from)| from + length != at + unit)
    {
        let what = "the lengths of a data unit contradict each other";
        return Err(OsiError::malformed(OsiLayer::Presentation, what));
    }
    Ok(UnitHead::Unit {
        head: at,
        bytes: unit as u64,
    })
}

/// How units of one size are cut into TPDUs. It is made again when the size changes.
#[derive(Clone, Debug, Default)]
pub struct UnitFraming {
    unit: usize,
    size: TpduSize,
    /// All that goes before the first byte of a unit; empty before it is made.
    first: Vec<u8>,
    /// Bytes of the unit in its first TPDU.
    in_first: usize,
    /// What goes before each TPDU between the first and the last.
    between: [u8; 7],
    /// What goes before the last TPDU, if there are two or more.
    last: [u8; 7],
}

impl UnitFraming {
    /// Makes it for units of this size.
    pub fn prepare(&mut self, unit: usize, size: TpduSize) {
        if self.unit == unit && self.size == size && !self.first.is_empty() {
            return;
        }
        let mut head = Vec::with_capacity(MOST_UNIT_HEAD);
        write_unit_head(unit, &mut head);
        // The head is shorter than the smallest TPDU.
        let in_first = unit.min(size.data_bytes() - head.len());
        self.first.clear();
        self.first
            .extend_from_slice(&data_head(head.len() + in_first, in_first == unit));
        self.first.extend_from_slice(&head);
        let behind = unit - in_first;
        let in_last = match behind % size.data_bytes() {
            0 => size.data_bytes(),
            rest => rest,
        };
        self.between = data_head(size.data_bytes(), false);
        self.last = data_head(in_last, true);
        (self.unit, self.size, self.in_first) = (unit, size, in_first);
    }

    /// The TPDU of this number: what goes before it, and which bytes of the unit are in it. `None` behind the last.
    #[must_use]
    pub fn piece(&self, index: usize) -> Option<(&[u8], Range<usize>)> {
        if index == 0 {
            return Some((&self.first, 0..self.in_first));
        }
        let from = self.in_first + (index - 1) * self.size.data_bytes();
        let to = self.unit.min(from + self.size.data_bytes());
        if from >= self.unit {
            None
        } else if to == self.unit {
            Some((&self.last, from..to))
        } else {
            Some((&self.between, from..to))
        }
    }
}
