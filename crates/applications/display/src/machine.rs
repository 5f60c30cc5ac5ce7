//! The display as a machine: clients' bytes in, answers out; windows that show their symbols; input that finds its client. Who calls it
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

use crate::budget::{DisplayMemoryBudget, DisplayMemoryShare};
use crate::draw::{self, SymbolPlacement};
use crate::hit_test::find_hits;
use crate::item::{DisplayItem, ONE};
use crate::pixels::{LARGEST, Pixels};
use crate::protocol::{self, DisplayAnswer, DisplayInput, DisplayRequest, Stamps, VERSION};
use crate::symbols::{DisplayClientLimits, DisplayRefusal, Symbol, Symbols};
use std::collections::BTreeMap;

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
                format!("it does not speak version {VERSION} of the display's protocol")
            }
            Self::Stranger => "it does not know the display's secret".to_owned(),
            Self::Beyond => "it sent more than it was granted".to_owned(),
        }
    }
}

/// What a window shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct View {
    symbol: u32,
    place: SymbolPlacement,
}

/// What of a window is not drawn yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum DisplayWindowDamage {
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
    pixels: Pixels,
    view: Option<View>,
    damage: DisplayWindowDamage,
    /// Counts how often it was drawn anew, for whoever looks on; a window that takes its place begins elsewhere.
    pub drawn: u64,
    /// Items of the last picture that was drawn whole, and whether that was all of them.
    pub items: (usize, bool),
    /// It is to be reported to its client that not all of them were drawn.
    is_cut: bool,
}

impl Window {
    /// Its pixels as they were drawn last.
    #[must_use]
    pub const fn pixels(&self) -> &Pixels {
        &self.pixels
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
                .for_each(|window| redraw(window, &known.symbols));
        }
    }

    /// Draws what of a window is not drawn; it.
    pub fn draw(&mut self, client: ClientId, window: u32) -> Option<&Window> {
        let known = self.clients.get_mut(&client)?;
        let shown = known.windows.get_mut(&window)?;
        redraw(shown, &known.symbols);
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

    /// Requests by which another display comes to have what a client has here: its symbols and windows, then what is half defined or half
    /// a batch.
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

/// Requests that make a picture.
#[derive(Debug, Default)]
pub struct DisplayPictureRequests {
    /// As they are sent.
    pub bytes: Vec<u8>,
    /// How many there are.
    pub requests: u32,
    /// The numbers that the last of them had first: those of a batch that has not ended.
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

fn redraw(window: &mut Window, symbols: &Symbols) {
    let damage = std::mem::take(&mut window.damage);
    let Some(view) = window.view else {
        if damage != DisplayWindowDamage::None {
            window.pixels.clear();
            window.drawn += 1;
        }
        return;
    };
    match damage {
        DisplayWindowDamage::None => return,
        DisplayWindowDamage::Added(from) => {
            if let Some(symbol) = symbols.get(view.symbol) {
                let items = symbol.items().get(from..).unwrap_or_default();
                draw::draw_added_items(&mut window.pixels, symbols, (symbol, items), view.place);
            }
        }
        DisplayWindowDamage::All => {
            window.pixels.clear();
            window.items = draw::draw_symbol(&mut window.pixels, symbols, view.symbol, view.place);
            window.is_cut = !window.items.1;
        }
    }
    window.drawn += 1;
}

/// A client's requests at work.
struct DisplayRequestWork<'w> {
    id: ClientId,
    client: &'w mut DisplayClientState,
    limits: &'w DisplayClientLimits,
    watch: &'w mut dyn DisplayStepObserver,
    /// When what came was there.
    arrived: u64,
    hears: bool,
}

impl DisplayRequestWork<'_> {
    /// Carries out the message whose beginning came before, if it is whole now. What is behind it.
    fn completed<'b>(
        &mut self,
        mut bytes: &'b [u8],
        token: &[u8],
    ) -> Result<&'b [u8], DisplayEndReason> {
        let mut message = std::mem::take(&mut self.client.rest);
        // The head says how long all of it is.
        while !message.is_empty()
            && message.len() < protocol::message_length(&message)
            && !bytes.is_empty()
        {
            let missing = protocol::message_length(&message) - message.len();
            let (next, rest) = bytes.split_at(missing.min(bytes.len()));
            message.extend_from_slice(next);
            bytes = rest;
        }
        let used = self.all(&message, token)?;
        message.drain(..used);
        self.client.rest = message;
        Ok(bytes)
    }

    /// Carries out all requests that are whole. How many bytes those were.
    fn all(&mut self, bytes: &[u8], token: &[u8]) -> Result<usize, DisplayEndReason> {
        let mut used = 0;
        loop {
            used += self.plain(&bytes[used..]);
            if !self.client.is_known
                && bytes
                    .get(used)
                    .is_some_and(|first| !protocol::begins_hello(*first))
            {
                return Err(DisplayEndReason::NotHello);
            }
            let next =
                protocol::parse_request(&bytes[used..]).map_err(DisplayEndReason::Malformed)?;
            let Some((request, wants, length)) = next else {
                break;
            };
            if !self.client.is_known {
                self.hello(&request, token)?;
                used += length;
                continue;
            }
            self.charge(length);
            self.client.requests = self.client.requests.wrapping_add(1);
            self.report_step(DisplayRequestStep::Parsed, self.client.requests);
            self.one(&request, wants, &bytes[used..used + length]);
            used += length;
        }
        // Who has not said who he is sends one short message.
        if !self.client.is_known && bytes.len() - used > protocol::LONGEST_HELLO {
            return Err(DisplayEndReason::NotHello);
        }
        Ok(used)
    }

    /// Adds the items that the bytes begin with to the symbol that is open, as long as nothing is to be judged of them: with no look at
    /// the client between one and the next. How many bytes those were.
    fn plain(&mut self, bytes: &[u8]) -> usize {
        let DisplayClientState {
            symbols,
            open,
            batch,
            ..
        } = &mut *self.client;
        if self.hears || batch.is_some() {
            return 0;
        }
        let items = bytes.as_chunks().0.iter().map_while(protocol::take_plain);
        let taken = match open {
            None => return 0,
            Some(OpenDisplaySymbol::Defined(_, symbol)) => {
                let left = self
                    .limits
                    .bytes
                    .saturating_sub(symbols.memory() + symbol.memory());
                symbol.extend(items, left / size_of::<DisplayItem>())
            }
            Some(OpenDisplaySymbol::Edited(number)) => {
                let number = *number;
                let at = symbols.get(number).map_or(0, |symbol| symbol.items().len());
                let taken = symbols.extend(self.limits, number, items);
                if taken > 0 {
                    self.added(number, at);
                }
                taken
            }
        };
        self.client.requests = self.client.requests.wrapping_add(taken as u32);
        self.client.symbols.earns(taken * protocol::PLAIN_BYTES);
        self.charge(taken * protocol::PLAIN_BYTES);
        taken * protocol::PLAIN_BYTES
    }

    fn hello(
        &mut self,
        request: &DisplayRequest<'_>,
        token: &[u8],
    ) -> Result<(), DisplayEndReason> {
        match request {
            DisplayRequest::Hello {
                version: VERSION,
                token: said,
            } => {
                // Who knows a secret where none is asked for is no stranger.
                if !token.is_empty() && !is_equal(said, token) {
                    return Err(DisplayEndReason::Stranger);
                }
                self.client.is_known = true;
                DisplayAnswer::Welcome {
                    credit: CREDIT,
                    client: self.id.0,
                }
                .put(&mut self.client.out);
                Ok(())
            }
            _ => Err(DisplayEndReason::NotHello),
        }
    }

    fn report_step(&mut self, step: DisplayRequestStep, request: u32) {
        if self.hears {
            self.watch.passed(step, self.id, request);
        }
    }

    /// The client may send as much again; it is granted that once it is half of what it may send.
    fn charge(&mut self, length: usize) {
        self.client.taken += length as u32;
        if self.client.taken >= CREDIT / 2 {
            DisplayAnswer::Credit(std::mem::take(&mut self.client.taken)).put(&mut self.client.out);
        }
    }

    /// Carries out a request, or keeps it for the end of its batch, and answers.
    fn one(&mut self, request: &DisplayRequest<'_>, wants: bool, bytes: &[u8]) {
        if self.client.batch.is_some()
            && !matches!(request, DisplayRequest::EndBatch | DisplayRequest::Sync(_))
        {
            let kept = self.keep(request, bytes);
            self.report_step(DisplayRequestStep::Stored, self.client.requests);
            self.answer(kept, wants);
            return;
        }
        if let DisplayRequest::Sync(token) = request {
            return self.sync(*token);
        }
        self.client.symbols.earns(bytes.len());
        let done = self.carry_out(request);
        self.report_step(DisplayRequestStep::Stored, self.client.requests);
        // An answer says that it can be seen.
        if wants && done.is_ok() {
            self.draw_all();
        }
        self.answer(done, wants);
    }

    fn answer(&mut self, done: Result<(), DisplayRefusal>, wants: bool) {
        match done {
            Ok(()) if wants => DisplayAnswer::Done.put(&mut self.client.out),
            Ok(()) => {}
            Err(why) => self.refuse(self.client.requests, why),
        }
    }

    fn refuse(&mut self, request: u32, why: DisplayRefusal) {
        if self.client.out.len() < MOST_WAITING {
            DisplayAnswer::Refused {
                request,
                why: why as u8,
            }
            .put(&mut self.client.out);
        }
    }

    fn keep(&mut self, request: &DisplayRequest<'_>, bytes: &[u8]) -> Result<(), DisplayRefusal> {
        if matches!(
            request,
            DisplayRequest::BeginBatch | DisplayRequest::Hello { .. }
        ) {
            return Err(DisplayRefusal::Order);
        }
        let taken = self.client.symbols.memory();
        let batch = self.client.batch.get_or_insert_default();
        if taken + batch.memory() + size_of::<u32>() + bytes.len() > self.limits.bytes {
            return Err(DisplayRefusal::Memory);
        }
        batch.bytes.extend_from_slice(bytes);
        batch.numbers.push(self.client.requests);
        Ok(())
    }

    fn sync(&mut self, token: u32) {
        let stored = self.watch.now();
        self.report_step(DisplayRequestStep::Stored, self.client.requests);
        self.draw_all();
        let rendered = self.watch.now();
        let stamps = Stamps {
            parsed: self.arrived,
            stored,
            rendered,
            presented: self.watch.now(),
        };
        DisplayAnswer::Synced { token, stamps }.put(&mut self.client.out);
    }

    fn draw_all(&mut self) {
        let DisplayClientState {
            windows, symbols, ..
        } = &mut *self.client;
        windows
            .values_mut()
            .for_each(|window| redraw(window, symbols));
        if windows
            .values_mut()
            .any(|window| std::mem::take(&mut window.is_cut))
        {
            self.answer(Err(DisplayRefusal::TooMuch), false);
        }
        // All requests since it was drawn last are drawn with it.
        if self.hears {
            (self.client.drawn + 1..=self.client.requests)
                .for_each(|request| self.report_step(DisplayRequestStep::Rendered, request));
        }
        self.client.drawn = self.client.requests;
    }

    fn carry_out(&mut self, request: &DisplayRequest<'_>) -> Result<(), DisplayRefusal> {
        match *request {
            DisplayRequest::Hello { .. } => Err(DisplayRefusal::Order),
            DisplayRequest::DefineSymbol(number) => {
                self.opens(OpenDisplaySymbol::Defined(number, Symbol::default()))
            }
            DisplayRequest::EditSymbol(number) => {
                self.client
                    .symbols
                    .get(number)
                    .ok_or(DisplayRefusal::NoSymbol)?;
                self.opens(OpenDisplaySymbol::Edited(number))
            }
            DisplayRequest::EndSymbol => self.end(),
            DisplayRequest::DeleteSymbol(number) => {
                self.client.symbols.delete(number)?;
                self.all_changes();
                Ok(())
            }
            DisplayRequest::AddItem(item, bytes) => self.add(item, bytes),
            DisplayRequest::ChangeItem(item, bytes) => match &mut self.client.open {
                None => Err(DisplayRefusal::NoSymbol),
                Some(OpenDisplaySymbol::Defined(_, symbol)) => {
                    if self.client.symbols.memory() + symbol.memory() + bytes.len()
                        > self.limits.bytes
                    {
                        return Err(DisplayRefusal::Memory);
                    }
                    symbol.change(item, bytes)
                }
                Some(OpenDisplaySymbol::Edited(number)) => {
                    let number = *number;
                    self.client
                        .symbols
                        .change(self.limits, number, item, bytes)?;
                    self.all_changes();
                    Ok(())
                }
            },
            DisplayRequest::DeleteItem(id) => match &mut self.client.open {
                None => Err(DisplayRefusal::NoSymbol),
                Some(OpenDisplaySymbol::Defined(_, symbol)) => symbol.delete(id),
                Some(OpenDisplaySymbol::Edited(number)) => {
                    let number = *number;
                    self.client.symbols.delete_item(number, id)?;
                    self.all_changes();
                    Ok(())
                }
            },
            DisplayRequest::CreateWindow(number, size, title) => self.create(number, size, title),
            DisplayRequest::DisplayView(window, symbol, at, scale) => {
                let window = self
                    .client
                    .windows
                    .get_mut(&window)
                    .ok_or(DisplayRefusal::NoWindow)?;
                if scale == 0 {
                    return Err(DisplayRefusal::Bytes);
                }
                let at = (i32::from(at.0), i32::from(at.1));
                let place = SymbolPlacement {
                    at,
                    scale: i32::from(scale),
                    turns: 0,
                };
                (window.view, window.damage) =
                    (Some(View { symbol, place }), DisplayWindowDamage::All);
                Ok(())
            }
            DisplayRequest::CloseWindow(number) => self
                .client
                .windows
                .remove(&number)
                .map(|_| ())
                .ok_or(DisplayRefusal::NoWindow),
            DisplayRequest::BeginBatch => {
                self.client.batch = Some(DisplayRequestBatch::default());
                Ok(())
            }
            DisplayRequest::EndBatch => self.end_batch(),
            DisplayRequest::Sync(_) => Ok(()),
        }
    }

    fn opens(&mut self, open: OpenDisplaySymbol) -> Result<(), DisplayRefusal> {
        if self.client.open.is_some() {
            return Err(DisplayRefusal::Order);
        }
        self.client.open = Some(open);
        Ok(())
    }

    fn end(&mut self) -> Result<(), DisplayRefusal> {
        if let OpenDisplaySymbol::Defined(number, symbol) =
            self.client.open.take().ok_or(DisplayRefusal::NoSymbol)?
        {
            self.client.symbols.put(self.limits, number, symbol)?;
            self.all_changes();
        }
        Ok(())
    }

    fn add(&mut self, item: DisplayItem, bytes: &[u8]) -> Result<(), DisplayRefusal> {
        let DisplayClientState { symbols, open, .. } = &mut *self.client;
        match open {
            None => Err(DisplayRefusal::NoSymbol),
            Some(OpenDisplaySymbol::Defined(_, symbol)) => {
                if symbols.memory() + symbol.memory() + symbol.growth(&item, bytes)
                    > self.limits.bytes
                {
                    return Err(DisplayRefusal::Memory);
                }
                symbol.add(item, bytes)
            }
            Some(OpenDisplaySymbol::Edited(number)) => {
                let number = *number;
                let at = symbols.get(number).map_or(0, |symbol| symbol.items().len());
                symbols.add(self.limits, number, item, bytes)?;
                self.added(number, at);
                Ok(())
            }
        }
    }

    fn create(
        &mut self,
        number: u32,
        (width, height): (u16, u16),
        title: &[u8],
    ) -> Result<(), DisplayRefusal> {
        if !self.client.windows.contains_key(&number)
            && self.client.windows.len() >= self.limits.windows
        {
            return Err(DisplayRefusal::TooMany);
        }
        if width == 0 || height == 0 || width > LARGEST || height > LARGEST {
            return Err(DisplayRefusal::Bytes);
        }
        let pixels = usize::from(width) * usize::from(height);
        if self.client.pixels(Some(number)) + pixels > MOST_PIXELS
            || self.client.share.grow(pixels) < pixels
        {
            return Err(DisplayRefusal::Memory);
        }
        let title = String::from_utf8_lossy(title)
            .chars()
            .filter(|letter| !letter.is_control())
            .take(80)
            .collect();
        let pixels = Pixels::new(width, height);
        let drawn = u64::from(self.client.requests) << 32;
        let window = Window {
            title,
            pixels,
            view: None,
            damage: DisplayWindowDamage::All,
            drawn,
            items: (0, true),
            is_cut: false,
        };
        self.client.windows.insert(number, window);
        Ok(())
    }

    /// Carries out what was kept, all of it; what of it is refused is reported by its own number.
    fn end_batch(&mut self) -> Result<(), DisplayRefusal> {
        let DisplayRequestBatch { bytes, numbers } =
            self.client.batch.take().ok_or(DisplayRefusal::Order)?;
        let mut used = 0;
        for number in numbers {
            let Ok(Some((request, _, length))) = protocol::parse_request(&bytes[used..]) else {
                break;
            };
            self.client.symbols.earns(length);
            if let Err(why) = self.carry_out(&request) {
                self.refuse(number, why);
            }
            used += length;
        }
        Ok(())
    }

    /// An item was added to a symbol: windows that show it need draw no more than that.
    fn added(&mut self, number: u32, at: usize) {
        for window in self.client.windows.values_mut() {
            let is_root = window.view.is_some_and(|view| view.symbol == number);
            window.damage = match std::mem::take(&mut window.damage) {
                DisplayWindowDamage::None if is_root => DisplayWindowDamage::Added(at),
                DisplayWindowDamage::Added(from) if is_root => DisplayWindowDamage::Added(from),
                // It may be called by what the window shows.
                _ => DisplayWindowDamage::All,
            };
        }
    }

    fn all_changes(&mut self) {
        self.client
            .windows
            .values_mut()
            .for_each(|window| window.damage = DisplayWindowDamage::All);
    }
}

/// Compares secrets in a time that does not depend on where they differ.
fn is_equal(said: &[u8], secret: &[u8]) -> bool {
    said.len() == secret.len()
        && said
            .iter()
            .zip(secret)
            .fold(0, |differs, (a, b)| differs | (a ^ b))
            == 0
}

/// The scale of a view that shows a symbol as it is.
pub const FULL_SIZE: u16 = ONE as u16;

#[cfg(test)]
mod tests;
