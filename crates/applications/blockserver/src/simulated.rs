//! A master, disk servers and one client in virtual time: the same state machines as live, over simulated `tcp`, with disks and, if wanted,
//! processors that take as long as the scene says (for instance those of 1995).
//!
//! The sets are there from the beginning; loading is not simulated. The clocks of all hosts agree.

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

/// How long (virtual time) connections may take to be established.
const CONNECTING: Instant = Instant(60_000_000_000);

/// Simulates a scene. `tap` receives every event of the network, and is returned.
///
/// # Errors
/// If a host, path or option does not exist, or nothing can be requested.
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
    // Only blocks that come before the end of the last list's interval count.
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

/// The generators of the lists of all sets.
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
