//! Lines of words that begin records, as memcached and NATS have them.

use super::records::Extent;
use crate::left_out::Bound;

/// The longest line in bytes; a longer one is not of the protocol.
const LONGEST_LINE: usize = Bound::Head.most();

/// The record that a line begins, once the line is complete. `behind` returns how many bytes follow the line, or `None` if it is not a
/// line of the protocol.
pub(super) fn line_extent(head: &[u8], behind: impl Fn(&[u8]) -> Option<u64>) -> Extent {
    if head.last() != Some(&b'\n') {
        return if head.len() < LONGEST_LINE {
            Extent::More
        } else {
            Extent::Wrong
        };
    }
    behind(head).map_or(Extent::Wrong, |behind| Extent::Record {
        length: (head.len() as u64).saturating_add(behind),
        keep: head.len(),
    })
}

/// Whether a line reached the limit.
pub(super) const fn is_too_long(head: &[u8]) -> bool {
    head.len() >= LONGEST_LINE
}

/// The words of the line that begins a record.
pub(super) fn words_of(held: &[u8]) -> impl Iterator<Item = &[u8]> {
    let end = held.iter().position(|byte| *byte == b'\n');
    held[..end.unwrap_or(held.len())]
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
}

/// A word that is an unsigned integer.
pub(super) fn number(word: &[u8]) -> Option<u64> {
    std::str::from_utf8(word).ok()?.parse().ok()
}
