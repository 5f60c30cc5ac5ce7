//! The labelled corpus as `cases.toml` and `elsewhere.toml` have it. Makes each case's text; runs nothing.

use serde::Deserialize;
use std::collections::BTreeMap;

const PROCEDURES: &str = include_str!("procedures.stackline");
const FILES: [&str; 2] = [include_str!("cases.toml"), include_str!("elsewhere.toml")];

/// One run with its label.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// What is planted, and which case of it this is.
    pub(crate) name: String,
    /// The kind that has to be at rank one.
    pub(crate) label: String,
    /// The specification.
    pub(crate) text: String,
    /// Whether it was held out.
    pub(crate) held: bool,
    /// In which world it runs.
    pub(crate) world: String,
    /// What is done beside the specification.
    pub(crate) plant: Plant,
}

/// What a specification cannot plant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Plant {
    /// Nothing.
    #[default]
    Nothing,
    /// The network says nothing of itself, as in the live world: its counts and its events are taken away.
    Blind,
    /// So many of a hundred events are taken away and counted as lost.
    Lose(u32),
    /// The responder's process is stopped after so many ms, for so many ms.
    Pause(u64, u64),
    /// So many other programs compute on core 0, which both ends are pinned to.
    Crowd(u32),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    held: bool,
    networks: BTreeMap<String, String>,
    family: Vec<Family>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Family {
    name: String,
    planted: String,
    #[serde(default = "simulated")]
    world: String,
    #[serde(default)]
    network: String,
    cases: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    seed: u64,
    #[serde(default)]
    held: bool,
    network: Option<String>,
    #[serde(default = "one")]
    pairs: usize,
    measure: String,
    #[serde(default)]
    plant: Plant,
    /// What stands for the words of the network in capitals.
    #[serde(flatten)]
    words: BTreeMap<String, String>,
}

fn simulated() -> String {
    "simulated".into()
}

fn one() -> usize {
    1
}

/// All cases; `other` is added to each case's seed: chance that nobody has looked at.
pub(crate) fn all(other: u64) -> Vec<Case> {
    let mut cases = Vec::new();
    for file in FILES {
        let File {
            held,
            networks,
            family,
        } = toml::from_str(file).unwrap_or_else(|error| panic!("{error}"));
        for Family {
            name,
            planted,
            world,
            network,
            cases: rows,
        } in family
        {
            for (row, number) in rows.into_iter().zip(1..) {
                let named = row.network.as_ref().unwrap_or(&network);
                let text = row.text(networks.get(named).unwrap_or(named), &world, other);
                let (name, label, world) =
                    (format!("{name} {number}"), planted.clone(), world.clone());
                cases.push(Case {
                    name,
                    label,
                    text,
                    held: held || row.held,
                    world,
                    plant: row.plant,
                });
            }
        }
    }
    cases
}

impl Row {
    fn text(&self, network: &str, world: &str, other: u64) -> String {
        let lines: Vec<String> = network
            .lines()
            .map(|line| self.for_each_pair(line, "\n"))
            .collect();
        let mut network = lines.join("\n");
        for (word, text) in &self.words {
            assert!(network.contains(word), "there is no {word} in: {network}");
            network = network.replace(word, text);
        }
        // The clause stands before the colon of a composer, else at the end.
        let measurement = match self.measure.split_once(": ") {
            Some((composer, part)) => {
                format!(
                    "{composer} across n in {world}: {}",
                    self.for_each_pair(part, " | ")
                )
            }
            None => format!("{} across n in {world}", self.measure),
        };
        format!(
            "seed {};\n{PROCEDURES}network n {{\n{network}\n}}\n1 {measurement};\n",
            self.seed + other
        )
    }

    fn for_each_pair(&self, piece: &str, between: &str) -> String {
        let count = if piece.contains("{}") { self.pairs } else { 1 };
        (0..count)
            .map(|at| piece.replace("{}", &at.to_string()))
            .collect::<Vec<_>>()
            .join(between)
    }
}
