//! A case: one session of a viewer with block servers, simulated in virtual time, and the figures that the tables show of it.
//! Blocks and lists of the first second are not counted, so that the beginning of the connections does not matter; after it,
//! they are counted for as long as in the paper. Retransmissions and drops are counted over the whole session.

use super::printed::SECONDS;
use super::setting::{self, MagicTcp};
use stackline_analyze::findings::{Finding, of_events};
use stackline_blocks::block_history::{BlockPathPoint, History};
use stackline_blocks::demand::{BlockListSchedule, Demand};
use stackline_blockserver::simulated::{
    BlockProcessingCosts, BlockScene, BlockSceneOutcome, SimulatedServer, carry_out, event_table,
};
use stackline_core::error::Result;
use stackline_core::network::Network;
use stackline_core::random::Seed;
use stackline_core::time::{Duration, Instant};
use stackline_net::{NetworkEvent, NetworkLocation, NetworkPacket, NodeIndex, PortIndex, Tap};
use stackline_sim::SimDatagram;

/// The first second, in which blocks and lists are not counted.
const BEGINNING: Duration = Duration(1_000_000_000);

/// A session to simulate.
#[derive(Clone, Debug)]
pub(super) struct MagicCase {
    pub(super) network: Network,
    pub(super) servers: Vec<SimulatedServer>,
    pub(super) tcp: MagicTcp,
    /// The receiver's window, KiB (section 4.1: 64 KiB on the LAN, 128 in the wide area).
    pub(super) window_kib: u32,
    /// The senders' buffer, KiB (section 4.1: 64 KiB).
    pub(super) write_kib: u32,
    /// How long processors take for blocks and lists.
    pub(super) costs: BlockProcessingCosts,
    /// The blocks that each list requests.
    pub(super) demand: Demand,
}

/// The figures of a session, or their medians over several.
#[derive(Clone, Debug, Default)]
pub(super) struct MagicFigures {
    /// The figures of each server.
    pub(super) servers: Vec<MagicServerShare>,
    /// The figures of all servers together.
    pub(super) all: MagicTotals,
    /// Blocks that lists requested.
    pub(super) asked: f64,
    /// Blocks that arrived before their list was superseded.
    pub(super) delivered: f64,
    /// Percent of the data packets to the receiver that were dropped on the way.
    pub(super) destroyed: f64,
    /// Blocks that servers discarded for a newer list: before they were read from disk, and after.
    pub(super) flushed: (f64, f64),
}

/// The figures of all servers together. Over several runs, these are medians of the totals, which differ from totals of the servers'
/// medians.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MagicTotals {
    /// The throughput of blocks, Mbit/s.
    pub(super) mbit_s: f64,
    /// The largest throughput of a server divided by the smallest.
    pub(super) unequal: f64,
    /// Segments that all servers retransmitted.
    pub(super) again: f64,
    /// The longest time in which any one server delivered no block, s.
    pub(super) waited: f64,
}

impl MagicTotals {
    fn from_servers(servers: &[MagicServerShare]) -> Self {
        let each = || servers.iter().map(|server| server.mbit_s);
        Self {
            mbit_s: each().sum(),
            unequal: each().fold(0.0, f64::max) / each().fold(f64::INFINITY, f64::min).max(1e-3),
            again: servers.iter().map(|server| server.again).sum(),
            waited: servers
                .iter()
                .map(|server| server.waited)
                .fold(0.0, f64::max),
        }
    }
}

/// The figures of one server.
#[derive(Clone, Debug, Default)]
pub(super) struct MagicServerShare {
    /// The throughput of its blocks, Mbit/s.
    pub(super) mbit_s: f64,
    /// Segments that it retransmitted.
    pub(super) again: f64,
    /// The longest time in which it delivered no block, s.
    pub(super) waited: f64,
}

impl MagicFigures {
    /// The throughput of all servers together, Mbit/s.
    pub(super) const fn sum(&self) -> f64 {
        self.all.mbit_s
    }

    /// The largest throughput of a server divided by the smallest.
    pub(super) const fn unequal(&self) -> f64 {
        self.all.unequal
    }

    /// Segments that all servers retransmitted.
    pub(super) const fn again(&self) -> f64 {
        self.all.again
    }

    /// The longest time in which any one server delivered no block, s.
    pub(super) const fn waited(&self) -> f64 {
        self.all.waited
    }
}

impl MagicCase {
    /// The servers with these names in a network, with the disks that they had in the paper. The viewer pans.
    pub(super) fn new(network: Network, servers: &[&str], tcp: MagicTcp, window_kib: u32) -> Self {
        let servers = servers
            .iter()
            .map(|host| setting::server(host, setting::disks(host)))
            .collect();
        let (costs, demand) = (setting::costs(), setting::pan(setting::SPEED));
        Self {
            network,
            servers,
            tcp,
            window_kib,
            write_kib: 64,
            costs,
            demand,
        }
    }

    /// The host of the client and the master: the last one of the network.
    fn client(&self) -> String {
        self.network
            .hosts
            .last()
            .map(|host| host.name.clone())
            .unwrap_or_default()
    }

    /// Simulates the session; returns its outcome and the count of data packets to the receiver.
    ///
    /// # Errors
    /// When the session cannot be simulated.
    pub(super) fn session(&self, seed: u64) -> Result<(BlockSceneOutcome, MagicFrameCounter)> {
        self.carry_out(seed, |_, outcome, frames| (outcome, frames))
    }

    /// Simulates the session; returns what limits it according to its events.
    ///
    /// # Errors
    /// When the session cannot be simulated.
    pub(super) fn findings(&self, seed: u64) -> Result<Vec<Finding>> {
        self.carry_out(seed, |scene, outcome, _| {
            of_events(&event_table(scene, &outcome))
        })
    }

    /// Simulates the session; `then` makes the result of it.
    fn carry_out<R>(
        &self,
        seed: u64,
        then: impl FnOnce(&BlockScene<'_>, BlockSceneOutcome, MagicFrameCounter) -> R,
    ) -> Result<R> {
        let stack = self.tcp.stack(self.window_kib, self.write_kib)?;
        let lasts = BEGINNING + Duration::from_seconds(SECONDS);
        let scene = BlockScene {
            network: &self.network,
            master: self.client(),
            client: self.client(),
            servers: self.servers.clone(),
            stack: &stack,
            costs: self.costs,
            sets: vec![(setting::picture(), self.demand.clone())],
            given: evenly(&self.servers),
            schedule: BlockListSchedule {
                interval: setting::ms(200),
                duration: lasts,
            },
            keeps: 4096,
            most: 4096,
            supersedes: true,
            histories: true,
            seed: Seed::root(seed),
        };
        let host = u32::try_from(self.network.hosts.len() - 1).unwrap_or(u32::MAX);
        let (outcome, frames) = carry_out(
            &scene,
            MagicFrameCounter {
                receiver: NodeIndex(host),
                ..MagicFrameCounter::default()
            },
        )?;
        Ok(then(&scene, outcome, frames))
    }

    /// Simulates the session; returns its figures.
    ///
    /// # Errors
    /// When the session cannot be simulated.
    pub(super) fn run(&self, seed: u64) -> Result<MagicFigures> {
        let (outcome, frames) = self.session(seed)?;
        let begun = outcome
            .record
            .score
            .span
            .map_or(Instant(0), |(first, _)| first);
        let from = begun + BEGINNING;
        let lists = || {
            outcome
                .record
                .tallies
                .iter()
                .filter(|tally| tally.sent >= from)
        };
        let servers = outcome.servers.iter().enumerate().map(|(index, server)| {
            let of = |history: &&History| usize::from(history.server) == index;
            let (mbit_s, waited) = arrivals(
                outcome.record.histories.iter().filter(of),
                from,
                outcome.end,
            );
            MagicServerShare {
                mbit_s,
                waited,
                again: server.sent_again as f64,
            }
        });
        let flushed = |read: bool| {
            let histories = outcome
                .record
                .histories
                .iter()
                .filter(|history| history.flushed >= Some(from));
            histories
                .filter(|history| history.passed(BlockPathPoint::EndRead).is_some() == read)
                .count() as f64
        };
        let servers: Vec<MagicServerShare> = servers.collect();
        Ok(MagicFigures {
            all: MagicTotals::from_servers(&servers),
            servers,
            asked: lists().map(|tally| f64::from(tally.requested)).sum(),
            delivered: lists().map(|tally| f64::from(tally.delivered)).sum(),
            destroyed: 100.0 * frames.dropped as f64
                / ((frames.dropped + frames.delivered) as f64).max(1.0),
            flushed: (flushed(false), flushed(true)),
        })
    }
}

/// The numbers of the disks on which blocks are placed, used in turn: successive blocks are on successive servers, and those of one
/// server on its disks in turn. Disks are numbered across the servers: the first disk of each, then the second of those that have
/// two, and so on.
fn evenly(servers: &[SimulatedServer]) -> Vec<u32> {
    let most = servers
        .iter()
        .map(|server| server.disks.len())
        .max()
        .unwrap_or(0);
    let numbered = |disk: usize| {
        (0..servers.len())
            .filter(move |server| disk < servers[*server].disks.len())
            .map(move |server| (server, disk))
    };
    let order: Vec<(usize, usize)> = (0..most).flat_map(numbered).collect();
    let turns = servers.len()
        * servers
            .iter()
            .map(|server| server.disks.len())
            .product::<usize>();
    let place = |turn: usize| {
        let server = turn % servers.len();
        let disk = turn / servers.len() % servers[server].disks.len();
        order
            .iter()
            .position(|one| *one == (server, disk))
            .unwrap_or(0) as u32
    };
    (0..turns).map(place).collect()
}

/// The throughput of the blocks that arrived between `from` and `end`, Mbit/s, and the longest time without one, s.
fn arrivals<'h>(
    histories: impl Iterator<Item = &'h History>,
    from: Instant,
    end: Instant,
) -> (f64, f64) {
    let came = histories
        .filter_map(|history| Some((history.passed(BlockPathPoint::AppReceive)?, history.bytes)));
    let mut came: Vec<(Instant, u32)> = came.filter(|(at, _)| *at >= from && *at <= end).collect();
    came.sort_unstable();
    let bits: u64 = came.iter().map(|(_, bytes)| u64::from(*bytes) * 8).sum();
    let ends = came.iter().map(|(at, _)| *at).chain([end]);
    let waits = [from]
        .into_iter()
        .chain(came.iter().map(|(at, _)| *at))
        .zip(ends);
    let longest = waits
        .map(|(before, after)| after.since(before).seconds())
        .fold(0.0, f64::max);
    (bits as f64 / end.since(from).seconds() / 1e6, longest)
}

/// Counts data packets that reach the receiver, and those to it that a port or host on the way drops.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MagicFrameCounter {
    receiver: NodeIndex,
    delivered: u64,
    dropped: u64,
}

/// Packets of fewer bytes carry acknowledgements and lists, and are not counted.
const SMALL: u64 = 200;

impl Tap<SimDatagram> for MagicFrameCounter {
    const ON: bool = true;
    const LENGTHS: bool = false;

    fn record(
        &mut self,
        _: Instant,
        place: NetworkLocation,
        what: NetworkEvent,
        packet: &NetworkPacket<SimDatagram>,
    ) {
        if packet.to != self.receiver || packet.bytes() < SMALL {
            return;
        }
        match (what, place) {
            (NetworkEvent::Deliver, _) => self.delivered += 1,
            (
                NetworkEvent::Drop(_),
                NetworkLocation::Port(PortIndex(_)) | NetworkLocation::Host(_),
            ) => self.dropped += 1,
            _ => {}
        }
    }
}

/// The median of each figure over the runs.
pub(super) fn median(runs: &[MagicFigures]) -> MagicFigures {
    let of = |figure: &dyn Fn(&MagicFigures) -> f64| middle(runs.iter().map(figure).collect());
    let servers = runs.first().map_or(0, |first| first.servers.len());
    let server = |index: usize| MagicServerShare {
        mbit_s: of(&|run| run.servers[index].mbit_s),
        again: of(&|run| run.servers[index].again),
        waited: of(&|run| run.servers[index].waited),
    };
    MagicFigures {
        servers: (0..servers).map(server).collect(),
        all: MagicTotals {
            mbit_s: of(&MagicFigures::sum),
            unequal: of(&MagicFigures::unequal),
            again: of(&MagicFigures::again),
            waited: of(&MagicFigures::waited),
        },
        asked: of(&|run| run.asked),
        delivered: of(&|run| run.delivered),
        destroyed: of(&|run| run.destroyed),
        flushed: (of(&|run| run.flushed.0), of(&|run| run.flushed.1)),
    }
}

/// The median; the mean of the two middle values if their number is even, NaN if there are none.
pub(super) fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let (low, high) = ((values.len().max(1) - 1) / 2, values.len() / 2);
    values
        .get(low)
        .zip(values.get(high))
        .map_or(f64::NAN, |(low, high)| f64::midpoint(*low, *high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_sums_is_not_the_sum_of_medians() {
        let run = |rates: [f64; 2]| {
            let share = |mbit_s| MagicServerShare {
                mbit_s,
                ..MagicServerShare::default()
            };
            let servers = rates.map(share).to_vec();
            MagicFigures {
                all: MagicTotals::from_servers(&servers),
                servers,
                ..MagicFigures::default()
            }
        };
        let runs = [run([1.0, 9.0]), run([2.0, 7.0]), run([9.0, 2.0])];
        let figures = median(&runs);
        let of_servers: f64 = figures.servers.iter().map(|server| server.mbit_s).sum();
        assert_eq!((figures.sum(), of_servers), (10.0, 9.0));
        assert_eq!(figures.unequal(), 4.5);
    }
}
