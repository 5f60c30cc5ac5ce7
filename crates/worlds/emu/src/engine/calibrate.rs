//! Measures the round trip between the emulator and a host's kernel with nothing emulated between: an ICMP echo request and its answer.

use super::header::{NETWORK, VIRTIO};
use super::receive_batch::ReceiveBatch;
use super::{EmulatorEngine, RoundTrip};
use stackline_core::time::Duration;
use stackline_os::clock::{SystemClock, read_clock};
use stackline_os::stream_socket::{SendFlags, send};
use std::io;
use std::net::Ipv4Addr;

/// Number of echo requests to send.
const ECHOES: u16 = 100;
/// Pause before each request, so that the processor goes to sleep as it does between packets, in ns.
const PAUSE: u64 = 200_000;
/// How long to wait for an answer, in ns.
const PATIENCE: u64 = 5_000_000;
/// The measurement is given up after more missing answers than this. Some are allowed: a new interface does not answer at first.
const UNANSWERED: usize = 20;
/// The ICMP identifier of the requests, by which their answers are recognised.
const IDENTIFIER: u16 = 0x5ea1;

impl EmulatorEngine {
    /// Measures the round trip to the first host's kernel. Returns `None` when the network has fewer than two hosts or none answers.
    pub fn calibrate(&mut self) -> io::Result<Option<RoundTrip>> {
        let mut batch = ReceiveBatch::new();
        let mut times = Vec::with_capacity(usize::from(ECHOES));
        let mut unanswered = 0;
        for number in 0..ECHOES {
            self.waiter.wait(Some(PAUSE))?;
            match self.echo(number, &mut batch)? {
                Some(ns) => times.push(ns),
                None => unanswered += 1,
            }
            if unanswered > UNANSWERED {
                break;
            }
        }
        times.sort_unstable();
        self.round_trip = times.first().map(|min| RoundTrip {
            count: times.len() as u64,
            min: Duration(*min),
            p50: Duration(times[times.len() / 2]),
        });
        self.handle.set_report(self.report());
        Ok(self.round_trip)
    }

    /// Sends one echo request to the first host, as if from the second. Returns the round-trip time in ns, `None` without an answer.
    fn echo(&mut self, number: u16, batch: &mut ReceiveBatch) -> io::Result<Option<u64>> {
        let mut queues = self.queues.iter();
        let Some(host) = queues.next() else {
            return Ok(None);
        };
        let Some(other) = queues.find(|other| other.port.host != host.port.host) else {
            return Ok(None);
        };
        let mut frame = request(host.port.address, other.port.address, number);
        frame[VIRTIO..VIRTIO + 6].copy_from_slice(&host.port.host_mac);
        frame[VIRTIO + 6..VIRTIO + 12].copy_from_slice(&host.port.gateway_mac);
        let skip = if host.header { 0 } else { VIRTIO };
        let begin = read_clock(SystemClock::Monotonic);
        send(host.socket(), &frame[skip..], SendFlags::DONTWAIT)?;
        while read_clock(SystemClock::Monotonic) < begin + PATIENCE {
            self.waiter.wait(Some(PATIENCE))?;
            if self.queues[0].receive(batch).is_err() {
                continue;
            }
            let end = read_clock(SystemClock::Monotonic);
            let mut frames = batch.frames.drain(..);
            if frames.any(|it| is_answer(&it.buffer[..it.length], number)) {
                return Ok(Some(end - begin));
            }
        }
        Ok(None)
    }
}

/// A frame with an ICMP echo request (RFC 792) from one host to another; its Ethernet addresses are still zero.
fn request(to: Ipv4Addr, from: Ipv4Addr, number: u16) -> [u8; NETWORK + 28] {
    let mut frame = [0; NETWORK + 28];
    frame[NETWORK - 2] = 8;
    let packet = &mut frame[NETWORK..];
    packet[..12].copy_from_slice(&[0x45, 0, 0, 28, 0, 0, 0x40, 0, 64, 1, 0, 0]);
    packet[12..16].copy_from_slice(&from.octets());
    packet[16..20].copy_from_slice(&to.octets());
    packet[20] = 8;
    packet[24..26].copy_from_slice(&IDENTIFIER.to_be_bytes());
    packet[26..28].copy_from_slice(&number.to_be_bytes());
    for (range, at) in [(0..20, 10), (20..28, 22)] {
        let sum: u32 = packet[range]
            .chunks(2)
            .map(|two| u32::from(two[0]) << 8 | u32::from(two[1]))
            .sum();
        let folded = (sum & 0xffff) + (sum >> 16);
        let folded = (folded & 0xffff) + (folded >> 16);
        packet[at..at + 2].copy_from_slice(&(!folded as u16).to_be_bytes());
    }
    frame
}

/// Whether a frame is the echo reply to request `number`.
fn is_answer(frame: &[u8], number: u16) -> bool {
    let Some(packet) = frame.get(NETWORK..NETWORK + 28) else {
        return false;
    };
    let [high, low] = number.to_be_bytes();
    let [first, second] = IDENTIFIER.to_be_bytes();
    packet[9] == 1 && packet[20] == 0 && packet[24..28] == [first, second, high, low]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_distinguished_from_requests_and_other_answers() {
        let mut frame = request(Ipv4Addr::new(10, 71, 0, 1), Ipv4Addr::new(10, 71, 0, 2), 7);
        assert!(!is_answer(&frame, 7));
        frame[NETWORK + 20] = 0;
        assert!(is_answer(&frame, 7));
        assert!(!is_answer(&frame, 8));
        assert!(!is_answer(&frame[..20], 7));
    }
}
