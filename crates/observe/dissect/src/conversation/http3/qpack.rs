//! QPACK, the header compression of HTTP/3 (RFC 9204): a static table, and a dynamic table that the sender fills on a separate stream, so
//! that a header block may arrive before the entries it refers to. Memory is limited by the largest dynamic table that is followed.

mod static_fields;

use crate::conversation::http2::hpack::Undecoded::{self, Malformed};
use crate::conversation::http2::hpack::{ENTRY, LARGEST_TABLE, huffman, integer};
use static_fields::FIELDS;
use std::collections::VecDeque;
use std::sync::Arc;

/// What an incomplete instruction may have beyond a name and a value that fill the table (the factor 4 allows for Huffman coding), in
/// bytes.
const BESIDE: usize = 256;

/// The result of decoding a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockOutcome {
    /// All fields were given.
    Decoded,
    /// The block refers to entries that have not arrived; no field was given.
    Blocked,
}

/// Decodes the header blocks of one side.
#[derive(Debug, Default)]
pub(super) struct QpackDecoder {
    /// The dynamic table, newest entry first.
    table: VecDeque<QpackField>,
    /// How many entries were inserted in all.
    inserted: u64,
    /// The size of the table in bytes.
    size: usize,
    /// The largest size of the table in bytes.
    limit: usize,
    /// The bytes of an incomplete instruction.
    held: Vec<u8>,
    /// Whether instructions were missed, so that the dynamic table is unknown.
    is_lost: bool,
}

/// An entry of the dynamic table; entries may share names.
#[derive(Clone, Debug)]
struct QpackField {
    name: Arc<[u8]>,
    value: Arc<[u8]>,
}

impl QpackField {
    fn bytes(&self) -> usize {
        self.name.len() + self.value.len() + ENTRY
    }
}

impl QpackDecoder {
    /// How many bytes are held.
    pub(super) fn held(&self) -> usize {
        self.size + self.held.len()
    }

    /// Gives up the dynamic table: instructions were not captured, or are invalid.
    pub(super) fn lose(&mut self) {
        *self = Self {
            is_lost: true,
            ..Self::default()
        };
    }

    /// Takes bytes of the stream of encoder instructions (RFC 9204, 4.3).
    pub(super) fn instructions(&mut self, bytes: &[u8]) -> Result<(), Undecoded> {
        if self.is_lost {
            return Ok(());
        }
        let mut held = std::mem::take(&mut self.held);
        held.extend_from_slice(bytes);
        let mut rest = &held[..];
        while !rest.is_empty() {
            let before = rest;
            match self.instruction(&mut rest) {
                Ok(()) => {}
                Err(Undecoded::Table) => return Err(Undecoded::Table),
                // An incomplete instruction looks like an invalid one, until it is longer than any valid one can be.
                Err(Malformed) if before.len() <= 4 * self.limit + BESIDE => {
                    rest = before;
                    break;
                }
                Err(Malformed) => return Err(Malformed),
            }
        }
        self.held = rest.to_vec();
        Ok(())
    }

    /// Carries out one instruction.
    fn instruction(&mut self, rest: &mut &[u8]) -> Result<(), Undecoded> {
        let first = *rest.first().ok_or(Malformed)?;
        match first {
            0x80.. => {
                let number = integer(rest, 6)?;
                let name = match first & 0x40 {
                    0 => Arc::clone(&self.newest(number as u64)?.name),
                    _ => FIELDS.get(number).ok_or(Malformed)?.0.as_bytes().into(),
                };
                let value = text(rest, 7)?;
                self.insert(QpackField { name, value });
            }
            0x40.. => {
                let (name, value) = (text(rest, 5)?, text(rest, 7)?);
                self.insert(QpackField { name, value });
            }
            0x20.. => {
                let limit = integer(rest, 5)?;
                if limit > LARGEST_TABLE {
                    return Err(Undecoded::Table);
                }
                self.limit = limit;
                self.evict(limit);
            }
            _ => {
                let number = integer(rest, 5)?;
                let field = self.newest(number as u64)?.clone();
                self.insert(field);
            }
        }
        Ok(())
    }

    /// Decodes a block (RFC 9204, 4.5): calls `give` with the name and the value of each field. `most_bytes` is the largest table that
    /// the receiver allows.
    pub(super) fn block(
        &self,
        block: &[u8],
        most_bytes: u64,
        mut give: impl FnMut(&[u8], &[u8]),
    ) -> Result<BlockOutcome, Undecoded> {
        let mut rest = block;
        let encoded = integer(&mut rest, 8)? as u64;
        let required = self.required(encoded, most_bytes / ENTRY as u64)?;
        let is_behind = rest.first().ok_or(Malformed)? & 0x80 != 0;
        let delta = integer(&mut rest, 7)? as u64;
        // RFC 9204, section 4.5.1.2.
        let base = match is_behind {
            false => required.checked_add(delta),
            true => required.checked_sub(delta + 1),
        };
        let base = base.ok_or(Malformed)?;
        if required > self.inserted {
            return match self.is_lost {
                true => Err(Malformed),
                false => Ok(BlockOutcome::Blocked),
            };
        }
        while let Some(&first) = rest.first() {
            self.field(first, base, &mut rest, &mut give)?;
        }
        Ok(BlockOutcome::Decoded)
    }

    /// The required insert count of a block (RFC 9204, 4.5.1.1), for a table of at most `most_entries` entries.
    fn required(&self, encoded: u64, most_entries: u64) -> Result<u64, Undecoded> {
        if encoded == 0 {
            return Ok(0);
        }
        let full = 2 * most_entries;
        if encoded > full {
            return Err(Malformed);
        }
        let most = self.inserted + most_entries;
        // `full` is not below `encoded`, which is above 0.
        let wrapped = most / full * full;
        let required = wrapped + encoded - 1;
        match required > most {
            true => required.checked_sub(full).filter(|required| *required > 0),
            false => Some(required).filter(|required| *required > 0),
        }
        .ok_or(Malformed)
    }

    /// Decodes one field line.
    fn field(
        &self,
        first: u8,
        base: u64,
        rest: &mut &[u8],
        give: &mut impl FnMut(&[u8], &[u8]),
    ) -> Result<(), Undecoded> {
        let is_static = |mask: u8| first & mask != 0;
        match first {
            0x80.. => {
                let number = integer(rest, 6)?;
                if is_static(0x40) {
                    let (name, value) = FIELDS.get(number).ok_or(Malformed)?;
                    give(name.as_bytes(), value.as_bytes());
                } else {
                    let field = self.before(base, number)?;
                    give(&field.name, &field.value);
                }
            }
            0x40.. => {
                let number = integer(rest, 4)?;
                let name: Arc<[u8]> = match is_static(0x10) {
                    true => FIELDS.get(number).ok_or(Malformed)?.0.as_bytes().into(),
                    false => Arc::clone(&self.before(base, number)?.name),
                };
                give(&name, &text(rest, 7)?);
            }
            0x20.. => {
                let name = text(rest, 3)?;
                give(&name, &text(rest, 7)?);
            }
            0x10.. => {
                let number = integer(rest, 4)?;
                let field = self.at(base.checked_add(number as u64).ok_or(Malformed)?)?;
                give(&field.name, &field.value);
            }
            _ => {
                let number = integer(rest, 3)?;
                let field = self.at(base.checked_add(number as u64).ok_or(Malformed)?)?;
                give(&field.name, &text(rest, 7)?);
            }
        }
        Ok(())
    }

    /// The entry at a relative index, which counts back from the base.
    fn before(&self, base: u64, number: usize) -> Result<&QpackField, Undecoded> {
        let at = base.checked_sub(number as u64 + 1).ok_or(Malformed)?;
        self.at(at)
    }

    /// The entry at an absolute index, in the order of insertion.
    fn at(&self, number: u64) -> Result<&QpackField, Undecoded> {
        let back = self.inserted.checked_sub(number + 1).ok_or(Malformed)?;
        self.newest(back)
    }

    /// The entry after which `back` others were inserted.
    fn newest(&self, back: u64) -> Result<&QpackField, Undecoded> {
        let at = usize::try_from(back).map_err(|_| Malformed)?;
        self.table.get(at).ok_or(Malformed)
    }

    /// Adds an entry to the dynamic table.
    fn insert(&mut self, field: QpackField) {
        let bytes = field.bytes();
        self.evict(self.limit.saturating_sub(bytes));
        self.inserted += 1;
        // An entry that is larger than the table is invalid, but it is counted so that the indices of the others stay right.
        if bytes <= self.limit {
            self.size += bytes;
            self.table.push_front(field);
        }
    }

    /// Removes the oldest entries until the table has at most `most` bytes.
    fn evict(&mut self, most: usize) {
        while self.size > most {
            let Some(oldest) = self.table.pop_back() else {
                return;
            };
            self.size -= oldest.bytes();
        }
    }
}

/// A string: the flag of Huffman coding, the length in the last `bits` bits of a byte, and its bytes.
fn text(rest: &mut &[u8], bits: u32) -> Result<Arc<[u8]>, Undecoded> {
    let is_coded = rest.first().ok_or(Malformed)? >> bits & 1 != 0;
    let length = integer(rest, bits)?;
    let (bytes, behind) = rest.split_at_checked(length).ok_or(Malformed)?;
    *rest = behind;
    match is_coded {
        true => Ok(huffman::decode(bytes).ok_or(Malformed)?.into()),
        false => Ok(bytes.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::http2::hpack::tests::hex;

    fn fields(decoder: &QpackDecoder, block: &str) -> Result<Vec<String>, Option<Undecoded>> {
        let mut fields = Vec::new();
        let outcome = decoder.block(&hex(block), 220, |name, value| {
            let [name, value] = [name, value].map(String::from_utf8_lossy);
            fields.push(format!("{name}: {value}"));
        });
        match outcome {
            Ok(BlockOutcome::Decoded) => Ok(fields),
            Ok(BlockOutcome::Blocked) => Err(None),
            Err(cause) => Err(Some(cause)),
        }
    }

    /// RFC 9204, appendix B.
    #[test]
    fn blocks_are_those_of_the_standard() {
        let mut decoder = QpackDecoder::default();
        let b1 = "0000510b2f696e6465782e68746d6c";
        assert_eq!(fields(&decoder, b1), Ok(vec![":path: /index.html".into()]));
        let b2 = "03811011";
        assert_eq!(fields(&decoder, b2), Err(None), "before its instructions");
        let instructions =
            hex("3fbd01c00f7777772e6578616d706c652e636f6dc10c2f73616d706c652f70617468");
        // Instructions may come in pieces.
        for byte in &instructions {
            decoder.instructions(&[*byte]).unwrap();
        }
        let sample = [":authority: www.example.com", ":path: /sample/path"].map(String::from);
        assert_eq!(fields(&decoder, b2), Ok(sample.to_vec()));
        decoder
            .instructions(&hex("4a637573746f6d2d6b65790c637573746f6d2d76616c7565"))
            .unwrap();
        decoder.instructions(&hex("02")).unwrap();
        let b4 = [
            ":authority: www.example.com",
            ":path: /",
            "custom-key: custom-value",
        ];
        assert_eq!(
            fields(&decoder, "050080c181"),
            Ok(b4.map(String::from).to_vec())
        );
        decoder
            .instructions(&hex("810d637573746f6d2d76616c756532"))
            .unwrap();
        assert_eq!((decoder.inserted, decoder.size), (5, 215));
    }

    #[test]
    fn what_refers_to_nothing_is_wrong_and_what_was_missed_is_not_guessed() {
        let mut decoder = QpackDecoder::default();
        for wrong in ["", "00", "000080", "0000ff", "0000ff25", "ff0080", "000051"] {
            assert_eq!(fields(&decoder, wrong), Err(Some(Malformed)), "{wrong}");
        }
        assert_eq!(decoder.instructions(&hex("3fe1ff03")), Ok(()), "64 KiB");
        assert_eq!(
            decoder.instructions(&hex("3fe1ff07")),
            Err(Undecoded::Table)
        );
        decoder.lose();
        assert_eq!(fields(&decoder, "03811011"), Err(Some(Malformed)));
        assert_eq!(fields(&decoder, "0000d1"), Ok(vec![":method: GET".into()]));
    }
}
