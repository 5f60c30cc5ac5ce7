//! A client's symbols and windows as requests, with which another display is brought to the same state.

use super::window::View;
use super::{ClientId, DisplayMachine, OpenDisplaySymbol};
use crate::protocol::{self, DisplayRequest};
use crate::symbols::Symbol;

/// The requests that reproduce a client's state.
#[derive(Debug, Default)]
pub struct DisplayPictureRequests {
    /// The encoded requests.
    pub bytes: Vec<u8>,
    /// The number of requests.
    pub requests: u32,
    /// The client's numbers of the last requests: those of a batch that has not ended.
    pub kept: Vec<u32>,
}

impl DisplayPictureRequests {
    fn put(&mut self, request: &DisplayRequest<'_>) {
        protocol::write_request(&mut self.bytes, request, false);
        self.requests += 1;
    }

    fn defined(&mut self, number: u32, symbol: &Symbol) {
        self.put(&DisplayRequest::DefineSymbol(number));
        for item in symbol.items().iter().filter(|item| item.kind.is_some()) {
            self.put(&DisplayRequest::AddItem(*item, symbol.bytes_of(item)));
        }
    }
}

impl DisplayMachine {
    /// The requests that bring another display to the state that a client has here: its symbols and windows, then the symbol that is being
    /// defined or edited, then the requests of an unfinished batch.
    #[must_use]
    pub fn picture(&self, client: ClientId) -> DisplayPictureRequests {
        let mut picture = DisplayPictureRequests::default();
        let Some(known) = self.clients.get(&client) else {
            return picture;
        };
        for number in known.symbols.numbers() {
            if let Some(symbol) = known.symbols.get(number) {
                picture.defined(number, symbol);
                picture.put(&DisplayRequest::EndSymbol);
            }
        }
        for (number, window) in &known.windows {
            let (width, height) = window.pixels.size();
            let size = (width as u16, height as u16);
            picture.put(&DisplayRequest::CreateWindow(
                *number,
                size,
                window.title.as_bytes(),
            ));
            if let Some(View { symbol, place }) = window.view {
                let at = (place.at.0 as i16, place.at.1 as i16);
                picture.put(&DisplayRequest::DisplayView(
                    *number,
                    symbol,
                    at,
                    place.scale as u16,
                ));
            }
        }
        match &known.open {
            Some(OpenDisplaySymbol::Defined(number, symbol)) => picture.defined(*number, symbol),
            Some(OpenDisplaySymbol::Edited(number)) => {
                picture.put(&DisplayRequest::EditSymbol(*number))
            }
            None => {}
        }
        if let Some(batch) = &known.batch {
            picture.put(&DisplayRequest::BeginBatch);
            let mut used = 0;
            while let Some(Ok(Some((request, _, length)))) =
                batch.bytes.get(used..).map(protocol::parse_request)
            {
                picture.put(&request);
                used += length;
            }
            picture.kept.clone_from(&batch.numbers);
        }
        picture
    }
}
