//! A window: the symbol that it shows, its pixels, and what of it is not drawn yet.

use crate::draw::{self, SymbolPlacement};
use crate::pixels::Pixels;
use crate::symbols::Symbols;

/// What a window shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct View {
    pub(super) symbol: u32,
    pub(super) place: SymbolPlacement,
}

/// What of a window is not drawn yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum DisplayWindowDamage {
    #[default]
    None,
    /// Items that were added to its symbol, from that place in the list on.
    Added(usize),
    All,
}

/// A window.
#[derive(Debug)]
pub struct Window {
    /// What its client calls it.
    pub title: String,
    pub(super) pixels: Pixels,
    pub(super) view: Option<View>,
    pub(super) damage: DisplayWindowDamage,
    /// Counts how often it was drawn anew, for whoever looks on; a window that takes its place begins elsewhere.
    pub drawn: u64,
    /// Items of the last picture that was drawn whole, and whether that was all of them.
    pub items: (usize, bool),
    /// It is to be reported to its client that not all of them were drawn.
    pub(super) is_cut: bool,
}

impl Window {
    /// Its pixels as they were drawn last.
    #[must_use]
    pub const fn pixels(&self) -> &Pixels {
        &self.pixels
    }
    /// Draws what of it is not drawn.
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
