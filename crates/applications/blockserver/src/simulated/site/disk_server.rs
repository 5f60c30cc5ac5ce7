//! A simulated disk server: its lists, disks and processor, and what it writes to the client.

use super::super::scene::{ServerOutcome, SimulatedServer};
use super::{BlockSite, BlockSiteRoute, SimulatedBlockPayload, before_data};
use stackline_blocks::send_window::{BlockSendWindow, PartStart, RoundTrips, part_length};
use stackline_blocks::server::{DiskExtent, DiskServerMachine, Woken, Write};
use stackline_blocks::wire::block_parts::PART;
use stackline_blocks::wire::message::Message;
use stackline_blocks::wire::server_messages::{BlockHead, ServerBlockRequests};
use stackline_core::distribution::Distribution;
use stackline_core::error::Result;
use stackline_core::procedure::PairSide;
use stackline_core::time::{Duration, Instant};
use stackline_sim::application::{ProgramContext, Signal};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// A disk server of a simulated site.
pub(super) struct DiskServerSite {
    host: String,
    machine: RefCell<DiskServerMachine<()>>,
    /// The route to the master: lists come over it.
    pub(super) lists: Rc<BlockSiteRoute>,
    /// The route that the client opened: blocks go over it.
    pub(super) blocks: Rc<BlockSiteRoute>,
    disks: Vec<SimulatedDisk>,
    processor: DiskServerProcessor,
    /// The send window of its connection to the client; `None` with a send buffer of fixed size, or on the same host.
    window: Option<RefCell<BlockSendWindow>>,
    /// Whether a later check of the window is scheduled.
    looks_again: Cell<bool>,
    /// Signalled when something is to be written, or there is room.
    may_write: Signal,
    /// Until when the application is busy with a block of this server.
    pub(super) taking: Cell<Instant>,
}

struct SimulatedDisk {
    takes: Distribution,
    is_free: Cell<bool>,
}

/// A server's processor does one thing at a time. Urgent work goes first: a thread that has slept is preferred to one that has computed.
#[derive(Default)]
struct DiskServerProcessor {
    is_busy: Cell<bool>,
    urgent: RefCell<VecDeque<Signal>>,
    others: RefCell<VecDeque<Signal>>,
}

/// The right to the processor after a computation: what follows from it is done before the next one begins.
struct ProcessorTurn<'p>(&'p DiskServerProcessor);

impl Drop for ProcessorTurn<'_> {
    fn drop(&mut self) {
        let urgent = self.0.urgent.borrow_mut().pop_front();
        let next = urgent.or_else(|| self.0.others.borrow_mut().pop_front());
        match next {
            Some(next) => next.call(),
            None => self.0.is_busy.set(false),
        }
    }
}

impl DiskServerSite {
    pub(super) fn new(
        context: &ProgramContext,
        number: u16,
        server: &SimulatedServer,
        [lists, blocks]: [Rc<BlockSiteRoute>; 2],
        in_parts: bool,
    ) -> Self {
        let disk = |takes: &Distribution| SimulatedDisk {
            takes: takes.clone(),
            is_free: Cell::new(true),
        };
        let mut machine = DiskServerMachine::new(number, server.disks.len() as u16, server.cache);
        let _ = machine.attach(u128::from(super::CLIENT), u64::from(number), None);
        let has_window = in_parts && blocks.port(PairSide::Responder).is_some();
        Self {
            host: server.host.clone(),
            machine: RefCell::new(machine),
            lists,
            blocks,
            disks: server.disks.iter().map(disk).collect(),
            processor: DiskServerProcessor::default(),
            window: has_window.then(|| RefCell::new(BlockSendWindow::new(0))),
            looks_again: Cell::new(false),
            may_write: context.signal(),
            taking: Cell::new(Instant(0)),
        }
    }

    /// The outcome of the server.
    pub(super) fn outcome(&self) -> ServerOutcome {
        let port = self.blocks.port(PairSide::Responder);
        ServerOutcome {
            host: self.host.clone(),
            connection: port.map(|port| port.number()),
            sent_again: port
                .and_then(|port| port.facts())
                .map_or(0, |facts| facts.retransmits),
        }
    }

    /// Waits for the processor, and computes for this long. The processor stays reserved until the turn is dropped.
    async fn compute(
        &self,
        context: &ProgramContext,
        takes: Duration,
        is_urgent: bool,
    ) -> ProcessorTurn<'_> {
        let processor = &self.processor;
        if processor.is_busy.replace(true) {
            let turn = context.signal();
            let waiting = if is_urgent {
                &processor.urgent
            } else {
                &processor.others
            };
            waiting.borrow_mut().push_back(turn.clone());
            turn.wait().await;
        }
        context.sleep(takes).await;
        ProcessorTurn(processor)
    }
}

impl BlockSite {
    /// Takes a server's lists as they come.
    pub(super) async fn take_lists(self: Rc<Self>, number: usize) -> Result<()> {
        loop {
            if let SimulatedBlockPayload::Message(Message::Requests(list)) = self.servers[number]
                .lists
                .receive(PairSide::Initiator)
                .await
            {
                self.spawn(|site| site.understand(number, list));
            }
        }
    }

    /// Parses a list, and starts reading what it asks for.
    async fn understand(self: Rc<Self>, number: usize, list: ServerBlockRequests) -> Result<()> {
        let (server, came) = (&self.servers[number], self.context.now());
        let _turn = server.compute(&self.context, self.costs.parse, false).await;
        let now = self.context.now();
        let woken = server.machine.borrow_mut().requests(now, came, list);
        self.wake(number, &woken.unwrap_or_default());
        Ok(())
    }

    fn wake(self: &Rc<Self>, number: usize, woken: &Woken) {
        for disk in &woken.disks {
            self.read(number, *disk);
        }
        if !woken.connections.is_empty() {
            self.servers[number].may_write.call();
        }
    }

    /// Lets a free disk begin its next read.
    fn read(self: &Rc<Self>, number: usize, disk: u16) {
        let server = &self.servers[number];
        let Some(at) = server
            .disks
            .get(usize::from(disk))
            .filter(|disk| disk.is_free.get())
        else {
            return;
        };
        let (now, mut woken) = (self.context.now(), Woken::default());
        let read = server.machine.borrow_mut().next_read(now, disk, &mut woken);
        if let Some(read) = read {
            at.is_free.set(false);
            let takes = at.takes.draw(&mut self.generator.borrow_mut());
            let takes = Duration::from_seconds(takes);
            self.spawn(|site| site.read_block(number, disk, read.spot, takes));
        }
        if !woken.connections.is_empty() {
            server.may_write.call();
        }
    }

    /// Ends a read: the block goes into the cache and the write queue, and the disk reads on.
    async fn read_block(
        self: Rc<Self>,
        number: usize,
        disk: u16,
        extent: DiskExtent,
        takes: Duration,
    ) -> Result<()> {
        let server = &self.servers[number];
        self.context.sleep(takes).await;
        let _turn = server.compute(&self.context, self.costs.enter, false).await;
        if let Some(disk) = server.disks.get(usize::from(disk)) {
            disk.is_free.set(true);
        }
        let now = self.context.now();
        let woken = server.machine.borrow_mut().read_done(now, extent, Ok(()));
        self.wake(number, &woken);
        self.read(number, disk);
        Ok(())
    }

    /// Writes to the client whatever there is, as its connection has room.
    pub(super) async fn write_to_client(self: Rc<Self>, number: usize) -> Result<()> {
        let server = &self.servers[number];
        loop {
            self.wait_for_room(number, false).await;
            let (now, mut woken) = (self.context.now(), Woken::default());
            let write = server
                .machine
                .borrow_mut()
                .next_write(now, number as u64, &mut woken);
            for disk in woken.disks {
                self.read(number, disk);
            }
            match write {
                None => server.may_write.wait().await,
                Some(Write::Words(words)) => {
                    let payload = SimulatedBlockPayload::Message(words);
                    let handed = self.hand(number, payload.bytes(), Some(payload));
                    self.taken(number, handed).await;
                }
                Some(Write::Block(head, ())) => self.write_block(number, head).await,
            }
        }
    }

    /// Writes a block, whole or part by part as the connection has room. A block that is superseded in the meantime ends there.
    async fn write_block(self: &Rc<Self>, number: usize, head: BlockHead) {
        let server = &self.servers[number];
        let turn = server.compute(&self.context, self.costs.hand, true).await;
        let (mut turn, mut done, mut before) = (Some(turn), 0, before_data(&head));
        let (unit, connection) = (head.unit, number as u64);
        loop {
            let left = u64::from(head.length) - done;
            let (mut length, mut part) = (left, 0);
            if let Some(window) = &server.window {
                length = part_length(left, window.borrow().part());
                part = if length > 0 { PART as u64 } else { 0 };
            }
            let ends = (length == left).then(|| SimulatedBlockPayload::Block(head.clone()));
            let handed = self.hand(number, before + part + length, ends);
            drop(turn.take());
            self.taken(number, handed).await;
            if length == left {
                break;
            }
            (done, before) = (done + length, 0);
            self.wait_for_room(number, true).await;
            if self.is_cut(number, unit) {
                let cut = SimulatedBlockPayload::Cut;
                let handed = self.hand(number, cut.bytes(), Some(cut));
                return self.taken(number, handed).await;
            }
        }
        if server.blocks.port(PairSide::Responder).is_some() {
            let now = self.context.now();
            server
                .machine
                .borrow_mut()
                .write_done(now, connection, unit);
        }
    }

    /// Whether the rest of a block is cut off because it is superseded.
    fn is_cut(&self, number: usize, unit: u64) -> bool {
        let mut machine = self.servers[number].machine.borrow_mut();
        let connection = number as u64;
        let is_superseded = machine.is_superseded(connection, unit);
        if is_superseded {
            machine.cut(connection, unit);
        }
        is_superseded
    }

    /// Hands bytes to the transport; `ends` is delivered with the last of them. Returns their position in the stream.
    fn hand(&self, number: usize, bytes: u64, ends: Option<SimulatedBlockPayload>) -> Option<u64> {
        let server = &self.servers[number];
        if let Some(window) = &server.window {
            window.borrow_mut().handed(bytes);
        }
        match (server.blocks.port(PairSide::Responder), ends) {
            (Some(port), Some(payload)) => Some(port.put(bytes, payload)),
            (Some(port), None) => Some(port.put_part(bytes)),
            (None, Some(payload)) => {
                self.put(&server.blocks, PairSide::Responder, payload);
                None
            }
            (None, None) => None,
        }
    }

    /// Waits until the transport has taken bytes up to that position.
    async fn taken(&self, number: usize, handed: Option<u64>) {
        let port = self.servers[number].blocks.port(PairSide::Responder);
        if let (Some(port), Some(handed)) = (port, handed) {
            port.taken(handed).await;
        }
    }

    /// Waits until a server's connection has room for the next block or part.
    async fn wait_for_room(self: &Rc<Self>, number: usize, is_under_way: bool) {
        let server = &self.servers[number];
        loop {
            // Earlier signals are covered by the check that follows.
            server.may_write.clear();
            if self.may_begin(number, is_under_way) {
                return;
            }
            server.may_write.wait().await;
        }
    }

    /// Whether a server's connection has room for the next block or part. If not, the server is woken when it has, or when it has to check
    /// again.
    fn may_begin(self: &Rc<Self>, number: usize, is_under_way: bool) -> bool {
        let (server, connection) = (&self.servers[number], number as u64);
        let (Some(window), Some(port)) = (&server.window, server.blocks.port(PairSide::Responder))
        else {
            return true;
        };
        let (now, mut window) = (self.context.now(), window.borrow_mut());
        if !is_under_way && server.machine.borrow().to_write(connection) == 0 {
            window.idle();
            return true;
        }
        let start = window.next_part(port.has_room(), |window| {
            if let Some(facts) = port.facts() {
                let trips = RoundTrips {
                    usual: facts.rtt,
                    least: facts.least_rtt,
                    deviation: facts.rtt_deviation,
                };
                window.look(now, facts.bytes_acked, trips);
            }
        });
        if start == PartStart::Now {
            return true;
        }
        if !is_under_way {
            server.machine.borrow_mut().waits_for_room(now, connection);
        }
        match start {
            PartStart::Later(time) if !server.looks_again.replace(true) => {
                self.spawn(|site| site.look_later(number, time));
            }
            PartStart::Room => port.ring_for_room(&server.may_write),
            _ => {}
        }
        false
    }

    /// Checks after this time again whether a server's connection has room.
    async fn look_later(self: Rc<Self>, number: usize, time: Duration) -> Result<()> {
        self.context.sleep(time).await;
        let server = &self.servers[number];
        server.looks_again.set(false);
        server.may_write.ring();
        Ok(())
    }
}
