//! A client's symbols: lists of items in the order in which they are drawn, the memory that they take, and which changes are refused.
//!
//! The ids of items nearly always increase along the list: then an item is found by binary search and takes only its 20 bytes. Otherwise
//! the symbol keeps an index, whose memory is counted.

use crate::item::{DisplayItem, DisplayItemKind, STIPPLES};
use std::collections::{HashMap, HashSet};

/// The cost of examining one symbol when calls are followed, in units of work; each item costs one unit more.
const SYMBOL_WORK: u64 = 32;
/// Units of work that a client earns per byte of its requests: half of what a symbol costs.
const WORK_A_BYTE: u64 = 16;
/// The most units of work that a client can accumulate: 125,000 symbols.
const MOST_WORK: u64 = 4_000_000;

/// The limits of one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DisplayClientLimits {
    /// Bytes of items, of their extra bytes, and of what is being defined.
    pub bytes: usize,
    /// The number of symbols.
    pub symbols: usize,
    /// The number of windows.
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

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum DisplayRefusal {
    /// There is no such symbol, or none is open.
    NoSymbol = 1,
    /// The symbol has no such item.
    NoItem = 2,
    /// The symbol has an item of that id.
    ItemExists = 3,
    /// The symbol would call itself, directly or through others.
    Circle = 4,
    /// The client has used up its memory.
    Memory = 5,
    /// There is no such window.
    NoWindow = 6,
    /// The limit on symbols or windows is reached.
    TooMany = 7,
    /// The request is not allowed in this state, for instance because a symbol or a batch is open already.
    Order = 8,
    /// The item's extra bytes, colour, stipple or scale are not valid for its kind.
    Bytes = 9,
    /// A picture has more items or pixels than are drawn: the rest is left out.
    TooMuch = 10,
    /// The client's agent has no display that answers. The connection ends.
    NoDisplay = 11,
    /// It takes more work than the client has earned by its requests, or than is done for one input event.
    Work = 12,
}

impl DisplayRefusal {
    /// The reason in words.
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

    /// The reason with that number.
    #[must_use]
    pub const fn from_number(number: u8) -> Option<Self> {
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

/// A symbol: a list of items.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Symbol {
    items: Vec<DisplayItem>,
    /// The extra bytes of items; the index is [`DisplayItem::bytes`] minus one.
    held: Vec<Box<[u8]>>,
    /// Bytes of memory that `held` takes.
    held_bytes: usize,
    /// The position of each item by its id, if the ids do not increase along the list.
    index: Option<HashMap<u32, u32>>,
    /// Deleted items that are still in the list.
    gone: usize,
    /// Whether it ever had a call. If not, its items need not be searched for calls.
    may_call: bool,
}

/// The approximate size of an index entry, bytes.
const ENTRY: usize = 16;
/// The largest number of items with extra bytes in a symbol: [`DisplayItem::bytes`] has 16 bits.
const MOST_HELD: usize = u16::MAX as usize;

impl Symbol {
    /// The items in the order in which they are drawn; deleted ones have no kind.
    #[must_use]
    pub fn items(&self) -> &[DisplayItem] {
        &self.items
    }

    /// The number of items, without deleted ones.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len() - self.gone
    }

    /// Whether it has no items.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The extra bytes of an item of this symbol.
    #[must_use]
    pub fn bytes_of(&self, item: &DisplayItem) -> &[u8] {
        usize::from(item.bytes)
            .checked_sub(1)
            .and_then(|at| self.held.get(at))
            .map_or(&[], |bytes| bytes)
    }

    /// Bytes of memory that the symbol takes.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.items.len() * size_of::<DisplayItem>()
            + self.held_bytes
            + self.index.as_ref().map_or(0, |index| ENTRY * index.len())
    }

    /// Bytes of memory that adding this item with these extra bytes would take.
    #[must_use]
    pub fn growth(&self, item: &DisplayItem, bytes: &[u8]) -> usize {
        let held = if bytes.is_empty() {
            0
        } else {
            bytes.len() + size_of::<Box<[u8]>>()
        };
        // The first id that does not increase needs an index of all items.
        let entries = match &self.index {
            Some(_) => 1,
            None if self.grows(item.id) => 0,
            None => self.len() + 1,
        };
        size_of::<DisplayItem>() + held + entries * ENTRY
    }

    /// Whether an item with this id can be appended without an index, since the id is higher than all others.
    fn grows(&self, id: u32) -> bool {
        self.index.is_none() && self.items.last().is_none_or(|last| last.id < id)
    }

    /// The position of an item that is not deleted.
    fn place(&self, id: u32) -> Option<usize> {
        // A deleted item stays in its place until `compact`.
        match &self.index {
            Some(index) => index.get(&id).map(|at| *at as usize),
            None => self.items.binary_search_by_key(&id, |item| item.id).ok(),
        }
        .filter(|at| self.items.get(*at).is_some_and(|item| item.kind.is_some()))
    }

    /// The item with that id.
    #[must_use]
    pub fn item(&self, id: u32) -> Option<&DisplayItem> {
        self.place(id).and_then(|at| self.items.get(at))
    }

    /// Appends an item.
    ///
    /// # Errors
    /// If there is an item with that id, its extra bytes do not fit its kind, or too many items have extra bytes.
    pub fn add(&mut self, item: DisplayItem, bytes: &[u8]) -> Result<(), DisplayRefusal> {
        fits(&item, bytes)?;
        let grows = self.grows(item.id);
        if !grows && self.place(item.id).is_some() {
            return Err(DisplayRefusal::ItemExists);
        }
        // The last step that can fail comes before the first change.
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

    /// Appends up to `most` items as long as they are valid vectors or rectangles without extra bytes and their ids increase. Returns how
    /// many it took; the next one, if any, is for [`Symbol::add`].
    pub fn extend(&mut self, items: impl Iterator<Item = DisplayItem>, most: usize) -> usize {
        if self.index.is_some() {
            return 0;
        }
        let before = self.items.len();
        // In 64 bits: the highest id has no successor in 32.
        let mut least = self.items.last().map_or(0, |last| u64::from(last.id) + 1);
        self.items.extend(items.take(most).take_while(|item| {
            let is_next = u64::from(item.id) >= least && item.bytes == 0 && is_plain(item);
            least = u64::from(item.id) + 1;
            is_next
        }));
        self.items.len() - before
    }

    /// Stores the extra bytes of an item, and returns the value for [`DisplayItem::bytes`].
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

    /// Replaces the item with the same id.
    ///
    /// # Errors
    /// As for [`Symbol::add`], and if there is no such item.
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
                // Added first: the new bytes may be fewer.
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

    /// Deletes an item. The list is compacted when more than half of it are deleted items.
    ///
    /// # Errors
    /// If there is no such item.
    pub fn delete(&mut self, id: u32) -> Result<(), DisplayRefusal> {
        let at = self.place(id).ok_or(DisplayRefusal::NoItem)?;
        let item = &mut self.items[at];
        item.kind = None;
        if let Some(held) = usize::from(item.bytes)
            .checked_sub(1)
            .and_then(|at| self.held.get_mut(at))
        {
            self.held_bytes -= held.len();
            // Its place stays, so that the indices of the others remain.
            *held = Box::default();
        }
        self.gone += 1;
        // Only at half: on average a deletion then moves no more than one item.
        if self.gone * 2 > self.items.len() {
            self.compact();
        }
        Ok(())
    }

    /// Removes the deleted items from the list.
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

/// Whether an item is a valid vector or rectangle.
fn is_plain(item: &DisplayItem) -> bool {
    matches!(
        item.kind,
        Some(DisplayItemKind::Vector | DisplayItemKind::Rectangle)
    ) && is_drawable(item)
}

/// Whether its colour and stipple exist.
fn is_drawable(item: &DisplayItem) -> bool {
    item.data <= 255 && usize::from(item.stipple) < STIPPLES.len()
}

/// Checks that an item and its extra bytes are valid for its kind.
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
/// A new call can close a circle only if the symbol that gets it is itself called, so the called symbols are searched only then, and none
/// of them twice until another called symbol gets calls. The search costs units of work, which a client earns by the bytes of its requests.
#[derive(Clone, Debug)]
pub struct Symbols {
    all: HashMap<u32, Symbol>,
    /// Bytes of memory that all symbols take.
    memory: usize,
    /// The number of calls of each called symbol.
    callers: HashMap<u32, u32>,
    /// A symbol, and the symbols that are known not to lead to it. It is reset when another called symbol gets calls.
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
    /// The symbol with that number.
    #[must_use]
    pub fn get(&self, symbol: u32) -> Option<&Symbol> {
        self.all.get(&symbol)
    }

    /// The numbers of all symbols, ascending.
    #[must_use]
    pub fn numbers(&self) -> Vec<u32> {
        let mut numbers: Vec<u32> = self.all.keys().copied().collect();
        numbers.sort_unstable();
        numbers
    }

    /// The number of symbols.
    #[must_use]
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there are no symbols.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Bytes of memory that all symbols take.
    #[must_use]
    pub const fn memory(&self) -> usize {
        self.memory
    }

    /// Puts a symbol in place, replacing the one with the same number.
    ///
    /// # Errors
    /// If it would call itself, or there are too many symbols or too little memory.
    pub fn put(
        &mut self,
        limits: &DisplayClientLimits,
        number: u32,
        symbol: Symbol,
    ) -> Result<(), DisplayRefusal> {
        if !self.all.contains_key(&number) && self.all.len() >= limits.symbols {
            return Err(DisplayRefusal::TooMany);
        }
        // It is part of `memory`, so the subtractions cannot fail.
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

    /// Deletes a symbol; calls of it draw nothing afterwards.
    ///
    /// # Errors
    /// If there is no such symbol.
    pub fn delete(&mut self, number: u32) -> Result<(), DisplayRefusal> {
        let symbol = self.all.remove(&number).ok_or(DisplayRefusal::NoSymbol)?;
        self.memory -= symbol.memory();
        symbol
            .calls()
            .for_each(|called| self.is_called_no_more(called));
        Ok(())
    }

    /// Adds the units of work that `bytes` of requests earn.
    pub fn earns(&mut self, bytes: usize) {
        self.work = (self.work + WORK_A_BYTE * bytes as u64).min(MOST_WORK);
    }

    /// Appends an item to a symbol.
    ///
    /// # Errors
    /// As for [`Symbol::add`]; also if there is no such symbol, it would call itself, or the client's memory is used up.
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
        // The item takes 20 bytes; the whole symbol has to be measured only if there are extra bytes or an index.
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

    /// Appends items to a symbol as [`Symbol::extend`] does, as far as memory allows. Returns how many it took.
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

    /// Replaces an item of a symbol.
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
    /// If there is no such symbol or item.
    pub fn delete_item(&mut self, number: u32, id: u32) -> Result<(), DisplayRefusal> {
        let before = self.called_by(number, id);
        self.edit(number, |symbol| symbol.delete(id))?;
        before
            .into_iter()
            .for_each(|called| self.is_called_no_more(called));
        Ok(())
    }

    /// The symbol that an item calls, if the item is a call.
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

    /// Checks that an item, if it is a call, does not make the symbol call itself.
    fn calls_back(&mut self, number: u32, item: &DisplayItem) -> Result<(), DisplayRefusal> {
        match item.kind {
            Some(DisplayItemKind::Call) => self.has_no_circle(std::iter::once(item.data), number),
            _ => Ok(()),
        }
    }

    /// Checks that none of the symbols in `calls` is the symbol `number` or calls it, directly or through others. Fails also if the
    /// remaining units of work do not suffice to find out. No symbol is searched twice until another called symbol gets calls.
    fn has_no_circle(
        &mut self,
        mut calls: impl Iterator<Item = u32>,
        number: u32,
    ) -> Result<(), DisplayRefusal> {
        if !self.callers.contains_key(&number) {
            // Nothing calls this symbol, so no search is needed. But it gets calls, so it must not be taken as searched from here on.
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
        // Symbols whose search was begun: if the search fails, it is not known where they lead.
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
