//! One session in virtual time, and the figures that the tables show of it. Only what came after the first second counts,
//! for as long as the paper counted, so that the beginning of the connections is not in it.

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

/// The first second, which is not counted.
const BEGINNING: Duration = Duration(1_000_000_000);

/// A session.
#[derive(Clone, Debug)]
pub(super) struct MagicCase {
    pub(super) network: Network,
    pub(super) servers: Vec<SimulatedServer>,
    pub(super) tcp: MagicTcp,
    /// Of the receiver (section 4.1: 64 KiB on the LAN, 128 in the wide area).
    pub(super) window_kib: u32,
    /// Of the sender (section 4.1: 64 KiB).
    pub(super) write_kib: u32,
    pub(super) costs: BlockProcessingCosts,
    pub(super) demand: Demand,
}

/// What it came to.
#[derive(Clone, Debug, Default)]
pub(super) struct MagicFigures {
    /// Of each server.
    pub(super) servers: Vec<MagicServerShare>,
    /// Of all of them together.
    pub(super) all: MagicTotals,
    /// Blocks that lists asked for.
    pub(super) asked: f64,
    /// Those that came before their list was superseded.
    pub(super) delivered: f64,
    /// Percent of the packets at the receiver's port that it destroyed.
    pub(super) destroyed: f64,
    /// Blocks that were discarded before they were read, and after.
    pub(super) flushed: (f64, f64),
}

/// What all servers came to together: of several runs the median of these, which is not what medians of servers add up to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MagicTotals {
    /// Megabits of blocks in a second.
    pub(super) mbit_s: f64,
    /// The largest server against the smallest.
    pub(super) unequal: f64,
    /// Segments that all sent again.
    pub(super) again: f64,
    /// The longest wait for any server, s.
    pub(super) waited: f64,
}

impl MagicTotals {
    fn of(servers: &[MagicServerShare]) -> Self {
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

/// One server's part.
#[derive(Clone, Debug, Default)]
pub(super) struct MagicServerShare {
    /// Megabits of blocks in a second.
    pub(super) mbit_s: f64,
    /// Segments that it sent again.
    pub(super) again: f64,
    /// The longest time without a block, s.
    pub(super) waited: f64,
}

impl MagicFigures {
    /// All servers together, Mbit/s.
    pub(super) const fn sum(&self) -> f64 {
        self.all.mbit_s
    }

    /// The largest against the smallest.
    pub(super) const fn unequal(&self) -> f64 {
        self.all.unequal
    }

    /// Segments sent again by all.
    pub(super) const fn again(&self) -> f64 {
        self.all.again
    }

    /// The longest wait for any server, s.
    pub(super) const fn waited(&self) -> f64 {
        self.all.waited
    }
}

impl MagicCase {
    /// Servers of those names in that network, with the disks that they had; the viewer pans.
    pub(super) fn of(network: Network, servers: &[&str], tcp: MagicTcp, window_kib: u32) -> Self {
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

    /// The client's host: the last of the network. The master is there too.
    fn client(&self) -> String {
        self.network
            .hosts
            .last()
            .map(|host| host.name.clone())
            .unwrap_or_default()
    }

    /// The session itself, and packets at the receiver's port.
    ///
    /// # Errors
    /// When the session cannot be simulated.
    pub(super) fn session(&self, seed: u64) -> Result<(BlockSceneOutcome, MagicFrameCounter)> {
        self.carry_out(seed, |_, outcome, frames| (outcome, frames))
    }

    /// What limits it, from its events.
    ///
    /// # Errors
    /// When the session cannot be simulated.
    pub(super) fn findings(&self, seed: u64) -> Result<Vec<Finding>> {
        self.carry_out(seed, |scene, outcome, _| {
            of_events(&event_table(scene, &outcome))
        })
    }

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

    /// Its figures.
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
            all: MagicTotals::of(&servers),
            servers,
            asked: lists().map(|tally| f64::from(tally.requested)).sum(),
            delivered: lists().map(|tally| f64::from(tally.delivered)).sum(),
            destroyed: 100.0 * frames.dropped as f64
                / ((frames.dropped + frames.delivered) as f64).max(1.0),
            flushed: (flushed(false), flushed(true)),
        })
    }
}

/// A disk for each block, so that one server after the other has it, and of each server one disk after the other. Disks
/// are numbered over the servers: the first of each, then the second of those that have two.
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

/// Mbit/s of the blocks that came in that time, and the longest wait for one.
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

/// Counts data packets that reach the receiver, and those that a port on the way destroys.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MagicFrameCounter {
    receiver: NodeIndex,
    delivered: u64,
    dropped: u64,
}

/// Packets of fewer bytes carry acknowledgements and lists.
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

/// The middle one; the mean of both where there are two.
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
                all: MagicTotals::of(&servers),
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
