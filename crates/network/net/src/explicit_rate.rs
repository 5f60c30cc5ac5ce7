//! Rates that a cell switch tells the hosts: ATM's available bit rate with explicit rates (ATM Forum Traffic Management 4.0,
//! section 5.10). Each output port shares nine tenths of its link equally among the circuits that it has seen in the last
//! half second; a management cell brings the share back to the circuit's host, which sends no faster.
//!
//! A share that a circuit does not use is not given to others, and the bytes of management cells (one of 32) are in the tenth
//! that is left. It decides nothing about which cells are dropped.

use crate::packet::NodeIndex;
use crate::tap::PortIndex;
use alloc::vec::Vec;
use stackline_core::time::{Duration, Instant};

/// Of its link, what a port shares out.
const TARGET: f64 = 0.9;
/// A circuit that was silent for so long is no longer counted, and its host begins anew (ADTF).
pub(crate) const FORGOTTEN: Duration = Duration(500_000_000);
/// Of its link, what a host begins with (ICR).
const FIRST: f64 = 1.0 / 32.0;

/// Cells of one host to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Circuit {
    /// The host's own port.
    pub(crate) source: PortIndex,
    /// Where the cells go.
    pub(crate) to: NodeIndex,
}

/// What an output port of a switch knows of the circuits through it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shares {
    seen: Vec<(Circuit, Instant)>,
    /// The earliest moment at which one of them may have to be forgotten.
    look_at: Instant,
}

impl Shares {
    /// A cell of a circuit comes to a port of so many bit/s. Returns the circuits that are to hear of a rate, and the rate.
    pub(crate) fn cell(
        &mut self,
        now: Instant,
        circuit: Circuit,
        bit_s: f64,
    ) -> Option<(Vec<Circuit>, f64)> {
        let before = self.seen.len();
        if now >= self.look_at {
            self.seen
                .retain(|(one, at)| *one == circuit || *at + FORGOTTEN > now);
            self.look_at = self
                .seen
                .iter()
                .map(|(_, at)| *at + FORGOTTEN)
                .min()
                .unwrap_or(now + FORGOTTEN);
        }
        let gone = self.seen.len() < before;
        let new = match self.seen.iter_mut().find(|(one, _)| *one == circuit) {
            Some((_, at)) => {
                let silent = *at + FORGOTTEN <= now;
                *at = now;
                silent
            }
            None => {
                self.seen.push((circuit, now));
                true
            }
        };
        let share = TARGET * bit_s / self.seen.len() as f64;
        (new || gone).then(|| {
            (
                self.seen.iter().map(|(circuit, _)| *circuit).collect(),
                share,
            )
        })
    }
}

/// Rates that were granted to a host's port.
#[derive(Clone, Debug, Default)]
pub(crate) struct Granted {
    /// By circuit and by the port that granted it.
    rates: Vec<(NodeIndex, PortIndex, f64)>,
    last: Instant,
}

impl Granted {
    /// A management cell has come.
    pub(crate) fn note_rate(&mut self, to: NodeIndex, by: PortIndex, bit_s: f64) {
        match self
            .rates
            .iter_mut()
            .find(|(node, port, _)| (*node, *port) == (to, by))
        {
            Some((_, _, rate)) => *rate = bit_s,
            None => self.rates.push((to, by, bit_s)),
        }
    }

    /// What the port may send at that moment over a link of so many bit/s: of each circuit the least that was granted to it, all
    /// circuits together. After a silence it begins anew.
    pub(crate) fn rate(&mut self, now: Instant, link_bit_s: f64) -> f64 {
        if self.last + FORGOTTEN < now {
            self.rates.clear();
        }
        self.last = now;
        let first_of =
            |index: usize, to: NodeIndex| self.rates[..index].iter().all(|(node, ..)| *node != to);
        let least = |to: NodeIndex| {
            let of = self.rates.iter().filter(|(node, ..)| *node == to);
            of.map(|(.., rate)| *rate).fold(f64::INFINITY, f64::min)
        };
        let circuits = self
            .rates
            .iter()
            .enumerate()
            .filter(|(index, (to, ..))| first_of(*index, *to));
        let granted: f64 = circuits.map(|(_, (to, ..))| least(*to)).sum();
        granted.max(FIRST * link_bit_s).min(link_bit_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Instant {
        Instant(ms * 1_000_000)
    }

    fn circuit(source: u32) -> Circuit {
        Circuit {
            source: PortIndex(source),
            to: NodeIndex(9),
        }
    }

    #[test]
    fn a_port_shares_nine_tenths_among_those_it_has_seen() {
        let mut shares = Shares::default();
        assert_eq!(
            shares.cell(ms(0), circuit(1), 100e6),
            Some((alloc::vec![circuit(1)], 90e6))
        );
        assert_eq!(
            shares.cell(ms(1), circuit(1), 100e6),
            None,
            "nothing has changed"
        );
        let (circuits, rate) = shares.cell(ms(2), circuit(2), 100e6).unwrap();
        assert_eq!((circuits.len(), rate), (2, 45e6));
        assert_eq!(shares.cell(ms(400), circuit(1), 100e6), None);
        let (circuits, rate) = shares.cell(ms(600), circuit(1), 100e6).unwrap();
        assert_eq!(
            (circuits, rate),
            (alloc::vec![circuit(1)], 90e6),
            "the other was silent for half a second"
        );
    }

    #[test]
    fn a_host_sends_the_least_of_each_circuit_and_all_circuits_together() {
        let mut granted = Granted::default();
        assert_eq!(
            granted.rate(ms(0), 100e6),
            100e6 / 32.0,
            "before anything was granted"
        );
        granted.note_rate(NodeIndex(1), PortIndex(4), 30e6);
        granted.note_rate(NodeIndex(1), PortIndex(6), 20e6);
        granted.note_rate(NodeIndex(2), PortIndex(8), 25e6);
        assert_eq!(granted.rate(ms(1), 100e6), 45e6);
        assert_eq!(
            granted.rate(ms(502), 100e6),
            100e6 / 32.0,
            "it begins anew after a silence"
        );
    }
}
