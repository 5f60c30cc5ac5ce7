//! A traced run: agents record events while it goes on, and the coordinator takes the events over afterwards. Before, during (at most
//! once a second) and after the run, host clocks that are not the coordinator's own are compared with it.

use super::clocks::{AgentHostClock, EVERY};
use super::hosts::{LOCAL_INITIATOR, LOCAL_RESPONDER, hosts_of_run};
use super::mailbox::Coordinator;
use crate::clock;
use crate::control::{AgentRecordingSummary, FromAgent, MAX_EVENT_LOG_BYTES, ToAgent};
use crate::error::{Error, Result};
use stackline_core::clock_offset::delay_ns;
use stackline_core::run_record::RunRecord;
use stackline_core::run_schedule::ScheduledRun;
use stackline_core::trace_index::{ClockExchange, HostTrace, UNNAMED};
use stackline_events::{EventLog, clock as events};
use std::collections::BTreeMap;
use std::time::Instant;

/// Clock exchanges in one comparison; the one with the shortest delay is kept, as it bounds the offset best.
const EXCHANGES: usize = 8;

/// Most bytes of events of one run that are accepted from an agent. Each piece defines its names anew, so this is more than an agent keeps.
const MOST_BYTES: u64 = MAX_EVENT_LOG_BYTES + (1 << 30);

/// Stores a piece of a host's event log; gets the host's name. An error says why it cannot be stored.
pub type KeepHostLog<'k> = dyn FnMut(&str, &EventLog) -> std::result::Result<(), String> + 'k;

/// Everything known of a traced run besides its events.
#[derive(Clone, Debug, Default)]
pub struct LiveRunTrace {
    /// When the run began and ended, ns since 1970 by the coordinator's clock.
    pub span_ns: (u64, u64),
    /// What is known of each host's recording and clock.
    pub hosts: BTreeMap<String, HostTrace>,
    /// Why events could not be stored; `None` if they were.
    pub unkept: Option<String>,
}

/// The name of a host in a trace: its own, or a fixed one for the built-in local hosts.
fn shown(host: &str) -> &str {
    match host {
        LOCAL_INITIATOR => UNNAMED.0,
        LOCAL_RESPONDER => UNNAMED.1,
        host => host,
    }
}

impl Coordinator<'_> {
    /// Makes one run and records it. `flows` has the first flow ID of each part; `ports`, if responders are to listen on prescribed ports,
    /// the first port of each part. `keep` gets the events. The trace is returned also if the run failed.
    pub fn make_traced(
        &mut self,
        scheduled: &ScheduledRun<'_>,
        flows: &[u32],
        ports: &[u16],
        keep: &mut KeepHostLog<'_>,
    ) -> (Result<Vec<RunRecord>>, LiveRunTrace) {
        let mut traced = LiveRunTrace::default();
        if let Err(error) = self.compare_clocks(scheduled) {
            return (Err(error), traced);
        }
        if let Err(error) = self.record(scheduled, &mut traced.hosts) {
            return (Err(error), traced);
        }
        traced.span_ns.0 = events::now_ns();
        (self.flows, self.ports) = (flows.to_vec(), ports.to_vec());
        self.begin_asking(scheduled);
        let made = self.make(scheduled);
        self.running_queries.times = None;
        (self.flows, self.ports) = (Vec::new(), Vec::new());
        traced.span_ns.1 = events::now_ns();
        self.taking_over_events = true;
        let compared = self.compare_clocks(scheduled);
        for host in hosts_of_run(scheduled) {
            let trace = traced.hosts.entry(shown(&host).to_owned()).or_default();
            if let Err(error) = self.take_over(&host, trace, keep, &mut traced.unkept) {
                trace.absent.insert("events".into(), error.message);
            }
            if let Some(clock) = self.clocks.get_mut(&host) {
                trace.clock = clock.report(&trace.clock);
            }
        }
        self.taking_over_events = false;
        let failed = compared.err().filter(|_| made.is_ok());
        (failed.map_or(made, Err), traced)
    }

    /// The first host, by name, that reads the same clock as the coordinator.
    #[must_use]
    pub fn same_clock(&self) -> Option<&str> {
        self.clocks
            .iter()
            .find(|(_, clock)| clock.shared_clock_error_ns.is_some())
            .map(|(name, _)| shown(name))
    }

    /// Starts recording at every host of the run. Hosts in one network namespace would record the same machine's monitors twice, so only
    /// the first of them runs monitors.
    fn record(
        &mut self,
        scheduled: &ScheduledRun<'_>,
        traces: &mut BTreeMap<String, HostTrace>,
    ) -> Result<()> {
        let mut watched: BTreeMap<String, String> = BTreeMap::new();
        for host in hosts_of_run(scheduled) {
            let network = self
                .hellos
                .get(&host)
                .and_then(|hello| hello.network.clone());
            let other = network
                .as_ref()
                .and_then(|network| watched.get(network))
                .cloned();
            let trace = traces.entry(shown(&host).to_owned()).or_default();
            if let Some(other) = &other {
                let reason =
                    format!("this host shares a machine with {other}, whose monitors cover both");
                trace.absent.insert("monitors".into(), reason);
            } else if let Some(network) = network {
                watched.insert(network, shown(&host).to_owned());
            }
            let question = ToAgent::Record {
                host: shown(&host).to_owned(),
                monitors: other.is_none(),
            };
            let answer = |message| {
                if let FromAgent::Recording { refused } = message {
                    Some(refused)
                } else {
                    None
                }
            };
            if let Some(refused) = self.ask_one(&host, &question, answer)? {
                trace.absent.insert("events".into(), refused);
            }
        }
        Ok(())
    }

    /// Stops a host's recording and passes its events to `keep`, piece by piece. After `keep` has failed once (`unkept`) the remaining
    /// pieces are dropped.
    fn take_over(
        &mut self,
        host: &str,
        trace: &mut HostTrace,
        keep: &mut KeepHostLog<'_>,
        unkept: &mut Option<String>,
    ) -> Result<()> {
        let answer = |message| {
            if let FromAgent::Recorded(recorded) = message {
                Some(*recorded)
            } else {
                None
            }
        };
        let recorded = self.ask_one(host, &ToAgent::StopRecording, answer)?;
        let mut taken = 0;
        loop {
            let answer = |message| {
                if let FromAgent::EventLog { bytes, .. } = message {
                    Some(bytes)
                } else {
                    None
                }
            };
            let bytes = self.ask_one(host, &ToAgent::EventLog, answer)?;
            if bytes.is_empty() {
                break;
            }
            taken += bytes.len() as u64;
            if taken > MOST_BYTES {
                return Err(Error::measurement(format!(
                    "the agent on host {host} does not stop sending events"
                )));
            }
            if unkept.is_none() {
                *unkept = keep(shown(host), &EventLog::from_bytes(bytes)).err();
            }
        }
        let AgentRecordingSummary {
            recorded,
            lost,
            stamp_error_ns,
            cost_s,
            absent,
            notes,
            kernel,
        } = recorded;
        trace.recorded += recorded;
        trace.lost += lost;
        trace.cost_s.extend(cost_s);
        trace.absent.extend(absent);
        trace.notes.extend(notes);
        trace.clock.kernel = kernel;
        trace.clock.error_ns = Some(stamp_error_ns);
        Ok(())
    }

    /// Compares the clock of every host of a run with the coordinator's, unless it is the same clock.
    fn compare_clocks(&mut self, scheduled: &ScheduledRun<'_>) -> Result<()> {
        for host in hosts_of_run(scheduled) {
            if !self.clocks.contains_key(&host) {
                let met = self.meet(&host)?;
                self.clocks.insert(host.clone(), met);
            }
            if self
                .clocks
                .get(&host)
                .is_some_and(|clock| clock.shared_clock_error_ns.is_some())
            {
                continue;
            }
            let mut best: Option<ClockExchange> = None;
            for _ in 0..EXCHANGES {
                let exchange = self.exchange(&host)?;
                if best.is_none_or(|best| delay_ns(&exchange) < delay_ns(&best)) {
                    best = Some(exchange);
                }
            }
            if let (Some(clock), Some(exchange)) = (self.clocks.get_mut(&host), best) {
                clock.take(exchange);
            }
        }
        Ok(())
    }

    /// Sets up the clock queries during the run.
    fn begin_asking(&mut self, scheduled: &ScheduledRun<'_>) {
        let now = Instant::now();
        let other = |host: &String| {
            self.clocks
                .get(host)
                .is_some_and(|clock| clock.shared_clock_error_ns.is_none())
        };
        self.running_queries.hosts = hosts_of_run(scheduled).into_iter().filter(other).collect();
        self.running_queries.times = Some((now, now + EVERY));
    }

    /// What is known of a host's clock at first. An agent that reads the same monotonic clock as the coordinator gets its offset, so that
    /// both stamp events alike.
    fn meet(&mut self, host: &str) -> Result<AgentHostClock> {
        let theirs = self.hellos.get(host).and_then(|hello| hello.clock.clone());
        if theirs.is_none() || theirs != clock::identity() {
            return Ok(AgentHostClock::default());
        }
        let (ahead_ns, (.., error_ns)) = (clock::ahead_of_monotonic_ns(), clock::read_clocks());
        self.send(host, &ToAgent::SameClock { ahead_ns })?;
        Ok(AgentHostClock::same(error_ns))
    }

    /// One clock query and its answer.
    fn exchange(&mut self, host: &str) -> Result<ClockExchange> {
        let asked_ns = events::now_ns();
        let answer = |message| match message {
            FromAgent::Clock {
                heard_ns,
                answered_ns,
                returned_ns,
            } => Some((heard_ns, answered_ns, returned_ns)),
            _ => None,
        };
        let (heard_ns, answered_ns, returned_ns) = self.ask_one(host, &ToAgent::Clock, answer)?;
        Ok(ClockExchange {
            asked_ns,
            heard_ns,
            answered_ns,
            returned_ns,
        })
    }
}
