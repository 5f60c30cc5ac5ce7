//! One end of an application's connection, of any protocol: `tcp` as segments, PUP as packets in UDP, blasts as in
//! [`super::blasts`]. Data is counted; PUP, whose packets carry bytes, carries zeros.

use super::blasts::{LENGTH, MessageBlastEnd};
use crate::datagram::{SimDatagram, SimDatagramBody, UDP, ipv4_header};
use crate::stacks::packet_wire::BELOW;
use stackline_core::time::Instant;
use stackline_net::{EcnMarking, NetworkPacket, NodeIndex, SegmentSizes};
use stackline_proto::papers::pup::{self, PupPort};
use stackline_proto::tcp::{self, Codepoint, TcpReceived};

/// The zeros that are written to PUP; the largest piece at once.
const ZEROS: [u8; 4096] = [0; 4096];

/// The protocol machine of one end.
pub(crate) enum MessageEndMachine {
    Tcp(Box<tcp::TcpConnection>),
    Pup(Box<pup::PupConnection>),
    /// A PUP end that waits for a connection.
    PupListener(pup::PupOptions),
    Blasts(Box<MessageBlastEnd>),
}

/// The connection, source and destination of packets of an end.
#[derive(Clone, Copy)]
pub(super) struct MessageRoute {
    pub(super) connection: u32,
    pub(super) from: NodeIndex,
    pub(super) to: NodeIndex,
}

/// PUP sockets: of the side that opens, of the side that listens, and of the connection there.
const SOCKETS: [u32; 3] = [1, 2, 3];

impl MessageEndMachine {
    /// The two ends of a new PUP connection.
    pub(super) fn pups(now: Instant, options: pup::PupOptions, number: u32) -> [Self; 2] {
        let [own, listens, _] = SOCKETS.map(|socket| PupPort {
            socket,
            ..PupPort::default()
        });
        let first = pup::PupConnection::connect(now, options, number, own, listens);
        [Self::Pup(Box::new(first)), Self::PupListener(options)]
    }

    pub(super) fn tcp(&self) -> Option<&tcp::TcpConnection> {
        if let Self::Tcp(machine) = self {
            Some(machine)
        } else {
            None
        }
    }

    pub(super) fn enable_trace(&mut self) {
        if let Self::Tcp(machine) = self {
            machine.enable_trace();
        }
    }

    pub(super) fn take_events(&mut self) -> Vec<tcp::TcpConnectionEvent> {
        if let Self::Tcp(machine) = self {
            machine.take_events().collect()
        } else {
            Vec::new()
        }
    }

    /// Whether this end sees the connection as open.
    pub(super) fn is_there(&self) -> bool {
        match self {
            Self::Tcp(machine) => machine.state() == tcp::TcpState::Established,
            Self::Pup(machine) => *machine.state() == pup::PupState::Open,
            Self::Blasts(machine) => machine.is_there(),
            Self::PupListener(_) => false,
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        match self {
            Self::Tcp(machine) => machine.state() == tcp::TcpState::Closed,
            Self::Pup(machine) => machine.is_closed(),
            Self::Blasts(machine) => machine.is_closed(),
            Self::PupListener(_) => false,
        }
    }

    /// Whether a waiting writer would be woken.
    pub(super) fn has_room(&self) -> bool {
        match self {
            Self::Tcp(machine) => machine.has_room(),
            Self::Pup(machine) => machine.has_room(),
            Self::Blasts(machine) => machine.has_room(),
            Self::PupListener(_) => false,
        }
    }

    /// Writes bytes. Returns how many were accepted; `None` when there was no room.
    pub(super) fn send(&mut self, now: Instant, bytes: u64) -> Option<u64> {
        match self {
            Self::Tcp(machine) => machine.send(now, bytes),
            Self::Pup(machine) => {
                let mut sent = 0;
                loop {
                    let piece = bytes.saturating_sub(sent).min(ZEROS.len() as u64) as usize;
                    match machine.send(&ZEROS[..piece]) {
                        0 => return (sent > 0).then_some(sent),
                        taken => sent += taken as u64,
                    }
                }
            }
            Self::Blasts(machine) => machine.send(bytes),
            Self::PupListener(_) => None,
        }
    }

    /// Bytes that are put before each message.
    pub(super) const fn before_each(&self) -> u64 {
        if let Self::Blasts(_) = self {
            LENGTH
        } else {
            0
        }
    }

    /// Reads at most `most` bytes. Returns how many; `None` when there were none.
    pub(super) fn receive(&mut self, now: Instant, most: u64) -> Option<u64> {
        match self {
            Self::Tcp(machine) => match machine.receive(now, most) {
                TcpReceived::Bytes(bytes) => Some(bytes),
                _ => None,
            },
            Self::Pup(machine) => {
                match machine.receive(usize::try_from(most).unwrap_or(usize::MAX)) {
                    pup::PupReceived::Data(data) => Some(data.len() as u64),
                    _ => None,
                }
            }
            Self::Blasts(machine) => machine.receive(most),
            Self::PupListener(_) => None,
        }
    }

    /// A packet has come.
    pub(super) fn handle(&mut self, now: Instant, datagram: &SimDatagram) {
        if let (Self::Tcp(machine), Some(segment)) = (&mut *self, datagram.segment()) {
            return machine.handle(now, segment);
        }
        if let Self::Blasts(machine) = self {
            return machine.handle(now, datagram);
        }
        let SimDatagramBody::Bytes(bytes) = datagram.body() else {
            return;
        };
        let Ok(packet) = pup::PupPacket::read(bytes) else {
            return;
        };
        match self {
            Self::Pup(machine) => machine.handle(now, &packet),
            Self::PupListener(options) => {
                let own = PupPort {
                    socket: SOCKETS[2],
                    ..PupPort::default()
                };
                if let Some(accepted) = pup::PupConnection::accept(now, *options, own, &packet) {
                    *self = Self::Pup(Box::new(accepted));
                }
            }
            Self::Tcp(_) | Self::Blasts(_) => {}
        }
    }

    /// The next packet that leaves.
    pub(super) fn poll(
        &mut self,
        now: Instant,
        route: MessageRoute,
    ) -> Option<NetworkPacket<SimDatagram>> {
        let (ecn, bytes, payload) = match self {
            Self::Tcp(machine) => {
                let segment = machine.poll(now)?;
                let (place, length, bytes) =
                    (machine.place(&segment), segment.length, segment.bytes());
                let ecn = if segment.codepoint == Codepoint::Capable {
                    EcnMarking::Capable
                } else {
                    EcnMarking::NotCapable
                };
                (
                    ecn,
                    bytes,
                    SimDatagram::of_segment(route.connection, 0, [route.from, route.to], segment)
                        .at(place, length),
                )
            }
            Self::Pup(machine) => {
                let packet = machine.poll(now)?;
                let length = BELOW + packet.len();
                let mut header = [0; BELOW];
                header[..20].copy_from_slice(&ipv4_header(route.from, route.to, UDP, length, 0, 0));
                header[24..26].copy_from_slice(&((length - 20) as u16).to_be_bytes());
                let body = SimDatagramBody::Bytes(packet.as_slice().into());
                (
                    EcnMarking::NotCapable,
                    length as u32,
                    SimDatagram::new(route.connection, 0, &header, body),
                )
            }
            Self::Blasts(machine) => return machine.poll(now),
            Self::PupListener(_) => return None,
        };
        let MessageRoute {
            connection: flow,
            from,
            to,
        } = route;
        Some(NetworkPacket {
            number: 0,
            from,
            to,
            flow,
            ecn,
            dscp: 0,
            segments: SegmentSizes::one(bytes),
            payload,
        })
    }

    /// The instant at which the end has something to do though nothing arrives.
    pub(super) fn deadline(&mut self, now: Instant) -> Option<Instant> {
        match self {
            Self::Tcp(machine) => machine.deadline(),
            Self::Pup(machine) => machine.deadline(),
            Self::Blasts(machine) => machine.deadline(now),
            Self::PupListener(_) => None,
        }
    }
}

/// PUP options with packets that fit the path, of at least one byte.
pub(super) fn fit_options(options: pup::PupOptions, mtu: u64) -> pup::PupOptions {
    let overhead = (BELOW + pup::packet::HEADER + pup::packet::CHECKSUM + 1) as u64;
    let packet = mtu
        .saturating_sub(overhead)
        .clamp(1, u64::from(options.packet)) as u16;
    pup::PupOptions { packet, ..options }
}
