//! Combinations of an experiment with a display in virtual time: the network and what flags say, each at a level, judged before anything
//! is run.

use super::testbed::{DisplayTestbed, no_rate};
use crate::exit::{Error, Result};
use crate::factors::{are_apart, in_order, with_levels};
use crate::flags::gathers;
use crate::flags::{ClassFlag, DisplayFactors, DisplayScene, LevelFlag};
use crate::network_stack;
use crate::spec_source::SpecSource;
use clap::ValueEnum;
use stackline_core::network::Network;
use stackline_displayserver::bench::DisplayBenchSubject;
use stackline_displayserver::send_level::{DisplayPicture, DisplaySendLevel as ProtocolLevel};
use stackline_displayserver::simulated::measure;
use stackline_spec::{Factor, FactorLevel, vary_beside};

/// Flags that can be factors, by their names; what is none of them is of the network.
const FLAGS: [&str; 8] = [
    "level", "class", "over", "shown", "gathers", "client", "display", "internet",
];

/// What to do about most levels at which nothing differs.
const OTHER: &str = "choose a level that is not there already";

/// A combination.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Combination {
    network: Network,
    scene: DisplayScene,
    level: LevelFlag,
}

impl Combination {
    /// Whether two do the same.
    fn same(&self, other: &Self) -> bool {
        let ordered = |one: &Self| {
            let mut one = one.clone();
            in_order(&mut one.network);
            one
        };
        ordered(self) == ordered(other)
    }

    /// Items a second, of trials one behind another.
    pub(super) fn rate(&self, picture: &DisplayPicture, trials: usize, seed: u64) -> Result<f64> {
        let level = ProtocolLevel::from(self.level);
        if level == ProtocolLevel::Structured && picture.symbols.is_empty() {
            let message = format!(
                "the picture {} has no symbols that call each other",
                picture.name
            );
            return Err(Error::input(message).hint("--picture rectangles has"));
        }
        let stage = self.stage()?;
        let measured = measure(
            &stage.scene(seed),
            picture,
            &[DisplayBenchSubject::At(level)],
            trials,
        )?;
        let rates = measured
            .first()
            .map(|one| one.trials.as_slice())
            .filter(|rates| !rates.is_empty());
        let rates = rates.ok_or_else(no_rate)?;
        Ok(rates.len() as f64 / rates.iter().map(|rate| 1.0 / rate).sum::<f64>())
    }

    fn stage(&self) -> Result<DisplayTestbed> {
        DisplayTestbed::of(&self.scene, self.network.clone())
    }

    /// What it is, in words.
    pub(super) fn words(&self, picture: &DisplayPicture) -> Result<String> {
        let level = ProtocolLevel::from(self.level).name();
        let class = named(&self.class());
        Ok(format!(
            "{} at level {level}, class {class}, display at {}",
            picture.name,
            self.stage()?.place()
        ))
    }

    /// Whether changes alone are sent.
    pub(super) fn is_distributed(&self) -> bool {
        self.class() == ClassFlag::Distributed
    }

    const fn class(&self) -> ClassFlag {
        self.scene.class
    }

    /// Sets what a flag says to a level.
    fn set(&mut self, name: &str, level: &FactorLevel) -> Result<()> {
        let text = match level {
            FactorLevel::AsWritten => return Ok(()),
            FactorLevel::Text(text) => text.clone(),
            FactorLevel::Times(_) => {
                let error = Error::input(format!(
                    "factor `{name}`: there are no multiples of what a flag says"
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
                self.scene.gathers = gathers(&text.replace(' ', "")).map_err(wrong)?;
            }
        }
        Ok(())
    }
}

/// What can be varied, in words.
fn what() -> String {
    format!(
        "of a display there are {}, of its network bandwidth, delay, loss, queue, mtu, cpu and buffer",
        FLAGS.join(", ")
    )
}

/// A factor of which there is none, or a level at which nothing differs.
fn without_effect(factor: &Factor, level: &FactorLevel, text: &str) -> Error {
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
    let is_word = |word: &str| word == name;
    let is_written = text
        .split(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .any(is_word);
    let hint = something_else(&factor.name);
    if !is_written && !FLAGS.contains(&name) && !NETWORK.contains(&name) && hint.starts_with(OTHER)
    {
        return Error::input(format!("there is no factor `{}`", factor.name)).hint(what());
    }
    Error::input(format!(
        "factor `{}`: at {level} nothing differs",
        factor.name
    ))
    .hint(hint)
}

/// What to write in the place of a factor at which nothing differs.
fn something_else(name: &str) -> String {
    match name {
        "request" | "pixel" | "rectangle" | "letter" | "added" | "added_rectangle" | "answer" => {
            format!(
                "what `{name}` of --draw takes follows the processor of the display's host: vary that, as in `cpu of HOST x 2`"
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
            "a variable varies what a host does: `{name} <V>` in its network, `1 from A to B rr across NETWORK; V = 9 ms` behind it, \
             and `-f 'V = 9 ms, 1 ms'`"
        ),
        _ => format!("{OTHER}; {}", what()),
    }
}

/// What a flag can say, by its name.
fn one_of<F: ValueEnum>(name: &str, text: &str) -> Result<F> {
    F::from_str(text, false).map_err(|_| {
        let all: Vec<String> = F::value_variants().iter().map(named).collect();
        Error::input(format!("factor `{name}`: there is no `{text}`"))
            .hint(format!("there are {}", all.join(", ")))
    })
}

fn named<F: ValueEnum>(flag: &F) -> String {
    flag.to_possible_value()
        .map_or_else(String::new, |value| value.get_name().to_owned())
}

/// A specification, flags, and what is varied in both.
pub(super) struct Combinations<'f> {
    source: SpecSource,
    flags: &'f DisplayFactors,
    pub(super) factors: Vec<Factor>,
    /// The display's host and the client's, whatever is varied.
    hosts: [String; 2],
}

impl<'f> Combinations<'f> {
    /// Tries every level by itself, and whether factors change different things.
    pub(super) fn new(
        flags: &'f DisplayFactors,
        source: SpecSource,
        factors: Vec<Factor>,
    ) -> Result<Self> {
        let mut all = Self {
            source,
            flags,
            factors,
            hosts: Default::default(),
        };
        let network = all.network(&[])?;
        let scene = DisplayScene {
            class: ClassFlag::Agent,
            over: None,
            display_over: None,
            ..flags.scene.clone()
        };
        all.hosts = DisplayTestbed::of(&scene, network)?.hosts();
        let base = all.of(&vec![0; all.factors.len()])?;
        for factor in &all.factors {
            for level in factor.levels.iter().skip(1) {
                if all.changed(&[(factor, level)])?.same(&base) {
                    return Err(without_effect(factor, level, &all.source.text));
                }
            }
        }
        for (at, one) in all.factors.iter().enumerate() {
            for other in &all.factors[at + 1..] {
                are_apart(
                    (one, other),
                    |changes| all.changed(changes),
                    Combination::same,
                )?;
            }
        }
        Ok(all)
    }

    /// The combination of a row of a design.
    pub(super) fn of(&self, row: &[usize]) -> Result<Combination> {
        self.changed(&self.levels(row))
    }

    /// All factors at their first level, but for some.
    pub(super) fn at(&self, changed: &[(usize, FactorLevel)]) -> Result<Combination> {
        let mut changes = self.levels(&vec![0; self.factors.len()]);
        for (factor, level) in changed {
            changes[*factor].1 = level;
        }
        self.changed(&changes)
    }

    /// The factors at the levels of a row.
    pub(super) fn levels(&self, row: &[usize]) -> Vec<(&Factor, &FactorLevel)> {
        self.factors
            .iter()
            .zip(row)
            .map(|(factor, level)| (factor, &factor.levels[*level]))
            .collect()
    }

    fn changed(&self, changes: &[(&Factor, &FactorLevel)]) -> Result<Combination> {
        let is_flag = |change: &&(&Factor, &FactorLevel)| FLAGS.contains(&change.0.name.as_str());
        let of_network: Vec<(&Factor, &FactorLevel)> = changes
            .iter()
            .filter(|change| !is_flag(change))
            .copied()
            .collect();
        let scene = DisplayScene {
            display: Some(self.hosts[0].clone()),
            ..self.flags.scene.clone()
        };
        let network = self
            .network(&of_network)
            .map_err(|error| with_levels(changes, error))?;
        let mut combination = Combination {
            network,
            scene,
            level: self.flags.level,
        };
        for (factor, level) in changes.iter().filter(is_flag) {
            combination.set(&factor.name, level)?;
        }
        // A local client is where the display is, whatever it is for other classes.
        if combination.class() != ClassFlag::Local {
            combination
                .scene
                .client
                .get_or_insert_with(|| self.hosts[1].clone());
        } else if self.factors.iter().any(|factor| factor.name == "class") {
            combination.scene.client = None;
        }
        combination
            .stage()
            .map_err(|error| with_levels(changes, error))?;
        Ok(combination)
    }

    fn network(&self, changes: &[(&Factor, &FactorLevel)]) -> Result<Network> {
        if let Some((factor, _)) = changes
            .iter()
            .find(|(factor, _)| factor.is_of_measurement())
        {
            let message = format!(
                "factor `{}` is of a measurement, and a display has none",
                factor.name
            );
            return Err(Error::input(message).hint(what()));
        }
        // What drawing takes is said by a flag.
        let working: Vec<&str> = if self.flags.scene.draw.takes_time() {
            vec![&self.hosts[0]]
        } else {
            Vec::new()
        };
        let varied = self
            .source
            .varied(vary_beside(&self.source.text, None, changes, &working)?);
        network_stack::one_of(
            varied.declared()?.networks,
            &varied.name,
            self.flags.scene.network.as_deref(),
        )
    }
}
