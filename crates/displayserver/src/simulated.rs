//! The display, its client and the agents between them in virtual time, on hosts with processors of their own (Lantz, Nowicki and Theimer
//! 1985, sections 2.4 and 3.1): the same protocol and the same display as live, over simulated `tcp`, `ikp` and serial lines.
//!
//! What the client and messages take is the hosts' `work`; what the display itself takes is said here, at the speed for which its host's
//! `cpu` is 1.

mod programs;
mod scene;
mod script;
mod site;
mod ways;

pub use scene::{Carrier, Class, Drawing, Scene, Shown};
pub use ways::{Event, Ways};

use crate::bench::{Measured, Rate};
use crate::level::Picture;
use script::Script;
use site::Site;
use stackline_core::error::{Error, Result};
use stackline_core::time::Duration;
use stackline_net::Node;

/// Simulates the trials of each rate, one behind another, each rate in a world of its own.
///
/// # Errors
/// When a host, path or option is not there, class and carrier do not go together, or the display refuses something.
pub fn measure(scene: &Scene<'_>, picture: &Picture, rates: &[Rate], trials: usize) -> Result<Vec<Measured>> {
    carry_out(scene, picture, (rates, trials), None)
}

/// The same, and keeps the way of each request where a picture is sent at a level: each level is a client of its own.
///
/// # Errors
/// As [`measure`].
pub fn trace(
    scene: &Scene<'_>,
    picture: &Picture,
    rates: &[Rate],
    trials: usize,
    ways: &mut Ways,
) -> Result<Vec<Measured>> {
    carry_out(scene, picture, (rates, trials), Some(ways))
}

fn carry_out(
    scene: &Scene<'_>,
    picture: &Picture,
    (rates, trials): (&[Rate], usize),
    mut ways: Option<&mut Ways>,
) -> Result<Vec<Measured>> {
    let nodes = nodes(scene)?;
    let one = |rate: &Rate| {
        let script = Script::of(scene, picture, *rate, trials);
        let mut ways = ways.as_mut().filter(|_| matches!(rate, Rate::At(_)));
        let over = Site::new(scene, nodes, script, ways.is_some())?.carry_out()?;
        if let Some(ways) = &mut ways {
            ways.add(nodes, &over.passed, over.end);
        }
        // What takes no time has no rate.
        let taken = over.taken.into_iter().filter(|time| *time > Duration::ZERO);
        let trials = taken.map(|time| picture.count() as f64 / time.seconds()).collect();
        Ok(Measured { picture: picture.name, unit: picture.unit, rate: *rate, trials })
    };
    let all: Result<Vec<Measured>> = rates.iter().map(one).collect();
    Ok(all?.into_iter().filter(|measured| !measured.trials.is_empty()).collect())
}

/// The client's host, the display's and the internet server's, of a class that fits them.
fn nodes(scene: &Scene<'_>) -> Result<[Node; 3]> {
    let node = |name: &str| {
        let at = scene.network.hosts.iter().position(|host| host.name == name);
        let none = || Error::input(format!("the network {} has no host {name}", scene.network.name));
        at.map(|at| Node(at as u32)).ok_or_else(none)
    };
    let [from, to] = [node(&scene.from)?, node(&scene.to)?];
    let refused = |message: &str, hint: &str| Err(Error::input(message).hint(hint));
    let internet = scene.internet.as_deref().map(node).transpose()?;
    if internet.is_some() {
        let is_stream = matches!(scene.carrier, Carrier::Tcp(_) | Carrier::Pup(_));
        if !is_stream || matches!(scene.class, Class::Local | Class::Messages) {
            return refused(
                "an internet server is for streams",
                "class agent, terminal or distributed, over tcp or pup",
            );
        }
        if internet == Some(from) {
            return refused("the internet server is the display's", "put it on the display's host or on a third one");
        }
    }
    let third = internet.unwrap_or(to);
    match (scene.class, scene.carrier) {
        (Class::Local, _) if from != to => {
            refused("a local application is on the display's host", "name one host twice, or choose another class")
        }
        (Class::Local, _) => Ok([from, to, third]),
        _ if from == to => refused("the application is on the display's host", "that is class `local`"),
        (Class::Messages, Carrier::Ikp) | (Class::Agent, _) => Ok([from, to, third]),
        (Class::Messages, _) => {
            refused("messages between V's hosts go over `ikp`", "`--over ikp`, or choose another class")
        }
        (_, Carrier::Ikp) => refused("this class has no messages", "`agent` and `messages` go over `ikp`"),
        (Class::Terminal | Class::Distributed, _) => Ok([from, to, third]),
    }
}
