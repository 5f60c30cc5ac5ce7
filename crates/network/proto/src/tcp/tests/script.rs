//! One end with a script instead of a peer: the test defines what arrives and when, and reads the output as lines of a
//! trace.
//!
//! A line is `ms first:end(bytes) ack n`, with numbers counted from each side's SYN; `F`, `S`, `R` before it are flags.

use crate::tcp::segment::{Syn, Timestamps};
use crate::tcp::{TcpConnection, TcpFlags, TcpOptions, TcpSegment, TcpState};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use stackline_core::time::Instant;

pub(super) const MS: u64 = 1_000_000;
/// The own numbers begin just before they wrap.
const OWN: u32 = u32::MAX - 2000;
const PEER: u32 = 5000;
/// The script begins here.
const BEGIN: u64 = 1000 * MS;

pub(super) struct Script {
    pub(super) end: TcpConnection,
    now: Instant,
    window: u16,
}

impl Script {
    /// A connection that is open after a round trip of so many ms; what the peer offers is unscaled.
    pub(super) fn open(options: TcpOptions, rtt: u64, window: u16) -> Self {
        let mut script = Self::dials(options, window);
        assert_eq!(script.until(0), ["0 S 0:0(0)"]);
        script.arrives_at(rtt, Self::syn_ack());
        assert_eq!(script.until(rtt), [format!("{rtt} 1:1(0) ack 1")]);
        script
    }

    pub(super) fn dials(options: TcpOptions, window: u16) -> Self {
        let now = Instant(BEGIN);
        Self {
            end: TcpConnection::connect(now, options, (1000, 80), OWN),
            now,
            window,
        }
    }

    pub(super) fn syn_ack() -> TcpSegment {
        let syn = Syn {
            mss: 1460,
            window_scale: Some(0),
            sack_permitted: true,
        };
        let flags = TcpFlags::SYN.with(TcpFlags::ACK);
        TcpSegment {
            flags,
            syn,
            sequence: PEER,
            acknowledged: OWN.wrapping_add(1),
            ..TcpSegment::default()
        }
    }

    pub(super) fn ms(&self) -> u64 {
        (self.now.0 - BEGIN) / MS
    }

    pub(super) fn now(&self) -> Instant {
        self.now
    }

    /// A segment arrives, `ms` after the beginning; it echoes the time of `echo`.
    pub(super) fn arrives_at(&mut self, ms: u64, segment: TcpSegment) {
        self.now = Instant(BEGIN + ms * MS);
        let timestamps = Some(Timestamps { value: 77, echo: 0 });
        let segment = TcpSegment {
            source: 80,
            destination: 1000,
            window: self.window,
            timestamps,
            ..segment
        };
        self.end.handle(self.now, &segment);
    }

    /// An acknowledgement arrives, with ranges of what arrived behind gaps.
    pub(super) fn ack(&mut self, ms: u64, upto: u32, blocks: &[(u32, u32)]) {
        let mut segment = TcpSegment {
            flags: TcpFlags::ACK,
            sequence: PEER + 1,
            acknowledged: OWN.wrapping_add(upto),
            ..TcpSegment::default()
        };
        for (start, end) in blocks {
            segment.add_block(OWN.wrapping_add(*start), OWN.wrapping_add(*end));
        }
        self.arrives_at(ms, segment);
    }

    /// The same, of a peer that saw a mark.
    pub(super) fn echo(&mut self, ms: u64, upto: u32) {
        let (sequence, acknowledged) = (PEER + 1, OWN.wrapping_add(upto));
        let flags = TcpFlags::ACK.with(TcpFlags::ECE);
        self.arrives_at(
            ms,
            TcpSegment {
                flags,
                sequence,
                acknowledged,
                ..TcpSegment::default()
            },
        );
    }

    /// The flags of the next segment that leaves.
    pub(super) fn next_flags(&mut self, ms: u64) -> TcpFlags {
        assert_eq!(self.ms(), ms);
        self.end.poll(self.now).expect("something leaves").flags
    }

    /// Data of the peer arrives; it acknowledges `upto`.
    pub(super) fn data(&mut self, ms: u64, first: u32, bytes: u32, upto: u32, flags: TcpFlags) {
        let (sequence, acknowledged) = (PEER + first, OWN.wrapping_add(upto));
        let flags = TcpFlags::ACK.with(flags);
        self.arrives_at(
            ms,
            TcpSegment {
                flags,
                sequence,
                acknowledged,
                length: bytes,
                ..TcpSegment::default()
            },
        );
    }

    pub(super) fn offers(&mut self, window: u16) {
        self.window = window;
    }

    /// What leaves until `ms` after the beginning.
    pub(super) fn until(&mut self, ms: u64) -> Vec<String> {
        let last = Instant(BEGIN + ms * MS);
        let mut lines = Vec::new();
        loop {
            while let Some(segment) = self.end.poll(self.now) {
                lines.push(self.line(&segment));
                self.end.check();
            }
            match self.end.deadline() {
                Some(at) if at <= last => self.now = self.now.max(at),
                _ => break,
            }
        }
        self.now = self.now.max(last);
        lines
    }

    fn line(&self, segment: &TcpSegment) -> String {
        let mut line = format!("{} ", self.ms());
        for (flag, letter) in [
            (TcpFlags::SYN, 'S'),
            (TcpFlags::FIN, 'F'),
            (TcpFlags::RST, 'R'),
        ] {
            if segment.flags.has(flag) {
                line.push(letter);
                line.push(' ');
            }
        }
        let first = segment.sequence.wrapping_sub(OWN);
        line += &format!("{first}:{}({})", first + segment.length, segment.length);
        if segment.flags.has(TcpFlags::ACK) {
            line += &format!(" ack {}", segment.acknowledged.wrapping_sub(PEER));
        }
        for (start, end) in segment.sack() {
            line += &format!(
                " sack {}:{}",
                start.wrapping_sub(PEER),
                end.wrapping_sub(PEER)
            );
        }
        line
    }

    pub(super) fn state(&self) -> TcpState {
        self.end.state()
    }
}
