//! A window: the symbol that it shows, its pixels, and which changes are not drawn yet.

use crate::draw::{self, SymbolPlacement};
use crate::pixels::Pixels;
use crate::symbols::Symbols;

/// The symbol that a window shows, and how it is placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct View {
    pub(super) symbol: u32,
    pub(super) place: SymbolPlacement,
}

/// The changes of a window that are not drawn yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum DisplayWindowDamage {
    #[default]
    None,
    /// Items were added to its symbol: those from this index on.
    Added(usize),
    All,
}

/// A window of a client.
#[derive(Debug)]
pub struct Window {
    /// The title that its client gave it.
    pub title: String,
    pub(super) pixels: Pixels,
    pub(super) view: Option<View>,
    pub(super) damage: DisplayWindowDamage,
    /// How often it was drawn, so that viewers notice a change. A window that replaces it starts from another number.
    pub drawn: u64,
    /// The number of items in the last complete drawing, and whether all items were drawn.
    pub items: (usize, bool),
    /// Whether its client has still to be notified that some items were not drawn.
    pub(super) is_cut: bool,
}

impl Window {
    /// The pixels as last drawn.
    #[must_use]
    pub const fn pixels(&self) -> &Pixels {
        &self.pixels
    }
    /// Draws the changes that are not drawn yet.
    pub(super) fn redraw(&mut self, symbols: &Symbols) {
        let damage = std::mem::take(&mut self.damage);
        let Some(view) = self.view else {
            if damage != DisplayWindowDamage::None {
                self.pixels.clear();
                self.drawn += 1;
            }
            return;
        };
        match damage {
            DisplayWindowDamage::None => return,
            DisplayWindowDamage::Added(from) => {
                if let Some(symbol) = symbols.get(view.symbol) {
                    let items = symbol.items().get(from..).unwrap_or_default();
                    draw::draw_added_items(&mut self.pixels, symbols, symbol, items, view.place);
                }
            }
            DisplayWindowDamage::All => {
                self.pixels.clear();
                self.items = draw::draw_symbol(&mut self.pixels, symbols, view.symbol, view.place);
                self.is_cut = !self.items.1;
            }
        }
        self.drawn += 1;
    }
}
