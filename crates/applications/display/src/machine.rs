//! The display as a machine: clients' bytes in, answers out; windows that show their symbols; input that finds its client. The caller
//! moves bytes and tells the time, ns since it began.
//!
//! ```text
//! connect()                      a client is there
//! receive(client, bytes, watch)  what it sent; `watch` tells the time and hears of each step
//! output(client)                 what is to be sent to it
//! draw(client, window)           a window's pixels as they are now
//! input(client, window, what)    a key or the pointer
//! ```
//! A client cannot see or change what is another's. What it may take is limited; what it does wrong is reported and changes nothing, and
//! what cannot be read as a message ends its connection.

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

/// Bytes that a client may send before it is granted more.
pub const CREDIT: u32 = 1 << 20;
/// Pixels of all windows of a client together, a byte each: four of the largest.
const MOST_PIXELS: usize = 4 * (LARGEST as usize) * (LARGEST as usize);
/// Events of input that wait for a client that does not read them.
const MOST_EVENTS: usize = 256;
/// Refusals that wait for it: a client that only asks wrong things and reads nothing gets no more.
const MOST_WAITING: usize = 1 << 20;

/// A client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u64);

/// A step on the way of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisplayRequestStep {
    /// Its bytes were read.
    Parsed,
    /// The display file is as it says, or it is kept for the end of its batch.
    Stored,
    /// What it changed is drawn.
    Rendered,
}

/// Who tells the time and hears of each step of each request.
pub trait DisplayStepObserver {
    /// ns since the display began.
    fn now(&mut self) -> u64;

    /// Whether it wants to hear of steps.
    fn hears(&self) -> bool {
        false
    }

    /// A request of a client, by its number since `Hello`, passed a step.
    fn passed(&mut self, step: DisplayRequestStep, client: ClientId, request: u32) {
        let _ = (step, client, request);
    }
}

impl<F: FnMut() -> u64> DisplayStepObserver for F {
    fn now(&mut self) -> u64 {
        self()
    }
}

/// Why a connection ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DisplayEndReason {
    /// What it sent is no message.
    Malformed(protocol::MalformedDisplayMessage),
    /// It did not begin with `Hello`, or not of this version.
    NotHello,
    /// It does not know the secret.
    Stranger,
    /// It sent more than it was granted.
    Beyond,
}

impl DisplayEndReason {
    /// For people.
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

/// The symbol that is open.
#[derive(Debug)]
enum OpenDisplaySymbol {
    /// It is defined, and there once it is done.
    Defined(u32, Symbol),
    /// It changes as it is.
    Edited(u32),
}

/// Requests of a batch, as they came, and their numbers.
#[derive(Debug, Default)]
struct DisplayRequestBatch {
    bytes: Vec<u8>,
    numbers: Vec<u32>,
}

impl DisplayRequestBatch {
    /// Bytes that it takes.
    const fn memory(&self) -> usize {
        self.bytes.len() + self.numbers.len() * size_of::<u32>()
    }
}

#[derive(Debug, Default)]
struct DisplayClientState {
    is_known: bool,
    symbols: Symbols,
    windows: BTreeMap<u32, Window>,
    open: Option<OpenDisplaySymbol>,
    batch: Option<DisplayRequestBatch>,
    /// The beginning of a message whose rest is not here.
    rest: Vec<u8>,
    out: Vec<u8>,
    /// Requests so far, those that are drawn, and bytes since it was granted more.
    requests: u32,
    drawn: u32,
    taken: u32,
    events: usize,
    dropped: u32,
    /// What it holds of the memory that all displays of a service have.
    share: DisplayMemoryShare,
}

impl DisplayClientState {
    /// Bytes of its symbols, of the one that is half defined, and of half a batch.
    fn symbols_memory(&self) -> usize {
        let open = if let Some(OpenDisplaySymbol::Defined(_, symbol)) = &self.open {
            symbol.memory()
        } else {
            0
        };
        self.symbols.memory() + open + self.batch.as_ref().map_or(0, DisplayRequestBatch::memory)
    }

    /// Pixels of all its windows, but for one; a byte each.
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

    /// Bytes of memory that it takes.
    fn memory(&self) -> usize {
        self.symbols_memory() + self.pixels(None)
    }
}

/// All clients.
#[derive(Debug)]
pub struct DisplayMachine {
    clients: BTreeMap<ClientId, DisplayClientState>,
    next: u64,
    limits: DisplayClientLimits,
    /// The secret that clients have to know.
    token: Vec<u8>,
    budget: DisplayMemoryBudget,
}

impl DisplayMachine {
    /// Without clients. Those have to know the secret; with an empty one all may come.
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

    /// The same; what its clients take is part of what all displays with that budget take.
    #[must_use]
    pub fn within(self, budget: DisplayMemoryBudget) -> Self {
        Self { budget, ..self }
    }

    /// The same; its first client has the number after that one.
    #[must_use]
    pub fn after(self, last: u64) -> Self {
        Self { next: last, ..self }
    }

    /// A client is there.
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

    /// A client is gone, and all it had.
    pub fn disconnect(&mut self, client: ClientId) {
        self.clients.remove(&client);
    }

    /// What a client sent.
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

    /// What is to be sent to a client, taken away.
    pub fn output(&mut self, client: ClientId) -> Vec<u8> {
        let Some(known) = self.clients.get_mut(&client) else {
            return Vec::new();
        };
        known.events = 0;
        std::mem::take(&mut known.out)
    }

    /// All windows: whose they are, and their numbers there.
    pub fn windows(&self) -> impl Iterator<Item = (ClientId, u32, &Window)> {
        self.clients.iter().flat_map(|(id, client)| {
            client
                .windows
                .iter()
                .map(|(number, window)| (*id, *number, window))
        })
    }

    /// Whether something of its windows is not drawn.
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

    /// Draws what of its windows is not drawn.
    pub fn draw_all(&mut self, client: ClientId) {
        if let Some(known) = self.clients.get_mut(&client) {
            known
                .windows
                .values_mut()
                .for_each(|window| window.redraw(&known.symbols));
        }
    }

    /// Draws what of a window is not drawn; it.
    pub fn draw(&mut self, client: ClientId, window: u32) -> Option<&Window> {
        let known = self.clients.get_mut(&client)?;
        let shown = known.windows.get_mut(&window)?;
        shown.redraw(&known.symbols);
        Some(shown)
    }

    /// A request of a client that changes nothing was carried out elsewhere: those behind it have the numbers that they have there.
    pub fn passes(&mut self, client: ClientId) {
        if let Some(known) = self.clients.get_mut(&client) {
            known.requests = known.requests.wrapping_add(1);
        }
    }

    /// Whether a client has said who it is.
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

    /// Events of input were left out before they came here.
    pub fn missed(&mut self, client: ClientId, events: u32) {
        if let Some(known) = self.clients.get_mut(&client) {
            known.dropped = known.dropped.saturating_add(events);
        }
    }

    /// A key or the pointer in a window: its client learns so, with what is there. A pointer that was pressed may have left the window, and
    /// outside is nothing.
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

/// Bytes of symbols that a client may have once it has sent so many bytes more: what it has, and as much more as the budget of all has.
fn may_have(client: &mut DisplayClientState, most: usize, bytes: usize) -> usize {
    // An item takes up to twice the bytes of its request, what waits in a batch is there twice, and an index takes less than its items.
    let (now, batch) = (
        client.symbols_memory(),
        client.batch.as_ref().map_or(0, DisplayRequestBatch::memory),
    );
    let more = client
        .share
        .grow(3 * (bytes + client.rest.len()) + batch + now);
    most.min(now.saturating_add(more))
}

/// The scale of a view that shows a symbol as it is.
pub const FULL_SIZE: u16 = ONE as u16;

#[cfg(test)]
mod tests;
