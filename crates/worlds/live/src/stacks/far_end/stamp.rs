//! `stamp` and `twamp`: a test packet of STAMP (RFC 8762) or TWAMP Light (RFC 5357, appendix I), without authentication, for each call, and
//! its reflection. Both have the same fields.

use super::datagrams::{DATAGRAM_TABLE, DatagramAnswer, DatagramProtocol, FarEndDatagramStack};
use super::wire_times::{SampledMedian, format_ns, ntp_difference_ns, ntp_now, ptp_ns};
use crate::error::{Error, Result};
use stackline_core::catalogue::{ServiceMapping, StackTable};
use stackline_core::far_end::FarEndAddress;
use stackline_core::units;
use stackline_os::adjtimex;
use std::collections::BTreeMap;

const MAPPING: ServiceMapping = ServiceMapping(
    "\
ConnectRequest -> socket, connect
RPCCall -> send of a test packet with its number and a timestamp, recv of its reflection; without one within `timeout` the call counts as \
lost
DisconnectRequest -> close",
);

pub(crate) static STAMP: FarEndDatagramStack = FarEndDatagramStack {
    table: &StackTable {
        name: "stamp",
        summary: "session sender of STAMP (RFC 8762), unauthenticated: packets of 44 B, or of 48 and more with padding, to a session reflector",
        least_unit: PACKET_BYTES as u64,
        largest_unit: 65_507,
        mapping: MAPPING,
        ..DATAGRAM_TABLE
    },
    port: 862,
    client: |address, _| Ok(Box::new(StampSender::new(address, true)?)),
};

pub(crate) static TWAMP: FarEndDatagramStack = FarEndDatagramStack {
    table: &StackTable {
        name: "twamp",
        summary: "session sender of TWAMP Light (RFC 5357), unauthenticated: packets of at least 44 B to a session reflector at a known port",
        least_unit: PACKET_BYTES as u64,
        largest_unit: 65_507,
        mapping: MAPPING,
        ..DATAGRAM_TABLE
    },
    port: 862,
    client: |address, _| Ok(Box::new(StampSender::new(address, false)?)),
};

/// A packet of STAMP without extensions; TWAMP calls all beyond 14 B padding.
const PACKET_BYTES: usize = 44;
/// What a reflection has at least: that of TWAMP is shorter.
const REFLECTION_BYTES: usize = 41;
/// The head of the extension that is padding: flags, type, length (RFC 8972).
const EXTENSION_BYTES: usize = 4;
const UNRECOGNIZED: u8 = 1 << 7;
const EXTRA_PADDING: u8 = 1;
/// In an estimate of a clock's error: that the clock is synchronised, that timestamps are of PTP.
const SYNCHRONISED: u16 = 1 << 15;
const PTP: u16 = 1 << 14;

struct StampSender {
    server: String,
    is_stamp: bool,
    /// The number of the next packet.
    next: u32,
    /// The timestamp of the last packet.
    sent_at: u64,
    error_estimate: u16,
    reflections: StampReflections,
}

/// What reflections say.
#[derive(Default)]
struct StampReflections {
    /// How many came, late ones included.
    count: u64,
    /// The numbers of packet and reflection, of the first and of the last one.
    first: (u32, u32),
    last: (u32, u32),
    /// Time between receiving and sending at the reflector; time there and time back, as the two clocks show them. In ns.
    inside: SampledMedian,
    there: SampledMedian,
    back: SampledMedian,
    /// Reflections whose timestamps say that they spent less than no time in the reflector, or more than the call took.
    implausible: u64,
    is_synchronised: bool,
    /// The time to live with which a packet arrived.
    ttl: Option<u8>,
}

impl StampSender {
    fn new(address: &FarEndAddress, is_stamp: bool) -> Result<Self> {
        if !matches!(address.path.as_str(), "" | "/") {
            let message = format!("`{}` means nothing to a reflector", address.path);
            return Err(Error::input(message).hint("omit it: write host and port"));
        }
        Ok(Self {
            server: address.socket(STAMP.port),
            is_stamp,
            next: 0,
            sent_at: 0,
            error_estimate: own_error_estimate(),
            reflections: StampReflections::default(),
        })
    }

    fn odd(&self, what: &str) -> Error {
        Error::measurement(format!("the server at {} {what}", self.server))
            .hint("is it a reflector of STAMP or of TWAMP Light, without authentication?")
    }
}

impl DatagramProtocol for StampSender {
    fn request(&mut self, data: &[u8], datagram: &mut Vec<u8>) -> Result<()> {
        datagram.extend_from_slice(&self.next.to_be_bytes());
        self.next = self.next.wrapping_add(1);
        let before = datagram.len();
        datagram.extend_from_slice(&[0; 8]);
        datagram.extend_from_slice(&self.error_estimate.to_be_bytes());
        datagram.resize(PACKET_BYTES, 0);
        let mut padding = data.get(PACKET_BYTES..).unwrap_or_default();
        if self.is_stamp && !padding.is_empty() {
            let Some((_, rest)) = padding.split_at_checked(EXTENSION_BYTES) else {
                let message = "a packet of STAMP has 44 B, or at least 48 with an extension";
                return Err(Error::input(message).hint("write 44, or 48 or more"));
            };
            padding = rest;
            datagram.extend_from_slice(&[UNRECOGNIZED, EXTRA_PADDING]);
            datagram.extend_from_slice(&(padding.len() as u16).to_be_bytes());
        }
        datagram.extend_from_slice(padding);
        self.sent_at = ntp_now();
        datagram[before..before + 8].copy_from_slice(&self.sent_at.to_be_bytes());
        Ok(())
    }

    fn answer(&mut self, datagram: &[u8]) -> Result<DatagramAnswer> {
        let received_at = ntp_now();
        let Some(packet) = datagram.first_chunk::<REFLECTION_BYTES>() else {
            let what = format!("sent {} B, which is not a reflection", datagram.len());
            return Err(self.odd(&what));
        };
        let number = |at: usize| {
            u32::from_be_bytes([packet[at], packet[at + 1], packet[at + 2], packet[at + 3]])
        };
        let time = |at: usize| u64::from(number(at)) << 32 | u64::from(number(at + 4));
        let last = self.next.wrapping_sub(1);
        if time(4) == self.sent_at && number(0) == last && time(16) == 0 {
            return Err(self.odd("sends packets back as they are, without its own timestamps"));
        }
        let ago = last.wrapping_sub(number(24));
        if ago >= self.next || (ago == 0 && time(28) != self.sent_at) {
            return Ok(DatagramAnswer::Stray);
        }
        let reflections = &mut self.reflections;
        let numbers = (number(24), number(0));
        if reflections.count == 0 {
            reflections.first = numbers;
        }
        reflections.count += 1;
        if ago > 0 {
            return Ok(DatagramAnswer::Earlier(ago.into()));
        }
        reflections.last = numbers;
        let estimate = u16::from_be_bytes([packet[12], packet[13]]);
        reflections.is_synchronised = estimate & SYNCHRONISED != 0;
        reflections.ttl = Some(packet[40]).filter(|ttl| *ttl > 0);
        reflections.note_times(
            estimate & PTP != 0,
            [time(28), time(16), time(4), received_at],
        );
        Ok(DatagramAnswer::Present)
    }

    fn settings(&self) -> BTreeMap<String, String> {
        let reflections = &self.reflections;
        let mut settings = BTreeMap::new();
        if reflections.count == 0 {
            return settings;
        }
        let clock = if reflections.is_synchronised {
            "synchronised"
        } else {
            "not synchronised"
        };
        settings.insert("reflector_clock".to_owned(), clock.to_owned());
        if let Some(ttl) = reflections.ttl {
            settings.insert("request_ttl".to_owned(), ttl.to_string());
        }
        if let Some(inside) = reflections.inside.median() {
            settings.insert("inside_reflector".to_owned(), format_ns(inside));
        }
        if let (Some(there), Some(back)) = (reflections.there.median(), reflections.back.median())
            && there > 0
            && back > 0
        {
            settings.insert("apparent_there".to_owned(), format_ns(there));
            settings.insert("apparent_back".to_owned(), format_ns(back));
        }
        settings
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = self.reflections.notes();
        notes.extend(self.reflections.losses());
        notes
    }
}

impl StampReflections {
    /// Notes the four times of a call, in the order in which they happened: those of the second and the third event are the reflector's.
    fn note_times(&mut self, are_ptp: bool, times: [u64; 4]) {
        let [sent, arrived, reflected, received] = times;
        let inside = if are_ptp {
            ptp_ns(reflected).saturating_sub(ptp_ns(arrived))
        } else {
            ntp_difference_ns(arrived, reflected)
        };
        let took = ntp_difference_ns(sent, received);
        if inside < 0 || inside > took {
            self.implausible += 1;
            return;
        }
        self.inside.add(inside);
        if !are_ptp {
            self.there.add(ntp_difference_ns(sent, arrived));
            self.back.add(ntp_difference_ns(reflected, received));
        }
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.implausible > 0 {
            notes.push(format!(
                "the timestamps of {} cannot be right (less than no time in the reflector, or more than the call took): they were not used",
                units::counted(self.implausible, "reflection")
            ));
        }
        if let (Some(there), Some(back)) = (self.there.median(), self.back.median())
            && (there <= 0 || back <= 0)
        {
            let apart = format_ns(there.saturating_sub(back).abs() / 2);
            notes.push(format!(
                "the clocks of the two ends are about {apart} apart, or more: the reflector's timestamps do not say how long each way took"
            ));
        }
        notes
    }

    /// How many packets between the first and the last reflection were lost on the way there and on the way back: a reflector that keeps
    /// state numbers its reflections.
    fn losses(&self) -> Option<String> {
        let between = |first: u32, last: u32| u64::from(last.wrapping_sub(first));
        let sent = between(self.first.0, self.last.0);
        let reflected = between(self.first.1, self.last.1);
        let lost = (sent + 1)
            .checked_sub(self.count)
            .filter(|lost| *lost > 0)?;
        let there = sent.checked_sub(reflected)?;
        let back = lost.checked_sub(there)?;
        Some(if there > 0 {
            format!(
                "of {lost} losses, {there} happened on the way to the reflector and {back} on the way back, by the numbers of its reflections"
            )
        } else {
            format!(
                "by the numbers of its reflections, all {lost} losses happened on the way back; a reflector that keeps no state says that of any loss"
            )
        })
    }
}

/// What the kernel says of its wall clock, as an estimate of its error (RFC 4656, 4.1.2): a multiplier of 8 bits and the scale of 2^-32 s.
fn own_error_estimate() -> u16 {
    let Ok(clock) = adjtimex::read() else {
        return 1;
    };
    let us = clock.estimated_error_us.unsigned_abs().max(1);
    let units = us.saturating_mul((1 << 32) / 1_000_000);
    let scale = (u64::BITS - units.leading_zeros()).saturating_sub(8);
    let synchronised = if clock.synchronised { SYNCHRONISED } else { 0 };
    synchronised | (scale as u16) << 8 | (units >> scale) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sender(is_stamp: bool) -> StampSender {
        StampSender::new(
            &FarEndAddress::parse("stamp://127.0.0.1").unwrap(),
            is_stamp,
        )
        .unwrap()
    }

    /// The reflection with that number, received so long after the packet was sent and reflected so long after that.
    fn reflection(packet: &[u8], number: u32, after_ns: i64, inside_ns: i64) -> Vec<u8> {
        let sent = u64::from_be_bytes(packet[4..12].try_into().unwrap());
        let later = |ns: i64| {
            let units = (i128::from(ns) << 32) / 1_000_000_000;
            sent.wrapping_add_signed(i64::try_from(units).unwrap())
                .to_be_bytes()
        };
        let mut bytes = number.to_be_bytes().to_vec();
        bytes.extend_from_slice(&later(after_ns + inside_ns));
        bytes.extend_from_slice(&[0x80, 1, 0, 0]);
        bytes.extend_from_slice(&later(after_ns));
        bytes.extend_from_slice(&packet[..14]);
        bytes.extend_from_slice(&[0, 0, 61, 0, 0, 0]);
        bytes
    }

    fn packet(sender: &mut StampSender) -> Vec<u8> {
        let mut packet = Vec::new();
        sender.request(&[7; PACKET_BYTES], &mut packet).unwrap();
        packet
    }

    #[test]
    fn packets_have_the_fields_of_rfc_8762_and_8972() {
        let mut sender = sender(true);
        let first = packet(&mut sender);
        assert_eq!(
            (first.len(), &first[..4], &first[14..]),
            (44, &[0; 4][..], &[0; 30][..])
        );
        let mut padded = Vec::new();
        sender.request(&[7; 50], &mut padded).unwrap();
        assert_eq!(
            (&padded[..4], &padded[44..]),
            (&[0, 0, 0, 1][..], &[0x80, 1, 0, 2, 7, 7][..])
        );
        let refused = sender.request(&[7; 46], &mut Vec::new()).unwrap_err();
        assert!(
            refused.message.contains("44 B, or at least 48"),
            "{refused}"
        );
    }

    #[test]
    fn losses_are_divided_by_the_reflectors_numbers() {
        let mut sender = sender(true);
        // Of six packets the second is lost on the way there and the fourth on the way back.
        for (index, number) in [Some(0), None, Some(1), None, Some(3), Some(4)]
            .into_iter()
            .enumerate()
        {
            let sent = packet(&mut sender);
            assert_eq!(
                u32::from_be_bytes(sent[..4].try_into().unwrap()) as usize,
                index
            );
            if let Some(number) = number {
                let answer = sender
                    .answer(&reflection(&sent, number, -1_000, 20))
                    .unwrap();
                assert_eq!(answer, DatagramAnswer::Present);
            }
        }
        let notes = sender.notes();
        assert!(notes[0].contains("apart"), "{notes:?}");
        assert_eq!(
            notes[1],
            "of 2 losses, 1 happened on the way to the reflector and 1 on the way back, by the numbers of its reflections"
        );
        let settings = sender.settings();
        assert_eq!(settings["request_ttl"], "61");
        assert!(!settings.contains_key("apparent_there"));
    }

    #[test]
    fn times_that_cannot_be_are_not_shown() {
        let mut sender = sender(false);
        let sent = packet(&mut sender);
        let an_hour = 3_600_000_000_000;
        for inside in [-1_000_000, an_hour] {
            sender.answer(&reflection(&sent, 0, 0, inside)).unwrap();
        }
        assert!(sender.notes()[0].starts_with("the timestamps of 2 reflections cannot be right"));
        assert!(!sender.settings().contains_key("inside_reflector"));
    }

    #[test]
    fn what_is_no_reflection_is_named() {
        let mut sender = sender(true);
        let first = packet(&mut sender);
        let echoed = sender.answer(&first).unwrap_err();
        assert!(echoed.message.contains("back as they are"), "{echoed}");
        assert!(
            sender
                .answer(&[0; 40])
                .unwrap_err()
                .message
                .contains("40 B")
        );
        let second = packet(&mut sender);
        assert_eq!(
            sender.answer(&reflection(&first, 0, 1, 1)).unwrap(),
            DatagramAnswer::Earlier(1)
        );
        let mut other = reflection(&second, 1, 1, 1);
        other[30] ^= 1;
        assert_eq!(sender.answer(&other).unwrap(), DatagramAnswer::Stray);
        other[24] = 9;
        assert_eq!(sender.answer(&other).unwrap(), DatagramAnswer::Stray);
    }
}
