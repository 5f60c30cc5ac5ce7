//! A connection to a display: requests are gathered and sent together, answers read where they are waited for. It sends no more than
//! the display allows.

use crate::address::{DisplayAddress, DisplayServiceKind};
use crate::server::unit;
use crate::stream::DisplayStream;
use stackline_core::error::{Blame, Error, Result};
use stackline_display::item::DisplayItem;
use stackline_display::protocol::{
    DisplayAnswer, DisplayInput, DisplayRequest, Stamps, VERSION, put_plain, write_request,
};
use stackline_display::symbols::DisplayRefusal;
use stackline_events::catalogue::rows::{DisplayCall, DisplayDone, DisplaySend};
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::time::Duration;

/// Bytes that are gathered before they are sent.
const GATHERED: usize = 32 << 10;
/// Items that hold nothing are put behind each other so many at once: a sixteenth of that, so that little more is gathered.
const TOGETHER: usize = 100;
/// How long an answer may take, and the first one. An agent that waits for its display says meanwhile that it is there.
const PATIENCE: Duration = Duration::from_secs(120);
const HELLO: Duration = Duration::from_secs(30);

/// A client.
#[derive(Debug)]
pub struct DisplayClient {
    stream: DisplayStream,
    /// How long it is waited for what comes.
    patience: Duration,
    out: Vec<u8>,
    rest: Vec<u8>,
    /// Bytes that it may still send.
    credit: u64,
    requests: u32,
    /// Its number at the display, and how many requests were sent.
    number: u64,
    sent: u32,
    done: u32,
    is_recorded: bool,
    /// Input that came while something else was waited for.
    inputs: VecDeque<DisplayInputEvent>,
    refused: Option<(u32, DisplayRefusal)>,
    /// Where nothing has answered yet, which may be nobody.
    unseen: Option<DisplayAddress>,
}

/// Input in a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DisplayInputEvent {
    /// Which.
    pub window: u32,
    /// What happened.
    pub input: DisplayInput,
    /// The items there, as symbol and item, the last drawn first.
    pub hits: Vec<(u32, u32)>,
    /// Events before it that were not delivered.
    pub dropped: u32,
}

impl DisplayClient {
    /// Connects and says who it is.
    ///
    /// # Errors
    /// An [`Error`] when there is no display, or it does not want this client.
    pub fn connect(address: &DisplayAddress, token: &[u8]) -> Result<Self> {
        let stream = address.connect()?;
        stream
            .read_within(Some(HELLO))
            .map_err(|error| lost(&error, HELLO))?;
        let credit = u64::MAX / 2;
        let (out, rest, inputs) = (Vec::new(), Vec::new(), VecDeque::new());
        let is_recorded = stackline_events::recorder::is_recording();
        let (requests, number, sent, done, refused, patience) = (0, 0, 0, 0, None, HELLO);
        let unseen = address.shows_late().then(|| address.clone());
        let mut client = Self {
            stream,
            patience,
            out,
            rest,
            credit,
            requests,
            number,
            sent,
            done,
            is_recorded,
            inputs,
            refused,
            unseen,
        };
        write_request(
            &mut client.out,
            &DisplayRequest::Hello {
                version: VERSION,
                token,
            },
            false,
        );
        match client.flush().and_then(|()| client.greeted()) {
            Ok(DisplayAnswer::Welcome { credit, client: number }) => {
                (client.credit, client.number) = (u64::from(credit), number);
                client.stream.read_within(Some(PATIENCE)).map_err(|error| lost(&error, PATIENCE))?;
                client.patience = PATIENCE;
                Ok(client)
            }
            Ok(DisplayAnswer::Refused { request: 0, why }) if why == DisplayRefusal::NoDisplay as u8 => Err(Error::environment(
                format!("the agent at {address} has no display: none answers at the address that it uses"),
            )
            .hint("start a display (`stackline display serve`), or point the agent at another one (`--to`)")),
            Ok(DisplayAnswer::Refused { request: 0, why }) if why == DisplayRefusal::TooMany as u8 => {
                Err(Error::environment(format!("the display at {address} has reached its client limit"))
                    .hint("stop one of its clients, or start another display: `stackline display serve --listen HOST:PORT`"))
            }
            Ok(_) => Err(Error::environment(format!("the server at {address} is not a display"))),
            // That nobody is there was said with what would be.
            Err(error) if error.blame == Blame::Environment => Err(error),
            Err(error) => Err(error
                .hint("the display may require a different secret (--secret-file), listen for `ngp:` there, or speak a different protocol version")),
        }
    }

    /// The first answer that says something.
    fn greeted(&mut self) -> Result<DisplayAnswer> {
        loop {
            match self.answer()? {
                DisplayAnswer::Credit(_) => {}
                other => return Ok(other),
            }
        }
    }

    /// Sends a request with the next ones.
    ///
    /// # Errors
    /// An [`Error`] when the connection is lost.
    pub fn send(&mut self, request: &DisplayRequest<'_>) -> Result<()> {
        self.put(request, false)
    }

    /// Adds items, each with what it holds, to the symbol that is open: a request for each, and no answer.
    ///
    /// # Errors
    /// An [`Error`] when the connection is lost.
    pub fn add(&mut self, items: &[(DisplayItem, Vec<u8>)]) -> Result<()> {
        for some in items.chunks(TOGETHER) {
            // Where each has an event it has a time of its own.
            if !self.is_recorded && put_plain(&mut self.out, some) {
                self.requests = self.requests.wrapping_add(some.len() as u32);
                self.flush_much()?;
            } else {
                some.iter().try_for_each(|(item, held)| {
                    self.send(&DisplayRequest::AddItem(*item, held))
                })?;
            }
        }
        Ok(())
    }

    /// Sends a request and waits until it is done.
    ///
    /// # Errors
    /// An [`Error`] when it was refused, or the connection is lost.
    pub fn ask(&mut self, request: &DisplayRequest<'_>) -> Result<()> {
        self.put(request, true)?;
        self.flush()?;
        let number = self.requests;
        loop {
            match self.answer()? {
                DisplayAnswer::Done => {
                    self.is_done();
                    return self.take_refusal();
                }
                // That a picture was cut is reported beside its answer.
                DisplayAnswer::Refused { request, why }
                    if request == number && why != DisplayRefusal::TooMuch as u8 =>
                {
                    return self.take_refusal();
                }
                _ => {}
            }
        }
    }

    /// Waits until everything is drawn: when each step was done, and what was refused before.
    ///
    /// # Errors
    /// As [`DisplayClient::ask`].
    pub fn sync(&mut self, token: u32) -> Result<Stamps> {
        self.put(&DisplayRequest::Sync(token), false)?;
        self.flush()?;
        loop {
            match self.answer()? {
                DisplayAnswer::Synced { token: of, stamps } if of == token => {
                    self.is_done();
                    return self.take_refusal().map(|()| stamps);
                }
                _ => {}
            }
        }
    }

    /// The next input.
    ///
    /// # Errors
    /// An [`Error`] when the connection is lost, or none came for long.
    pub fn input(&mut self) -> Result<DisplayInputEvent> {
        self.flush()?;
        while self.inputs.is_empty() {
            self.answer()?;
        }
        self.inputs
            .pop_front()
            .ok_or_else(|| Error::measurement("the display sent nothing"))
    }

    /// All that was sent is answered: answers come in the order of requests.
    fn is_done(&mut self) {
        if self.is_recorded {
            (self.done + 1..=self.sent).for_each(|request| {
                DisplayDone {
                    unit: unit(self.number, request).into(),
                }
                .emit()
            });
        }
        self.done = self.sent;
    }

    /// The first refusal of what was sent since this was asked last.
    fn take_refusal(&mut self) -> Result<()> {
        match self.refused.take() {
            None => Ok(()),
            Some((request, why)) => Err(Error::measurement(format!(
                "the display refused request {request}: {}",
                why.words()
            ))),
        }
    }

    fn put(&mut self, request: &DisplayRequest<'_>, wants: bool) -> Result<()> {
        write_request(&mut self.out, request, wants);
        self.requests = self.requests.wrapping_add(1);
        if self.is_recorded {
            DisplayCall {
                unit: unit(self.number, self.requests).into(),
            }
            .emit();
        }
        self.flush_much()
    }

    /// Sends what is gathered where that is much.
    fn flush_much(&mut self) -> Result<()> {
        if self.out.len() >= GATHERED {
            self.flush()
        } else {
            Ok(())
        }
    }

    /// Sends what is gathered; waits where the display has not allowed it yet.
    ///
    /// # Errors
    /// An [`Error`] when the connection is lost.
    pub fn flush(&mut self) -> Result<()> {
        let out = std::mem::take(&mut self.out);
        while self.credit < out.len() as u64 {
            self.answer()?;
        }
        self.credit -= out.len() as u64;
        if self.is_recorded {
            (self.sent + 1..=self.requests).for_each(|request| {
                DisplaySend {
                    unit: unit(self.number, request).into(),
                }
                .emit()
            });
        }
        self.sent = self.requests;
        let written = self.stream.write_all(&out);
        self.out = out;
        self.out.clear();
        written.map_err(|error| self.lost(&error))
    }

    /// The next answer. Credit, input and refusals are kept as well as reported.
    fn answer(&mut self) -> Result<DisplayAnswer> {
        loop {
            let taken = DisplayAnswer::take(&self.rest);
            let taken = taken.map_err(|why| {
                Error::measurement(format!("the server is not a display: {}", why.words()))
            })?;
            if let Some((answer, length)) = taken {
                self.rest.drain(..length);
                self.keep(&answer);
                return Ok(answer);
            }
            let mut piece = [0; 16 << 10];
            match self.stream.read(&mut piece) {
                Ok(0) if self.refused == Some((0, DisplayRefusal::NoDisplay)) => {
                    return Err(Error::measurement("the agent's display went away and did not come back").hint(
                        "restart it (`stackline display serve`); the agent's `--patience` sets how long it waits",
                    ));
                }
                Ok(0) => {
                    return Err(Error::measurement("the display closed the connection")
                        .hint("restart it (`stackline display serve`); what was drawn is lost"));
                }
                Ok(count) => {
                    self.rest.extend_from_slice(&piece[..count]);
                    self.unseen = None;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.lost(&error)),
            }
        }
    }

    fn lost(&self, error: &io::Error) -> Error {
        match &self.unseen {
            // Whoever refuses is there.
            Some(address) if error.kind() != io::ErrorKind::PermissionDenied => {
                DisplayServiceKind::Display.absent(address, error)
            }
            _ => lost(error, self.patience),
        }
    }

    fn keep(&mut self, answer: &DisplayAnswer) {
        match answer {
            DisplayAnswer::Credit(more) => self.credit += u64::from(*more),
            DisplayAnswer::Refused { request, why } => {
                let why = DisplayRefusal::of(*why).unwrap_or(DisplayRefusal::Order);
                self.refused.get_or_insert((*request, why));
            }
            DisplayAnswer::Input {
                window,
                input,
                dropped,
                hits,
            } => {
                self.inputs.push_back(DisplayInputEvent {
                    window: *window,
                    input: *input,
                    hits: hits.clone(),
                    dropped: *dropped,
                });
            }
            DisplayAnswer::Welcome { .. } | DisplayAnswer::Done | DisplayAnswer::Synced { .. } => {}
        }
    }
}

fn lost(error: &io::Error, patience: Duration) -> Error {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Error::measurement(format!(
            "the display has not answered for {} s",
            patience.as_secs()
        )),
        _ => Error::measurement(format!("lost the connection to the display: {error}")),
    }
}
