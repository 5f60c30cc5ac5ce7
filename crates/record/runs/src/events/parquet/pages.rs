//! Checks the pages of one column before the Parquet library's column reader gets them: it panics on some damaged
//! pages, which become errors here. Only texts are decoded here.
//!
//! Texts are replaced by their numbers in a list, and the library then reads a column of numbers: a text of a
//! dictionary is decoded once, not for each row.

use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result as Parquet};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A page reader that checks the pages of a column.
pub(super) struct Pages {
    pages: Box<dyn PageReader>,
    /// Whether the column's values may be null, so that pages begin with definition levels.
    optional: bool,
    /// Whether a dictionary page has been read.
    has_dictionary: bool,
    /// The list that receives the texts, for a column of texts.
    texts: Option<ColumnTexts>,
}

impl Pages {
    /// The pages of a column of numbers, or of a column of texts, which are added to `texts`.
    pub(super) fn new(
        pages: Box<dyn PageReader>,
        optional: bool,
        texts: Option<ColumnTexts>,
    ) -> Self {
        Self {
            pages,
            optional,
            has_dictionary: false,
            texts,
        }
    }

    /// The page, with texts replaced by numbers; `None` when it is damaged.
    fn checked(&mut self, mut page: Page) -> Option<Page> {
        match &mut page {
            Page::DictionaryPage {
                buf, num_values, ..
            } => {
                match &self.texts {
                    Some(texts) => {
                        *buf = texts.lock().dictionary(plain(buf, Some(*num_values))?)?
                    }
                    // Numbers have eight bytes.
                    None => (buf.len() / 8 >= *num_values as usize).then_some(())?,
                }
                self.has_dictionary = true;
            }
            Page::DataPage {
                buf,
                num_values,
                encoding,
                def_level_encoding,
                ..
            } => {
                let mut levels = 0..0;
                if self.optional {
                    (*def_level_encoding == Encoding::RLE).then_some(())?;
                    // In pages of the first version the levels follow their length.
                    levels = 4..4 + u32::from_le_bytes(*buf.first_chunk()?) as usize;
                }
                self.values(encoding, buf, levels, *num_values)?;
            }
            Page::DataPageV2 {
                buf,
                num_values,
                encoding,
                def_levels_byte_len,
                rep_levels_byte_len,
                ..
            } => {
                let end = def_levels_byte_len.checked_add(*rep_levels_byte_len)?;
                self.values(
                    encoding,
                    buf,
                    *rep_levels_byte_len as usize..end as usize,
                    *num_values,
                )?;
            }
        }
        Some(page)
    }

    /// Checks the definition levels of a page and the values behind them; replaces texts by numbers.
    fn values(
        &self,
        encoding: &mut Encoding,
        page: &mut Bytes,
        levels: Range<usize>,
        rows: u32,
    ) -> Option<()> {
        runs(page.get(levels.clone())?, 1, rows)?;
        let levels = levels.end;
        let values = page.get(levels..)?;
        match (*encoding, &self.texts) {
            (Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY, _) => {
                self.has_dictionary.then_some(())?;
                let (width, numbers) = values.split_first()?;
                runs(numbers, *width, rows)?;
            }
            (Encoding::PLAIN, None) => {}
            (Encoding::PLAIN, Some(texts)) => {
                let numbers = texts.lock().page(plain(values, None)?);
                *page = [&page[..levels], &numbers].concat().into();
            }
            (Encoding::DELTA_BINARY_PACKED, None) => {
                if differences(values)? == 0 {
                    // The library expects at least one number in this encoding: an empty page is passed on as a plain
                    // one.
                    (*encoding, *page) = (Encoding::PLAIN, page.slice(..levels));
                }
            }
            _ => return None,
        }
        Some(())
    }
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> Parquet<Option<Page>> {
        let Some(page) = self.pages.get_next_page()? else {
            return Ok(None);
        };
        let encoding = page.encoding();
        let page = self.checked(page);
        let failed =
            || ParquetError::General(format!("cannot read a page (its encoding is {encoding})"));
        page.map(Some).ok_or_else(failed)
    }

    fn peek_next_page(&mut self) -> Parquet<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Parquet<()> {
        self.pages.skip_next_page()
    }
}

impl Iterator for Pages {
    type Item = Parquet<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

/// Checks a sequence in the RLE and bit-packed hybrid encoding: `count` numbers of `width` bits.
fn runs(mut bytes: &[u8], width: u8, count: u32) -> Option<()> {
    let (width, mut left) = (u64::from(width), u64::from(count));
    while left > 0 && !bytes.is_empty() {
        let head = number(&mut bytes)?;
        let (count, length) = match head >> 1 {
            groups if head & 1 == 1 => (groups.checked_mul(8)?, groups.checked_mul(width)?),
            count => (count, width.div_ceil(8)),
        };
        // The last bit-packed run may be cut off where its numbers end.
        bytes = bytes
            .get(usize::try_from(length).ok()?..)
            .unwrap_or_default();
        left = left.saturating_sub(count);
    }
    Some(())
}

/// Checks a sequence in the delta encoding (`DELTA_BINARY_PACKED`). Returns how many numbers it has.
fn differences(mut bytes: &[u8]) -> Option<u64> {
    let (block, parts, count) = (
        number(&mut bytes)?,
        number(&mut bytes)?,
        number(&mut bytes)?,
    );
    number(&mut bytes)?;
    // With these bounds nothing below overflows, and no part is empty.
    (block <= 1 << 20 && (1..=block).contains(&parts)).then_some(())?;
    let (part, mut left) = (block / parts, count.saturating_sub(1));
    while left > 0 {
        number(&mut bytes)?;
        let (widths, rest) = bytes.split_at_checked(parts as usize)?;
        bytes = rest;
        // Widths of parts behind the last number may be anything.
        for width in widths.iter().take(left.div_ceil(part) as usize) {
            bytes = bytes
                .get((u64::from(*width) * part / 8) as usize..)
                .unwrap_or_default();
            left = left.saturating_sub(part);
        }
    }
    Some(count)
}

/// Takes a variable-length integer (ULEB128) off the beginning; at most ten bytes.
fn number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// Parses texts that are each preceded by their length: `count` of them, or all.
fn plain(mut bytes: &[u8], count: Option<u32>) -> Option<Vec<Box<str>>> {
    let mut texts = Vec::new();
    while count.map_or(!bytes.is_empty(), |count| texts.len() < count as usize) {
        let (length, rest) = bytes.split_first_chunk()?;
        let (text, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        texts.push(std::str::from_utf8(text).ok()?.into());
        bytes = rest;
    }
    Some(texts)
}

/// The texts of a column, shared between its [`Pages`] and the reader.
#[derive(Clone, Default)]
pub(super) struct ColumnTexts(Arc<Mutex<ColumnTextList>>);

impl ColumnTexts {
    pub(super) fn lock(&self) -> MutexGuard<'_, ColumnTextList> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The texts of the dictionary first, then those of pages without a dictionary, which are dropped when they are no
/// longer needed.
#[derive(Default)]
pub(super) struct ColumnTextList {
    /// Index in `texts` by number minus `dropped`; the dictionary's keep their numbers.
    texts: Vec<Box<str>>,
    /// How many of the texts are the dictionary's.
    of_dictionary: usize,
    /// How many texts of pages were dropped.
    dropped: usize,
    /// The index at which the texts of the last page begin.
    page: usize,
}

impl ColumnTextList {
    /// Takes the texts of the dictionary page. Returns the page with numbers instead.
    fn dictionary(&mut self, texts: Vec<Box<str>>) -> Option<Bytes> {
        // A column chunk has one dictionary, and that comes first.
        self.texts.is_empty().then_some(())?;
        (self.of_dictionary, self.page) = (texts.len(), texts.len());
        self.texts = texts;
        Some(numbers(0..self.texts.len()))
    }

    /// Takes the texts of a page without a dictionary. Returns its values as numbers.
    fn page(&mut self, texts: Vec<Box<str>>) -> Bytes {
        self.page = self.texts.len();
        self.texts.extend(texts);
        numbers(self.page + self.dropped..self.texts.len() + self.dropped)
    }

    /// Drops the texts of all pages before the last one: their values have been read.
    pub(super) fn forget(&mut self) {
        self.dropped += self.texts.drain(self.of_dictionary..self.page).count();
        self.page = self.of_dictionary;
    }

    /// The index of a number's text, below [`Self::len`].
    pub(super) fn place(&self, number: i32) -> usize {
        let number = number as usize;
        if number < self.of_dictionary {
            number
        } else {
            number - self.dropped
        }
    }

    /// The text at an index.
    pub(super) fn text(&self, place: usize) -> &str {
        &self.texts[place]
    }

    pub(super) fn len(&self) -> usize {
        self.texts.len()
    }
}

/// The numbers of a range as the values of a page.
fn numbers(range: Range<usize>) -> Bytes {
    range
        .flat_map(|number| (number as i32).to_le_bytes())
        .collect()
}
