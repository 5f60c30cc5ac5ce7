//! A client's connection to a display: requests are gathered and sent together, answers are read when they are waited for. It sends no more
//! than the credit that the display has granted.

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

/// Requests are sent when this many bytes are gathered.
const GATHERED: usize = 32 << 10;
/// How many items without extra bytes are encoded at a time: a sixteenth of [`GATHERED`], so that it is exceeded only a little.
const TOGETHER: usize = 100;
/// How long an answer may take. An agent that waits for its display sends signs of life meanwhile.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long the first answer may take.
const HELLO: Duration = Duration::from_secs(30);

/// A client.
#[derive(Debug)]
pub struct DisplayClient {
    stream: DisplayStream,
    /// How long to wait for bytes from the display.
    patience: Duration,
    out: Vec<u8>,
    rest: Vec<u8>,
    /// Bytes that the client may still send.
    credit: u64,
    requests: u32,
    /// The client's number at the display.
    number: u64,
    /// The number of requests that were sent.
    sent: u32,
    /// The number of requests that are known to be done.
    done: u32,
    /// Whether events are recorded.
    is_recorded: bool,
    /// Input that came while another answer was awaited.
    inputs: VecDeque<DisplayInputEvent>,
    refused: Option<(u32, DisplayRefusal)>,
    /// The address, until the first answer has come from there: it may be that nobody is there.
    unseen: Option<DisplayAddress>,
}

/// An input event in a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DisplayInputEvent {
    /// The number of the window.
    pub window: u32,
    /// What happened.
    pub input: DisplayInput,
    /// The items at that point, as symbol and item id, the last drawn first.
    pub hits: Vec<(u32, u32)>,
    /// The number of earlier events that were dropped.
    pub dropped: u32,
}

impl DisplayClient {
    /// Connects to a display, and completes the greeting.
    ///
    /// # Errors
    /// An [`Error`] if there is no display, or it does not accept this client.
    pub fn connect(address: &DisplayAddress, token: &[u8]) -> Result<Self> {
        let stream = address.connect()?;
        stream
            .read_within(Some(HELLO))
            .map_err(|error| lost(&error, HELLO))?;
        let credit = u64::MAX / 2;
        let (out, rest, inputs) = (Vec::new(), Vec::new(), VecDeque::new());
        let is_recorded = stackline_events::recorder::is_recording();
        let (requests, number, sent, done, refused, patience) = (0, 0, 0, 0, None, HELLO);
        let unseen = address.scheme().shows_late().then(|| address.clone());
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
            // This error already says that nobody is there, and what to start.
            Err(error) if error.blame == Blame::Environment => Err(error),
            Err(error) => Err(error
                .hint("the display may require a different secret (--secret-file), listen for `ngp:` there, or speak a different protocol version")),
        }
    }

    /// The first answer other than a grant of credit.
    fn greeted(&mut self) -> Result<DisplayAnswer> {
        loop {
            match self.answer()? {
                DisplayAnswer::Credit(_) => {}
                other => return Ok(other),
            }
        }
    }

    /// Gathers a request; it is sent with others.
    ///
    /// # Errors
    /// An [`Error`] when the connection is lost.
    pub fn send(&mut self, request: &DisplayRequest<'_>) -> Result<()> {
        self.put(request, false)
    }

    /// Adds items, each with its extra bytes, to the open symbol: one request each, without answers.
    ///
    /// # Errors
    /// An [`Error`] when the connection is lost.
    pub fn add(&mut self, items: &[(DisplayItem, Vec<u8>)]) -> Result<()> {
        for some in items.chunks(TOGETHER) {
            // If events are recorded, each request needs its own time, so they are encoded one by one.
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
                // A notice that drawing was cut short comes in addition to the answer.
                DisplayAnswer::Refused { request, why }
                    if request == number && why != DisplayRefusal::TooMuch as u8 =>
                {
                    return self.take_refusal();
                }
                _ => {}
            }
        }
    }

    /// Waits until everything is drawn. Returns when each step was done; fails if an earlier request was refused.
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

    /// Waits for the next input event.
    ///
    /// # Errors
    /// An [`Error`] if the connection is lost, or no input comes for too long.
    pub fn input(&mut self) -> Result<DisplayInputEvent> {
        self.flush()?;
        while self.inputs.is_empty() {
            self.answer()?;
        }
        self.inputs
            .pop_front()
            .ok_or_else(|| Error::measurement("the display sent nothing"))
    }

    /// Records that everything sent is done, which an answer shows: answers come in the order of the requests.
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

    /// Fails with the first refusal since the last call.
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

    /// Sends the gathered requests if they are many.
    fn flush_much(&mut self) -> Result<()> {
        if self.out.len() >= GATHERED {
            self.flush()
        } else {
            Ok(())
        }
    }

    /// Sends the gathered requests, waiting for credit if necessary.
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

    /// Waits for the next answer. Credit, input and refusals are also recorded in this client.
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
            // An answer that refuses shows that somebody is there.
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
                let why = DisplayRefusal::from_number(*why).unwrap_or(DisplayRefusal::Order);
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
