//! One column of one row group, decoded page by page: the rows that have a value, and their values.

use super::delta;
use super::hybrid::{self, Stretch};
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageReader};
use parquet::errors::{ParquetError, Result as Parquet};
use std::collections::VecDeque;

/// Most rows of a page that is read: larger ones are taken for damage.
const MOST: usize = 1 << 24;

/// What a column's values are and how they are decoded.
pub(super) trait Kind {
    /// One value.
    type Value: Copy;
    /// Takes a dictionary of so many values.
    fn dictionary(&mut self, bytes: &[u8], count: usize) -> Option<()>;
    /// The value of that number in it.
    fn look_up(&self, number: u64) -> Option<Self::Value>;
    /// Adds `count` values that are not of the dictionary; `None` when the encoding is none of this kind or the bytes are not in it.
    fn plain(&mut self, encoding: Encoding, bytes: &[u8], count: usize, values: &mut Vec<Self::Value>) -> Option<()>;
    /// Called when no value of an earlier page is used any more.
    fn forget(&mut self) {}
}

/// Whole numbers.
#[derive(Default)]
pub(super) struct Numbers(Vec<i64>);

impl Kind for Numbers {
    type Value = i64;

    fn dictionary(&mut self, bytes: &[u8], count: usize) -> Option<()> {
        self.0 = plain_numbers(bytes, count)?.collect();
        Some(())
    }

    fn look_up(&self, number: u64) -> Option<i64> {
        self.0.get(usize::try_from(number).ok()?).copied()
    }

    fn plain(&mut self, encoding: Encoding, bytes: &[u8], count: usize, values: &mut Vec<i64>) -> Option<()> {
        match encoding {
            Encoding::PLAIN => values.extend(plain_numbers(bytes, count)?),
            Encoding::DELTA_BINARY_PACKED => delta::decode(bytes, count, values)?,
            _ => return None,
        }
        Some(())
    }
}

fn plain_numbers(bytes: &[u8], count: usize) -> Option<impl Iterator<Item = i64>> {
    let bytes = bytes.get(..count.checked_mul(8)?)?;
    Some(bytes.chunks_exact(8).map(|word| word.iter().rev().fold(0, |sum, byte| sum << 8 | i64::from(*byte))))
}

/// Texts, by their number in a list: those of the dictionary first, then those of the present page.
#[derive(Default)]
pub(super) struct Texts {
    list: Vec<Box<str>>,
    of_dictionary: usize,
}

impl Texts {
    /// The text of a number.
    pub(super) fn text(&self, number: u32) -> &str {
        self.list.get(number as usize).map_or("", |text| text)
    }

    /// How many there are at present.
    pub(super) const fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether numbers keep their meaning beyond the present page.
    pub(super) const fn lasts(&self) -> bool {
        self.list.len() == self.of_dictionary
    }
}

impl Kind for Texts {
    type Value = u32;

    fn dictionary(&mut self, bytes: &[u8], count: usize) -> Option<()> {
        self.list = plain_texts(bytes, count)?;
        self.of_dictionary = self.list.len();
        Some(())
    }

    fn look_up(&self, number: u64) -> Option<u32> {
        u32::try_from(number).ok().filter(|number| (*number as usize) < self.of_dictionary)
    }

    fn plain(&mut self, encoding: Encoding, bytes: &[u8], count: usize, values: &mut Vec<u32>) -> Option<()> {
        let texts = (encoding == Encoding::PLAIN).then(|| plain_texts(bytes, count)).flatten()?;
        values.extend((0..texts.len()).map(|at| (self.list.len() + at) as u32));
        self.list.extend(texts);
        Some(())
    }

    fn forget(&mut self) {
        self.list.truncate(self.of_dictionary);
    }
}

fn plain_texts(mut bytes: &[u8], count: usize) -> Option<Vec<Box<str>>> {
    let mut texts = Vec::new();
    for _ in 0..count {
        let (length, rest) = bytes.split_first_chunk()?;
        let (text, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        texts.push(std::str::from_utf8(text).ok()?.into());
        bytes = rest;
    }
    Some(texts)
}

/// Walks a column of a row group.
pub(super) struct Pages<K: Kind> {
    pages: Box<dyn PageReader>,
    optional: bool,
    pub(super) kind: K,
    /// Rows of the present page that are not given yet, and whether they have a value.
    runs: VecDeque<(bool, usize)>,
    values: Vec<K::Value>,
    given: usize,
}

impl<K: Kind> Pages<K> {
    /// Of these pages.
    pub(super) const fn new(pages: Box<dyn PageReader>, optional: bool, kind: K) -> Self {
        Self { pages, optional, kind, runs: VecDeque::new(), values: Vec::new(), given: 0 }
    }

    /// Goes over the next rows: `each` gets every stretch of them that have a value, as far as one page goes: the first row of it,
    /// counted from where this began, and its values. Fewer rows than asked for are damage.
    pub(super) fn take(
        &mut self,
        rows: usize,
        mut each: impl FnMut(&K, usize, &[K::Value]) -> Parquet<()>,
    ) -> Parquet<()> {
        let mut row = 0;
        while row < rows {
            let Some((present, left)) = self.runs.front_mut() else {
                self.next_page()?;
                continue;
            };
            let some = (rows - row).min(*left);
            if *present {
                each(&self.kind, row, &self.values[self.given..self.given + some])?;
                self.given += some;
            }
            *left -= some;
            if *left == 0 {
                self.runs.pop_front();
            }
            row += some;
        }
        Ok(())
    }

    fn next_page(&mut self) -> Parquet<()> {
        self.values.clear();
        self.given = 0;
        self.kind.forget();
        let page = self.pages.get_next_page()?.ok_or_else(|| damaged("it ends before its last row"))?;
        let (rows, encoding) = (page.num_values() as usize, page.encoding());
        if rows > MOST {
            return Err(damaged("a page is too large"));
        }
        match &page {
            Page::DictionaryPage { buf, .. } => {
                self.kind.dictionary(buf, rows).ok_or_else(|| damaged("a dictionary cannot be read"))
            }
            Page::DataPage { buf, def_level_encoding, .. } => {
                if !self.optional {
                    self.runs.push_back((true, rows));
                    return self.decode(encoding, buf, rows);
                }
                let split = (*def_level_encoding == Encoding::RLE).then(|| levels_of(buf)).flatten();
                let (levels, values) = split.ok_or_else(|| damaged("a page says wrongly which rows it has"))?;
                let present = self.levels(levels, rows)?;
                self.decode(encoding, values, present)
            }
            Page::DataPageV2 { buf, def_levels_byte_len, rep_levels_byte_len, .. } => {
                let wrong = || damaged("a page says wrongly which rows it has");
                let (_, rest) = buf.split_at_checked(*rep_levels_byte_len as usize).ok_or_else(wrong)?;
                let (levels, values) = rest.split_at_checked(*def_levels_byte_len as usize).ok_or_else(wrong)?;
                let present = if self.optional {
                    self.levels(levels, rows)?
                } else {
                    self.runs.push_back((true, rows));
                    rows
                };
                self.decode(encoding, values, present)
            }
        }
    }

    /// Which rows have a value; how many.
    fn levels(&mut self, bytes: &[u8], rows: usize) -> Parquet<usize> {
        let runs = &mut self.runs;
        let mut present = 0;
        let mut add = |is: bool, count: usize| {
            present += if is { count } else { 0 };
            match runs.back_mut() {
                Some((last, length)) if *last == is => *length += count,
                _ => runs.push_back((is, count)),
            }
        };
        let done = hybrid::decode(bytes, 1, rows, |stretch| {
            match stretch {
                Stretch::Same(value, count) => add(value != 0, count),
                Stretch::Each(values) => values.iter().for_each(|value| add(*value != 0, 1)),
            }
            Some(())
        });
        done.map(|()| present).ok_or_else(|| damaged("a page says wrongly which rows it has"))
    }

    fn decode(&mut self, encoding: Encoding, bytes: &[u8], count: usize) -> Parquet<()> {
        let done = match encoding {
            _ if count == 0 => Some(()),
            Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY => self.of_dictionary(bytes, count),
            other => self.kind.plain(other, bytes, count, &mut self.values),
        };
        done.ok_or_else(|| damaged(&format!("a page cannot be read (its encoding is {encoding})")))
    }

    fn of_dictionary(&mut self, bytes: &[u8], count: usize) -> Option<()> {
        let (width, bytes) = bytes.split_first()?;
        let (kind, values) = (&self.kind, &mut self.values);
        hybrid::decode(bytes, u32::from(*width), count, |stretch| {
            match stretch {
                Stretch::Same(number, count) => {
                    let value = kind.look_up(number)?;
                    values.resize(values.len() + count, value);
                }
                Stretch::Each(numbers) => {
                    for number in numbers {
                        values.push(kind.look_up(*number)?);
                    }
                }
            }
            Some(())
        })
    }
}

fn levels_of(page: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = page.split_first_chunk()?;
    rest.split_at_checked(u32::from_le_bytes(*length) as usize)
}

fn damaged(what: &str) -> ParquetError {
    ParquetError::General(what.to_owned())
}
