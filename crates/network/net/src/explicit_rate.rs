//! Rates that a cell switch signals to hosts: ATM's available bit rate with explicit rates (ATM Forum Traffic
//! Management 4.0, section 5.10). A "circuit" is the cells of one host to another. Each output port shares nine tenths
//! of its link equally among the circuits that it has seen in the last half second; a management cell brings the share
//! back to the circuit's host, which sends no faster.
//!
//! A share that a circuit does not use is not given to others, and the bytes of management cells (one of 32) are in the
//! tenth that is left. The module does not decide which cells are dropped.

use crate::packet::NodeIndex;
use crate::tap::PortIndex;
use alloc::vec::Vec;
use stackline_core::time::{Duration, Instant};

/// The share of a link's rate that a port divides among circuits.
const TARGET: f64 = 0.9;
/// A circuit that was silent for this long is no longer counted, and its host begins again at the initial rate (ADTF,
/// the ACR decrease time factor).
pub(crate) const FORGOTTEN: Duration = Duration(500_000_000);
/// The share of its link's rate with which a host begins (ICR, the initial cell rate).
const FIRST: f64 = 1.0 / 32.0;

/// A circuit: the cells of one host to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Circuit {
    /// The sending host's port.
    pub(crate) source: PortIndex,
    /// The receiving host.
    pub(crate) to: NodeIndex,
}

/// The circuits that an output port of a switch divides its rate among.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shares {
    /// Each circuit, and when its last cell came.
    seen: Vec<(Circuit, Instant)>,
    /// The earliest moment at which a circuit may have to be forgotten.
    look_at: Instant,
}

impl Shares {
    /// Notes that a cell of a circuit has come to a port with a link of `bit_s` bit/s. If this changes the shares,
    /// returns the circuits to signal and the rate of each in bit/s.
    pub(crate) fn cell(
        &mut self,
        now: Instant,
        circuit: Circuit,
        bit_s: f64,
    ) -> Option<(Vec<Circuit>, f64)> {
        let before = self.seen.len();
        if now >= self.look_at {
            self.seen
                // The circuit itself stays, however long it was silent: the search below finds it
                // new again.
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

/// The rates that switches have granted to a host's port.
#[derive(Clone, Debug, Default)]
pub(crate) struct Granted {
    /// The receiving host of the circuit, the port that granted the rate, and the rate in bit/s.
    rates: Vec<(NodeIndex, PortIndex, f64)>,
    /// When the port last asked for its rate: when it last sent.
    last: Instant,
}

impl Granted {
    /// Stores the rate of a management cell that has arrived.
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

    /// The rate in bit/s at which the port may send at that moment over a link of `link_bit_s`: the sum over circuits
    /// of the least rate granted to each, at least the initial rate and at most the link's. After a silence of
    /// [`FORGOTTEN`] all grants are forgotten.
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
