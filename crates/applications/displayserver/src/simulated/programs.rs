//! What the programs of a simulated display have: the client's requests and answers, the pipe of its host's agent, the display itself.

use super::trial_script::SimulatedDisplayRequest;
use stackline_core::error::{Error, Result};
use stackline_core::time::{Duration, Instant};
use stackline_display::machine::{ClientId, DisplayMachine, DisplayStepObserver};
use stackline_display::protocol::DisplayAnswer;
use stackline_display::symbols::DisplayClientLimits;
use std::collections::VecDeque;
use std::ops::RangeInclusive;

/// Bytes that a pipe and a pseudo-terminal hold.
pub(super) const PIPE: usize = 4096;
/// See `PIPE`.
pub(super) const PTY: usize = 1024;
/// Bytes that the driver of a serial line keeps.
pub(super) const TTY: usize = 1024;
/// Bytes that the agent of the display's host keeps for the display before it reads no more.
pub(super) const KEPT: usize = 16 << 10;
/// The display looks after nothing else for so long when it draws.
pub(super) const PIECE: Duration = Duration(10_000_000);

/// What travels between the hosts.
#[derive(Clone, Debug)]
pub(super) enum SimulatedDisplayPayload {
    /// Requests that were handed over together.
    Requests(Vec<SimulatedDisplayRequest>),
    /// Bytes of answers.
    Answers(Vec<u8>),
}

impl SimulatedDisplayPayload {
    /// An answer without words.
    pub(super) const NOTHING: Self = Self::Answers(Vec::new());

    pub(super) fn requests(self) -> Vec<SimulatedDisplayRequest> {
        match self {
            Self::Requests(requests) => requests,
            Self::Answers(_) => Vec::new(),
        }
    }

    pub(super) fn answers(self) -> Vec<u8> {
        match self {
            Self::Answers(answers) => answers,
            Self::Requests(_) => Vec::new(),
        }
    }
}

/// Bytes of requests.
pub(super) fn bytes<'r>(requests: impl IntoIterator<Item = &'r SimulatedDisplayRequest>) -> usize {
    requests
        .into_iter()
        .map(SimulatedDisplayRequest::length)
        .sum()
}

/// What the client knows: its requests, their answers, its trials.
#[derive(Debug, Default)]
pub(super) struct SimulatedDisplayClient {
    asked: u32,
    answered: u32,
    /// The last request that it made, and the last that it knows to be done.
    made: u32,
    done: u32,
    rest: Vec<u8>,
    /// Since when it is measured, and the request before: a trial goes on.
    begun: Option<(Instant, u32)>,
    /// Of each trial.
    pub(super) taken: Vec<Duration>,
    pub(super) trials: Vec<SimulatedDisplayTrial>,
    /// All trials are over.
    pub(super) is_over: bool,
}

/// A time that is measured.
#[derive(Clone, Debug)]
pub(super) struct SimulatedDisplayTrial {
    pub(super) begin: Instant,
    pub(super) end: Instant,
    /// The requests that were made in it.
    pub(super) requests: RangeInclusive<u32>,
}

impl SimulatedDisplayClient {
    /// A request is made.
    pub(super) fn make(&mut self, request: &SimulatedDisplayRequest) {
        self.asked += u32::from(request.wants);
        self.made = request.number;
    }

    /// Whether all is answered that was asked.
    pub(super) const fn is_answered(&self) -> bool {
        self.answered >= self.asked
    }

    /// The requests of which it knows now that they are done, as all that it made are answered.
    pub(super) fn completed(&mut self) -> RangeInclusive<u32> {
        let completed = self.done + 1..=self.made;
        self.done = self.made;
        completed
    }

    /// Bytes of answers have come.
    ///
    /// # Errors
    /// What the display refused.
    pub(super) fn receive(&mut self, bytes: &[u8]) -> Result<()> {
        self.rest.extend_from_slice(bytes);
        while let Ok(Some((answer, length))) = DisplayAnswer::take(&self.rest) {
            self.rest.drain(..length);
            match answer {
                DisplayAnswer::Welcome { .. }
                | DisplayAnswer::Done
                | DisplayAnswer::Synced { .. } => self.answered += 1,
                DisplayAnswer::Refused { request, .. } => {
                    return Err(Error::measurement(format!(
                        "the simulated display refused request {request}"
                    )));
                }
                DisplayAnswer::Credit(_) | DisplayAnswer::Input { .. } => {}
            }
        }
        Ok(())
    }

    pub(super) const fn begin(&mut self, now: Instant) {
        self.begun = Some((now, self.made));
    }

    /// Whether a trial goes on.
    pub(super) const fn is_measured(&self) -> bool {
        self.begun.is_some()
    }

    pub(super) fn end(&mut self, now: Instant) {
        if let Some((begin, made)) = self.begun.take() {
            self.taken.push(now.since(begin));
            self.trials.push(SimulatedDisplayTrial {
                begin,
                end: now,
                requests: made + 1..=self.made,
            });
        }
    }
}

/// The pipe, or pseudo-terminal, between a client and the agent of its host.
#[derive(Debug)]
pub(super) struct Pipe {
    holds: usize,
    written: VecDeque<Vec<SimulatedDisplayRequest>>,
    /// What did not fit: its writer waits.
    waiting: Option<Vec<SimulatedDisplayRequest>>,
}

impl Pipe {
    /// An empty one that holds so many bytes.
    pub(super) const fn new(holds: usize) -> Self {
        Self {
            holds,
            written: VecDeque::new(),
            waiting: None,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.written.is_empty()
    }

    /// Writes requests, where they fit; else they wait. Those that are written.
    pub(super) fn write(
        &mut self,
        requests: Vec<SimulatedDisplayRequest>,
    ) -> Option<&[SimulatedDisplayRequest]> {
        self.put(requests, self.holds)
    }

    /// Writes what waits: a writer that had to wait is woken when half of the pipe is free.
    pub(super) fn write_waiting(&mut self) -> Option<&[SimulatedDisplayRequest]> {
        let requests = self.waiting.take()?;
        self.put(requests, self.holds / 2)
    }

    fn put(
        &mut self,
        requests: Vec<SimulatedDisplayRequest>,
        room: usize,
    ) -> Option<&[SimulatedDisplayRequest]> {
        let held: usize = self.written.iter().map(bytes).sum();
        if !self.is_empty() && held + bytes(&requests) > room {
            self.waiting = Some(requests);
            return None;
        }
        self.written.push_back(requests);
        self.written.back().map(Vec::as_slice)
    }

    /// Takes messages out, of so many bytes together, one at least.
    pub(super) fn take(&mut self, most: usize) -> Vec<SimulatedDisplayRequest> {
        let mut taken = self.written.pop_front().unwrap_or_default();
        while let Some(next) = self.written.front()
            && bytes(&taken) + bytes(next) <= most
        {
            taken.extend(self.written.pop_front().unwrap_or_default());
        }
        taken
    }
}

/// The display's program.
#[derive(Debug)]
pub(super) struct SimulatedDisplayProgram {
    display: DisplayMachine,
    id: ClientId,
    /// The last request whose changes are drawn.
    pub(super) drawn: u32,
}

struct SimulatedDisplayClock(u64);

impl DisplayStepObserver for SimulatedDisplayClock {
    fn now(&mut self) -> u64 {
        self.0
    }
}

impl SimulatedDisplayProgram {
    pub(super) fn new() -> Self {
        let mut display = DisplayMachine::new(DisplayClientLimits::default(), Vec::new());
        let id = display.connect();
        Self {
            display,
            id,
            drawn: 0,
        }
    }

    /// Carries a request out: the answers to it.
    ///
    /// # Errors
    /// When it is no message.
    pub(super) fn carry_out(&mut self, now: Instant, request: &[u8]) -> Result<Vec<u8>> {
        let mut clock = SimulatedDisplayClock(now.0);
        let done = self.display.receive(self.id, request, &mut clock);
        done.map_err(|why| {
            Error::measurement(format!(
                "the simulated display closed the connection: {}",
                why.words()
            ))
        })?;
        Ok(self.display.output(self.id))
    }
}
