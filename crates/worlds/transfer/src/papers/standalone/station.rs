//! One end (station) of the stand-alone programs: a packet socket on an interface, the memory that data comes from or goes to, and a busy
//! wait.

use super::halt::Halt;
use super::setup::{DATA, MOST, StandaloneSample, StandaloneSetup};
use crate::frames::outgoing::{FramesOut, LEAST};
use crate::frames::{ETHERTYPE, Mac, raw, usable_interface};
use socket2::Socket;
use stackline_os::affinity::{allowed_processors, pin_thread};
use stackline_os::frame_ring::FrameRing;
use stackline_os::packet_socket::{InterfaceProperties, bind};
use std::io;
use std::os::fd::AsFd;
use std::time::Instant;

/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;
/// The ethertype of acknowledgements: local experimental ethertype 2 (data has the first).
const ACKNOWLEDGEMENT: u16 = ETHERTYPE + 1;
/// What an acknowledgement carries: only padding.
const NOTHING: [u8; LEAST - ETHERNET] = [0; LEAST - ETHERNET];
/// How often a busy wait looks before it checks whether to give up: some microseconds.
const LOOKS: u32 = 256;
/// The parts of an exchange that are timed.
#[derive(Clone, Copy)]
enum TimedExchangePart {
    SendData,
    TakeData,
    SendAcknowledgement,
    TakeAcknowledgement,
}

/// The times of each [`TimedExchangePart`], in seconds.
type ExchangePartTimes = [Vec<f64>; 4];

/// One end of a transfer.
pub(super) struct Station {
    socket: Socket,
    ring: FrameRing,
    out: FramesOut,
    /// The data that is sent, or that is expected.
    data: Vec<u8>,
    /// The data that came.
    memory: Vec<u8>,
    /// The times taken, if the parts are timed.
    times: Option<ExchangePartTimes>,
}

/// Opens the sender's and the receiver's stations.
pub(super) fn open_stations(setup: &StandaloneSetup<'_>) -> Result<(Station, Station), Halt> {
    if !(1..=MOST).contains(&setup.packets) {
        return Err(Halt::Packets(setup.packets));
    }
    let ends = || -> io::Result<_> {
        let socket = raw()?;
        let near = usable_interface(socket.as_fd(), setup.sender)?;
        let far = usable_interface(socket.as_fd(), setup.receiver)?;
        let sender = Station::new(near, far, ACKNOWLEDGEMENT, ETHERTYPE, setup.packets)?;
        let receiver = Station::new(far, near, ETHERTYPE, ACKNOWLEDGEMENT, setup.packets)?;
        Ok((sender, receiver))
    };
    ends().map_err(|error| Halt::Io("opening the stations", error))
}

/// The data of a transfer of so many packets. Packets differ (only n and n + 256 are alike), so that one in the wrong place is noticed.
fn data(packets: u32) -> Vec<u8> {
    (0..packets)
        .flat_map(|packet| {
            (0..DATA as u32).map(move |at| (packet.wrapping_mul(31) + at / 7 + at) as u8)
        })
        .collect()
}

/// How a side waits: it spins, on a processor of its own if this process may use two.
#[derive(Clone, Copy)]
pub(super) struct StationWait {
    /// The processor; `None` where the sides share one.
    core: Option<usize>,
}

impl StationWait {
    /// The waits of the sender and of the receiver.
    pub(super) fn both() -> [Self; 2] {
        let cores = allowed_processors().unwrap_or_default();
        let core = |side: usize| {
            if cores.len() > 1 {
                Some(cores[side])
            } else {
                None
            }
        };
        [Self { core: core(0) }, Self { core: core(1) }]
    }

    /// Moves this thread to its processor. Where that is refused, it counts as sharing one.
    pub(super) fn settle(&mut self) {
        self.core = self.core.filter(|&core| pin_thread(core).is_ok());
    }

    /// Calls `is_so` again and again until it returns true; returns false if `give_up` returns true before.
    pub(super) fn until(self, mut is_so: impl FnMut() -> bool, give_up: impl Fn() -> bool) -> bool {
        loop {
            for _ in 0..LOOKS {
                if is_so() {
                    return true;
                }
                std::hint::spin_loop();
            }
            if give_up() {
                return false;
            }
            if self.core.is_none() {
                // The other side may be waiting for this processor.
                std::thread::yield_now();
            }
        }
    }
}

impl Station {
    /// A station on interface `own` that sends to interface `peer`: it receives one ethertype and sends the other.
    fn new(
        own: InterfaceProperties,
        peer: InterfaceProperties,
        hears: u16,
        sends: u16,
        packets: u32,
    ) -> io::Result<Self> {
        let socket = raw()?;
        // Room for a whole transfer of data, or of acknowledgements.
        let ring = FrameRing::open(socket.as_fd(), ETHERNET + DATA, MOST as usize)?;
        bind(socket.as_fd(), own.index, hears)?;
        let mut out = FramesOut::new();
        let (to, from) = (Mac(peer.address), Mac(own.address));
        out.fronts[0].0[..ETHERNET]
            .copy_from_slice(&[&to.0[..], &from.0, &sends.to_be_bytes()].concat());
        let data = data(packets);
        Ok(Self {
            socket,
            ring,
            out,
            memory: vec![0; data.len()],
            data,
            times: None,
        })
    }

    /// From now on measures the time of each part, which costs two readings of the clock each.
    pub(super) fn take_times(&mut self, expected: usize) {
        self.times = Some([(); 4].map(|()| Vec::with_capacity(expected)));
    }

    /// Statistics of the times of each part without the first `leave_out`: sending data, taking data, sending an acknowledgement, taking an
    /// acknowledgement.
    pub(super) fn times(self, leave_out: usize) -> [StandaloneSample; 4] {
        self.times
            .unwrap_or_default()
            .map(|times| StandaloneSample::new(times.get(leave_out..).unwrap_or_default().to_vec()))
    }

    /// Overwrites the data that came with zeros, before the next transfer.
    pub(super) fn forget_data(&mut self) {
        self.memory.fill(0);
    }

    /// Whether all data is here, as it was sent.
    pub(super) fn has_all_data(&self) -> bool {
        self.memory == self.data
    }

    /// Sends one packet of data.
    pub(super) fn send_data(&mut self, index: u32) -> Result<(), Halt> {
        let at = index as usize * DATA;
        self.timed(TimedExchangePart::SendData, |station| {
            let payload = &station.data[at..][..DATA];
            station
                .out
                .send(station.socket.as_fd(), ETHERNET, [payload].into_iter())
        })
    }

    /// Sends an acknowledgement.
    pub(super) fn send_acknowledgement(&mut self) -> Result<(), Halt> {
        self.timed(TimedExchangePart::SendAcknowledgement, |station| {
            station
                .out
                .send(station.socket.as_fd(), ETHERNET, [&NOTHING[..]].into_iter())
        })
    }

    /// Takes a frame, if one has come, and copies its data to the place of packet `index`. Packets come in order or the transfer halts.
    /// Returns whether it was a data packet.
    pub(super) fn take_data(&mut self, index: u32) -> bool {
        let at = index as usize * DATA;
        let begin = self.begin();
        self.take(
            TimedExchangePart::TakeData,
            begin,
            |frame, memory| match frame.split_at_checked(ETHERNET) {
                Some((_, data)) if data.len() == DATA => {
                    memory[at..][..DATA].copy_from_slice(data);
                    true
                }
                _ => false,
            },
        )
    }

    /// Takes a frame, if one has come, and copies it out; returns whether it was an acknowledgement.
    pub(super) fn take_acknowledgement(&mut self) -> bool {
        let begin = self.begin();
        self.take(TimedExchangePart::TakeAcknowledgement, begin, |frame, _| {
            let copy: Option<[u8; LEAST]> = frame.try_into().ok();
            std::hint::black_box(copy).is_some()
        })
    }

    /// Takes a frame, if one has come, and passes it to `copy`, whose result it returns; records the time.
    fn take(
        &mut self,
        part: TimedExchangePart,
        begin: Option<Instant>,
        copy: impl FnOnce(&[u8], &mut [u8]) -> bool,
    ) -> bool {
        if !self.ring.take() {
            return false;
        }
        let taken = copy(self.ring.frame(0).bytes, &mut self.memory);
        self.ring.release();
        self.end(part, begin);
        taken
    }

    /// Sends a frame and records the time.
    fn timed(
        &mut self,
        part: TimedExchangePart,
        send: impl FnOnce(&mut Self) -> io::Result<usize>,
    ) -> Result<(), Halt> {
        let begin = self.begin();
        send(self).map_err(|error| Halt::Io("sending a frame", error))?;
        self.end(part, begin);
        Ok(())
    }

    /// Reads the clock if the parts are timed.
    fn begin(&self) -> Option<Instant> {
        self.times.is_some().then(Instant::now)
    }

    /// Records the time of a part that began at `begin`.
    fn end(&mut self, part: TimedExchangePart, begin: Option<Instant>) {
        if let (Some(times), Some(begin)) = (&mut self.times, begin) {
            times[part as usize].push(begin.elapsed().as_secs_f64());
        }
    }
}
