//! The four levels at which a picture is sent (Lantz, Nowicki and Theimer 1985, section 5): an answer for each item, none, one for all, and
//! symbols that call each other.

use crate::client::DisplayClient;
use stackline_core::error::Result;
use stackline_display::item::DisplayItem;
use stackline_display::protocol::DisplayRequest;

/// A level at which a picture is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisplaySendLevel {
    /// Each item is answered once it is drawn.
    StopAndWait,
    /// No item is answered; each is drawn as it comes.
    Pipelined,
    /// All items are one symbol, which is answered once it is drawn.
    Batched,
    /// Symbols that call each other, each answered.
    Structured,
}

stackline_core::named_values!(DisplaySendLevel,
    StopAndWait = "stop-and-wait";
    Pipelined = "pipelined";
    Batched = "batched";
    Structured = "structured");

/// A picture of a benchmark, in two forms: as items, and as symbols that call each other, of which the last is the whole picture.
#[derive(Clone, Debug)]
pub struct DisplayPicture {
    /// The name of the picture.
    pub name: &'static str,
    /// What is counted in it, for instance vectors.
    pub unit: &'static str,
    /// The items, each with its extra bytes.
    pub items: Vec<(DisplayItem, Vec<u8>)>,
    /// Symbols with their numbers, in the order in which they are defined; empty if the picture has no structure.
    pub symbols: Vec<(u32, Vec<DisplayItem>)>,
    /// The number of letters, if letters are counted instead of items; otherwise 0.
    pub letters: usize,
}

impl DisplayPicture {
    /// The number of letters or items in the picture.
    #[must_use]
    pub fn count(&self) -> usize {
        if self.letters > 0 {
            self.letters
        } else {
            self.items.len()
        }
    }
}

/// Sends a picture as the symbol `symbol`, which a window may already show; when this returns, it is drawn.
///
/// # Errors
/// If the display refuses it, or the connection is lost.
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
