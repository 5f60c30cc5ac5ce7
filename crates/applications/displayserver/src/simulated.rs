//! A display, its client and the agents between them in virtual time, on hosts with processors of their own (Lantz, Nowicki and Theimer
//! 1985, sections 2.4 and 3.1): the same protocol and state machine as live, over simulated `tcp`, PUP, blasts, `ikp` and serial lines.
//!
//! The hosts' `work` says how long the client and messages take. How long the display's own work takes is part of the scene, for a host
//! whose
//! `cpu` is 1.

mod programs;
mod request_events;
mod scene;
mod serial_line;
mod site;
mod trial_script;

pub use request_events::{DisplayRequestEvent, DisplayRequestPaths};
pub use scene::{
    DisplayDrawingCosts, DisplaySceneCarrier, DisplaySceneClass, SimulatedDisplayScene,
    SymbolDrawMoment,
};

use crate::bench::{DisplayBenchResult, DisplayBenchSubject};
use crate::send_level::DisplayPicture;
use site::{DisplaySite, Over};
use stackline_core::error::{Error, Result};
use stackline_core::time::{Duration, Instant};
use stackline_net::NodeIndex;
use stackline_sim::application::Simulation;
use stackline_sim::usage::{UsageTotals, UsageWatch};
use std::rc::Rc;
use trial_script::DisplayTrialScript;

/// The limit on the virtual time of a simulation: 30 days.
const AT_MOST: Instant = Instant(30 * 86_400_000_000_000);

/// Simulates the consecutive trials of each benchmark, each benchmark in a world of its own. One that takes no time has no trials.
///
/// # Errors
/// If a host, path or option does not exist, class and carrier do not go together, or the display refuses something.
pub fn measure(
    scene: &SimulatedDisplayScene<'_>,
    picture: &DisplayPicture,
    rates: &[DisplayBenchSubject],
    trials: usize,
) -> Result<Vec<DisplayBenchResult>> {
    carry_out(scene, picture, rates, trials, None)
}

/// The same, and records the events of each request of benchmarks that send a picture at a level; each level is a client of its own.
///
/// # Errors
/// As for [`measure`].
pub fn trace(
    scene: &SimulatedDisplayScene<'_>,
    picture: &DisplayPicture,
    rates: &[DisplayBenchSubject],
    trials: usize,
    paths: &mut DisplayRequestPaths,
) -> Result<Vec<DisplayBenchResult>> {
    carry_out(scene, picture, rates, trials, Some(paths))
}

fn carry_out(
    scene: &SimulatedDisplayScene<'_>,
    picture: &DisplayPicture,
    rates: &[DisplayBenchSubject],
    trials: usize,
    mut paths: Option<&mut DisplayRequestPaths>,
) -> Result<Vec<DisplayBenchResult>> {
    let nodes = nodes(scene)?;
    let one = |rate: &DisplayBenchSubject| {
        let mut paths = paths
            .as_mut()
            .filter(|_| matches!(rate, DisplayBenchSubject::At(_)));
        let mut watched = paths.is_some().then(UsageWatch::default);
        let mut all = run(&[scene], picture, *rate, trials, watched.as_mut())?;
        let Some(over) = all.pop() else {
            return Err(Error::measurement("nothing was simulated"));
        };
        if let (Some(paths), Some(watched)) = (&mut paths, watched) {
            paths.add(nodes, &over.trials, &over.passed, watched.into_intervals());
        }
        Ok(measured(picture, *rate, &over))
    };
    rates.iter().map(one).collect()
}

/// Simulates several applications that draw the same picture at the same time on the first one's network. Returns the trials of each that
/// ended before one of them had made all. Each has a display of its own; their programs share processors and links.
///
/// # Errors
/// As for [`measure`].
pub fn together(
    scenes: &[SimulatedDisplayScene<'_>],
    picture: &DisplayPicture,
    rate: DisplayBenchSubject,
    trials: usize,
) -> Result<Vec<DisplayBenchResult>> {
    let scenes: Vec<&SimulatedDisplayScene<'_>> = scenes.iter().collect();
    Ok(run(&scenes, picture, rate, trials, None)?
        .iter()
        .map(|over| measured(picture, rate, over))
        .collect())
}

/// The results of the trials; a benchmark that takes no time has no rate and no trials.
fn measured(
    picture: &DisplayPicture,
    rate: DisplayBenchSubject,
    over: &Over,
) -> DisplayBenchResult {
    let taken = over.taken.iter().filter(|time| **time > Duration::ZERO);
    let trials = taken
        .map(|time| picture.count() as f64 / time.seconds())
        .collect();
    DisplayBenchResult {
        picture: picture.name,
        unit: picture.unit,
        rate,
        trials,
    }
}

/// Simulates applications in one world until one of them is over; records the points that requests pass, if wanted.
fn run(
    scenes: &[&SimulatedDisplayScene<'_>],
    picture: &DisplayPicture,
    rate: DisplayBenchSubject,
    trials: usize,
    mut watched: Option<&mut UsageWatch>,
) -> Result<Vec<Over>> {
    let Some(first) = scenes.first() else {
        return Ok(Vec::new());
    };
    let mut simulation = Simulation::new(first.network, first.seed, (), false);
    let mut sites = Vec::new();
    for (lane, scene) in (0..).zip(scenes) {
        let (nodes, traced) = (nodes(scene)?, watched.is_some());
        sites.push(DisplaySite::new(
            scene,
            &mut simulation,
            lane,
            nodes,
            traced,
        )?);
    }
    for (site, scene) in sites.iter().zip(scenes) {
        site.start(DisplayTrialScript::from_scene(scene, picture, rate, trials).actions);
    }
    while !sites.iter().any(|site| site.is_over()) {
        let is_measured = || sites.first().is_some_and(|site| site.is_measured());
        let was_measured = is_measured();
        let now = simulation.next(AT_MOST)?.ok_or_else(|| {
            Error::measurement(
                "the simulated trials did not finish within 30 days of simulated time",
            )
            .hint("use fewer trials (`--trials`), a smaller picture or a faster line")
        })?;
        if let Some(watched) = &mut watched
            && (watched.is_due(now) || was_measured != is_measured())
        {
            watched.look(now, usage(&simulation, &sites), was_measured);
        }
    }
    Ok(sites.iter().map(|site| site.over()).collect())
}

/// The use of ports and processors so far, including the serial line of the first application.
fn usage(simulation: &Simulation<'_, ()>, sites: &[Rc<DisplaySite>]) -> UsageTotals {
    let mut usage = simulation.usage();
    if let Some(site) = sites.first() {
        site.enter_line(&mut usage.ports);
    }
    usage
}

/// The hosts of the client, the display and the internet server, checked against the class.
fn nodes(scene: &SimulatedDisplayScene<'_>) -> Result<[NodeIndex; 3]> {
    let node = |name: &str| {
        let at = scene
            .network
            .hosts
            .iter()
            .position(|host| host.name == name);
        let none = || {
            Error::input(format!(
                "the network {} has no host {name}",
                scene.network.name
            ))
        };
        at.map(|at| NodeIndex(at as u32)).ok_or_else(none)
    };
    let [from, to] = [node(&scene.from)?, node(&scene.to)?];
    let refused = |message: &str, hint: &str| Err(Error::input(message).hint(hint));
    let internet = scene.internet.as_deref().map(node).transpose()?;
    if internet.is_some() {
        let is_stream = matches!(
            scene.carrier,
            DisplaySceneCarrier::Tcp(_) | DisplaySceneCarrier::Pup(_)
        );
        if !is_stream
            || matches!(
                scene.class,
                DisplaySceneClass::Local | DisplaySceneClass::Messages
            )
        {
            return refused(
                "an internet server works only with streams",
                "use class agent, terminal or distributed, over tcp or pup",
            );
        }
        if internet == Some(from) {
            return refused(
                "the internet server cannot be on the client's host",
                "put it on the display's host or on a third host",
            );
        }
    }
    let third = internet.unwrap_or(to);
    match (scene.class, scene.carrier) {
        (DisplaySceneClass::Local, _) if from != to => refused(
            "a local application must run on the display's host",
            "name the same host twice, or choose another class",
        ),
        (DisplaySceneClass::Local, _) => Ok([from, to, third]),
        _ if from == to => refused(
            "the application is on the display's host",
            "use class `local`",
        ),
        (DisplaySceneClass::Messages, DisplaySceneCarrier::Ikp) | (DisplaySceneClass::Agent, _) => {
            Ok([from, to, third])
        }
        (DisplaySceneClass::Messages, _) => refused(
            "messages between V hosts are sent over `ikp`",
            "use `--over ikp`, or choose another class",
        ),
        (_, DisplaySceneCarrier::Ikp) => refused(
            "this class sends no V messages",
            "only `agent` and `messages` use `ikp`",
        ),
        (DisplaySceneClass::Terminal | DisplaySceneClass::Distributed, _) => Ok([from, to, third]),
    }
}
