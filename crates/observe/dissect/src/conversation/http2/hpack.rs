//! HPACK, the header compression of HTTP/2 (RFC 7541): a static table, a dynamic table of fields that were sent before, and Huffman
//! coding. Memory is limited by the largest dynamic table that is followed. After an invalid block the decoder must not be used any more.

pub(in crate::conversation) mod huffman;

use crate::left_out::Bound;
use std::collections::VecDeque;
use std::sync::Arc;

/// The largest dynamic table in bytes; a side that announces a larger one is no longer followed.
pub(in crate::conversation) const LARGEST_TABLE: usize = Bound::HeaderTable.most();
/// The size limit of the dynamic table until another one is announced, in bytes.
const FIRST_TABLE: usize = 4096;
/// What an entry counts in the table's size beside its texts, in bytes.
pub(in crate::conversation) const ENTRY: usize = 32;

/// The static table (appendix A); the first entry has index 1.
const STATIC: [(&str, &str); 61] = [
    (":authority", ""),
    (":method", "GET"),
    (":method", "POST"),
    (":path", "/"),
    (":path", "/index.html"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "200"),
    (":status", "204"),
    (":status", "206"),
    (":status", "304"),
    (":status", "400"),
    (":status", "404"),
    (":status", "500"),
    ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
    ("accept-language", ""),
    ("accept-ranges", ""),
    ("accept", ""),
    ("access-control-allow-origin", ""),
    ("age", ""),
    ("allow", ""),
    ("authorization", ""),
    ("cache-control", ""),
    ("content-disposition", ""),
    ("content-encoding", ""),
    ("content-language", ""),
    ("content-length", ""),
    ("content-location", ""),
    ("content-range", ""),
    ("content-type", ""),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("expect", ""),
    ("expires", ""),
    ("from", ""),
    ("host", ""),
    ("if-match", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("if-range", ""),
    ("if-unmodified-since", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("max-forwards", ""),
    ("proxy-authenticate", ""),
    ("proxy-authorization", ""),
    ("range", ""),
    ("referer", ""),
    ("refresh", ""),
    ("retry-after", ""),
    ("server", ""),
    ("set-cookie", ""),
    ("strict-transport-security", ""),
    ("transfer-encoding", ""),
    ("user-agent", ""),
    ("vary", ""),
    ("via", ""),
    ("www-authenticate", ""),
];

/// Why a block cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::conversation) enum Undecoded {
    /// The block is invalid.
    Malformed,
    /// The announced dynamic table is larger than [`LARGEST_TABLE`].
    Table,
}
use Undecoded::Malformed;

/// Decodes the header blocks of one side.
#[derive(Debug)]
pub(super) struct Decoder {
    /// The dynamic table, newest entry first.
    table: VecDeque<HpackField>,
    /// The size of the table in bytes.
    size: usize,
    /// The largest size of the table in bytes.
    limit: usize,
}

/// An entry of the dynamic table; entries may share names.
#[derive(Clone, Debug)]
struct HpackField {
    name: Arc<[u8]>,
    value: Arc<[u8]>,
}

impl Default for Decoder {
    fn default() -> Self {
        Self {
            table: VecDeque::new(),
            size: 0,
            limit: FIRST_TABLE,
        }
    }
}

impl Decoder {
    /// Decodes a block: calls `give` with the name and the value of each field.
    pub(super) fn block(
        &mut self,
        block: &[u8],
        mut give: impl FnMut(&[u8], &[u8]),
    ) -> Result<(), Undecoded> {
        let mut rest = block;
        while let Some(&first) = rest.first() {
            // The first bits name the representation (RFC 7541, section 6).
            match first {
                0x80.. => {
                    let number = integer(&mut rest, 7)?;
                    self.with(number, &mut give)?;
                }
                0x40.. => {
                    let field = self.literal(&mut rest, 6)?;
                    give(&field.name, &field.value);
                    self.insert(field);
                }
                0x20.. => self.resize(integer(&mut rest, 5)?)?,
                _ => {
                    let field = self.literal(&mut rest, 4)?;
                    give(&field.name, &field.value);
                }
            }
        }
        Ok(())
    }

    /// How many bytes are held.
    pub(super) const fn held(&self) -> usize {
        self.size
    }

    /// Calls `give` with the field at an index.
    fn with(&self, number: usize, give: &mut impl FnMut(&[u8], &[u8])) -> Result<(), Undecoded> {
        // Index 0 is invalid: it wraps to one that neither table has.
        if let Some((name, value)) = STATIC.get(number.wrapping_sub(1)) {
            give(name.as_bytes(), value.as_bytes());
            return Ok(());
        }
        let field = self.sent(number)?;
        give(&field.name, &field.value);
        Ok(())
    }

    /// The entry of the dynamic table at an index.
    fn sent(&self, number: usize) -> Result<&HpackField, Undecoded> {
        number
            .checked_sub(STATIC.len() + 1)
            .and_then(|index| self.table.get(index))
            .ok_or(Malformed)
    }

    /// A literal field: its value is in the block, its name in the block or in a table.
    fn literal(&self, rest: &mut &[u8], bits: u32) -> Result<HpackField, Undecoded> {
        let number = integer(rest, bits)?;
        let name = match STATIC.get(number.wrapping_sub(1)) {
            _ if number == 0 => text(rest)?,
            Some((name, _)) => name.as_bytes().into(),
            None => Arc::clone(&self.sent(number)?.name),
        };
        Ok(HpackField {
            name,
            value: text(rest)?,
        })
    }

    /// Adds an entry to the dynamic table.
    fn insert(&mut self, field: HpackField) {
        let bytes = field.bytes();
        // The field shares its name, so evicting where it came from is safe (RFC 7541, section
        // 4.4).
        self.evict(self.limit.saturating_sub(bytes));
        // An entry that is larger than the table empties it (RFC 7541, 4.4).
        if bytes <= self.limit {
            self.size += bytes;
            self.table.push_front(field);
        }
    }

    /// Changes the largest size of the dynamic table.
    fn resize(&mut self, limit: usize) -> Result<(), Undecoded> {
        if limit > LARGEST_TABLE {
            return Err(Undecoded::Table);
        }
        self.limit = limit;
        self.evict(limit);
        Ok(())
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

impl HpackField {
    fn bytes(&self) -> usize {
        self.name.len() + self.value.len() + ENTRY
    }
}

/// An integer (RFC 7541, 5.1) that begins in the last `bits` bits of a byte.
pub(in crate::conversation) fn integer(rest: &mut &[u8], bits: u32) -> Result<usize, Undecoded> {
    let most = (1_usize << bits) - 1;
    let mut value = usize::from(byte(rest)?) & most;
    if value < most {
        return Ok(value);
    }
    // 28 bits are more than any header needs; without a bound the sum could overflow.
    for shift in [0, 7, 14, 21] {
        let more = byte(rest)?;
        value += usize::from(more & 0x7f) << shift;
        if more < 0x80 {
            return Ok(value);
        }
    }
    Err(Malformed)
}

/// A string (RFC 7541, 5.2): its length, then its bytes or their Huffman code.
fn text(rest: &mut &[u8]) -> Result<Arc<[u8]>, Undecoded> {
    let coded = rest.first().ok_or(Malformed)? & 0x80 != 0;
    let length = integer(rest, 7)?;
    let (bytes, behind) = rest.split_at_checked(length).ok_or(Malformed)?;
    *rest = behind;
    if coded {
        Ok(huffman::decode(bytes).ok_or(Malformed)?.into())
    } else {
        Ok(bytes.into())
    }
}

/// Takes one byte.
fn byte(rest: &mut &[u8]) -> Result<u8, Undecoded> {
    let (first, behind) = rest.split_first().ok_or(Malformed)?;
    *rest = behind;
    Ok(*first)
}

#[cfg(test)]
pub(in crate::conversation) mod tests;
