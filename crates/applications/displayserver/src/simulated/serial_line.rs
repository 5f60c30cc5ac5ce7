//! A serial line in virtual time: characters follow one another, each way at its own rate. There are no packets and no loss; each write
//! counts as one packet.

use super::scene::SimulatedDisplayScene;
use stackline_core::error::{Error, Result};
use stackline_core::network::{LossModel, NetworkLink};
use stackline_core::time::{Duration, Instant};
use stackline_net::PortCounters;

/// Both directions of a line: from the client's host, and to it.
#[derive(Debug)]
pub(super) struct Serial {
    directions: [OneWay; 2],
    /// Bits per character.
    bits: f64,
}

#[derive(Debug)]
struct OneWay {
    /// The number of the port in the network.
    port: usize,
    bit_s: f64,
    delay: Duration,
    /// When the last character put on the line has crossed it.
    free_at: Instant,
    counters: PortCounters,
}

impl Serial {
    /// The link between a scene's hosts, or the two links that lead one way each.
    pub(super) fn from_scene(scene: &SimulatedDisplayScene<'_>, bits: u32) -> Result<Self> {
        let (from, to) = (scene.from.as_str(), scene.to.as_str());
        Ok(Self {
            directions: [
                OneWay::from_scene(scene, from, to)?,
                OneWay::from_scene(scene, to, from)?,
            ],
            bits: f64::from(bits),
        })
    }

    /// Puts characters on the line. Returns when the last one has left, and when it arrives.
    pub(super) fn put(
        &mut self,
        direction: usize,
        now: Instant,
        bytes: usize,
    ) -> (Instant, Instant) {
        let crosses = self.crossing_time(direction, bytes);
        let direction = &mut self.directions[direction];
        direction.free_at = direction.free_at.max(now) + crosses;
        direction.counters.packets += 1;
        direction.counters.bytes += bytes as u64;
        direction.counters.busy = Duration(direction.counters.busy.0 + crosses.0);
        (direction.free_at, direction.free_at + direction.delay)
    }

    /// How long this many characters take.
    pub(super) fn crossing_time(&self, direction: usize, bytes: usize) -> Duration {
        Duration::from_seconds(bytes as f64 * self.bits / self.directions[direction].bit_s)
    }

    /// Writes the line's traffic into the counters of its two ports.
    pub(super) fn write_counters(&self, ports: &mut [PortCounters]) {
        for direction in &self.directions {
            if let Some(port) = ports.get_mut(direction.port) {
                *port = direction.counters;
            }
        }
    }
}

impl OneWay {
    fn from_scene(scene: &SimulatedDisplayScene<'_>, from: &str, to: &str) -> Result<Self> {
        let port = |(index, link): (usize, &NetworkLink)| {
            let (first, second) = (link.ends.0.as_str(), link.ends.1.as_str());
            match (first, second) {
                _ if (first, second) == (from, to) => Some(2 * index),
                _ if (first, second) == (to, from) && !link.one_way => Some(2 * index + 1),
                _ => None,
            }
        };
        let port = scene.network.links.iter().enumerate().find_map(port);
        let link = port.and_then(|port| scene.network.links.get(port / 2));
        let rate = link
            .and_then(|link| link.rate.mean_bit_s())
            .filter(|rate| *rate > 0.0);
        let (Some(port), Some(link), Some(bit_s)) = (port, link, rate) else {
            return Err(
                Error::input(format!("no link with a rate leads from {from} to {to}"))
                    .hint("a serial line needs its own link, as in `link sun - vax 9600 bit/s 0;`"),
            );
        };
        if link.loss != LossModel::None || link.jitter.is_some() || link.rate.changes() {
            return Err(Error::input("a serial line has only a rate and a delay")
                .hint("omit loss, jitter and schedules"));
        }
        Ok(Self {
            port,
            bit_s,
            delay: link.delay,
            free_at: Instant(0),
            counters: PortCounters::default(),
        })
    }
}
