//! The handling of a client's requests: bytes are assembled to messages, stored for a batch or carried out, and answered.

use super::window::{DisplayWindowDamage, View, Window};
use super::{
    CREDIT, ClientId, DisplayClientState, DisplayEndReason, DisplayRequestBatch,
    DisplayRequestStep, DisplayStepObserver, MOST_PIXELS, MOST_WAITING, OpenDisplaySymbol,
};
use crate::draw::SymbolPlacement;
use crate::item::DisplayItem;
use crate::pixels::{LARGEST, Pixels};
use crate::protocol::{self, DisplayAnswer, DisplayRequest, Stamps, VERSION};
use crate::symbols::{DisplayClientLimits, DisplayRefusal, Symbol};

/// A client's state with what is needed to handle its requests.
pub(super) struct DisplayRequestWork<'w> {
    pub(super) id: ClientId,
    pub(super) client: &'w mut DisplayClientState,
    pub(super) limits: &'w DisplayClientLimits,
    pub(super) watch: &'w mut dyn DisplayStepObserver,
    /// When the bytes were received, ns.
    pub(super) arrived: u64,
    /// Whether `watch` wants to be notified of steps.
    pub(super) hears: bool,
}

impl DisplayRequestWork<'_> {
    /// Completes the message whose beginning came earlier, and handles it if it is whole. Returns the bytes after it.
    pub(super) fn completed<'b>(
        &mut self,
        mut bytes: &'b [u8],
        token: &[u8],
    ) -> Result<&'b [u8], DisplayEndReason> {
        let mut message = std::mem::take(&mut self.client.rest);
        // The header gives the length of the message.
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

    /// Handles all complete requests. Returns how many bytes they were.
    pub(super) fn all(&mut self, bytes: &[u8], token: &[u8]) -> Result<usize, DisplayEndReason> {
        let mut used = 0;
        loop {
            // This takes nothing before the `Hello`: no symbol is open then.
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
        // Before its `Hello` is accepted, a client may send only one short message.
        if !self.client.is_known && bytes.len() - used > protocol::LONGEST_HELLO {
            return Err(DisplayEndReason::NotHello);
        }
        Ok(used)
    }

    /// Fast path: adds the valid items without extra bytes with which the bytes begin to the open symbol, without going through every check
    /// for each of them. Returns how many bytes they were.
    fn plain(&mut self, bytes: &[u8]) -> usize {
        let DisplayClientState {
            symbols,
            open,
            batch,
            ..
        } = &mut *self.client;
        // A listener wants every step, and a batch only stores.
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
                // If this display has no secret, a client that sends one is accepted too.
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

    /// Counts received bytes, and grants the same number again once they reach half of the credit.
    fn charge(&mut self, length: usize) {
        self.client.taken += length as u32;
        if self.client.taken >= CREDIT / 2 {
            DisplayAnswer::Credit(std::mem::take(&mut self.client.taken)).put(&mut self.client.out);
        }
    }

    /// Handles a request, or stores it until the end of its batch, and answers.
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
        // An answer promises that the effect can be seen, so it is drawn first.
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
            .for_each(|window| window.redraw(symbols));
        if windows
            .values_mut()
            .any(|window| std::mem::take(&mut window.is_cut))
        {
            self.answer(Err(DisplayRefusal::TooMuch), false);
        }
        // All requests since the last drawing are drawn by this one.
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
            DisplayRequest::ChangeItem(item, bytes) => self.change(item, bytes),
            DisplayRequest::DeleteItem(id) => self.delete(id),
            DisplayRequest::CreateWindow(number, size, title) => self.create(number, size, title),
            DisplayRequest::DisplayView(window, symbol, at, scale) => {
                let at = (i32::from(at.0), i32::from(at.1));
                let place = SymbolPlacement {
                    at,
                    scale: i32::from(scale),
                    turns: 0,
                };
                self.show(window, View { symbol, place })
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

    /// Lets a window show a symbol.
    fn show(&mut self, window: u32, view: View) -> Result<(), DisplayRefusal> {
        let window = self.client.windows.get_mut(&window);
        let window = window.ok_or(DisplayRefusal::NoWindow)?;
        if view.place.scale == 0 {
            return Err(DisplayRefusal::Bytes);
        }
        (window.view, window.damage) = (Some(view), DisplayWindowDamage::All);
        Ok(())
    }

    fn opens(&mut self, open: OpenDisplaySymbol) -> Result<(), DisplayRefusal> {
        if self.client.open.is_some() {
            return Err(DisplayRefusal::Order);
        }
        self.client.open = Some(open);
        Ok(())
    }

    fn end(&mut self) -> Result<(), DisplayRefusal> {
        // It is closed even if the symbol is then refused.
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

    fn change(&mut self, item: DisplayItem, bytes: &[u8]) -> Result<(), DisplayRefusal> {
        let DisplayClientState { symbols, open, .. } = &mut *self.client;
        match open {
            None => Err(DisplayRefusal::NoSymbol),
            Some(OpenDisplaySymbol::Defined(_, symbol)) => {
                if symbols.memory() + symbol.memory() + bytes.len() > self.limits.bytes {
                    return Err(DisplayRefusal::Memory);
                }
                symbol.change(item, bytes)
            }
            Some(OpenDisplaySymbol::Edited(number)) => {
                symbols.change(self.limits, *number, item, bytes)?;
                self.all_changes();
                Ok(())
            }
        }
    }

    fn delete(&mut self, id: u32) -> Result<(), DisplayRefusal> {
        let DisplayClientState { symbols, open, .. } = &mut *self.client;
        match open {
            None => Err(DisplayRefusal::NoSymbol),
            Some(OpenDisplaySymbol::Defined(_, symbol)) => symbol.delete(id),
            Some(OpenDisplaySymbol::Edited(number)) => {
                symbols.delete_item(*number, id)?;
                self.all_changes();
                Ok(())
            }
        }
    }

    fn create(
        &mut self,
        number: u32,
        size: (u16, u16),
        title: &[u8],
    ) -> Result<(), DisplayRefusal> {
        let (width, height) = size;
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

    /// Carries out the stored requests of a batch; refusals are reported with the number of the refused request.
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

    /// Records that an item was added to a symbol: windows that show the symbol itself need to draw only the new items.
    fn added(&mut self, number: u32, at: usize) {
        for window in self.client.windows.values_mut() {
            let is_root = window.view.is_some_and(|view| view.symbol == number);
            window.damage = match std::mem::take(&mut window.damage) {
                DisplayWindowDamage::None if is_root => DisplayWindowDamage::Added(at),
                DisplayWindowDamage::Added(from) if is_root => DisplayWindowDamage::Added(from),
                // A window that shows another symbol may call this one.
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

/// Compares secrets in constant time.
fn is_equal(said: &[u8], secret: &[u8]) -> bool {
    said.len() == secret.len()
        && said
            .iter()
            .zip(secret)
            .fold(0, |differs, (a, b)| differs | (a ^ b))
            == 0
}
