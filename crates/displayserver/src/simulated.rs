//! The display, its client and the agents between them in virtual time, on hosts with processors of their own (Lantz, Nowicki and Theimer
//! 1985, sections 2.4 and 3.1): the same protocol and the same display as live, over simulated `tcp`, `ikp` and serial lines.
//!
//! What the client and messages take is the hosts' `work`; what the display itself takes is said here, at the speed for which its host's
//! `cpu` is 1.

mod programs;
mod script;
mod site;

pub use script::Drawing;

use crate::bench::{Measured, Rate};
use crate::level::Picture;
use script::Script;
use site::Site;
use stackline_core::error::{Error, Result};
use stackline_core::network::Network;
use stackline_core::plan::Stack;
use stackline_core::random::Seed;
use stackline_core::time::Duration;
use stackline_net::Node;

/// How an application is divided between the two hosts (2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// A: on the display's host; each message is answered when it is carried out.
    Local,
    /// B: on another host, by the same messages, over `ikp`.
    Messages,
    /// C: on another host, over a transport; an agent on the display's host takes what comes. Over `ikp` the remote host has an agent too,
    /// behind a pipe.
    Agent,
    /// D: through a pseudo-terminal and TELNET: an agent at each end, and answers travel as if they were typed.
    Terminal,
    /// E: as C, and the agent has the picture: what changes is sent alone, and it is drawn again from there.
    Distributed,
}

impl Class {
    /// All of them, with their names.
    pub const ALL: [(&str, Self); 5] = [
        ("local", Self::Local),
        ("messages", Self::Messages),
        ("agent", Self::Agent),
        ("terminal", Self::Terminal),
        ("distributed", Self::Distributed),
    ];
}

/// When a symbol that is shown and being defined is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Shown {
    /// Item by item, as they come.
    #[default]
    Growing,
    /// Whole, once it is complete.
    Complete,
}

/// What carries requests and answers between the hosts.
#[derive(Clone, Copy, Debug)]
pub enum Carrier<'n> {
    /// `tcp`, with its options at the client's end and at the display's.
    Tcp([&'n Stack; 2]),
    /// V's messages.
    Ikp,
    /// Characters over the only link between the hosts, each of so many bits: 10 with a start and a stop bit, 8 without.
    Line(u32),
}

/// What is simulated.
#[derive(Clone, Debug)]
pub struct Scene<'n> {
    /// The network; its hosts' `work` and `cpu` are what programs take.
    pub network: &'n Network,
    /// The client's host.
    pub from: String,
    /// The display's host.
    pub to: String,
    /// How the application is divided.
    pub class: Class,
    /// What carries requests and answers.
    pub carrier: Carrier<'n>,
    /// What the display takes.
    pub drawing: Drawing,
    /// When a symbol that is being defined is drawn.
    pub shown: Shown,
    /// Bytes of requests that a client hands over at once, where it need not wait for an answer.
    pub gathers: u64,
    /// The seed.
    pub seed: Seed,
}

/// Simulates the trials of each rate, one behind another, each rate in a world of its own.
///
/// # Errors
/// When a host, path or option is not there, class and carrier do not go together, or the display refuses something.
pub fn measure(scene: &Scene<'_>, picture: &Picture, rates: &[Rate], trials: usize) -> Result<Vec<Measured>> {
    let nodes = nodes(scene)?;
    let one = |rate: &Rate| {
        let script = Script::of(scene, picture, *rate, trials);
        let mut taken = Site::new(scene, nodes, script)?.carry_out()?;
        // What takes no time has no rate.
        taken.retain(|time| *time > Duration::ZERO);
        let of = |time: Duration| picture.count() as f64 / time.seconds();
        Ok(Measured {
            picture: picture.name,
            unit: picture.unit,
            rate: *rate,
            trials: taken.into_iter().map(of).collect(),
        })
    };
    let all: Result<Vec<Measured>> = rates.iter().map(one).collect();
    Ok(all?.into_iter().filter(|measured| !measured.trials.is_empty()).collect())
}

/// The two hosts, of a class that fits them.
fn nodes(scene: &Scene<'_>) -> Result<[Node; 2]> {
    let node = |name: &str| {
        let at = scene.network.hosts.iter().position(|host| host.name == name);
        let none = || Error::input(format!("the network {} has no host {name}", scene.network.name));
        at.map(|at| Node(at as u32)).ok_or_else(none)
    };
    let [from, to] = [node(&scene.from)?, node(&scene.to)?];
    let refused = |message: &str, hint: &str| Err(Error::input(message).hint(hint));
    match (scene.class, scene.carrier) {
        (Class::Local, _) if from != to => {
            refused("a local application is on the display's host", "name one host twice, or choose another class")
        }
        (Class::Local, _) => Ok([from, to]),
        _ if from == to => refused("the application is on the display's host", "that is class `local`"),
        (Class::Messages, Carrier::Ikp) | (Class::Agent, _) => Ok([from, to]),
        (Class::Messages, _) => {
            refused("messages between V's hosts go over `ikp`", "say `ikp`, or choose another class")
        }
        (_, Carrier::Ikp) => refused("this class has no messages", "`agent` and `messages` go over `ikp`"),
        (Class::Terminal | Class::Distributed, _) => Ok([from, to]),
    }
}
