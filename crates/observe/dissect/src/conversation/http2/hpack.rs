//! Compressed header fields (RFC 7541): a table that both ends know, one that grows with what was sent, Huffman. Memory is bounded by
//! the largest table that is followed. A block that does not follow the rules leaves the decoder of no use.

pub(in crate::conversation) mod huffman;

use crate::left_out::Bound;
use std::collections::VecDeque;
use std::sync::Arc;

/// Bytes of the table of what was sent, at most; who announces a larger one is not followed.
pub(in crate::conversation) const LARGEST_TABLE: usize = Bound::HeaderTable.most();
/// Bytes of it until another size is announced.
const FIRST_TABLE: usize = 4096;
/// What an entry takes of it beside its texts.
pub(in crate::conversation) const ENTRY: usize = 32;

/// Fields that need not be sent (appendix A); the first one is number 1.
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

/// Why what follows cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::conversation) enum Undecoded {
    /// The block is not of the protocol.
    Malformed,
    /// A table is announced that is larger than is followed.
    Table,
}
use Undecoded::Malformed;

/// Decodes the blocks of one side.
#[derive(Debug)]
pub(super) struct Decoder {
    /// What was sent, the newest first.
    table: VecDeque<HpackField>,
    /// Its bytes.
    size: usize,
    /// Its bytes, at most.
    limit: usize,
}

/// A field of the table; names are shared among fields.
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
    /// Gives name and value of each field of a block.
    pub(super) fn block(
        &mut self,
        block: &[u8],
        mut give: impl FnMut(&[u8], &[u8]),
    ) -> Result<(), Undecoded> {
        let mut rest = block;
        while let Some(&first) = rest.first() {
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

    /// Bytes that are held.
    pub(super) const fn held(&self) -> usize {
        self.size
    }

    /// Gives the field of that number.
    fn with(&self, number: usize, give: &mut impl FnMut(&[u8], &[u8])) -> Result<(), Undecoded> {
        if let Some((name, value)) = STATIC.get(number.wrapping_sub(1)) {
            give(name.as_bytes(), value.as_bytes());
            return Ok(());
        }
        let field = self.sent(number)?;
        give(&field.name, &field.value);
        Ok(())
    }

    /// What was sent before and has that number.
    fn sent(&self, number: usize) -> Result<&HpackField, Undecoded> {
        number
            .checked_sub(STATIC.len() + 1)
            .and_then(|index| self.table.get(index))
            .ok_or(Malformed)
    }

    /// A field whose value is there, and whose name is there or has a number.
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

    fn insert(&mut self, field: HpackField) {
        let bytes = field.bytes();
        self.evict(self.limit.saturating_sub(bytes));
        // One that is larger than the table leaves it empty.
        if bytes <= self.limit {
            self.size += bytes;
            self.table.push_front(field);
        }
    }

    fn resize(&mut self, limit: usize) -> Result<(), Undecoded> {
        if limit > LARGEST_TABLE {
            return Err(Undecoded::Table);
        }
        self.limit = limit;
        self.evict(limit);
        Ok(())
    }

    /// The oldest leave until it has so many bytes, at most.
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

/// A number (section 5.1): in the last bits of a byte, or in them and further bytes.
pub(in crate::conversation) fn integer(rest: &mut &[u8], bits: u32) -> Result<usize, Undecoded> {
    let most = (1_usize << bits) - 1;
    let mut value = usize::from(byte(rest)?) & most;
    if value < most {
        return Ok(value);
    }
    for shift in [0, 7, 14, 21] {
        let more = byte(rest)?;
        value += usize::from(more & 0x7f) << shift;
        if more < 0x80 {
            return Ok(value);
        }
    }
    Err(Malformed)
}

/// A text (section 5.2): its length, and its bytes or their code.
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

fn byte(rest: &mut &[u8]) -> Result<u8, Undecoded> {
    let (first, behind) = rest.split_first().ok_or(Malformed)?;
    *rest = behind;
    Ok(*first)
}

#[cfg(test)]
pub(in crate::conversation) mod tests;
