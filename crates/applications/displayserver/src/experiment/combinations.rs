//! The combinations of an experiment with a display in virtual time: each factor of the network and of the display at a level. Invalid ones
//! are found before anything is run.

use super::testbed::{DisplaySceneOptions, DisplayTestbed, no_rate};
use crate::bench::DisplayBenchSubject;
use crate::send_level::{DisplayPicture, DisplaySendLevel};
use crate::simulated::{DisplaySceneClass, measure};
use stackline_core::error::{Error, Result};
use stackline_core::named::NamedValue;
use stackline_core::network::Network;
use stackline_core::quantity::parse_size;
use stackline_runner::network_stack::choose_one_network;
use stackline_runner::spec_source::SpecSource;
use stackline_spec::{Factor, FactorLevel, vary_beside};
use stackline_whatif::experiment::level_conflicts::{LevelChanges, in_order, with_levels};
use stackline_whatif::experiment::{ExperimentSubject, nothing_differs};

/// The factors of the display, by name; all other factors are the network's.
const SETTINGS: [&str; 8] = [
    "level", "class", "over", "shown", "gathers", "client", "display", "internet",
];

/// The hint for levels at which nothing differs.
const OTHER: &str = "choose a level that is not already in use";

/// A combination: a network and a display with every factor at a level.
#[derive(Clone, Debug, PartialEq)]
pub struct DisplayCombination {
    network: Network,
    scene: DisplaySceneOptions,
    level: DisplaySendLevel,
}

impl DisplayCombination {
    /// Items per second over consecutive trials.
    pub(crate) fn rate(&self, picture: &DisplayPicture, trials: usize, seed: u64) -> Result<f64> {
        if self.level == DisplaySendLevel::Structured && picture.symbols.is_empty() {
            let message = format!(
                "the picture {} has no symbols that call each other",
                picture.name
            );
            return Err(Error::input(message).hint("the picture `rectangles` has some"));
        }
        let (testbed, rate) = (self.testbed()?, DisplayBenchSubject::At(self.level));
        let measured = measure(&testbed.scene(seed), picture, &[rate], trials)?;
        let rates = measured
            .first()
            .map(|one| one.trials.as_slice())
            .filter(|rates| !rates.is_empty());
        let rates = rates.ok_or_else(no_rate)?;
        Ok(rates.len() as f64 / rates.iter().map(|rate| 1.0 / rate).sum::<f64>())
    }

    fn testbed(&self) -> Result<DisplayTestbed> {
        DisplayTestbed::from_flags(&self.scene, self.network.clone())
    }

    /// The combination in words.
    pub(crate) fn words(&self, picture: &DisplayPicture) -> Result<String> {
        Ok(format!(
            "{} at level {}, class {}, display at {}",
            picture.name,
            self.level,
            self.scene.class,
            self.testbed()?.place()
        ))
    }

    /// Whether only changes are sent (class E).
    pub(crate) fn is_distributed(&self) -> bool {
        self.scene.class == DisplaySceneClass::Distributed
    }

    /// Sets a factor of the display to a level.
    fn set(&mut self, name: &str, level: &FactorLevel) -> Result<()> {
        let text = match level {
            FactorLevel::AsWritten => return Ok(()),
            FactorLevel::Text(text) => text.clone(),
            FactorLevel::Times(_) => {
                let error = Error::input(format!(
                    "factor `{name}`: a flag's value cannot be multiplied"
                ));
                return Err(error.hint(format!("write levels, as in `{name} = ..., ...`")));
            }
        };
        match name {
            "level" => self.level = one_of(name, &text)?,
            "class" => self.scene.class = one_of(name, &text)?,
            "shown" => self.scene.shown = one_of(name, &text)?,
            "over" => self.scene.over = Some(text),
            "client" => self.scene.client = Some(text),
            "display" => self.scene.display = Some(text),
            "internet" => self.scene.internet = Some(text),
            _ => {
                let wrong = |why| {
                    Error::input(format!("factor `{name}`: {why}"))
                        .hint("as in `gathers = 200 B, 1 KiB`")
                };
                self.scene.gathers = parse_gathers(&text.replace(' ', "")).map_err(wrong)?;
            }
        }
        Ok(())
    }
}

/// Parses the number of bytes that a client hands over at a time: at least one.
///
/// # Errors
/// If the text is not such a size.
pub fn parse_gathers(text: &str) -> Result<u64, String> {
    let number = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    if number.trim().parse::<f64>().is_ok_and(|it| it <= 0.0) {
        return Err(
            "it must be at least 1B, which sends each request separately; the default is 1KiB"
                .into(),
        );
    }
    parse_size(text)
}

/// The factors that can be varied, in words.
fn what() -> String {
    format!(
        "a display's factors are {}; its network's are bandwidth, delay, loss, queue, mtu, cpu and buffer",
        SETTINGS.join(", ")
    )
}

/// A hint for a factor at which nothing differs.
fn something_else(name: &str) -> String {
    match name {
        "request" | "pixel" | "rectangle" | "letter" | "added" | "added_rectangle" | "answer" => {
            format!(
                "the time for `{name}` in --draw depends on the processor of the display's host: vary `cpu`, as in `cpu of HOST x 2`"
            )
        }
        "trials" | "picture" | "network" | "rectangle_bytes" | "call_bytes" | "display_over" => {
            format!(
                "--{} is the same for all combinations; {}",
                name.replace('_', "-"),
                what()
            )
        }
        "polls" | "work" => format!(
            "vary a host property with a variable: `{name} <V>` in the network, `1 from A to B rr across NETWORK; V = \
             9 ms` after it, and `-f 'V = 9 ms, 1 ms'`"
        ),
        _ => format!("{OTHER}; {}", what()),
    }
}

/// The value with that name.
fn one_of<V: NamedValue>(name: &str, text: &str) -> Result<V> {
    V::named(text).ok_or_else(|| {
        Error::input(format!("factor `{name}`: unknown level `{text}`"))
            .hint(format!("choose {}", V::names()))
    })
}

/// A network and a display on it, both of which can be varied.
#[derive(Clone, Debug)]
pub struct DisplaySubject {
    source: SpecSource,
    scene: DisplaySceneOptions,
    level: DisplaySendLevel,
    /// The display's host and the client's host, without any factor applied.
    hosts: [String; 2],
    /// Whether the class is a factor.
    is_class_varied: bool,
}

impl DisplaySubject {
    /// The display of `scene` on a network of the specification.
    ///
    /// # Errors
    /// If there is no such network, or it lacks the hosts.
    pub fn new(
        source: SpecSource,
        scene: DisplaySceneOptions,
        level: DisplaySendLevel,
        factors: &[Factor],
    ) -> Result<Self> {
        let mut subject = Self {
            source,
            scene,
            level,
            hosts: Default::default(),
            is_class_varied: factors.iter().any(|factor| factor.name == "class"),
        };
        let anywhere = DisplaySceneOptions {
            class: DisplaySceneClass::Agent,
            over: None,
            display_over: None,
            ..subject.scene.clone()
        };
        subject.hosts = DisplayTestbed::from_flags(&anywhere, subject.network(&[])?)?.hosts();
        Ok(subject)
    }

    fn network(&self, changes: &LevelChanges<'_>) -> Result<Network> {
        if let Some((factor, _)) = changes
            .iter()
            .find(|(factor, _)| factor.is_of_measurement())
        {
            let message = format!(
                "factor `{}` belongs to a measurement, but a display has none",
                factor.name
            );
            return Err(Error::input(message).hint(what()));
        }
        // The time for drawing belongs to the display, so only then its host counts as working.
        let working: Vec<&str> = match self.scene.draw.takes_time() {
            true => vec![&self.hosts[0]],
            false => Vec::new(),
        };
        let text = vary_beside(&self.source.text, None, changes, &working)?;
        let varied = self.source.varied(text);
        let networks = varied.declared()?.networks;
        choose_one_network(networks, &varied.name, self.scene.network.as_deref())
    }
}

impl ExperimentSubject for DisplaySubject {
    type Combination = DisplayCombination;

    fn changed(&self, changes: &LevelChanges<'_>) -> Result<DisplayCombination> {
        let is_setting =
            |change: &&(&Factor, &FactorLevel)| SETTINGS.contains(&change.0.name.as_str());
        let of_network: Vec<(&Factor, &FactorLevel)> = changes
            .iter()
            .filter(|change| !is_setting(change))
            .copied()
            .collect();
        let network = self
            .network(&of_network)
            .map_err(|error| with_levels(changes, error))?;
        let mut combination = DisplayCombination {
            network,
            scene: DisplaySceneOptions {
                display: Some(self.hosts[0].clone()),
                ..self.scene.clone()
            },
            level: self.level,
        };
        for (factor, level) in changes.iter().filter(is_setting) {
            combination.set(&factor.name, level)?;
        }
        // For the local class the client is on the display's host; for other classes it is on its own.
        let scene = &mut combination.scene;
        if scene.class != DisplaySceneClass::Local {
            scene.client.get_or_insert_with(|| self.hosts[1].clone());
        } else if self.is_class_varied {
            scene.client = None;
        }
        combination
            .testbed()
            .map_err(|error| with_levels(changes, error))?;
        Ok(combination)
    }

    fn are_same(one: &DisplayCombination, other: &DisplayCombination) -> bool {
        let ordered = |one: &DisplayCombination| {
            let mut one = one.clone();
            in_order(&mut one.network);
            one
        };
        ordered(one) == ordered(other)
    }

    /// The error if nothing differs at a level, or there is no such factor.
    fn without_effect(&self, factor: &Factor, level: &FactorLevel) -> Error {
        const NETWORK: [&str; 7] = [
            "bandwidth",
            "delay",
            "loss",
            "queue",
            "mtu",
            "cpu",
            "buffer",
        ];
        let name = factor.name.split(' ').next().unwrap_or_default();
        let is_written = self
            .source
            .text
            .split(|letter: char| !letter.is_alphanumeric() && letter != '_')
            .any(|word| word == name);
        let hint = something_else(&factor.name);
        let is_known = is_written || SETTINGS.contains(&name) || NETWORK.contains(&name);
        if !is_known && hint.starts_with(OTHER) {
            return Error::input(format!("unknown factor `{}`", factor.name)).hint(what());
        }
        nothing_differs(factor, level).hint(hint)
    }
}
