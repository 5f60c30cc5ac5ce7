//! Reads pages of the kernel's trace ring, as `trace_pipe_raw` returns them: a time and a length, then records one after the other,
//! each with the time since the previous one (Documentation/trace/ring-buffer-design.rst, `header_page`, `header_event`).
//!
//! It never reads beyond the bytes it is given; an incomplete page ends early.

/// Kinds of records; a smaller value is the length of a record in words of 4 bytes. This kind fills unused space.
const PADDING: u32 = 29;
/// A record that adds time.
const TIME_EXTEND: u32 = 30;
/// A record that sets the time.
const TIME_STAMP: u32 = 31;
/// How many bits of a record's first word are its time; the kind has the other 5.
const TIME_BITS: u32 = 27;
/// The bits of a page's second field that are its length; the bits above are flags.
const LENGTH: u64 = (1 << 20) - 1;
/// How many bits of an absolute time a record of kind [`TIME_STAMP`] holds; the upper ones stay as they are.
const ABSOLUTE_BITS: u32 = 59;

/// How pages are laid out, from `header_page`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Offset and size of the length field, bytes.
    pub(crate) length: (usize, usize),
    /// Offset of the first record, bytes.
    pub(crate) data: usize,
    /// The size of a page, bytes.
    pub(crate) page: usize,
}

impl Layout {
    /// Reads `header_page`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let field = |name: &str| {
            let line = text.lines().find(|line| {
                line.split(';')
                    .next()
                    .is_some_and(|first| first.ends_with(name))
            })?;
            let number = |key: &str| {
                line.split(';')
                    .find_map(|part| part.trim().strip_prefix(key)?.parse::<usize>().ok())
            };
            Some((number("offset:")?, number("size:")?))
        };
        let (length, (data, size)) = (field(" commit")?, field(" data")?);
        let valid = matches!(length.1, 4 | 8) && length.0 < 64 && data < 64 && size < 1 << 20;
        valid.then(|| Self {
            length,
            data,
            page: data + size,
        })
    }
}

impl Layout {
    /// How many bytes of a page are used, with its header; `None` if the page is incomplete.
    pub(crate) fn used(&self, page: &[u8]) -> Option<usize> {
        let field = page.get(self.length.0..self.length.0 + self.length.1)?;
        // It is as wide as a `long` of the kernel.
        let length = match *field {
            [a, b, c, d] => u64::from(u32::from_ne_bytes([a, b, c, d])),
            _ => field.try_into().map_or(0, u64::from_ne_bytes),
        };
        let length = usize::try_from(length & LENGTH).unwrap_or(0);
        let all = page.len().checked_sub(self.data)?;
        Some(self.data + length.min(all))
    }
}

/// Iterates over the records of a page: the time on the trace clock, ns, and the bytes.
#[derive(Clone, Debug)]
pub(crate) struct TracePageRecords<'p> {
    rest: &'p [u8],
    at_ns: u64,
}

impl<'p> TracePageRecords<'p> {
    /// The records in the bytes of one read.
    pub(crate) fn from_page(page: &'p [u8], layout: &Layout) -> Self {
        let nothing = Self {
            rest: &[],
            at_ns: 0,
        };
        let at_ns = page
            .first_chunk::<8>()
            .map(|bytes| u64::from_ne_bytes(*bytes));
        let (Some(at_ns), Some(used), Some(data)) =
            (at_ns, layout.used(page), page.get(layout.data..))
        else {
            return nothing;
        };
        let length = used - layout.data;
        Self {
            rest: &data[..length],
            at_ns,
        }
    }

    /// Takes this many bytes; if there are fewer, returns `None` and drops the rest.
    fn take(&mut self, bytes: usize) -> Option<&'p [u8]> {
        let (taken, rest) = self.rest.split_at_checked(bytes).unzip();
        self.rest = rest.unwrap_or(&[]);
        taken
    }

    fn word(&mut self) -> Option<u32> {
        self.take(4)?
            .first_chunk::<4>()
            .map(|bytes| u32::from_ne_bytes(*bytes))
    }
}

impl<'p> Iterator for TracePageRecords<'p> {
    type Item = (u64, &'p [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let head = self.word()?;
            let (kind, time) = (head & 31, u64::from(head >> 5));
            match kind {
                // The rest of the page is unused.
                PADDING if time == 0 => return None,
                PADDING => {
                    // A discarded record; its length includes the length word.
                    self.at_ns = self.at_ns.wrapping_add(time);
                    let length = self.word()? as usize;
                    self.take(length.saturating_sub(4))?;
                }
                TIME_EXTEND => {
                    let more = u64::from(self.word()?) << TIME_BITS;
                    self.at_ns = self.at_ns.wrapping_add(more + time);
                }
                TIME_STAMP => {
                    let low = u64::from(self.word()?) << TIME_BITS | time;
                    self.at_ns = self.at_ns >> ABSOLUTE_BITS << ABSOLUTE_BITS
                        | low & ((1 << ABSOLUTE_BITS) - 1);
                }
                _ => {
                    self.at_ns = self.at_ns.wrapping_add(time);
                    let length = match kind {
                        // The length counts its own word.
                        0 => (self.word()? as usize)
                            .saturating_sub(4)
                            .next_multiple_of(4),
                        words => words as usize * 4,
                    };
                    return Some((self.at_ns, self.take(length)?));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LAYOUT: Layout = Layout {
        length: (8, 8),
        data: 16,
        page: 4096,
    };

    fn page(at_ns: u64, words: &[u32]) -> Vec<u8> {
        let mut page = at_ns.to_ne_bytes().to_vec();
        // The flag marks records lost before the page; it is not part of the length.
        page.extend(((words.len() as u64 * 4) | (1 << 31)).to_ne_bytes());
        page.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        page
    }

    fn records(page: &[u8]) -> Vec<(u64, usize)> {
        TracePageRecords::from_page(page, &LAYOUT)
            .map(|(at, bytes)| (at, bytes.len()))
            .collect()
    }

    #[test]
    fn the_layout_is_read_from_the_kernels_header() {
        assert_eq!(
            Layout::parse(include_str!("samples/6.18/header_page")),
            Some(LAYOUT)
        );
        assert_eq!(
            Layout::parse("field: u64 timestamp;\toffset:0;\tsize:8;"),
            None
        );
    }

    #[test]
    fn times_are_differences_with_extensions() {
        let data = 2 | 5 << 5;
        let long = 7 << 5;
        let page = page(
            1_000,
            &[
                data,
                0xaa,
                0xbb,
                TIME_EXTEND | 3 << 5,
                1,
                data,
                0xcc,
                0xdd,
                long,
                9,
                1,
                2,
            ],
        );
        let extended = 1_005 + (1 << TIME_BITS) + 3 + 5;
        assert_eq!(
            records(&page),
            [(1_005, 8), (extended, 8), (extended + 7, 8)]
        );
    }

    #[test]
    fn an_absolute_time_keeps_the_high_bits_of_the_time_before() {
        let high = 3 << ABSOLUTE_BITS;
        let page = page(high | 99, &[TIME_STAMP | 4 << 5, 2, 1, 0]);
        assert_eq!(records(&page), [(high | 2 << TIME_BITS | 4, 4)]);
    }

    #[test]
    fn discarded_records_are_skipped_and_unused_space_ends_the_page() {
        let page = page(
            0,
            &[
                PADDING | 1 << 5,
                8,
                0xff,
                1 | 2 << 5,
                0xaa,
                PADDING,
                1,
                0xbb,
            ],
        );
        assert_eq!(records(&page), [(3, 4)]);
    }

    #[test]
    fn an_incomplete_page_gives_its_complete_records() {
        let whole = page(0, &[1 | 2 << 5, 0xaa, 2 | 2 << 5, 0xbb, 0xcc]);
        assert_eq!(records(&whole[..whole.len() - 1]), [(2, 4)]);
        assert_eq!(records(&whole[..7]), []);
    }

    proptest! {
        #[test]
        fn any_bytes_are_harmless(bytes in proptest::collection::vec(any::<u8>(), 0..400), length: u64) {
            let mut bytes = bytes;
            if bytes.len() > 16 {
                bytes[8..16].copy_from_slice(&length.to_ne_bytes());
            }
            prop_assert!(TracePageRecords::from_page(&bytes, &LAYOUT).count() <= bytes.len());
        }

        #[test]
        fn any_header_is_harmless(text in "(\tfield: [a-z ]{0,9} (commit|data);\toffset:[0-9]{0,20};\tsize:[0-9]{0,20};\n){0,3}") {
            let _ = Layout::parse(&text);
        }
    }
}
