//! A client's symbols: lists of items in the order in which they are drawn, what they take of memory, and what may not be.
//!
//! Ids of items grow in nearly all pictures: then an item is found by halving, and takes its 20 bytes and nothing else. Where they do not,
//! an index is kept beside them, and counted.

use crate::item::{DisplayItem, DisplayItemKind, STIPPLES};
use std::collections::{HashMap, HashSet};

/// Units of work that looking at a symbol costs beside those of its items, which cost one each.
const SYMBOL_WORK: u64 = 32;
/// Units of work that a byte of requests brings: half a symbol.
const WORK_A_BYTE: u64 = 16;
/// Units of work that a client can save up: 125,000 symbols.
const MOST_WORK: u64 = 4_000_000;

/// What a client may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DisplayClientLimits {
    /// Bytes of items, of what they hold, and of what is half defined.
    pub bytes: usize,
    /// Symbols, and windows.
    pub symbols: usize,
    /// See `symbols`.
    pub windows: usize,
}

impl Default for DisplayClientLimits {
    fn default() -> Self {
        Self {
            bytes: 64 << 20,
            symbols: 65_536,
            windows: 16,
        }
    }
}

/// Why something is not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum DisplayRefusal {
    /// There is no such symbol, or none is open.
    NoSymbol = 1,
    /// The symbol has no such item.
    NoItem = 2,
    /// The symbol has an item of that id.
    ItemExists = 3,
    /// It would call itself, by others or at once.
    Circle = 4,
    /// The client has as much as it may have.
    Memory = 5,
    /// There is no such window.
    NoWindow = 6,
    /// There are as many symbols, or windows, as there may be.
    TooMany = 7,
    /// The request does not fit what is going on: a symbol is open already, or a batch.
    Order = 8,
    /// What an item holds, or its colour, stipple or scale, is none of its kind.
    Bytes = 9,
    /// A picture has more than is drawn of one: the rest is left out.
    TooMuch = 10,
    /// The agent that a client connected to has no display that answers: the connection ends.
    NoDisplay = 11,
    /// It takes more work than the display does for so few bytes of requests, or for one event of input.
    Work = 12,
}

impl DisplayRefusal {
    /// For people.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::NoSymbol => "unknown symbol",
            Self::NoItem => "the symbol has no such item",
            Self::ItemExists => "the symbol already has an item with that ID",
            Self::Circle => "the symbol would call itself",
            Self::Memory => "the client's memory on the display is used up",
            Self::NoWindow => "unknown window",
            Self::TooMany => "the maximum number of such objects has been reached",
            Self::Order => "the request is not valid at this point",
            Self::TooMuch => {
                "a picture has more items than the display can draw: the rest is omitted"
            }
            Self::NoDisplay => "no display answers the agent that this client is connected to",
            Self::Bytes => "the item's bytes do not match its kind",
            Self::Work => {
                "searching the symbols would take more work than the display allows at once"
            }
        }
    }

    /// By its number.
    #[must_use]
    pub const fn of(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::NoSymbol,
            2 => Self::NoItem,
            3 => Self::ItemExists,
            4 => Self::Circle,
            5 => Self::Memory,
            6 => Self::NoWindow,
            7 => Self::TooMany,
            8 => Self::Order,
            9 => Self::Bytes,
            10 => Self::TooMuch,
            11 => Self::NoDisplay,
            12 => Self::Work,
            _ => return None,
        })
    }
}

/// A symbol.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Symbol {
    items: Vec<DisplayItem>,
    /// What items hold beside their 20 bytes, by `DisplayItem::bytes` less one.
    held: Vec<Box<[u8]>>,
    /// How much memory that takes.
    held_bytes: usize,
    /// Where each item is, where ids do not grow.
    index: Option<HashMap<u32, u32>>,
    /// Items that were deleted and are still in the list.
    gone: usize,
    /// Whether one of its items was ever a call: most symbols need not be looked through for those.
    may_call: bool,
}

/// Bytes of an entry of an index, about.
const ENTRY: usize = 16;
/// Items that hold bytes in one symbol, at most.
const MOST_HELD: usize = u16::MAX as usize;

impl Symbol {
    /// The items, in the order in which they are drawn; those that were deleted have no kind.
    #[must_use]
    pub fn items(&self) -> &[DisplayItem] {
        &self.items
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len() - self.gone
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What an item holds.
    #[must_use]
    pub fn bytes_of(&self, item: &DisplayItem) -> &[u8] {
        usize::from(item.bytes)
            .checked_sub(1)
            .and_then(|at| self.held.get(at))
            .map_or(&[], |bytes| bytes)
    }

    /// Bytes of memory that it takes.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.items.len() * size_of::<DisplayItem>()
            + self.held_bytes
            + self.index.as_ref().map_or(0, |index| ENTRY * index.len())
    }

    /// Bytes of memory that one more item takes, which holds these.
    #[must_use]
    pub fn growth(&self, item: &DisplayItem, bytes: &[u8]) -> usize {
        let held = if bytes.is_empty() {
            0
        } else {
            bytes.len() + size_of::<Box<[u8]>>()
        };
        let entries = match &self.index {
            Some(_) => 1,
            None if self.grows(item.id) => 0,
            None => self.len() + 1,
        };
        size_of::<DisplayItem>() + held + entries * ENTRY
    }

    /// Whether an id goes on growing, so that the item is found without an index.
    fn grows(&self, id: u32) -> bool {
        self.index.is_none() && self.items.last().is_none_or(|last| last.id < id)
    }

    fn place(&self, id: u32) -> Option<usize> {
        match &self.index {
            Some(index) => index.get(&id).map(|at| *at as usize),
            None => self.items.binary_search_by_key(&id, |item| item.id).ok(),
        }
        .filter(|at| self.items.get(*at).is_some_and(|item| item.kind.is_some()))
    }

    /// An item by its id.
    #[must_use]
    pub fn item(&self, id: u32) -> Option<&DisplayItem> {
        self.place(id).and_then(|at| self.items.get(at))
    }

    /// Adds an item behind the others.
    ///
    /// # Errors
    /// When there is one of that id, its bytes are not of its kind, or too many hold bytes.
    pub fn add(&mut self, item: DisplayItem, bytes: &[u8]) -> Result<(), DisplayRefusal> {
        fits(&item, bytes)?;
        let grows = self.grows(item.id);
        if !grows && self.place(item.id).is_some() {
            return Err(DisplayRefusal::ItemExists);
        }
        let bytes = self.hold(bytes)?;
        if !grows {
            let all = self
                .items
                .iter()
                .enumerate()
                .filter(|(_, item)| item.kind.is_some());
            let index = self
                .index
                .get_or_insert_with(|| all.map(|(at, item)| (item.id, at as u32)).collect());
            index.insert(item.id, self.items.len() as u32);
        }
        self.may_call |= item.kind == Some(DisplayItemKind::Call);
        self.items.push(DisplayItem { bytes, ..item });
        Ok(())
    }

    /// Adds items that hold and call nothing as long as their ids grow, they are drawable, and there are no more than that: how many it
    /// took. The next, if there is one, is for [`Symbol::add`].
    pub fn extend(&mut self, items: impl Iterator<Item = DisplayItem>, most: usize) -> usize {
        if self.index.is_some() {
            return 0;
        }
        let before = self.items.len();
        let mut least = self.items.last().map_or(0, |last| u64::from(last.id) + 1);
        self.items.extend(items.take(most).take_while(|item| {
            let is_next = u64::from(item.id) >= least && item.bytes == 0 && is_plain(item);
            least = u64::from(item.id) + 1;
            is_next
        }));
        self.items.len() - before
    }

    fn hold(&mut self, bytes: &[u8]) -> Result<u16, DisplayRefusal> {
        if bytes.is_empty() {
            return Ok(0);
        }
        if self.held.len() >= MOST_HELD {
            return Err(DisplayRefusal::TooMany);
        }
        self.held.push(bytes.into());
        self.held_bytes += bytes.len() + size_of::<Box<[u8]>>();
        Ok(self.held.len() as u16)
    }

    /// Puts an item in the place of the one of its id.
    ///
    /// # Errors
    /// As [`Symbol::add`], and when there is none.
    pub fn change(&mut self, item: DisplayItem, bytes: &[u8]) -> Result<(), DisplayRefusal> {
        fits(&item, bytes)?;
        let at = self.place(item.id).ok_or(DisplayRefusal::NoItem)?;
        let before = usize::from(self.items[at].bytes);
        let bytes = match before
            .checked_sub(1)
            .and_then(|at| self.held.get_mut(at))
            .filter(|_| !bytes.is_empty())
        {
            Some(held) => {
                self.held_bytes = self.held_bytes + bytes.len() - held.len();
                *held = bytes.into();
                before as u16
            }
            None => self.hold(bytes)?,
        };
        self.may_call |= item.kind == Some(DisplayItemKind::Call);
        self.items[at] = DisplayItem { bytes, ..item };
        Ok(())
    }

    /// Deletes an item. Its place is given back once half of the list is such places.
    ///
    /// # Errors
    /// When there is none.
    pub fn delete(&mut self, id: u32) -> Result<(), DisplayRefusal> {
        let at = self.place(id).ok_or(DisplayRefusal::NoItem)?;
        let item = &mut self.items[at];
        item.kind = None;
        if let Some(held) = usize::from(item.bytes)
            .checked_sub(1)
            .and_then(|at| self.held.get_mut(at))
        {
            self.held_bytes -= held.len();
            *held = Box::default();
        }
        self.gone += 1;
        if self.gone * 2 > self.items.len() {
            self.compact();
        }
        Ok(())
    }

    fn compact(&mut self) {
        let mut held = Vec::new();
        self.items.retain(|item| item.kind.is_some());
        for item in &mut self.items {
            if let Some(at) = usize::from(item.bytes).checked_sub(1) {
                held.push(
                    self.held
                        .get_mut(at)
                        .map(std::mem::take)
                        .unwrap_or_default(),
                );
                item.bytes = held.len() as u16;
            }
        }
        (self.held, self.gone) = (held, 0);
        self.held_bytes = self
            .held
            .iter()
            .map(|bytes| bytes.len() + size_of::<Box<[u8]>>())
            .sum();
        if let Some(index) = &mut self.index {
            *index = self
                .items
                .iter()
                .zip(0..)
                .map(|(item, at)| (item.id, at))
                .collect();
        }
    }

    /// The symbols that it calls.
    pub fn calls(&self) -> impl Iterator<Item = u32> {
        let items = if self.may_call {
            self.items.as_slice()
        } else {
            &[]
        };
        items
            .iter()
            .filter(|item| item.kind == Some(DisplayItemKind::Call))
            .map(|item| item.data)
    }
}

/// Whether an item holds and calls nothing and can be drawn.
fn is_plain(item: &DisplayItem) -> bool {
    matches!(
        item.kind,
        Some(DisplayItemKind::Vector | DisplayItemKind::Rectangle)
    ) && is_drawable(item)
}

fn is_drawable(item: &DisplayItem) -> bool {
    item.data <= 255 && usize::from(item.stipple) < STIPPLES.len()
}

fn fits(item: &DisplayItem, bytes: &[u8]) -> Result<(), DisplayRefusal> {
    let Some(kind) = item.kind else {
        return Err(DisplayRefusal::Bytes);
    };
    let is_in_range = if kind == DisplayItemKind::Call {
        item.x1 > 0
    } else {
        is_drawable(item)
    };
    let is_right = is_in_range
        && match kind {
            DisplayItemKind::Text => true,
            DisplayItemKind::Polyline | DisplayItemKind::Spline | DisplayItemKind::Fill => {
                bytes.len().is_multiple_of(4) && !bytes.is_empty()
            }
            DisplayItemKind::Raster => {
                let row = usize::from(item.x1.max(0) as u16).div_ceil(8);
                row * usize::from(item.y1.max(0) as u16) == bytes.len() && !bytes.is_empty()
            }
            _ => bytes.is_empty(),
        };
    if is_right {
        Ok(())
    } else {
        Err(DisplayRefusal::Bytes)
    }
}

/// All symbols of a client.
///
/// A new call makes a circle only where the symbol that gets it is called itself, so what is called is looked through only then, and once as
/// long as no other symbol gets calls. That costs units of work, which bytes of requests bring.
#[derive(Clone, Debug)]
pub struct Symbols {
    all: HashMap<u32, Symbol>,
    /// Bytes of memory that they take.
    memory: usize,
    /// How many calls there are of each symbol that is called.
    callers: HashMap<u32, u32>,
    /// Symbols that were found not to lead to that one: they stay so until others that are called get calls.
    seen: (u32, HashSet<u32>),
    /// Units of work that may still be done.
    work: u64,
}

impl Default for Symbols {
    fn default() -> Self {
        let (all, callers, seen) = (HashMap::new(), HashMap::new(), (0, HashSet::new()));
        Self {
            all,
            memory: 0,
            callers,
            seen,
            work: MOST_WORK,
        }
    }
}

impl Symbols {
    /// A symbol by its number.
    #[must_use]
    pub fn get(&self, symbol: u32) -> Option<&Symbol> {
        self.all.get(&symbol)
    }

    /// Their numbers, ascending.
    #[must_use]
    pub fn numbers(&self) -> Vec<u32> {
        let mut numbers: Vec<u32> = self.all.keys().copied().collect();
        numbers.sort_unstable();
        numbers
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Bytes of memory that they take.
    #[must_use]
    pub const fn memory(&self) -> usize {
        self.memory
    }

    /// Puts a symbol in the place of what has its number.
    ///
    /// # Errors
    /// When it would call itself, or there are too many.
    pub fn put(
        &mut self,
        limits: &DisplayClientLimits,
        number: u32,
        symbol: Symbol,
    ) -> Result<(), DisplayRefusal> {
        if !self.all.contains_key(&number) && self.all.len() >= limits.symbols {
            return Err(DisplayRefusal::TooMany);
        }
        let before = self.all.get(&number).map_or(0, Symbol::memory);
        if self.memory - before + symbol.memory() > limits.bytes {
            return Err(DisplayRefusal::Memory);
        }
        self.has_no_circle(symbol.calls(), number)?;
        self.memory = self.memory - before + symbol.memory();
        symbol.calls().for_each(|called| self.is_called(called));
        let replaced = self.all.insert(number, symbol);
        replaced
            .iter()
            .flat_map(Symbol::calls)
            .for_each(|called| self.is_called_no_more(called));
        Ok(())
    }

    /// Deletes a symbol; calls of it draw nothing from then on.
    ///
    /// # Errors
    /// When there is none.
    pub fn delete(&mut self, number: u32) -> Result<(), DisplayRefusal> {
        let symbol = self.all.remove(&number).ok_or(DisplayRefusal::NoSymbol)?;
        self.memory -= symbol.memory();
        symbol
            .calls()
            .for_each(|called| self.is_called_no_more(called));
        Ok(())
    }

    /// So many bytes of requests have come: as much work may be done for them.
    pub fn earns(&mut self, bytes: usize) {
        self.work = (self.work + WORK_A_BYTE * bytes as u64).min(MOST_WORK);
    }

    /// Adds an item to a symbol.
    ///
    /// # Errors
    /// As [`Symbol::add`]; when the symbol is not there, would call itself, or there is no memory for it.
    pub fn add(
        &mut self,
        limits: &DisplayClientLimits,
        number: u32,
        item: DisplayItem,
        bytes: &[u8],
    ) -> Result<(), DisplayRefusal> {
        self.calls_back(number, &item)?;
        let symbol = self.all.get_mut(&number).ok_or(DisplayRefusal::NoSymbol)?;
        if self.memory + symbol.growth(&item, bytes) > limits.bytes {
            return Err(DisplayRefusal::Memory);
        }
        // What grows is the item, what it holds and its entry; all of it is counted only where there is an index.
        let is_plain = symbol.index.is_none() && bytes.is_empty();
        let before = if is_plain { 0 } else { symbol.memory() };
        symbol.add(item, bytes)?;
        let is_plain = is_plain && symbol.index.is_none();
        self.memory += if is_plain {
            size_of::<DisplayItem>()
        } else {
            symbol.memory() - before.min(symbol.memory())
        };
        if item.kind == Some(DisplayItemKind::Call) {
            self.is_called(item.data);
        }
        Ok(())
    }

    /// Adds items to a symbol as [`Symbol::extend`] does, as far as there is memory: how many it took.
    pub fn extend(
        &mut self,
        limits: &DisplayClientLimits,
        number: u32,
        items: impl Iterator<Item = DisplayItem>,
    ) -> usize {
        let most = limits.bytes.saturating_sub(self.memory) / size_of::<DisplayItem>();
        let taken = self
            .all
            .get_mut(&number)
            .map_or(0, |symbol| symbol.extend(items, most));
        self.memory += taken * size_of::<DisplayItem>();
        taken
    }

    /// Changes an item of a symbol.
    ///
    /// # Errors
    /// As [`Symbols::add`].
    pub fn change(
        &mut self,
        limits: &DisplayClientLimits,
        number: u32,
        item: DisplayItem,
        bytes: &[u8],
    ) -> Result<(), DisplayRefusal> {
        self.calls_back(number, &item)?;
        if self.memory + bytes.len() + size_of::<Box<[u8]>>() > limits.bytes && !bytes.is_empty() {
            return Err(DisplayRefusal::Memory);
        }
        let before = self.called_by(number, item.id);
        self.edit(number, |symbol| symbol.change(item, bytes))?;
        before
            .into_iter()
            .for_each(|called| self.is_called_no_more(called));
        if item.kind == Some(DisplayItemKind::Call) {
            self.is_called(item.data);
        }
        Ok(())
    }

    /// Deletes an item of a symbol.
    ///
    /// # Errors
    /// When one or the other is not there.
    pub fn delete_item(&mut self, number: u32, id: u32) -> Result<(), DisplayRefusal> {
        let before = self.called_by(number, id);
        self.edit(number, |symbol| symbol.delete(id))?;
        before
            .into_iter()
            .for_each(|called| self.is_called_no_more(called));
        Ok(())
    }

    /// Which symbol an item of a symbol calls, where it is a call.
    fn called_by(&self, number: u32, id: u32) -> Option<u32> {
        let item = self.all.get(&number)?.item(id)?;
        (item.kind == Some(DisplayItemKind::Call)).then_some(item.data)
    }

    fn is_called(&mut self, number: u32) {
        let calls = self.callers.entry(number).or_default();
        *calls = calls.saturating_add(1);
    }

    fn is_called_no_more(&mut self, number: u32) {
        if let std::collections::hash_map::Entry::Occupied(mut calls) = self.callers.entry(number) {
            *calls.get_mut() = calls.get().saturating_sub(1);
            if *calls.get() == 0 {
                calls.remove();
            }
        }
    }

    fn edit(
        &mut self,
        number: u32,
        edit: impl FnOnce(&mut Symbol) -> Result<(), DisplayRefusal>,
    ) -> Result<(), DisplayRefusal> {
        let symbol = self.all.get_mut(&number).ok_or(DisplayRefusal::NoSymbol)?;
        let before = symbol.memory();
        let edited = edit(symbol);
        self.memory = self.memory - before + symbol.memory();
        edited
    }

    fn calls_back(&mut self, number: u32, item: &DisplayItem) -> Result<(), DisplayRefusal> {
        match item.kind {
            Some(DisplayItemKind::Call) => self.has_no_circle(std::iter::once(item.data), number),
            _ => Ok(()),
        }
    }

    /// Says so where one of these symbols is that one, or calls it, by others or at once; or where that cannot be seen with the work that is
    /// left. No symbol is looked at twice as long as no other one gets calls.
    fn has_no_circle(
        &mut self,
        mut calls: impl Iterator<Item = u32>,
        number: u32,
    ) -> Result<(), DisplayRefusal> {
        if !self.callers.contains_key(&number) {
            // Others lead to it only by calls, but it may lead elsewhere from now on.
            self.seen.1.remove(&number);
            let is_circle = calls.any(|called| called == number);
            return if is_circle {
                Err(DisplayRefusal::Circle)
            } else {
                Ok(())
            };
        }
        if self.seen.0 != number {
            self.seen = (number, HashSet::new());
        }
        let mut open: Vec<u32> = calls.collect();
        // What was begun and not finished is not known to lead nowhere.
        let mut begun = HashSet::new();
        let done = loop {
            let Some(next) = open.pop() else { break Ok(()) };
            if next == number {
                break Err(DisplayRefusal::Circle);
            }
            if !self.seen.1.insert(next) {
                continue;
            }
            begun.insert(next);
            let symbol = self.all.get(&next);
            let items = symbol
                .filter(|symbol| symbol.may_call)
                .map_or(0, |symbol| symbol.items.len());
            let Some(left) = self.work.checked_sub(SYMBOL_WORK + items as u64) else {
                break Err(DisplayRefusal::Work);
            };
            self.work = left;
            open.extend(symbol.into_iter().flat_map(Symbol::calls));
        };
        if done.is_err() {
            self.seen.1.retain(|number| !begun.contains(number));
        }
        done
    }
}

#[cfg(test)]
mod tests;
