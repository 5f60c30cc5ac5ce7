//! Master, disk servers and one client in virtual time: the same machines as live, over simulated `tcp`, with disks that
//! take as long as is said, and with what processors of 1995 took where that is said.
//!
//! Sets are there from the beginning; loading is not simulated. All hosts have the right time.

mod event_export;
mod scene;
mod set_up;
mod site;
mod usage;

pub use event_export::{emit_scene_events, event_table};
pub use scene::{
    BlockProcessingCosts, BlockScene, BlockSceneOutcome, ServerOutcome, SimulatedServer,
};
pub use usage::{BlockSiteUsage, ConnectionUse};

use site::BlockSite;
use stackline_blocks::demand::{Asker, Demand};
use stackline_blocks::set::BlockSet;
use stackline_core::error::{Error, Result};
use stackline_core::time::Instant;
use stackline_net::Tap;
use stackline_sim::SimDatagram;
use stackline_sim::application::Simulation;

/// How long it is waited for connections.
const CONNECTING: Instant = Instant(60_000_000_000);

/// Carries it out. `tap` receives every event of the network, and is given back.
///
/// # Errors
/// When a host, path or option is not there, or nothing can be asked for.
pub fn carry_out<T: Tap<SimDatagram>>(
    scene: &BlockScene<'_>,
    tap: T,
) -> Result<(BlockSceneOutcome, T)> {
    let mut simulation = Simulation::new(scene.network, scene.seed, tap, true);
    let site = BlockSite::new(scene, &mut simulation)?;
    while !site.is_connected() {
        if simulation.next(CONNECTING)?.is_none() {
            return Err(Error::measurement(
                "not all connections were established within a minute",
            ));
        }
    }
    let begun = simulation.now();
    site.start(askers(scene)?, scene.histories);
    // What the last list asked for may come as long as that of any other.
    let end = begun + scene.schedule.duration;
    while simulation.next(end)?.is_some() {}
    let totals = simulation.usage();
    let counters = totals.ports.clone();
    if scene.histories {
        site.look(totals, true);
    }
    let finish = site.finish();
    Ok((
        BlockSceneOutcome {
            record: finish.record,
            end,
            traced: simulation.take_traced(),
            servers: finish.servers,
            counters,
            unwanted: finish.unwanted,
            watched: finish.usage,
        },
        simulation.into_tap(),
    ))
}

/// What is asked of each set.
fn askers(scene: &BlockScene<'_>) -> Result<Vec<Asker>> {
    let of = |(index, (set, demand)): (usize, &(BlockSet, Demand))| {
        if matches!(demand, Demand::Viewer(_)) && set.picture.is_none() {
            return Err(Error::input(format!(
                "the set {} has no picture to view",
                set.name
            )));
        }
        let seed = scene.seed.child("viewer").index(index as u64);
        Ok(Asker::new(
            set,
            demand.clone(),
            scene.schedule,
            scene.keeps,
            scene.most,
            seed,
        ))
    };
    scene.sets.iter().enumerate().map(of).collect()
}
