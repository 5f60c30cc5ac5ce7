//! Sends the packets of one connection through a carrier: writes heads, seals them if there is a key.

use crate::carrier::{self, PacketCarrier, PacketHeadBuffer, PacketRun};
use crate::error::Error;
use crate::options::{BlastChannelOptions, Interrupt};
use crate::packet_train::{PACKETS, joined_packets};
use crate::seal::Seal;
use stackline_proto::blast::{self, BlastHeader, HEADER};
use std::io::ErrorKind;
use std::time::{Duration, Instant};

/// Where the packet's index, with the flags, is in a header, bytes.
const INDEX: std::ops::Range<usize> = 24..26;
/// If the carrier has not taken a run completely after this time, the path counts as broken.
const STUCK: Duration = Duration::from_secs(10);

/// A carrier and what is needed to put packets into it.
pub(crate) struct CarrierLink<C> {
    pub(crate) carrier: C,
    pub(crate) seal: Option<Seal>,
    /// Bytes of a head.
    pub(crate) head: usize,
    heads: Vec<PacketHeadBuffer>,
    /// Payloads that are sealed.
    scratch: Vec<u8>,
    interrupt: Option<Interrupt>,
}

impl<C: PacketCarrier> CarrierLink<C> {
    pub(crate) fn new(carrier: C, options: &BlastChannelOptions) -> Self {
        Self {
            carrier,
            seal: options.key.as_ref().map(Seal::new),
            head: options.head(),
            heads: vec![PacketHeadBuffer::EMPTY; PACKETS],
            scratch: Vec::new(),
            interrupt: options.interrupt.clone(),
        }
    }

    /// Packets with so many bytes of data that go as one.
    pub(crate) fn train(&self, packet: u32) -> u32 {
        joined_packets(
            packet as usize + self.head,
            self.carrier.facts().joined_out.min(PACKETS),
        ) as u32
    }

    /// How many packets with so many bytes of data one read can bring, bounded by the useful number of places: as many as
    /// join, or many by themselves.
    pub(crate) fn places(&self, packet: usize) -> usize {
        match joined_packets(packet + self.head, PACKETS) {
            joined if joined > 1 && self.carrier.facts().joined_in => joined,
            _ => PACKETS,
        }
    }

    /// Whether the operation is interrupted.
    pub(crate) fn check_interrupt(&self) -> Result<(), Error> {
        match &self.interrupt {
            Some(interrupt) if interrupt.is_asked() => Err(Error::Interrupted),
            _ => Ok(()),
        }
    }

    /// From now on, packets that the carrier does not take at once are not sent again.
    pub(crate) fn tries_once(&mut self) {
        self.interrupt = Some(Interrupt::new(|| true));
    }

    /// Sends a packet without data of the stream.
    pub(crate) fn control(&mut self, header: &BlastHeader, body: &[u8]) -> Result<(), Error> {
        self.heads[0].0[..HEADER].copy_from_slice(&header.write());
        self.send(1, body, body.len())
    }

    /// Writes the heads of packets that follow `queued` others; `check` goes with the one that requests an answer.
    pub(crate) fn queue(&mut self, run: &blast::BlastPacketRun, check: u32, queued: usize) {
        let first = run.header(0, check).write();
        let heads = &mut self.heads[queued..queued + run.count as usize];
        for (n, head) in heads.iter_mut().enumerate() {
            head.0[..HEADER].copy_from_slice(&first);
            head.0[INDEX].copy_from_slice(&((run.first as usize + n) as u16).to_le_bytes());
        }
        if let Some(last) = heads.last_mut() {
            last.0[..HEADER].copy_from_slice(&run.header(run.count - 1, check).write());
        }
    }

    /// Sends the packets whose heads were written, with `each` bytes of `data` but the last.
    pub(crate) fn send(&mut self, packets: usize, data: &[u8], each: usize) -> Result<(), Error> {
        if let Some(seal) = &mut self.seal {
            self.scratch.clear();
            self.scratch.extend_from_slice(data);
            let mut rest = &mut self.scratch[..];
            for head in &mut self.heads[..packets] {
                let (payload, later) = rest.split_at_mut(each.min(rest.len()));
                rest = later;
                if !seal.seal(head, payload) {
                    return Err(Error::Broken);
                }
            }
        }
        let payload = if self.seal.is_some() {
            &self.scratch
        } else {
            data
        };
        let run = PacketRun {
            head: self.head,
            heads: &self.heads[..packets],
            payload,
            each,
        };
        let gone = put(&mut self.carrier, run)?;
        if gone == packets {
            Ok(())
        } else {
            self.push(packets, gone, data, each)
        }
    }

    /// Sends the rest of a run, of which the carrier took `gone` packets at once.
    fn push(
        &mut self,
        packets: usize,
        mut gone: usize,
        data: &[u8],
        each: usize,
    ) -> Result<(), Error> {
        let begin = Instant::now();
        while gone < packets {
            self.check_interrupt()?;
            if begin.elapsed() > STUCK {
                return Err(Error::Io("sending", ErrorKind::TimedOut.into()));
            }
            let payload = if self.seal.is_some() {
                &self.scratch
            } else {
                data
            };
            let run = PacketRun {
                head: self.head,
                heads: &self.heads[..packets],
                payload,
                each,
            };
            gone += put(&mut self.carrier, run.after(gone))?;
        }
        Ok(())
    }
}

fn put<C: PacketCarrier>(carrier: &mut C, run: PacketRun<'_>) -> Result<usize, Error> {
    match carrier::send(carrier, run) {
        Ok(packets) => Ok(packets),
        Err(error) if error.kind() == ErrorKind::Interrupted => Ok(0),
        Err(error) => Err(Error::new("sending", error)),
    }
}
