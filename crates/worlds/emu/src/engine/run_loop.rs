//! The engine's loop: wait for frames or for the next departure, receive, forward through the network model, send.

use super::buffer;
use super::frame::VnetFrame;
use super::handle::Restart;
use super::header;
use super::receive_batch::{ReceiveBatch, ReceivedFrame};
use super::statistics::{ForeignFrameReason, count};
use super::{EmulatorEngine, EmulatorReport, FrameArrival};
use stackline_core::time::Instant;
use stackline_net::NetworkPacket;
use stackline_os::frame_batch::BATCH;
use stackline_os::packet_socket;
use stackline_os::thread::{ThreadSchedule, schedule, set_schedule, set_timer_slack};
use std::io;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;

/// Token of the descriptor that stops the loop; tokens of sockets are indexes of queues.
const STOP: u64 = u64::MAX;
/// Token of the descriptor by which other threads announce requests.
const WAKEUP: u64 = u64::MAX - 1;

/// How long to wait before a full socket is tried again, in ns.
const AGAIN: u64 = 50_000;

/// Most rounds that take frames from the rings without checking the descriptors.
const MOST_ROUNDS: u32 = 8;

/// Why a wait ended.
#[derive(Default)]
struct WakeReason {
    /// The loop has to end.
    stop: bool,
    /// There are requests of other threads.
    wakeup: bool,
}

/// Requested niceness: higher priority than ordinary threads.
const NICE: i32 = -10;
/// Requested time slice, in ns: threads with a short slice run sooner.
const TURN: u64 = 100_000;

/// Raises the priority of this thread as far as permitted; returns a description for the report. Real-time scheduling is not used, because
/// the kernel would throttle a spinning thread for a part of every second.
pub(super) fn raise_priority(before: Option<ThreadSchedule>) -> String {
    let Some(before) = before.filter(|before| before.policy == 0) else {
        return "scheduling left unchanged".into();
    };
    let candidates = [(NICE, TURN), (before.nice, TURN), (NICE, 0)];
    let granted = candidates.into_iter().find(|(nice, turn)| {
        let nice = before.nice.min(*nice);
        set_schedule(before.with(nice, *turn)).is_ok()
    });
    match granted {
        Some((NICE, TURN)) => format!("scheduled with niceness {NICE} and time slices of 100 us"),
        Some((_, TURN)) => {
            format!("scheduled with time slices of 100 us (niceness {NICE} is not permitted)")
        }
        Some(_) => format!("scheduled with niceness {NICE}"),
        None => "scheduled at normal priority: no higher priority was granted".into(),
    }
}

impl EmulatorEngine {
    /// Forwards frames until `stop` is readable.
    pub fn run(&mut self, stop: BorrowedFd<'_>) -> io::Result<EmulatorReport> {
        // The default slack of 50 us would make every sleep late.
        let slack = set_timer_slack(1);
        let before = schedule();
        self.mechanisms
            .descriptions
            .push(raise_priority(before.as_ref().ok().copied()));
        self.waiter.add(stop, STOP)?;
        self.waiter.add(self.handle.wakeup(), WAKEUP)?;
        let ended = self.serve();
        let forgotten = self
            .waiter
            .remove(stop)
            .and(self.waiter.remove(self.handle.wakeup()));
        set_timer_slack(slack);
        if let Ok(before) = before {
            // Lowering the priority is always permitted.
            let _ = set_schedule(before);
        }
        let report = self.collect_drops().map(|()| self.report());
        self.mechanisms.descriptions.pop();
        self.handle.end(report.as_ref().ok().cloned());
        ended.and(forgotten).and(report)
    }

    /// The loop itself.
    fn serve(&mut self) -> io::Result<()> {
        let mut batch = ReceiveBatch::new();
        let restart = self.handle.take_restart().unwrap_or(Restart {
            seed: self.seed,
            record: None,
        });
        self.restart(restart, &mut batch)?;
        self.handle.begin();
        loop {
            let reason = self.wait()?;
            if reason.wakeup {
                self.handle_requests(&mut batch)?;
            }
            if reason.stop {
                return Ok(());
            }
            self.round(&mut batch)?;
        }
    }

    /// Carries out the requests of other threads and answers with a report.
    fn handle_requests(&mut self, batch: &mut ReceiveBatch) -> io::Result<()> {
        let handle = self.handle.clone();
        if handle.take_end_of_recording() {
            handle.set_record_error(self.machine.end_recording().err());
        }
        let (restart, changes, number) = handle.take_requests();
        if let Some(restart) = restart {
            self.restart(restart, batch)?;
            self.ready.clear();
        }
        for (link, new) in changes {
            self.change(link, new);
        }
        self.collect_drops()?;
        handle.answer(number, self.report());
        Ok(())
    }

    /// Waits for frames, or until shortly before the next departure, and collects the queues with frames in `ready`.
    fn wait(&mut self) -> io::Result<WakeReason> {
        self.ready.clear();
        if !self.behind {
            self.pause();
        }
        if self.rings_first && self.rounds < MOST_ROUNDS {
            self.add_rings();
            if !self.ready.is_empty() {
                self.rounds += 1;
                return Ok(WakeReason::default());
            }
        }
        let nothing = self.rounds < MOST_ROUNDS;
        self.rounds = 0;
        self.waiter.wait(self.timeout())?;
        let reason = self.read_tokens();
        if nothing && self.pause() {
            self.add_rings();
        }
        Ok(reason)
    }

    /// Adds the queues whose rings have frames to `ready`.
    fn add_rings(&mut self) {
        for (number, _) in (0..)
            .zip(&self.queues)
            .filter(|(_, queue)| queue.has_frame())
        {
            if !self.ready.contains(&number) {
                self.ready.push(number);
            }
        }
    }

    /// Reads which descriptors are readable.
    fn read_tokens(&mut self) -> WakeReason {
        let mut reason = WakeReason::default();
        for token in self.waiter.ready_tokens() {
            match token {
                STOP => reason.stop = true,
                WAKEUP => reason.wakeup = true,
                queue => self.ready.push(queue as u32),
            }
        }
        reason
    }

    /// Sleeps for a moment, so that frames collect, if moderation recommends it, but not beyond the next departure. Returns whether it did.
    fn pause(&self) -> bool {
        let Some(pause) = self
            .moderation
            .pause(|| self.origin.now())
            .filter(|_| self.rings_first)
        else {
            return false;
        };
        let ns = self
            .timeout()
            .map_or(pause.0, |timeout| timeout.min(pause.0));
        if ns > 0 {
            std::thread::sleep(std::time::Duration::from_nanos(ns));
        }
        ns > 0
    }

    /// How long the thread may sleep, in ns; `None` without limit, if nothing is in transit.
    fn timeout(&self) -> Option<u64> {
        let due = self
            .machine
            .deadline()
            .map(|(due, _)| due.since(self.origin.now()).0);
        // Sleeping is not that exact: the rest is spun.
        let due = due.map(|ns| match self.mechanisms.spins {
            true => ns.saturating_sub(self.options.spin.0),
            false => ns,
        });
        let again = self.blocked.then_some(AGAIN);
        due.into_iter().chain(again).min()
    }

    /// Receives, forwards and sends once.
    fn round(&mut self, batch: &mut ReceiveBatch) -> io::Result<()> {
        self.behind = false;
        for turn in 0..self.ready.len() {
            self.behind |= self.receive(self.ready[turn], batch)? >= BATCH;
        }
        if self.ready.len() > 1 {
            // The number keeps the order of frames with equal instants; a stable sort would too, but it allocates.
            self.arrivals
                .sort_unstable_by_key(|arrival| (arrival.at, arrival.number));
        }
        let now = self.forward();
        self.send();
        self.moderation.end_round(now);
        Ok(())
    }

    /// Receives a batch of frames from a host; returns how many.
    fn receive(&mut self, queue: u32, batch: &mut ReceiveBatch) -> io::Result<usize> {
        let count = match self.queues[queue as usize].receive(batch) {
            Ok(count) => count,
            Err(error) => return self.unreadable(error).map(|()| 0),
        };
        let (now, believed) = self.origin.compare();
        self.statistics.lost.unread += std::mem::take(&mut batch.cut);
        self.statistics
            .count_too_long(std::mem::take(&mut batch.too_long));
        for arrived in batch.frames.drain(..) {
            self.accept_frame(queue, arrived, now, believed);
        }
        Ok(count)
    }

    /// Handles an error of receiving: counts a frame that cannot be read; passes on an unexpected error.
    fn unreadable(&mut self, error: io::Error) -> io::Result<()> {
        match error.raw_os_error() {
            Some(nix::libc::EAGAIN | nix::libc::EINTR) => Ok(()),
            // One frame of a kind that the virtio-net header cannot describe, or its interface going down.
            Some(nix::libc::EINVAL | nix::libc::ENETDOWN) => {
                self.statistics
                    .count_foreign(ForeignFrameReason::Unreadable);
                Ok(())
            }
            _ => Err(error),
        }
    }

    /// Adds a received frame to `arrivals`, or counts why it is not forwarded. `believed` says whether the kernel's timestamps can be
    /// trusted in this round.
    fn accept_frame(&mut self, queue: u32, arrived: ReceivedFrame, now: Instant, believed: bool) {
        let ReceivedFrame {
            buffer,
            length,
            stamp,
        } = arrived;
        let at = match stamp.filter(|_| believed) {
            Some(stamp) => match self.origin.instant(stamp) {
                // The offset of the clocks has an error: no frame comes later than it is read.
                Some(at) => at.min(now),
                None => {
                    return self
                        .statistics
                        .count_foreign(ForeignFrameReason::SentEarlier);
                }
            },
            None => now,
        };
        let waited = now.since(at);
        if stamp.is_some() && believed {
            self.statistics.waited.record(waited.0);
        }
        let header = match header::read(&buffer[..length]) {
            Ok(header) => header,
            Err(unsupported) => return self.statistics.count_foreign(unsupported.into()),
        };
        let to = self.queue_of(header.to);
        let to_node = match (to, header.to) {
            (Some(to), _) => Some(self.queues[to as usize].port.node),
            (None, IpAddr::V4(to)) => self.machine.router_at(to.octets()),
            (None, IpAddr::V6(_)) => None,
        };
        let Some(to_node) = to_node else {
            return self
                .statistics
                .count_foreign(ForeignFrameReason::UnknownHost);
        };
        count(&mut self.statistics.received, header.segments);
        if buffer::taken() > self.options.memory {
            self.statistics.lost.memory += 1;
            return;
        }
        if let (1, Some(to)) = (header.segments.count, to) {
            self.moderation.count(queue, to, waited);
        }
        let packet = NetworkPacket {
            number: 0,
            from: self.queues[queue as usize].port.node,
            to: to_node,
            flow: header.flow,
            ecn: header.ecn,
            dscp: header.dscp,
            segments: header.segments,
            payload: VnetFrame::new(buffer, length, &header),
        };
        self.arrivals.push(FrameArrival {
            at,
            number: self.arrivals.len() as u32,
            packet,
        });
    }

    /// Passes received frames through the machine, each at its instant, up to now; returns which instant that is.
    fn forward(&mut self) -> Instant {
        let mut arrivals = std::mem::take(&mut self.arrivals);
        for FrameArrival { at, packet, .. } in arrivals.drain(..) {
            // Deliver first what is due before this arrival; otherwise it would meet, in queues, a packet that came after it.
            self.deliver(at);
            self.floor = self.floor.max(at);
            self.machine.handle(self.floor, packet);
        }
        self.arrivals = arrivals;
        let now = self.origin.now();
        self.deliver(now);
        now
    }

    /// Moves the packets that are due by `until` from the network to the transmit queues.
    fn deliver(&mut self, until: Instant) {
        while let Some(delivery) = self.machine.poll(until) {
            self.floor = self.floor.max(delivery.due);
            let NetworkPacket {
                to,
                segments,
                payload,
                ..
            } = delivery.packet;
            let Some(&queue) = self.of_node.get(to.0 as usize) else {
                continue;
            };
            if self.queues[queue as usize].put(delivery.due, segments, payload) {
                self.outgoing.push(queue);
            }
        }
    }

    /// Sends what is due, on each queue that has something.
    fn send(&mut self) {
        let Self {
            queues,
            outgoing,
            origin,
            statistics,
            ..
        } = self;
        outgoing.retain(|queue| !queues[*queue as usize].send(origin, statistics));
        self.blocked = !self.outgoing.is_empty();
    }

    /// Adds the sockets' counts of frames that were dropped unread to the statistics.
    fn collect_drops(&mut self) -> io::Result<()> {
        for queue in &self.queues {
            self.statistics.lost.unread += packet_socket::take_counts(queue.socket())?.drops;
        }
        Ok(())
    }
}
