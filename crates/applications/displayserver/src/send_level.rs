//! The four levels at which a picture is sent (Lantz, Nowicki and Theimer 1985, section 5): an answer for each item, none, one for all, and
//! symbols that call each other.

use crate::client::DisplayClient;
use stackline_core::error::Result;
use stackline_display::item::DisplayItem;
use stackline_display::protocol::DisplayRequest;

/// A level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisplaySendLevel {
    /// Each item is answered once it is drawn.
    StopAndWait,
    /// No item is answered; each is drawn as it comes.
    Pipelined,
    /// All items are a symbol, which is answered once it is drawn.
    Batched,
    /// Symbols that call each other, each answered.
    Structured,
}

stackline_core::named_values!(DisplaySendLevel,
    StopAndWait = "stop-and-wait";
    Pipelined = "pipelined";
    Batched = "batched";
    Structured = "structured");

/// A picture: items with what they hold, and the same as symbols, the last of which is the whole, where it has a structure.
#[derive(Clone, Debug)]
pub struct DisplayPicture {
    /// What it is called.
    pub name: &'static str,
    /// What its items are called.
    pub unit: &'static str,
    /// Items, and bytes that each holds.
    pub items: Vec<(DisplayItem, Vec<u8>)>,
    /// Symbols by number, in the order in which they are defined.
    pub symbols: Vec<(u32, Vec<DisplayItem>)>,
    /// Letters in it, where those are counted and not items.
    pub letters: usize,
}

impl DisplayPicture {
    /// What is counted.
    #[must_use]
    pub fn count(&self) -> usize {
        if self.letters > 0 {
            self.letters
        } else {
            self.items.len()
        }
    }
}

/// Sends a picture as that symbol, which a window shows already, or not; it is drawn when this returns.
///
/// # Errors
/// When the display refuses it, or is lost.
pub fn send(
    client: &mut DisplayClient,
    level: DisplaySendLevel,
    picture: &DisplayPicture,
    symbol: u32,
) -> Result<()> {
    match level {
        DisplaySendLevel::StopAndWait => {
            client.send(&DisplayRequest::EditSymbol(symbol))?;
            picture
                .items
                .iter()
                .try_for_each(|(item, held)| client.ask(&DisplayRequest::AddItem(*item, held)))?;
            client.ask(&DisplayRequest::EndSymbol)
        }
        DisplaySendLevel::Pipelined => {
            client.send(&DisplayRequest::EditSymbol(symbol))?;
            client.add(&picture.items)?;
            client.send(&DisplayRequest::EndSymbol)?;
            client.sync(symbol).map(drop)
        }
        DisplaySendLevel::Batched => {
            client.send(&DisplayRequest::DefineSymbol(symbol))?;
            client.add(&picture.items)?;
            client.ask(&DisplayRequest::EndSymbol)
        }
        DisplaySendLevel::Structured => {
            for (number, items) in &picture.symbols {
                client.send(&DisplayRequest::DefineSymbol(*number))?;
                items
                    .iter()
                    .try_for_each(|item| client.send(&DisplayRequest::AddItem(*item, b"")))?;
                client.ask(&DisplayRequest::EndSymbol)?;
            }
            Ok(())
        }
    }
}
