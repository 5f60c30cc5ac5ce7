//! The state of a simulated display's programs: the client's requests and answers, the pipe of its host's agent, the display itself.

use super::trial_script::SimulatedDisplayRequest;
use stackline_core::error::{Error, Result};
use stackline_core::time::{Duration, Instant};
use stackline_display::machine::{ClientId, DisplayMachine, DisplayStepObserver};
use stackline_display::protocol::DisplayAnswer;
use stackline_display::symbols::DisplayClientLimits;
use std::collections::VecDeque;
use std::ops::RangeInclusive;

/// The size of a pipe, bytes.
pub(super) const PIPE: usize = 4096;
/// The size of a pseudo-terminal's buffer, bytes.
pub(super) const PTY: usize = 1024;
/// The buffer of a serial line's driver, bytes.
pub(super) const TTY: usize = 1024;
/// When more than this many bytes wait for the display, the agent of its host reads no more.
pub(super) const KEPT: usize = 16 << 10;
/// While the display draws, it does nothing else for this long at a time (ns).
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
    /// An empty answer.
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

/// The total length of requests, bytes.
pub(super) fn bytes<'r>(requests: impl IntoIterator<Item = &'r SimulatedDisplayRequest>) -> usize {
    requests
        .into_iter()
        .map(SimulatedDisplayRequest::length)
        .sum()
}

/// The client's requests, their answers, and its trials.
#[derive(Debug, Default)]
pub(super) struct SimulatedDisplayClient {
    asked: u32,
    answered: u32,
    /// The last request that it made.
    made: u32,
    /// The last request that it knows to be done.
    done: u32,
    rest: Vec<u8>,
    /// If a trial is under way: when it began, and the last request before it.
    begun: Option<(Instant, u32)>,
    /// The time of each trial.
    pub(super) taken: Vec<Duration>,
    pub(super) trials: Vec<SimulatedDisplayTrial>,
    /// Whether all trials are over.
    pub(super) is_over: bool,
}

/// One trial.
#[derive(Clone, Debug)]
pub(super) struct SimulatedDisplayTrial {
    pub(super) begin: Instant,
    pub(super) end: Instant,
    /// The requests that were made in it.
    pub(super) requests: RangeInclusive<u32>,
}

impl SimulatedDisplayClient {
    /// Records that a request is made.
    pub(super) fn make(&mut self, request: &SimulatedDisplayRequest) {
        self.asked += u32::from(request.wants);
        self.made = request.number;
    }

    /// Whether every request that asked for an answer has been answered.
    pub(super) const fn is_answered(&self) -> bool {
        self.answered >= self.asked
    }

    /// The requests that it now learns are done, when all are answered.
    pub(super) fn completed(&mut self) -> RangeInclusive<u32> {
        let completed = self.done + 1..=self.made;
        self.done = self.made;
        completed
    }

    /// Handles bytes of answers.
    ///
    /// # Errors
    /// If the display refused something.
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

    /// Whether a trial is under way.
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

/// The pipe or pseudo-terminal between a client and the agent of its host.
#[derive(Debug)]
pub(super) struct Pipe {
    holds: usize,
    written: VecDeque<Vec<SimulatedDisplayRequest>>,
    /// Requests that did not fit; their writer is blocked.
    waiting: Option<Vec<SimulatedDisplayRequest>>,
}

impl Pipe {
    /// An empty pipe of this many bytes.
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

    /// Writes requests if they fit; otherwise they wait. Returns those that were written.
    pub(super) fn write(
        &mut self,
        requests: Vec<SimulatedDisplayRequest>,
    ) -> Option<&[SimulatedDisplayRequest]> {
        self.put(requests, self.holds)
    }

    /// Writes waiting requests: a blocked writer continues when half of the pipe is free.
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

    /// Takes requests of at most `most` bytes together, but at least one write.
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
    /// The last request whose effect is drawn.
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

    /// Carries out a request, and returns the answers.
    ///
    /// # Errors
    /// If it is not a request.
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
