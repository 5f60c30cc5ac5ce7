//! What was seen to requests, and requests to events of a run: a thread's work while it runs, what was made for what in the end.

use crate::connect_attempts::ConnectAttempts;
use crate::event_order::TraceSourceEvent;
use crate::full_disk::UnwrittenEvents;
use crate::programs::EarlyEnd;
use crate::thread_directory::ThreadDirectory;
use crate::transfer_counters::TransferCounters;
use stackline_core::error::Result;
use stackline_events::catalogue::rows::{EventsLost, ObserverCost, ProgramEnd};
use stackline_events::unit_ids::{self, EventStreamDirection};
use stackline_events::{EmittedEvent, EventLog};
use stackline_monitor::observe::accounting::{ThreadTimes, Times};
use stackline_monitor::observe::connections::SocketConnections;
use stackline_monitor::observe::datagram_sockets::DatagramEnds;
use stackline_monitor::observe::observation_cost::ObservationCost;
use stackline_monitor::observe::sockets::{SocketChange, TcpState, Transport};
use stackline_requests::collector::{ExchangeThreads, RequestCollector};
use stackline_requests::exchange::ExchangeEnd;
use stackline_requests::exchange_builder::ConnectionOrigin;
use stackline_requests::exchange_events::{
    ExchangeContext, ExchangeProcesses, ServerThreadWork, place_name,
};
use stackline_requests::{
    Bound, Builder, Exchange, LeftOut, ObservationEnd, ObservedHost, Secrets, SocketEvent,
    TransferAccount, Unknown,
};
use stackline_runs::events::disk_sample::{DISK_BYTES, DiskSample};
use stackline_runs::events::{Spool, Spooling, emit_event};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What threads did is remembered for so long.
const REMEMBERED_NS: u64 = 30_000_000_000;
/// A request that lies unread for less is read at once.
const UNREAD_NS: u64 = 200_000;
/// The same of an answer.
const ANSWER_UNREAD_NS: u64 = 500_000;
/// Waits for locks that are shorter are not looked at for what else went on.
const COLLECTED_NS: u64 = 500_000;
/// Threads that held locks for less are not looked for.
const HELD_NS: u64 = 100_000;
/// Connections whose programs are remembered.
const MOST_OWNERS: usize = Bound::Owners.most();
/// Bytes of events that are written together: a part of what they may take on disk, within these limits.
const AT_ONCE: std::ops::RangeInclusive<u64> = 16 << 10..=1 << 20;
const PART_AT_ONCE: u64 = 32;

/// Makes requests of what was seen.
pub(crate) struct RequestRecorder {
    builder: Builder,
    collector: RequestCollector,
    pub(crate) who: ThreadDirectory,
    sockets: SocketConnections,
    attempts: ConnectAttempts,
    times: ThreadTimes,
    has_threads: bool,
    /// How many programs the trace starts: the last of them is the one that it is about.
    programs_started: u32,
    /// Only requests of these programs are wanted.
    only_traced: bool,
    contents: bool,
    logs: BTreeMap<String, EventLog>,
    /// What is seen at the doors of hosts, apart where the network itself is recorded.
    doors: Option<(Spool, BTreeMap<String, EventLog>)>,
    /// The last known threads of each connection's client and server.
    owners: BTreeMap<u32, (u32, u32)>,
    /// The processes of sockets of UDP, by what passes them.
    datagram_owners: HashMap<DatagramEnds, u32>,
    /// What the kernel says of connections that carry much data.
    pub(crate) transfers: TransferCounters,
    pub(crate) programs: BTreeMap<(String, String), BTreeSet<&'static str>>,
    pub(crate) foreign: u64,
    /// Requests that are kept although it is not known whose they are.
    pub(crate) unowned: u64,
    sample: DiskSample,
    /// Bytes of events that are written together.
    at_once: usize,
    /// Since when records may have been lost, if any were.
    lost_since_ns: u64,
    /// How many packets and records the trace has seen, and whether it has lost any.
    seen: u64,
    has_lost: bool,
    left_out: LeftOut,
    /// The events for which there was no room on the disk.
    pub(crate) unwritten: UnwrittenEvents,
}

impl RequestRecorder {
    pub(crate) fn new(
        hosts: Vec<ObservedHost>,
        has_threads: bool,
        only_traced: bool,
        contents: bool,
        who: ThreadDirectory,
    ) -> Self {
        let names = hosts.iter().map(|host| host.name.clone()).collect();
        Self {
            builder: Builder::new(hosts).accounting_transfers(),
            collector: RequestCollector::new(names),
            who,
            sockets: SocketConnections::default(),
            attempts: ConnectAttempts::default(),
            times: ThreadTimes::default(),
            has_threads,
            programs_started: 0,
            only_traced,
            contents,
            logs: BTreeMap::new(),
            doors: None,
            owners: BTreeMap::new(),
            datagram_owners: HashMap::new(),
            transfers: TransferCounters::default(),
            programs: BTreeMap::new(),
            foreign: 0,
            unowned: 0,
            sample: DiskSample::new(DISK_BYTES),
            at_once: at_once(DISK_BYTES),
            lost_since_ns: 0,
            seen: 0,
            has_lost: false,
            left_out: LeftOut::default(),
            unwritten: UnwrittenEvents::default(),
        }
    }

    /// Events take no more than so many bytes on disk.
    pub(crate) fn with_disk(mut self, most_bytes: u64) -> Self {
        self.sample = DiskSample::new(most_bytes);
        self.at_once = at_once(most_bytes);
        self
    }

    /// So many programs are started, of which the last asks the others.
    pub(crate) fn expect_programs(&mut self, count: usize) {
        self.programs_started = u32::try_from(count).unwrap_or(0);
    }

    /// What is to be said of requests that were left out, as events would take too much of the disk.
    pub(crate) fn sample_note(&self) -> Option<String> {
        self.sample.note("requests")
    }

    /// TLS is opened with those.
    pub(crate) fn with_secrets(mut self, secrets: Secrets) -> Self {
        self.builder = self.builder.with_secrets(secrets);
        self
    }

    /// Requests that are not answered when that comes were under way.
    pub(crate) fn observed_until(mut self, end: ObservationEnd) -> Self {
        self.builder = self.builder.observed_until(end);
        self
    }

    /// What is seen at the doors of hosts goes there, and how connections began is remembered: the network itself is recorded.
    pub(crate) fn with_doors_apart(mut self, doors: Spool) -> Self {
        self.doors = Some((doors, BTreeMap::new()));
        self.builder = self.builder.remembering_origins();
        self
    }

    /// The flow of a connection that began so.
    pub(crate) fn flow_of(&self, origin: &ConnectionOrigin) -> Option<u32> {
        self.builder
            .flow_of(origin)
            .map(|flow| flow & unit_ids::LAST_FLOW)
    }

    /// From which number on no flow has one.
    pub(crate) const fn free_flow(&self) -> u32 {
        let next = self.builder.next_flow();
        if next > unit_ids::LAST_FLOW {
            unit_ids::LAST_FLOW + 1
        } else {
            next
        }
    }

    /// Whether names of requests are kept whole.
    pub(crate) const fn keeps_contents(&self) -> bool {
        self.contents
    }

    /// An event beside those of requests.
    pub(crate) fn emit(&mut self, event: &EmittedEvent<'_>) {
        emit_event(&mut self.logs, event);
    }

    /// Something happened.
    pub(crate) fn see(&mut self, at_ns: u64, seen: TraceSourceEvent) {
        match seen {
            TraceSourceEvent::Packet {
                host,
                outgoing,
                length,
                bytes,
            } => {
                self.builder
                    .packet(host, outgoing, at_ns, bytes.own(), length);
            }
            TraceSourceEvent::Thread(event) => {
                self.who.see(&event);
                self.times.see(&event);
            }
            TraceSourceEvent::Socket(event) => self.socket(at_ns, &event),
        }
    }

    /// Keeps what is over and writes events, when there are so many of either that they should not wait for the time.
    pub(crate) fn relieve(&mut self, spool: &Spooling) -> Result<()> {
        if !self.builder.is_full() {
            return Ok(());
        }
        for exchange in self.builder.take_done() {
            self.keep(&exchange);
        }
        self.write(spool, self.at_once)
    }

    fn socket(&mut self, at_ns: u64, event: &stackline_monitor::observe::sockets::SocketEvent) {
        let ends = self.sockets.see(event);
        if event.transport != Transport::Tcp {
            return;
        }
        if let Some(thread) = self.attempts.see(event) {
            self.who.notice(thread);
        }
        let what = match event.what {
            // A socket that begins a connection is no longer in the one before.
            SocketChange::State {
                new: TcpState::SynSent | TcpState::SynReceived,
                ..
            } => SocketEvent::Closed,
            SocketChange::State {
                new: TcpState::Established,
                ..
            } => {
                let Some((own, other)) = ends else { return };
                SocketEvent::Opened(own, other)
            }
            SocketChange::Probe(_) => {
                let Some((own, other)) = ends else { return };
                SocketEvent::Found(own, other)
            }
            SocketChange::Sent { bytes, .. } if bytes > 0 => {
                SocketEvent::Wrote(bytes.unsigned_abs())
            }
            SocketChange::Received { .. } if event.what.taken() > 0 => {
                SocketEvent::Read(event.what.taken())
            }
            _ => return,
        };
        if matches!(what, SocketEvent::Wrote(_) | SocketEvent::Read(_)) {
            self.who.notice(event.thread);
        }
        self.builder.socket(at_ns, event.socket, event.thread, what);
    }

    /// Emits what is over by now.
    pub(crate) fn advance(&mut self, now_ns: u64, spool: &Spooling) -> Result<()> {
        for exchange in self.builder.advance(now_ns) {
            self.keep(&exchange);
        }
        self.keep_transfers();
        self.keep_quic();
        self.times.forget(now_ns.saturating_sub(REMEMBERED_NS));
        self.write(spool, self.at_once)
    }

    /// Emits all that is left, and what requests were made for.
    pub(crate) fn finish(&mut self, spool: &Spooling) -> Result<Unknown> {
        // What was lost is a share of all that was seen until the end, not until the last loss.
        if self.has_lost {
            self.emit_lost(0);
        }
        let (left, unknown) = self.builder.finish();
        for exchange in left {
            self.keep(&exchange);
        }
        self.keep_transfers();
        self.keep_quic();
        let logs = &mut self.logs;
        self.collector.finish(&mut |event| emit_event(logs, event));
        self.write(spool, 0)?;
        self.left_out.merge(&unknown.left_out);
        self.left_out.merge(&self.who.left_out);
        self.left_out.merge(self.collector.left_out());
        Ok(Unknown {
            left_out: self.left_out.clone(),
            ..unknown
        })
    }

    /// Records how many packets and records were lost since the last reading, as an event of its own where there were any. `seen` is how
    /// many the trace has seen so far.
    pub(crate) fn lost(&mut self, at_ns: u64, packets: u64, records: u64, seen: u64) {
        let count = packets + records;
        self.seen = seen;
        if records > 0 {
            self.builder.lost_sockets();
            self.times.lost(self.lost_since_ns, at_ns);
        }
        self.lost_since_ns = at_ns;
        if count > 0 {
            self.has_lost = true;
            self.emit_lost(count);
        }
    }

    /// An event that so many were lost, at the last reading.
    fn emit_lost(&mut self, count: u64) {
        let at_ns = self.lost_since_ns;
        if let Some(host) = self.hosts().first().cloned() {
            EventsLost {
                count: count.into(),
                seen: self.seen.into(),
            }
            .emit_on(&host, at_ns, &mut |event| self.emit(event));
        }
    }

    /// What it cost programs to be looked at is an event itself.
    pub(crate) fn cost(&mut self, at_ns: u64, cost: &ObservationCost) {
        if let Some(host) = self.hosts().first().cloned() {
            let (without, with) = cost.medians_ns;
            ObserverCost {
                batches: ((cost.batches.0 + cost.batches.1) as u64).into(),
                without_ns: (without as u64).into(),
                with_ns: (with as u64).into(),
                spread_ns: (cost.spread_ns as u64).into(),
            }
            .emit_on(&host, at_ns, &mut |event| self.emit(event));
        }
    }

    /// Programs that ended by themselves too early, or with a failure, are events.
    pub(crate) fn programs_ended(&mut self, early: &[EarlyEnd]) {
        for end in early {
            ProgramEnd {
                program: end.name.as_str().into(),
                pid: end.pid.map(u64::from).into(),
                code: end.code.map(i64::from).into(),
                signal: end.signal.map(i64::from).into(),
                is_last: u64::from(end.is_last).into(),
            }
            .emit_on(&end.host, end.at_ns, &mut |event| self.emit(event));
        }
    }

    /// These threads look, by the kernel's numbers.
    pub(crate) fn observed_by(&mut self, threads: impl IntoIterator<Item = u32>) {
        self.times.observed_by(threads);
    }

    /// The hosts, by number.
    pub(crate) fn hosts(&self) -> &[String] {
        self.collector.hosts()
    }

    /// The requests so far.
    pub(crate) const fn requests(&self) -> &RequestCollector {
        &self.collector
    }

    fn keep_transfers(&mut self) {
        for transfer in self.builder.take_transfers() {
            let hosts = self.collector.hosts();
            let program = |end: usize| {
                let host = transfer.ends[end].host.and_then(|host| hosts.get(host));
                host.filter(|_| transfer.threads[end] > 0)
                    .map_or_else(String::new, |host| {
                        self.who.program(transfer.threads[end], host)
                    })
            };
            let programs = [program(0), program(1)];
            let logs = &mut self.logs;
            self.collector
                .add_transfer(&transfer, [&programs[0], &programs[1]], &mut |event| {
                    emit_event(logs, event)
                });
            self.keep_counters(&transfer);
        }
    }

    /// Emits what the kernel said of a transfer's connection at both ends.
    fn keep_counters(&mut self, transfer: &TransferAccount) {
        let hosts = self.collector.hosts();
        for (end, direction) in [
            (0, EventStreamDirection::There),
            (1, EventStreamDirection::Back),
        ] {
            let [local, remote] = [end, 1 - end].map(|end| &transfer.ends[end]);
            let Some(host) = local.host else { continue };
            let sampled = self.transfers.take((host, local.address, remote.address));
            if let (Some(sampled), Some(name)) = (sampled, hosts.get(host))
                && self.collector.has_flow(transfer.flow)
            {
                let logs = &mut self.logs;
                sampled.emit(
                    name,
                    unit_ids::stream(transfer.flow & unit_ids::LAST_FLOW, direction),
                    transfer.is_new.then_some(transfer.span_ns.0),
                    &mut |event| emit_event(logs, event),
                );
            }
        }
    }

    fn keep_quic(&mut self) {
        let (logs, flows) = (&mut self.logs, &self.collector);
        for account in self.builder.take_quic_accounts() {
            if flows.has_flow(account.flow) {
                account.emit(flows.hosts(), &mut |event| emit_event(logs, event));
            }
        }
    }

    fn keep(&mut self, exchange: &Exchange) {
        let [client, server] = self.threads_of(exchange);
        let (of_client, of_server) = self.owners(exchange.flow, client, server);
        let is_traced = self.who.is_traced(of_client) || self.who.is_traced(of_server);
        let is_unowned = exchange.is_over_quic() && (of_client, of_server) == (0, 0);
        if self.only_traced && is_unowned {
            self.unowned += 1;
        } else if self.only_traced && !is_traced {
            self.foreign += 1;
            return;
        }
        if !self.sample.takes(exchange.begin_ns().unwrap_or(0)) {
            return;
        }
        let (work, wait) = (self.work(exchange, server), self.wait(exchange));
        let holders = self.holders(exchange, work.as_ref());
        let answer_wait = self.answer_wait(exchange);
        let hosts = self.collector.hosts();
        let names = (
            self.who
                .program(of_client, &place_name(&exchange.client, hosts)),
            self.who
                .program(of_server, &place_name(&exchange.server, hosts)),
        );
        let processes = ExchangeProcesses {
            client: self.who.pid(of_client),
            server: self.who.pid(of_server),
            is_callers: self.who.is_of_last(of_client, self.programs_started),
        };
        let known = ExchangeContext {
            programs: (&names.0, &names.1),
            processes,
            work,
            holders,
            wait,
            answer_wait,
            segments: false,
            contents: self.contents,
            elsewhere: None,
        };
        let process = |thread: u32| self.who.process(thread).unwrap_or(0);
        let threads = ExchangeThreads {
            client,
            client_process: process(client),
            reader: exchange.request.threads.1,
            server,
            server_process: process(server),
        };
        let (logs, mut doors) = (&mut self.logs, self.doors.as_mut().map(|(_, logs)| logs));
        self.collector
            .add(exchange, &known, threads, &mut |event| match &mut doors {
                Some(doors) if event.keyword == "NET_SEEN" => emit_event(doors, event),
                _ => emit_event(logs, event),
            });
        self.note(exchange, &names);
    }

    /// The threads of the client and of the server of an exchange, as far as they were seen; 0 for none.
    fn threads_of(&mut self, exchange: &Exchange) -> [u32; 2] {
        let answer = exchange.response.clone().unwrap_or_default();
        let known =
            |threads: [u32; 2]| threads.into_iter().find(|thread| *thread != 0).unwrap_or(0);
        let client = match known([answer.threads.1, exchange.request.threads.0]) {
            0 if exchange.is_unopened => self.attempts.take(exchange),
            0 => self.datagram_owner(exchange, [&exchange.client, &exchange.server]),
            client => client,
        };
        let server = match known([answer.threads.0, exchange.request.threads.1]) {
            0 => self.datagram_owner(exchange, [&exchange.server, &exchange.client]),
            server => server,
        };
        [client, server]
    }

    /// A process has the socket of UDP at the first of those ends, where datagrams from and to the second pass.
    pub(crate) fn owns_datagrams(&mut self, ends: DatagramEnds, process: u32) {
        if self.datagram_owners.len() >= MOST_OWNERS && !self.datagram_owners.contains_key(&ends) {
            return self.left_out.add(Bound::Owners, 1);
        }
        self.who.notice(process);
        self.datagram_owners.insert(ends, process);
    }

    /// The process of the first end of an exchange in datagrams, by its first thread; 0 where it is not known.
    fn datagram_owner(&self, exchange: &Exchange, ends: [&ExchangeEnd; 2]) -> u32 {
        let [own, other] = ends.map(|end| end.address);
        let owner = self.datagram_owners.get(&(own, other));
        owner
            .filter(|_| exchange.is_in_datagrams())
            .map_or(0, |process| *process)
    }

    /// The threads of both ends, or where these are not known for once those of an earlier exchange of the connection: a connection
    /// stays with its programs, even while records of its sockets are lost.
    fn owners(&mut self, flow: u32, client: u32, server: u32) -> (u32, u32) {
        if self.owners.len() >= MOST_OWNERS && !self.owners.contains_key(&flow) {
            self.left_out.add(Bound::Owners, 1);
            return (client, server);
        }
        let known = self.owners.entry(flow).or_default();
        for (known, now) in [(&mut known.0, client), (&mut known.1, server)] {
            *known = if now != 0 { now } else { *known };
        }
        *known
    }

    /// The programs of both ends, with what they spoke.
    fn note(&mut self, exchange: &Exchange, names: &(String, String)) {
        let places = [&exchange.client, &exchange.server]
            .map(|place| place_name(place, self.collector.hosts()));
        for (place, name) in places.into_iter().zip([&names.0, &names.1]) {
            self.programs
                .entry((place, name.clone()))
                .or_default()
                .insert(exchange.protocol);
        }
    }

    /// What the thread that answered did from when the request was read until it had handed over its answer, in each of its round
    /// trips.
    fn work(&mut self, exchange: &Exchange, thread: u32) -> Option<ServerThreadWork> {
        let of_spans = work_spans(exchange).filter_map(|(from, to)| self.did(thread, from, to));
        of_spans.reduce(|all, more| all + more)
    }

    /// What the threads that held locks did while the thread that answered waited for these, if it did so for long.
    fn holders(
        &self,
        exchange: &Exchange,
        work: Option<&ServerThreadWork>,
    ) -> Option<ServerThreadWork> {
        // While garbage is collected, all threads wait for those that collect it.
        let is_locked = |work: &&ServerThreadWork| work.lock_ns >= HELD_NS && work.collect_ns == 0;
        let work = work.filter(is_locked)?;
        let of_spans = work_spans(exchange).filter_map(|(from, to)| {
            let holders = self.times.holders(work.thread, from, to)?;
            Some(thread_work(holders.thread, &holders.times))
        });
        of_spans.reduce(|all, more| ServerThreadWork {
            thread: if more.total_ns() > all.total_ns() {
                more.thread
            } else {
                all.thread
            },
            ..all + more
        })
    }

    /// What the thread that read a request did while that lay unread, where this is worth a word.
    fn wait(&mut self, exchange: &Exchange) -> Option<ServerThreadWork> {
        let (_, from) = exchange.request.arrived?;
        let to = exchange
            .request
            .read
            .filter(|read| *read >= from + UNREAD_NS)?;
        self.did(exchange.request.threads.1, from, to)
    }

    /// What the client's thread that read an answer did while that lay unread, where this is worth a word.
    fn answer_wait(&mut self, exchange: &Exchange) -> Option<ServerThreadWork> {
        let answer = exchange.response.as_ref()?;
        let (_, from) = answer.arrived?;
        let to = answer
            .read
            .filter(|read| *read >= from + ANSWER_UNREAD_NS)?;
        self.did(answer.threads.1, from, to)
    }

    /// What a thread did from one moment to another.
    fn did(&mut self, thread: u32, from: u64, to: u64) -> Option<ServerThreadWork> {
        if !self.has_threads || thread == 0 || to <= from || !self.who.is_traced(thread) {
            return None;
        }
        let times = self.times.times(thread, from, to);
        if times.unseen_ns + times.gone_ns > (to - from) / 2 {
            return None;
        }
        let collect_ns = match self
            .who
            .process(thread)
            .filter(|_| times.lock_ns > COLLECTED_NS)
        {
            Some(process) => {
                self.times
                    .locked_while(thread, self.who.collectors(process, to), from, to)
            }
            None => 0,
        };
        // Who waits for a descriptor while a process is there that it began for this waits for that.
        let begun = self.who.begun_within(thread, from, to);
        let of_child = self
            .times
            .waited_during(thread, &begun, from, to)
            .min(times.socket_ns + times.unnamed_ns);
        let work = thread_work(thread, &times);
        let socket_ns = work.socket_ns.saturating_sub(of_child);
        // `collect_ns` is a part of `lock_ns`, and `of_child` of the waits for sockets and unnamed
        // things.
        Some(ServerThreadWork {
            lock_ns: work.lock_ns - collect_ns,
            collect_ns,
            socket_ns,
            child_ns: work.child_ns + of_child,
            other_ns: work.other_ns - (of_child - (work.socket_ns - socket_ns)),
            ..work
        })
    }

    fn write(&mut self, spool: &Spooling, least: usize) -> Result<()> {
        for (host, log) in long(&mut self.logs, least) {
            self.sample.wrote(log.bytes().len() as u64);
            self.unwritten.append(spool.logs(), &host, &log)?;
        }
        if let Some((doors, logs)) = &mut self.doors {
            for (host, log) in long(logs, least) {
                self.sample.wrote(log.bytes().len() as u64);
                self.unwritten.append(doors, &host, &log)?;
            }
        }
        Ok(())
    }
}

/// How many bytes of events are written together if all may take `most_bytes` on disk: on a small disk, more is kept before it is full.
fn at_once(most_bytes: u64) -> usize {
    let bytes = (most_bytes / PART_AT_ONCE).clamp(*AT_ONCE.start(), *AT_ONCE.end());
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// From when the request was read until its answer was handed over, in each of its round trips, ns.
fn work_spans(exchange: &Exchange) -> impl Iterator<Item = (u64, u64)> {
    exchange.rounds().filter_map(|(asked, answer)| {
        let (first, last) = answer?.left?;
        // A call may return long after its last bytes have left.
        let written = answer?.written.map_or(first, |(_, written)| written);
        Some((asked.read?, written.clamp(first, last.max(first))))
    })
}

/// The times of a thread, as an event has them.
const fn thread_work(thread: u32, times: &Times) -> ServerThreadWork {
    ServerThreadWork {
        thread,
        cpu_ns: times.running_ns,
        runnable_ns: times.ready_ns,
        lock_ns: times.lock_ns,
        disk_ns: times.disk_ns,
        sleep_ns: times.sleep_ns,
        socket_ns: times.socket_ns,
        child_ns: times.child_ns,
        stopped_ns: times.other_ns,
        collect_ns: 0,
        observer_ns: times.behind_ns,
        other_ns: times.unnamed_ns + times.unseen_ns + times.gone_ns,
    }
}

/// Takes the logs that are longer than that.
fn long(logs: &mut BTreeMap<String, EventLog>, least: usize) -> Vec<(String, EventLog)> {
    logs.extract_if(.., |_, log| log.bytes().len() > least)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_one_connection_more_than_is_remembered_are_counted() {
        Bound::Owners.assert_reported(|count| {
            let mut recorder =
                RequestRecorder::new(Vec::new(), false, false, false, ThreadDirectory::default());
            for flow in 0..count as u32 {
                let _ = recorder.owners(flow, 1, 2);
            }
            recorder.left_out
        });
    }
}
