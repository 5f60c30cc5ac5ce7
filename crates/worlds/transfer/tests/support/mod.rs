//! What the tests share: bytes, two ends on loopback, and carriers: one on which packets get lost, come twice or change, and
//! one that is listened to.
#![allow(dead_code, reason = "each test file uses some of it")]

use socket2::{Domain, Socket, Type};
use stackline_proto::blast;
use stackline_transfer::carrier::{
    CarrierCounters, CarrierFacts, CarrierPacket, CarrierWait, PacketCarrier, PacketHeadBuffer,
    PacketRun, PayloadPlace,
};
use stackline_transfer::udp::{self, Udp};
use stackline_transfer::{BlastChannel, BlastChannelListener, BlastChannelOptions, Error};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::thread;

/// Packets as on an Ethernet.
pub(crate) const PACKET: usize = 1472;

pub(crate) fn bytes(length: usize) -> Vec<u8> {
    (0..length as u64)
        .map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u8)
        .collect()
}

pub(crate) fn loopback() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

/// Options with packets as on an Ethernet.
pub(crate) fn ethernet(options: BlastChannelOptions) -> BlastChannelOptions {
    BlastChannelOptions {
        udp: udp::UdpCarrierOptions {
            packet: PACKET,
            ..options.udp
        },
        ..options
    }
}

/// Every way of sending, with its name.
pub(crate) fn strategies() -> Vec<(&'static str, BlastChannelOptions)> {
    use blast::BlastStrategy::{Full, FullNak, Partial, Selective};
    let machine = |machine: blast::BlastOptions| {
        ethernet(BlastChannelOptions::from_blast(blast::BlastOptions {
            buffer: 0,
            ..machine
        }))
    };
    vec![
        ("saw", machine(blast::BlastOptions::saw(1408))),
        ("window", machine(blast::BlastOptions::window(1408, 64))),
        ("full", ethernet(BlastChannelOptions::new(Full))),
        ("full_nak", ethernet(BlastChannelOptions::new(FullNak))),
        ("partial", ethernet(BlastChannelOptions::new(Partial))),
        ("selective", ethernet(BlastChannelOptions::new(Selective))),
    ]
}

/// Runs a server and a client that are connected through a listener.
pub(crate) fn through_a_listener<S, C>(options: &BlastChannelOptions, serve: S, ask: C)
where
    S: FnOnce(BlastChannel) -> Result<(), Error> + Send,
    C: FnOnce(BlastChannel) -> Result<(), Error> + Send,
{
    let listener = BlastChannelListener::bind(loopback(), options).unwrap();
    let address = listener.local().unwrap();
    thread::scope(|scope| {
        let server = scope.spawn(|| serve(listener.accept()?));
        ask(BlastChannel::connect(address, options).unwrap()).unwrap();
        server.join().unwrap().unwrap();
    });
}

/// Runs an answering and a dialling end over two carriers that are there.
pub(crate) fn over<A, D, S, C>(
    answers: A,
    dials: D,
    options: &BlastChannelOptions,
    serve: S,
    ask: C,
) where
    A: PacketCarrier,
    D: PacketCarrier,
    S: FnOnce(BlastChannel<A>) -> Result<(), Error> + Send,
    C: FnOnce(BlastChannel<D>) -> Result<(), Error> + Send,
{
    thread::scope(|scope| {
        let server = scope.spawn(|| serve(BlastChannel::answer(answers, options)?));
        ask(BlastChannel::connect_over(dials, options).unwrap()).unwrap();
        server.join().unwrap().unwrap();
    });
}

/// Two sockets connected to each other.
pub(crate) fn sockets() -> [Socket; 2] {
    let made = [0, 1].map(|_| {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
        socket.bind(&loopback().into()).unwrap();
        socket
    });
    made[0].connect(&made[1].local_addr().unwrap()).unwrap();
    made[1].connect(&made[0].local_addr().unwrap()).unwrap();
    made
}

/// Two carriers over them.
pub(crate) fn carriers(options: &BlastChannelOptions) -> [Udp; 2] {
    sockets().map(|socket| Udp::over(socket, options.udp).unwrap())
}

/// How bad a path is: of so many packets one is lost, comes twice, comes with a bit changed, is followed by one that was
/// here before, or by a forged one. 0 for never.
#[derive(Clone, Copy, Default)]
pub(crate) struct Manners {
    pub(crate) loses: u64,
    pub(crate) repeats: u64,
    pub(crate) flips: u64,
    pub(crate) replays: u64,
    pub(crate) forges: u64,
}

/// A carrier that mistreats what it is given to send.
pub(crate) struct Rough<C> {
    inner: C,
    manners: Manners,
    state: u64,
    kept: Vec<(PacketHeadBuffer, Vec<u8>)>,
    pub(crate) lost: u64,
}

impl<C: PacketCarrier> Rough<C> {
    pub(crate) fn new(inner: C, manners: Manners, seed: u64) -> Self {
        Self {
            inner,
            manners,
            state: seed,
            kept: Vec::new(),
            lost: 0,
        }
    }

    /// xorshift64* (Vigna 2016).
    fn draw(&mut self) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    fn one_in(&mut self, of: u64) -> bool {
        of > 0 && self.draw().is_multiple_of(of)
    }

    fn put(&mut self, size: usize, head: PacketHeadBuffer, payload: &[u8]) -> io::Result<()> {
        let run = PacketRun {
            head: size,
            heads: &[head],
            payload,
            each: payload.len(),
        };
        while self.inner.send(run)? == 0 {}
        Ok(())
    }

    fn mistreat(
        &mut self,
        size: usize,
        mut head: PacketHeadBuffer,
        payload: &[u8],
    ) -> io::Result<()> {
        if self.one_in(self.manners.loses) {
            self.lost += 1;
            return Ok(());
        }
        let mut payload = payload.to_vec();
        if self.manners.replays > 0 && self.kept.len() < 64 {
            self.kept.push((head, payload.clone()));
        }
        if !payload.is_empty() && self.one_in(self.manners.flips) {
            let bit = self.draw() as usize % (8 * payload.len());
            payload[bit / 8] ^= 1 << (bit % 8);
        }
        self.put(size, head, &payload)?;
        if self.one_in(self.manners.repeats) {
            self.put(size, head, &payload)?;
        }
        if self.one_in(self.manners.replays) {
            let which = self.draw() as usize % self.kept.len();
            let (head, payload) = self.kept[which].clone();
            self.put(size, head, &payload)?;
        }
        if self.one_in(self.manners.forges) {
            let at = self.draw() as usize % size;
            head.0[at] = head.0[at].wrapping_add(1 + self.draw() as u8 % 255);
            payload.reverse();
            self.put(size, head, &payload)?;
        }
        Ok(())
    }
}

impl<C: PacketCarrier> PacketCarrier for Rough<C> {
    fn facts(&self) -> CarrierFacts {
        self.inner.facts()
    }

    fn counters(&self) -> CarrierCounters {
        self.inner.counters()
    }

    fn send(&mut self, run: PacketRun<'_>) -> io::Result<usize> {
        for (index, head) in run.heads.iter().enumerate() {
            self.mistreat(run.head, *head, run.payload_of(index))?;
        }
        Ok(run.heads.len())
    }

    fn receive(
        &mut self,
        head: usize,
        into: &mut [u8],
        places: &[PayloadPlace],
        wait: CarrierWait,
    ) -> io::Result<usize> {
        self.inner.receive(head, into, places, wait)
    }

    fn packet(&self, index: usize) -> CarrierPacket<'_> {
        self.inner.packet(index)
    }
}

/// A carrier with a listener for its packets.
pub(crate) struct Tapped {
    inner: Udp,
    /// Every byte that went out.
    pub(crate) heard: Arc<Mutex<Vec<u8>>>,
}

impl Tapped {
    pub(crate) fn new(inner: Udp) -> Self {
        Self {
            inner,
            heard: Arc::default(),
        }
    }
}

impl PacketCarrier for Tapped {
    fn facts(&self) -> CarrierFacts {
        self.inner.facts()
    }

    fn counters(&self) -> CarrierCounters {
        self.inner.counters()
    }

    fn send(&mut self, run: PacketRun<'_>) -> io::Result<usize> {
        let mut heard = self.heard.lock().unwrap();
        for (index, head) in run.heads.iter().enumerate() {
            heard.extend_from_slice(&head.0[..run.head]);
            heard.extend_from_slice(run.payload_of(index));
        }
        self.inner.send(run)
    }

    fn receive(
        &mut self,
        head: usize,
        into: &mut [u8],
        places: &[PayloadPlace],
        wait: CarrierWait,
    ) -> io::Result<usize> {
        self.inner.receive(head, into, places, wait)
    }

    fn packet(&self, index: usize) -> CarrierPacket<'_> {
        self.inner.packet(index)
    }
}
