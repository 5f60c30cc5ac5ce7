//! The pages of one column, checked for the Parquet library's column reader, which panics at some that are damaged: here they are an
//! error. Nothing is decoded here but texts.
//!
//! Texts become their numbers in a list, which the library then reads as a column of numbers: a text of a dictionary is decoded
//! once, not for each row.

use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result as Parquet};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Pages of a column, checked.
pub(super) struct Pages {
    pages: Box<dyn PageReader>,
    optional: bool,
    has_dictionary: bool,
    /// Where the texts go, in a column of texts.
    texts: Option<ColumnTexts>,
}

impl Pages {
    /// Of a column of numbers, or of one of texts that go into this list.
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

    fn checked(&mut self, mut page: Page) -> Option<Page> {
        match &mut page {
            Page::DictionaryPage {
                buf, num_values, ..
            } => {
                match &self.texts {
                    Some(texts) => {
                        *buf = texts.lock().dictionary(plain(buf, Some(*num_values))?)?
                    }
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

    /// Checks the levels of a page and the values behind them.
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
                    // The library counts on a first number there.
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

/// Walks over runs and packed numbers of so many bits, as far as `count` of them.
fn runs(mut bytes: &[u8], width: u8, count: u32) -> Option<()> {
    let (width, mut left) = (u64::from(width), u64::from(count));
    while left > 0 && !bytes.is_empty() {
        let head = number(&mut bytes)?;
        let (count, length) = match head >> 1 {
            groups if head & 1 == 1 => (groups.checked_mul(8)?, groups.checked_mul(width)?),
            count => (count, width.div_ceil(8)),
        };
        // The last one may be cut where its numbers end.
        bytes = bytes
            .get(usize::try_from(length).ok()?..)
            .unwrap_or_default();
        left = left.saturating_sub(count);
    }
    Some(())
}

/// Walks over packed differences: how many numbers they are.
fn differences(mut bytes: &[u8]) -> Option<u64> {
    let (block, parts, count) = (
        number(&mut bytes)?,
        number(&mut bytes)?,
        number(&mut bytes)?,
    );
    number(&mut bytes)?;
    (block <= 1 << 20 && (1..=block).contains(&parts)).then_some(())?;
    let (part, mut left) = (block / parts, count.saturating_sub(1));
    while left > 0 {
        number(&mut bytes)?;
        let (widths, rest) = bytes.split_at_checked(parts as usize)?;
        bytes = rest;
        for width in widths.iter().take(left.div_ceil(part) as usize) {
            bytes = bytes
                .get((u64::from(*width) * part / 8) as usize..)
                .unwrap_or_default();
            left = left.saturating_sub(part);
        }
    }
    Some(count)
}

/// Takes a number off the beginning, of seven bits a byte and ten bytes at most.
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

/// Texts in a row, each behind its length: so many, or all.
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

/// The texts of a column, shared with who reads it.
#[derive(Clone, Default)]
pub(super) struct ColumnTexts(Arc<Mutex<ColumnTextList>>);

impl ColumnTexts {
    pub(super) fn lock(&self) -> MutexGuard<'_, ColumnTextList> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Those of the dictionary first, then those of pages without one, which are dropped when they are no longer needed.
#[derive(Default)]
pub(super) struct ColumnTextList {
    texts: Vec<Box<str>>,
    of_dictionary: usize,
    dropped: usize,
    /// Where those of the last page begin.
    page: usize,
}

impl ColumnTextList {
    fn dictionary(&mut self, texts: Vec<Box<str>>) -> Option<Bytes> {
        self.texts.is_empty().then_some(())?;
        (self.of_dictionary, self.page) = (texts.len(), texts.len());
        self.texts = texts;
        Some(numbers(0..self.texts.len()))
    }

    fn page(&mut self, texts: Vec<Box<str>>) -> Bytes {
        self.page = self.texts.len();
        self.texts.extend(texts);
        numbers(self.page + self.dropped..self.texts.len() + self.dropped)
    }

    /// Drops the texts of all pages before the last, where no value of them is still to come or in use.
    pub(super) fn forget(&mut self) {
        self.dropped += self.texts.drain(self.of_dictionary..self.page).count();
        self.page = self.of_dictionary;
    }

    /// Where the text of a number is, among [`Self::len`] places.
    pub(super) fn place(&self, number: i32) -> usize {
        let number = number as usize;
        if number < self.of_dictionary {
            number
        } else {
            number - self.dropped
        }
    }

    /// The text at a place.
    pub(super) fn text(&self, place: usize) -> &str {
        &self.texts[place]
    }

    pub(super) fn len(&self) -> usize {
        self.texts.len()
    }
}

/// These numbers as the values of a page.
fn numbers(range: Range<usize>) -> Bytes {
    range
        .flat_map(|number| (number as i32).to_le_bytes())
        .collect()
}
