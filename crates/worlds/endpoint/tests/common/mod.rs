//! A world that writes down what an endpoint asks of it: each operation takes a fixed time, and a script says where the peer,
//! the limit or a failure comes in.
#![allow(dead_code, reason = "each test binary uses some of it")]

use stackline_core::catalogue::{Capabilities, StackTable};
use stackline_core::error::{Error, Result};
use stackline_core::plan::Plan;
use stackline_core::procedure::PairSide;
use stackline_core::random::Seed;
use stackline_core::run_record::Histogram;
use stackline_core::time::{Duration, Instant};
use stackline_endpoint::{
    BulkDirection, ConnectionFacts, Endpoint, EndpointObservation, EndpointProcessor,
    EndpointService, EndpointStep, EndpointTask, EndpointWorld,
};
use stackline_spec::{Available, CheckContext, Overrides, check};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// What operations take, in ms. A data unit takes 1.
const CONNECT: u64 = 5;
const SETTLE: u64 = 2;
const BARRIER: u64 = 100;
const CALL: u64 = 10;
const WAIT_FOR_CALL: u64 = 7;
const STOP_BULK: u64 = 4;
const DISCONNECT: u64 = 3;

/// One ms, in ns.
pub(crate) const MS: u64 = 1_000_000;

/// What comes in between.
#[derive(Clone, Debug, Default)]
pub(crate) struct Script {
    /// The limit comes so many ms after the world was asked to count it, or, of a load, after the beginning.
    pub(crate) limit_ms: Option<u64>,
    /// The peer ends its stream behind so many data units and requests.
    pub(crate) peer_ends_after: Option<u64>,
    /// The peer ended its stream and goes on: its half of the connection time is open.
    pub(crate) peer_stays: bool,
    /// Calls whose response never comes, from 0.
    pub(crate) lost_calls: Vec<u64>,
    /// The operation of this name fails, the so-manieth time it is asked for, with this error.
    pub(crate) failure: Option<(&'static str, usize, Error)>,
    /// `send` returns when the peer has everything.
    pub(crate) confirms: bool,
    /// What a connection reports of itself when it has taken so many units.
    pub(crate) facts: Option<fn(u64) -> ConnectionFacts>,
}

/// A world and its connections, as one.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordingWorld(Rc<WorldState>);

#[derive(Debug, Default)]
struct WorldState {
    now: Cell<u64>,
    counted_from: Cell<Option<u64>>,
    script: Script,
    came: Cell<u64>,
    calls: Cell<u64>,
    journal: RefCell<Vec<String>>,
}

impl RecordingWorld {
    /// Writes down `what`, fails where the script says so, and lets its time pass.
    fn does(&self, what: impl Into<String>, takes_ms: u64) -> Result<()> {
        let what = what.into();
        let name = what.split(' ').next().unwrap_or_default().to_string();
        let same = |line: &&String| line.split(' ').nth(1) == Some(&name);
        let before = self.0.journal.borrow().iter().filter(same).count();
        self.note(&what);
        if let Some((failing, time, error)) = &self.0.script.failure
            && *failing == name
            && *time == before
        {
            return Err(error.clone());
        }
        self.0.now.update(|now| now + takes_ms * MS);
        Ok(())
    }

    fn note(&self, what: &str) {
        let at = self.0.now.get() / MS;
        self.0.journal.borrow_mut().push(format!("{at} {what}"));
    }

    /// How many of `wanted` the peer still gives.
    fn take(&self, wanted: u64) -> u64 {
        let left = self.0.script.peer_ends_after.unwrap_or(u64::MAX) - self.0.came.get();
        let got = wanted.min(left);
        self.0.came.update(|came| came + got);
        got
    }
}

impl EndpointWorld for RecordingWorld {
    type Service = Self;

    fn now(&self) -> Instant {
        Instant(self.0.now.get())
    }

    async fn connect(&mut self) -> Result<Self> {
        self.does("connect", CONNECT)?;
        Ok(self.clone())
    }

    async fn accept(&mut self) -> Result<Self> {
        self.does("accept", CONNECT)?;
        Ok(self.clone())
    }

    async fn sleep_until(&mut self, moment: Instant) -> Result<bool> {
        self.does(format!("sleep until {}", moment.0 / MS), 0)?;
        let limit = self.0.script.limit_ms.zip(self.0.counted_from.get());
        let limit = limit.map_or(u64::MAX, |(ms, from)| from + ms * MS);
        self.0
            .now
            .update(|now| now.max(moment.0.min(limit.max(now))));
        Ok(moment.0 <= limit)
    }

    async fn barrier(&mut self) -> Result<()> {
        self.does("barrier", BARRIER)
    }

    async fn read_file(&mut self, bytes: u64) -> Result<()> {
        self.does(format!("read {bytes}"), 1)
    }

    async fn write_file(&mut self, bytes: u64) -> Result<()> {
        self.does(format!("write {bytes}"), 1)
    }

    fn limit_reached(&self) -> bool {
        let limit = self.0.script.limit_ms.zip(self.0.counted_from.get());
        limit.is_some_and(|(ms, from)| self.0.now.get() >= from + ms * MS)
    }

    fn start_time_limit(&self) {
        let now = self.0.now.get();
        let first = self.0.counted_from.get().unwrap_or(now);
        self.0.counted_from.set(Some(first));
    }

    fn processor(&self, _: EndpointStep) -> Option<EndpointProcessor> {
        None
    }

    fn emit(&self, step: EndpointStep) {
        if matches!(step, EndpointStep::ClockStarts | EndpointStep::ClockStops) {
            self.note(&format!("{step:?}"));
        }
    }

    fn vanished(&self, when: &str) -> Error {
        Error::measurement(format!("the peer vanished {when}"))
    }
}

impl EndpointService for RecordingWorld {
    async fn send(&mut self, bytes: u64, times: u64) -> Result<u64> {
        // As a world does: the limit is looked at between two units.
        let mut done = 0;
        self.does(format!("send {bytes}*{times}"), 0)?;
        while done < times && !self.limit_reached() {
            self.0.now.update(|now| now + MS);
            done += 1;
        }
        Ok(done)
    }

    async fn receive(&mut self, bytes: u64, times: u64) -> Result<u64> {
        let got = self.take(times);
        self.does(format!("receive {bytes}*{times}"), got)?;
        Ok(got)
    }

    async fn call(&mut self, request: u64, response: u64, _since: Instant) -> Result<bool> {
        self.does(format!("call {request} {response}"), CALL)?;
        let call = self.0.calls.get();
        self.0.calls.set(call + 1);
        Ok(!self.0.script.lost_calls.contains(&call))
    }

    async fn await_call(&mut self, bytes: u64) -> Result<bool> {
        self.does(format!("await_call {bytes}"), WAIT_FOR_CALL)?;
        Ok(self.take(1) == 1)
    }

    async fn reply(&mut self, bytes: u64) -> Result<()> {
        self.does(format!("reply {bytes}"), 1)
    }

    async fn start_bulk(&mut self, direction: BulkDirection) -> Result<()> {
        self.does(format!("start {direction:?}"), 1)
    }

    async fn await_start_bulk(&mut self, direction: BulkDirection) -> Result<bool> {
        self.does(format!("await_start {direction:?}"), 1)?;
        Ok(self.0.script.peer_ends_after != Some(0))
    }

    async fn stop_bulk(&mut self, direction: BulkDirection) -> Result<()> {
        self.does(format!("stop {direction:?}"), STOP_BULK)
    }

    async fn await_stop_bulk(&mut self, direction: BulkDirection) -> Result<()> {
        self.does(format!("await_stop {direction:?}"), STOP_BULK)
    }

    async fn end_stream(&mut self) -> Result<()> {
        self.does("end_stream", 0)
    }

    async fn disconnect(self) -> Result<()> {
        self.does("disconnect", DISCONNECT)
    }

    async fn await_disconnect(&mut self) -> Result<()> {
        self.does("await_disconnect", DISCONNECT)
    }

    async fn settle(&mut self) -> Result<()> {
        self.does("settle", SETTLE)
    }

    fn confirms(&self) -> bool {
        self.0.script.confirms
    }

    fn is_closed(&self) -> bool {
        !self.0.script.peer_stays
    }

    fn settings(&self) -> BTreeMap<String, String> {
        BTreeMap::from([("recorded".to_string(), "yes".to_string())])
    }

    fn facts(&self) -> ConnectionFacts {
        let facts = self.0.script.facts.map(|facts| facts(self.0.came.get()));
        facts.unwrap_or_default()
    }
}

/// What became of an endpoint.
#[derive(Debug)]
pub(crate) struct Walked {
    /// What it observed, or why it failed.
    pub(crate) result: Result<EndpointObservation>,
    /// What it asked of its world: the moment in ms, and what.
    pub(crate) journal: Vec<String>,
}

impl Walked {
    /// What it observed.
    pub(crate) fn observed(self) -> EndpointObservation {
        self.result.expect("it observed something")
    }

    /// The journal is this.
    #[track_caller]
    pub(crate) fn is(&self, expected: &str) {
        let expected: Vec<&str> = expected.lines().map(str::trim).collect();
        let expected: Vec<&str> = expected.into_iter().filter(|l| !l.is_empty()).collect();
        assert_eq!(self.journal, expected);
    }

    /// How often a word stands in the journal.
    pub(crate) fn count(&self, word: &str) -> usize {
        let has = |line: &&String| line.split(' ').any(|found| found == word);
        self.journal.iter().filter(has).count()
    }
}

/// The plan of a text, over the stack `pair`, or `lossy` where a unit may never arrive.
pub(crate) fn plan(text: &str) -> Plan {
    let stacks = ["pair", "lossy"].map(|name| StackTable {
        name,
        reliable: name == "pair",
        ..StackTable::RELIABLE
    });
    let read_file = |_: &str| Err("no file".to_string());
    let worlds = [Available {
        can: Capabilities::EVERYTHING,
        stacks: &stacks,
    }];
    let context = CheckContext {
        worlds: &worlds,
        read_file: &read_file,
        cores: &[],
    };
    let checked = check(text, &context, &Overrides::default());
    let wrong = format!("{text}: {:?}", checked.diagnostics);
    checked.plan.expect(&wrong)
}

/// The task of one side of a part of a text's first measurement.
pub(crate) fn task_of_part(text: &str, part: usize, side: PairSide) -> Arc<EndpointTask> {
    let plan = plan(text);
    let measurement = &plan.measurements[0];
    let part = &measurement.parts[part];
    let reliable = part.stack.name == "pair";
    Arc::new(EndpointTask::new(
        measurement,
        part,
        side,
        Seed::root(plan.seed),
        reliable,
    ))
}

/// The task of one side of a text.
pub(crate) fn task(text: &str, side: PairSide) -> Arc<EndpointTask> {
    task_of_part(text, 0, side)
}

/// Walks a task as one of its pairs.
pub(crate) fn walk_replica(task: &Arc<EndpointTask>, replica: u32, script: Script) -> Walked {
    let world = RecordingWorld(Rc::new(WorldState {
        script,
        counted_from: Cell::new(task.background.then_some(0)),
        ..WorldState::default()
    }));
    let run = pin!(Endpoint::new(Arc::clone(task), world.clone()).run(replica));
    let mut run = run;
    let Poll::Ready(result) = run.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
        panic!("a world whose operations are done at once lets nobody wait");
    };
    let journal = world.0.journal.borrow().clone();
    Walked { result, journal }
}

/// The initiator of a text.
pub(crate) fn initiator(text: &str, script: Script) -> Walked {
    walk_replica(&task(text, PairSide::Initiator), 0, script)
}

/// The responder of a text.
pub(crate) fn responder(text: &str, script: Script) -> Walked {
    walk_replica(&task(text, PairSide::Responder), 0, script)
}

/// The period of an observation, in ms.
pub(crate) fn period_ms(observed: &EndpointObservation) -> Option<(u64, u64)> {
    let (start, stop) = observed.period?;
    Some((start.0 / MS, stop.0 / MS))
}

/// All times of a histogram in ms, each as often as it occurred.
pub(crate) fn times_ms(times: &Histogram) -> Vec<u64> {
    let each = |(ns, n): &(u64, u64)| vec![ns / MS; usize::try_from(*n).expect("few")];
    times.counts.iter().flat_map(each).collect()
}

/// What is between two moments, in ms.
pub(crate) fn ms(time: Duration) -> u64 {
    time.0 / MS
}
