//! The programs of a simulated display: what each has, and what it waits for.

use super::trial_script::{Action, SimulatedDisplayRequest};
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

/// Bytes of requests.
pub(super) fn bytes(jobs: &[SimulatedDisplayRequest]) -> usize {
    jobs.iter().map(SimulatedDisplayRequest::length).sum()
}

/// What the client waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SimulatedClientWait {
    Nothing,
    /// Its processor, room in the pipe, or that what it handed over is taken.
    Something,
    /// Answers.
    Answers,
}

/// The client.
#[derive(Debug)]
pub(super) struct SimulatedDisplayClient {
    pub(super) actions: VecDeque<Action>,
    pub(super) waits: SimulatedClientWait,
    pub(super) gathered: Vec<SimulatedDisplayRequest>,
    /// What does not fit into the pipe.
    pub(super) held: Option<Vec<SimulatedDisplayRequest>>,
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
    pub(super) fn new(actions: VecDeque<Action>) -> Self {
        Self {
            actions,
            waits: SimulatedClientWait::Nothing,
            gathered: Vec::new(),
            held: None,
            asked: 0,
            answered: 0,
            made: 0,
            done: 0,
            rest: Vec::new(),
            begun: None,
            taken: Vec::new(),
            trials: Vec::new(),
        }
    }

    /// A request is made.
    pub(super) fn gather(&mut self, job: SimulatedDisplayRequest) {
        self.asked += u32::from(job.wants);
        self.made = job.number;
        self.gathered.push(job);
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

/// The agent of the client's host, behind a pipe.
#[derive(Debug, Default)]
pub(super) struct RemoteAgent {
    pub(super) pipe: VecDeque<Vec<SimulatedDisplayRequest>>,
    pub(super) is_busy: bool,
    /// The client waits for room.
    pub(super) is_full: bool,
}

impl RemoteAgent {
    pub(super) fn held(&self) -> usize {
        self.pipe.iter().map(|jobs| bytes(jobs)).sum()
    }

    /// Takes messages out of the pipe, of so many bytes together, one at least.
    pub(super) fn take(&mut self, most: usize) -> Vec<SimulatedDisplayRequest> {
        let mut taken: Vec<SimulatedDisplayRequest> = self.pipe.pop_front().unwrap_or_default();
        while let Some(next) = self.pipe.front()
            && bytes(&taken) + bytes(next) <= most
        {
            taken.extend(self.pipe.pop_front().unwrap_or_default());
        }
        taken
    }
}

/// The agent of the display's host.
#[derive(Debug, Default)]
pub(super) struct LocalAgent {
    pub(super) came: VecDeque<Vec<SimulatedDisplayRequest>>,
    pub(super) is_busy: bool,
    /// Answers that wait for it, as they will be handed over.
    pub(super) answers: VecDeque<Vec<u8>>,
    pub(super) answers_now: bool,
    /// It has told the transport to wait.
    pub(super) is_full: bool,
}

/// The display's program.
#[derive(Debug)]
pub(super) struct SimulatedDisplayProgram {
    display: DisplayMachine,
    id: ClientId,
    pub(super) inbox: VecDeque<Vec<SimulatedDisplayRequest>>,
    pub(super) jobs: VecDeque<SimulatedDisplayRequest>,
    pub(super) is_busy: bool,
    /// What is left to draw of the present job.
    pub(super) to_draw: Duration,
    /// What of that is for its answer.
    pub(super) to_answer: Duration,
    /// The last request whose changes are drawn.
    pub(super) drawn: u32,
    /// The display's answers to the present job, and of a message to all of it.
    pub(super) output: Vec<u8>,
    pub(super) reply: Vec<u8>,
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
            inbox: VecDeque::new(),
            jobs: VecDeque::new(),
            is_busy: false,
            to_draw: Duration::ZERO,
            to_answer: Duration::ZERO,
            drawn: 0,
            output: Vec::new(),
            reply: Vec::new(),
        }
    }

    /// Bytes of requests that wait.
    pub(super) fn waiting(&self) -> usize {
        self.inbox.iter().map(|jobs| bytes(jobs)).sum()
    }

    /// Carries a request out.
    ///
    /// # Errors
    /// When it is no message.
    pub(super) fn carry_out(&mut self, now: Instant, request: &[u8]) -> Result<()> {
        let done = self
            .display
            .receive(self.id, request, &mut SimulatedDisplayClock(now.0));
        done.map_err(|why| {
            Error::measurement(format!(
                "the simulated display ends its connection: {}",
                why.words()
            ))
        })?;
        self.output = self.display.output(self.id);
        Ok(())
    }
}
