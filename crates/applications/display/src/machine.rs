//! The display as a state machine. Bytes of clients go in, answers come out; windows show symbols, and input goes to the client that owns
//! the window. The caller moves the bytes and supplies the time, in ns since the display began.
//!
//! ```text
//! connect()                      a client has connected
//! receive(client, bytes, watch)  bytes that it sent; `watch` supplies the time and is notified of each step
//! output(client)                 bytes to send to it
//! draw(client, window)           draws a window
//! input(client, window, what)    a key or the pointer
//! ```
//! A client cannot see or change what belongs to another. Its memory and work are limited. An invalid request is refused and changes
//! nothing; bytes that are not a message end the connection.

mod picture;
mod window;
mod work;

pub use picture::DisplayPictureRequests;
pub use window::Window;

use crate::budget::{DisplayMemoryBudget, DisplayMemoryShare};
use crate::hit_test::find_hits;
use crate::item::ONE;
use crate::pixels::LARGEST;
use crate::protocol::{self, DisplayAnswer, DisplayInput, VERSION};
use crate::symbols::{DisplayClientLimits, DisplayRefusal, Symbol, Symbols};
use std::collections::BTreeMap;
use window::DisplayWindowDamage;
use work::DisplayRequestWork;

/// Bytes that a client may send before it has to be granted more.
pub const CREDIT: u32 = 1 << 20;
/// The limit on the pixels of all windows of a client together, a byte each: four windows of the largest size.
const MOST_PIXELS: usize = 4 * (LARGEST as usize) * (LARGEST as usize);
/// The limit on input events that wait for a client that does not read them; further ones are dropped and counted.
const MOST_EVENTS: usize = 256;
/// Bytes of output above which no more refusals are added for a client that does not read them.
const MOST_WAITING: usize = 1 << 20;

/// The number of a client, unique in a display.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u64);

/// A step in the handling of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisplayRequestStep {
    /// Its bytes were received.
    Parsed,
    /// It has changed symbols or windows, or is stored until the end of its batch.
    Stored,
    /// What it changed is drawn.
    Rendered,
}

/// Supplies the time to the display and is notified of each step of each request.
pub trait DisplayStepObserver {
    /// ns since the display began.
    fn now(&mut self) -> u64;

    /// Whether it wants to be notified of steps.
    fn hears(&self) -> bool {
        false
    }

    /// A request of a client, numbered from 1 after `Hello`, has passed a step.
    fn passed(&mut self, step: DisplayRequestStep, client: ClientId, request: u32) {
        let _ = (step, client, request);
    }
}

impl<F: FnMut() -> u64> DisplayStepObserver for F {
    fn now(&mut self) -> u64 {
        self()
    }
}

/// Why the display ends a client's connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DisplayEndReason {
    /// It sent something that is not a message.
    Malformed(protocol::MalformedDisplayMessage),
    /// Its first message was not a `Hello` of this version.
    NotHello,
    /// Its secret is wrong.
    Stranger,
    /// It sent more bytes than it was granted.
    Beyond,
}

impl DisplayEndReason {
    /// The reason in words.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::Malformed(why) => why.words(),
            Self::NotHello => {
                format!("the client does not speak version {VERSION} of the display protocol")
            }
            Self::Stranger => "the client does not know the display's secret".to_owned(),
            Self::Beyond => "the client exceeded its credit".to_owned(),
        }
    }
}

/// The symbol that is being defined or edited.
#[derive(Debug)]
enum OpenDisplaySymbol {
    /// A new symbol with its number, which is put in place when its definition ends.
    Defined(u32, Symbol),
    /// The number of an existing symbol, which changes immediately.
    Edited(u32),
}

/// The requests of a batch as they were received, and the number of each.
#[derive(Debug, Default)]
struct DisplayRequestBatch {
    bytes: Vec<u8>,
    numbers: Vec<u32>,
}

impl DisplayRequestBatch {
    /// Bytes of memory that the batch takes.
    const fn memory(&self) -> usize {
        self.bytes.len() + self.numbers.len() * size_of::<u32>()
    }
}

/// The state of one client.
#[derive(Debug, Default)]
struct DisplayClientState {
    /// Whether its `Hello` was accepted.
    is_known: bool,
    symbols: Symbols,
    windows: BTreeMap<u32, Window>,
    open: Option<OpenDisplaySymbol>,
    batch: Option<DisplayRequestBatch>,
    /// The beginning of a message whose rest has not come.
    rest: Vec<u8>,
    /// Bytes to send to the client.
    out: Vec<u8>,
    /// The number of requests so far.
    requests: u32,
    /// The number of the last request whose effect is drawn.
    drawn: u32,
    /// Bytes received since the last grant of credit.
    taken: u32,
    /// Input events in `out`.
    events: usize,
    /// Input events that were dropped and not reported yet.
    dropped: u32,
    /// Its share of the memory of all displays of a service.
    share: DisplayMemoryShare,
}

impl DisplayClientState {
    /// Bytes of its symbols, of the symbol being defined, and of an unfinished batch.
    fn symbols_memory(&self) -> usize {
        let open = if let Some(OpenDisplaySymbol::Defined(_, symbol)) = &self.open {
            symbol.memory()
        } else {
            0
        };
        self.symbols.memory() + open + self.batch.as_ref().map_or(0, DisplayRequestBatch::memory)
    }

    /// Pixels of all its windows except the window `but`.
    fn pixels(&self, but: Option<u32>) -> usize {
        let others = self
            .windows
            .iter()
            .filter(|(number, _)| Some(**number) != but);
        others
            .map(|(_, window)| window.pixels.size())
            .map(|(w, h)| w as usize * h as usize)
            .sum()
    }

    /// Bytes of memory that the client takes.
    fn memory(&self) -> usize {
        self.symbols_memory() + self.pixels(None)
    }
}

/// The state of a display with all its clients.
#[derive(Debug)]
pub struct DisplayMachine {
    clients: BTreeMap<ClientId, DisplayClientState>,
    /// The number of the newest client.
    next: u64,
    limits: DisplayClientLimits,
    /// The secret that clients have to send; empty if none is needed.
    token: Vec<u8>,
    budget: DisplayMemoryBudget,
}

impl DisplayMachine {
    /// A display without clients. Clients have to send the secret `token`; if it is empty, all are accepted.
    #[must_use]
    pub fn new(limits: DisplayClientLimits, token: Vec<u8>) -> Self {
        Self {
            clients: BTreeMap::new(),
            next: 0,
            limits,
            token,
            budget: DisplayMemoryBudget::default(),
        }
    }

    /// The same display, whose memory counts towards `budget`, which all displays with that budget share.
    #[must_use]
    pub fn within(self, budget: DisplayMemoryBudget) -> Self {
        Self { budget, ..self }
    }

    /// The same display; its first client gets the number `last` + 1.
    #[must_use]
    pub fn after(self, last: u64) -> Self {
        Self { next: last, ..self }
    }

    /// Adds a client that has connected.
    pub fn connect(&mut self) -> ClientId {
        self.next += 1;
        let id = ClientId(self.next);
        self.clients.insert(
            id,
            DisplayClientState {
                share: self.budget.share(),
                ..DisplayClientState::default()
            },
        );
        id
    }

    /// Removes a client and everything that belongs to it.
    pub fn disconnect(&mut self, client: ClientId) {
        self.clients.remove(&client);
    }

    /// Handles bytes that a client sent.
    ///
    /// # Errors
    /// Why its connection has to end.
    pub fn receive(
        &mut self,
        client: ClientId,
        bytes: &[u8],
        watch: &mut dyn DisplayStepObserver,
    ) -> Result<(), DisplayEndReason> {
        let Self {
            clients,
            limits,
            token,
            ..
        } = self;
        let Some(known) = clients.get_mut(&client) else {
            return Ok(());
        };
        let hears = watch.hears();
        let arrived = watch.now();
        let limits = DisplayClientLimits {
            bytes: may_have(known, limits.bytes, bytes.len()),
            ..*limits
        };
        let mut work = DisplayRequestWork {
            id: client,
            client: known,
            limits: &limits,
            watch,
            arrived,
            hears,
        };
        let done = work.completed(bytes, token).and_then(|bytes| {
            let used = work.all(bytes, token)?;
            work.client.rest.extend_from_slice(&bytes[used..]);
            Ok(())
        });
        known.share.settle(known.memory());
        done
    }

    /// Takes the bytes that have to be sent to a client.
    pub fn output(&mut self, client: ClientId) -> Vec<u8> {
        let Some(known) = self.clients.get_mut(&client) else {
            return Vec::new();
        };
        known.events = 0;
        std::mem::take(&mut known.out)
    }

    /// All windows, each with its client and the number that the client gave it.
    pub fn windows(&self) -> impl Iterator<Item = (ClientId, u32, &Window)> {
        self.clients.iter().flat_map(|(id, client)| {
            client
                .windows
                .iter()
                .map(|(number, window)| (*id, *number, window))
        })
    }

    /// Whether a window of the client has changes that are not drawn.
    #[must_use]
    pub fn is_damaged(&self, client: ClientId) -> bool {
        let known = self.clients.get(&client);
        known.is_some_and(|known| {
            known
                .windows
                .values()
                .any(|window| window.damage != DisplayWindowDamage::None)
        })
    }

    /// Draws the changes in all windows of a client.
    pub fn draw_all(&mut self, client: ClientId) {
        if let Some(known) = self.clients.get_mut(&client) {
            known
                .windows
                .values_mut()
                .for_each(|window| window.redraw(&known.symbols));
        }
    }

    /// Draws the changes in a window, and returns it.
    pub fn draw(&mut self, client: ClientId, window: u32) -> Option<&Window> {
        let known = self.clients.get_mut(&client)?;
        let shown = known.windows.get_mut(&window)?;
        shown.redraw(&known.symbols);
        Some(shown)
    }

    /// Counts a request that was handled elsewhere (by an agent), so that later requests keep the same numbers here as there.
    pub fn passes(&mut self, client: ClientId) {
        if let Some(known) = self.clients.get_mut(&client) {
            known.requests = known.requests.wrapping_add(1);
        }
    }

    /// Whether a client's `Hello` was accepted.
    #[must_use]
    pub fn is_known(&self, client: ClientId) -> bool {
        self.clients
            .get(&client)
            .is_some_and(|known| known.is_known)
    }

    /// Bytes of memory that a client's symbols take.
    #[must_use]
    pub fn memory(&self, client: ClientId) -> usize {
        self.clients
            .get(&client)
            .map_or(0, |known| known.symbols.memory())
    }

    /// Counts input events that were dropped before they came here.
    pub fn missed(&mut self, client: ClientId, events: u32) {
        if let Some(known) = self.clients.get_mut(&client) {
            known.dropped = known.dropped.saturating_add(events);
        }
    }

    /// Reports an input event in a window to its client, with the items at that point. A pointer that was pressed may have left the window;
    /// outside it there are no items.
    pub fn input(&mut self, client: ClientId, window: u32, input: DisplayInput) {
        let Some(known) = self.clients.get_mut(&client) else {
            return;
        };
        let Some(shown) = known.windows.get(&window) else {
            return;
        };
        if known.events >= MOST_EVENTS {
            known.dropped = known.dropped.saturating_add(1);
            return;
        }
        let at = input.place().map(|(x, y)| (i32::from(x), i32::from(y)));
        let at = at.filter(|at| shown.pixels.at(*at).is_some());
        let found = shown
            .view
            .zip(at)
            .map(|(view, at)| find_hits(&known.symbols, view.symbol, view.place, at));
        let (found, is_all) = found.unwrap_or((Vec::new(), true));
        let hits = found
            .into_iter()
            .map(|hit| (hit.symbol, hit.item))
            .collect();
        if !is_all && known.out.len() < MOST_WAITING {
            DisplayAnswer::Refused {
                request: known.requests,
                why: DisplayRefusal::Work as u8,
            }
            .put(&mut known.out);
        }
        let dropped = std::mem::take(&mut known.dropped);
        known.events += 1;
        DisplayAnswer::Input {
            window,
            input,
            dropped,
            hits,
        }
        .put(&mut known.out);
    }
}

/// The bytes of symbols that a client may have after it has sent `bytes` more: what it has, plus what the shared budget still allows.
fn may_have(client: &mut DisplayClientState, most: usize, bytes: usize) -> usize {
    // An estimate: an item takes up to twice the bytes of its request, requests in a batch are there twice, and an index takes less than
    // its items.
    let (now, batch) = (
        client.symbols_memory(),
        client.batch.as_ref().map_or(0, DisplayRequestBatch::memory),
    );
    let more = client
        .share
        .grow(3 * (bytes + client.rest.len()) + batch + now);
    most.min(now.saturating_add(more))
}

/// The scale of a view that shows a symbol at its size, in 256ths.
pub const FULL_SIZE: u16 = ONE as u16;

#[cfg(test)]
mod tests;
