//! The monitor of TCP connections: the kernel's trace events at their exact times, and each connection's counters, which are polled.
//!
//! Connections are polled before the trace is read, so that the retransmissions they have counted are among the events. The filter
//! decides which connections are watched.

mod congestion;
mod connection_filter;
mod connection_owners;
mod retransmissions;

use super::sample::{Monitor, MonitorSetup, SampleInterval, Started};
use crate::address_pair::AddressPair;
use crate::kernel_trace::{KernelTrace, TcpEvent, TraceEvent};
use crate::sock_diag::{DiagSocket, SockDiag, TcpInfoCounters};
use crate::watch_config::{Config, Observed, WatchedPorts};
use congestion::CongestionStates;
use connection_filter::ConnectionFilter;
use connection_owners::ConnectionOwners;
use retransmissions::Retransmissions;
use stackline_events::catalogue::rows::{
    EventsLost, TcpDrop, TcpInfo, TcpRcvqFull, TcpReset, TcpState,
};
use stackline_events::{EventLog, EventValue, clock};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

/// The most connections that are recorded in one sample.
const MOST_CONNECTIONS: usize = 512;
/// The most events that wait until their connection is known to be watched; beyond that the oldest are left out.
const MOST_UNDECIDED: usize = 1 << 16;
/// For how many samples such an event waits: a watched connection has been polled by then, unless it closed before its first poll.
const MOST_SAMPLES: u8 = 10;

/// A connection as it was last recorded.
struct RecordedConnection {
    at_ns: u64,
    counters: TcpInfoCounters,
    receive_queue_bytes: u32,
    /// The connection's count of retransmissions up to which their events have their numbers of segments.
    settled: u64,
}

/// The state of the monitor.
struct TcpMonitor {
    filter: ConnectionFilter,
    more_ports: Arc<Mutex<WatchedPorts>>,
    /// What finds the processes of connections, if they are to be recorded.
    owners: Option<ConnectionOwners>,
    sock_diag: Option<SockDiag>,
    trace: Option<KernelTrace>,
    absent: BTreeMap<String, String>,
    /// Events read from the trace and not processed yet, with their times.
    events: Vec<(u64, TraceEvent)>,
    /// Events of connections that may turn out to be watched: how many samples they have waited, and their times.
    undecided: Vec<(u8, u64, TraceEvent)>,
    retransmissions: Retransmissions,
    congestion: CongestionStates,
    /// Connections as they were last recorded, by the cookie of their socket.
    recorded: HashMap<u64, RecordedConnection>,
    /// Events the kernel lost since the last sample.
    lost: u64,
    /// The time of the last poll; `None` before the first.
    polled_ns: Option<u64>,
    /// Events left out because they name no connection.
    unattributed: u64,
    /// Events left out because their connection never turned out to be watched.
    unwatched: u64,
    /// The largest number of connections that a sample left out.
    beyond_limit: u64,
}

/// Starts the monitor. It always runs: what it cannot observe is reported at its end.
pub(super) fn start(setup: &MonitorSetup<'_>) -> Started {
    Ok(Box::new(TcpMonitor::new(
        setup.config,
        Arc::clone(&setup.more_ports),
    )))
}

impl TcpMonitor {
    fn new(config: &Config, more_ports: Arc<Mutex<WatchedPorts>>) -> Self {
        let filter = ConnectionFilter::new(&config.connections);
        let mut absent = BTreeMap::new();
        let sock_diag = SockDiag::open()
            .map_err(|reason| absent.insert("connections".into(), reason))
            .ok();
        let trace = match config.kernel {
            true => KernelTrace::start(&filter.fixed_ports()),
            false => Err("trace events are disabled".into()),
        };
        let trace = match trace {
            Ok((trace, missing)) => {
                absent.extend(missing);
                Some(trace)
            }
            Err(reason) => {
                let instead = "TCP_INFO gives retransmissions per interval, not their exact times";
                absent.insert("kernel".into(), format!("{reason}; {instead}"));
                None
            }
        };
        Self {
            filter,
            more_ports,
            owners: config.program_names.map(ConnectionOwners::new),
            sock_diag,
            trace,
            absent,
            events: Vec::new(),
            undecided: Vec::new(),
            retransmissions: Retransmissions::default(),
            congestion: CongestionStates::default(),
            recorded: HashMap::new(),
            lost: 0,
            polled_ns: None,
            unattributed: 0,
            unwatched: 0,
            beyond_limit: 0,
        }
    }

    /// Watches the ports that were added since the last sample.
    fn add_ports(&mut self) {
        let ports = std::mem::take(
            &mut *self
                .more_ports
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        );
        if ports == WatchedPorts::default() {
            return;
        }
        self.filter.add(ports);
        if let Some(trace) = &self.trace
            && let Err(reason) = trace.set_ports(&self.filter.fixed_ports())
        {
            self.absent.insert("kernel/filter".into(), reason);
        }
    }

    /// Records the events of watched connections.
    fn record_events(&mut self, log: &mut EventLog) {
        let waited = std::mem::take(&mut self.undecided);
        let new = std::mem::take(&mut self.events)
            .into_iter()
            .map(|(at_ns, event)| (0, at_ns, event));
        for (samples, at_ns, event) in waited.into_iter().chain(new) {
            match event.pair {
                Some(pair) if self.filter.accepts(&pair) => {
                    self.record_event(at_ns, &event.event, Some(pair), log)
                }
                _ if event.event == TcpEvent::Established => {}
                Some(_) if samples < MOST_SAMPLES => {
                    self.undecided.push((samples + 1, at_ns, event))
                }
                Some(_) => self.unwatched += 1,
                None if self.filter.accepts_unattributed() => {
                    self.record_event(at_ns, &event.event, None, log)
                }
                None => self.unattributed += 1,
            }
        }
        let beyond = self.undecided.len().saturating_sub(MOST_UNDECIDED);
        self.unwatched += self.undecided.drain(..beyond).count() as u64;
    }

    fn record_event(
        &mut self,
        at_ns: u64,
        event: &TcpEvent,
        pair: Option<AddressPair>,
        log: &mut EventLog,
    ) {
        let (local, remote) = (
            pair.map(|pair| pair.local.to_string()),
            pair.map(|pair| pair.remote.to_string()),
        );
        let (local, remote) = (local.as_deref().into(), remote.as_deref().into());
        match (event, pair) {
            (TcpEvent::Retransmit { handshake, error }, Some(pair)) => {
                let mut cause = self.congestion.cause(&pair, *handshake).to_owned();
                if let Some(error) = error {
                    cause += &format!(", not sent: error {error}");
                }
                self.retransmissions.push(at_ns, pair, cause);
            }
            (TcpEvent::Congestion(state), Some(known)) => {
                self.congestion.set(known, at_ns, *state);
                let state = EventValue::Text(congestion::name(*state));
                TcpState {
                    state,
                    local,
                    remote,
                    ..TcpState::default()
                }
                .write(log, at_ns);
            }
            (TcpEvent::Drop { reason }, _) => TcpDrop {
                reason: EventValue::Text(reason),
                local,
                remote,
                ..TcpDrop::default()
            }
            .write(log, at_ns),
            (TcpEvent::QueueFull { queued }, _) => TcpRcvqFull {
                queued: (*queued).into(),
                local,
                remote,
                ..TcpRcvqFull::default()
            }
            .write(log, at_ns),
            (TcpEvent::Reset { reason }, _) => TcpReset {
                reason: EventValue::Text(reason),
                local,
                remote,
                ..TcpReset::default()
            }
            .write(log, at_ns),
            // The state is that of an older connection with the same addresses.
            (TcpEvent::Established, Some(pair)) => self.congestion.forget(&pair),
            (TcpEvent::Established | TcpEvent::Retransmit { .. } | TcpEvent::Congestion(_), _) => {}
        }
    }

    /// Records every connection that changed since it was last recorded, or at which received data is unread.
    fn record_connections(&mut self, sockets: &[DiagSocket], at_ns: u64, log: &mut EventLog) {
        self.beyond_limit = self
            .beyond_limit
            .max(sockets.len().saturating_sub(MOST_CONNECTIONS) as u64);
        if let Some(owners) = &mut self.owners {
            let watched = &sockets[..sockets.len().min(MOST_CONNECTIONS)];
            owners.record(watched, at_ns, log);
        }
        let mut recorded = HashMap::with_capacity(sockets.len().min(MOST_CONNECTIONS));
        for socket in sockets.iter().take(MOST_CONNECTIONS) {
            if let Some(counters) = socket.counters {
                let before = self.recorded.remove(&socket.cookie);
                recorded.insert(
                    socket.cookie,
                    self.record_connection(socket, counters, before, at_ns, log),
                );
            }
        }
        let open: BTreeSet<&AddressPair> = sockets.iter().map(|socket| &socket.pair).collect();
        self.congestion.retain(&open, at_ns);
        self.retransmissions.settle_closed(&open, at_ns);
        self.recorded = recorded;
        self.polled_ns = Some(at_ns);
    }

    fn record_connection(
        &mut self,
        socket: &DiagSocket,
        counters: TcpInfoCounters,
        before: Option<RecordedConnection>,
        at_ns: u64,
        log: &mut EventLog,
    ) -> RecordedConnection {
        self.congestion
            .set_first(socket.pair, at_ns, counters.congestion_state);
        let (earlier_ns, earlier) = match (&before, self.polled_ns) {
            (Some(before), _) => (before.at_ns, before.counters),
            // It was opened since the last poll.
            (None, Some(polled_ns)) => (polled_ns, TcpInfoCounters::default()),
            (None, None) => (at_ns, counters),
        };
        let mut settled = before
            .as_ref()
            .map_or(earlier.retransmits, |before| before.settled);
        if self.retransmissions.settle(
            &socket.pair,
            at_ns,
            counters.retransmits.saturating_sub(settled),
        ) {
            settled = counters.retransmits;
        }
        let receive_queue_bytes = socket.receive_queue_bytes;
        let unchanged = before.is_some_and(|before| {
            (before.counters, before.receive_queue_bytes) == (counters, receive_queue_bytes)
        });
        // A connection with unread data is recorded even if nothing changed: a stuck reader is what is searched for.
        let is_idle = unchanged && receive_queue_bytes <= END_OF_STREAM;
        // The next record then covers the idle time too.
        let at_ns = if is_idle { earlier_ns } else { at_ns };
        if at_ns > earlier_ns {
            record_counters(
                SampleInterval::between(earlier_ns, at_ns),
                socket,
                &earlier,
                &counters,
                log,
            );
        }
        RecordedConnection {
            at_ns,
            counters,
            receive_queue_bytes,
            settled,
        }
    }
}

impl Monitor for TcpMonitor {
    fn cost_entry(&self) -> &'static str {
        "kernel"
    }

    fn drain(&mut self) -> Result<(), String> {
        let Some(trace) = &mut self.trace else {
            return Ok(());
        };
        let mut new = Vec::new();
        match trace.drain(&mut new) {
            Ok(lost) => self.lost += lost,
            Err(reason) => {
                self.trace = None;
                self.absent.insert("kernel".into(), reason);
            }
        }
        self.events.append(&mut new);
        Ok(())
    }

    fn sample(&mut self, log: &mut EventLog) -> Result<(), String> {
        let at_ns = clock::now_ns();
        let sockets = self
            .sock_diag
            .as_mut()
            .map_or(Ok(Vec::new()), SockDiag::sockets);
        self.drain()?;
        self.add_ports();
        let sockets = sockets.map(|mut sockets| {
            // The filter is applied before the events are recorded, so that those of new connections are recognised.
            self.filter.retain(&mut sockets);
            sockets
        });
        self.record_events(log);
        match sockets {
            Ok(sockets) => self.record_connections(&sockets, at_ns, log),
            Err(reason) => {
                self.sock_diag = None;
                self.absent.insert("connections".into(), reason);
            }
        }
        self.retransmissions.record(self.sock_diag.is_none(), log);
        if self.lost > 0 {
            EventsLost {
                count: std::mem::take(&mut self.lost).into(),
                ..EventsLost::default()
            }
            .write(log, at_ns);
        }
        Ok(())
    }

    fn finish(&mut self, log: &mut EventLog, observed: &mut Observed) {
        self.retransmissions.record(true, log);
        observed.absent.append(&mut self.absent);
        let mut note =
            |count: u64, text: String| observed.notes.extend((count > 0).then_some(text));
        let Self {
            beyond_limit,
            unwatched,
            unattributed,
            ..
        } = *self;
        note(
            beyond_limit,
            format!(
                "TCP_INFO is recorded for at most {MOST_CONNECTIONS} connections; left out: up to {beyond_limit}"
            ),
        );
        note(
            unwatched,
            format!("TCP events of unwatched connections left out: {unwatched}"),
        );
        note(
            unattributed,
            format!("drops on this machine left out (connection unknown): {unattributed}"),
        );
    }
}

/// The end of a stream (FIN) counts as this many bytes in the receive queue until the socket is closed.
const END_OF_STREAM: u32 = 1;

fn record_counters(
    interval: SampleInterval,
    socket: &DiagSocket,
    before: &TcpInfoCounters,
    now: &TcpInfoCounters,
    log: &mut EventLog,
) {
    let (local, remote) = (
        socket.pair.local.to_string(),
        socket.pair.remote.to_string(),
    );
    TcpInfo {
        local: EventValue::Text(&local),
        remote: EventValue::Text(&remote),
        receive_queue_bytes: socket.receive_queue_bytes.into(),
        ..now.row_since(before, interval.length_ns)
    }
    .write(log, interval.end_ns);
}

#[cfg(test)]
mod tests;
