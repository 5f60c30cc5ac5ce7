//! A baseline: the figures of a run as a small text that can be kept in a repository. Equal figures give equal bytes: keys are
//! sorted, each measurement has a line, and there is neither a date nor a path in it.

use crate::Error;
use crate::run_reader::StoredRun;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stackline_guard::files as guard_files;
use std::collections::BTreeMap;
use std::path::Path;

/// What stands in `format` of each baseline.
const FORMAT: &str = "stackline baseline";
/// The version of the form that is written, and the newest that is read.
const VERSION: u64 = 1;
/// The largest baseline that is read, in bytes.
const LARGEST: u64 = 16 << 20;
/// No figure is larger: ten times the bit/s of the fastest thinkable path, in seconds an age.
const LARGEST_FIGURE: f64 = 1e18;
/// What can be done about a baseline that cannot be read.
const AGAIN: &str =
    "restore it from the repository, or save it again with `stackline gate --save FILE RUN`";

/// Properties of a machine on which figures depend, by name: `processor`, `kernel`.
pub type MachineFacts = BTreeMap<String, String>;

/// The figures of a run, and where they were measured. The fields are in the order of their names, as in the text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Baseline {
    /// The machines by the names of their hosts; none where everything was simulated.
    pub machines: BTreeMap<String, MachineFacts>,
    /// The measurements, in the order of the plan.
    pub measurements: Vec<BaselineMeasurement>,
    /// The version of stackline that measured.
    pub stackline: String,
}

/// A measurement, or a part of one, with the figures of each run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BaselineMeasurement {
    /// Name of the application type.
    pub application: String,
    /// By name (`response_s`, `throughput_bit_s`, `connect_s`): a value for each counted run, with nine digits.
    pub figures: BTreeMap<String, Vec<f64>>,
    /// The part as written.
    pub part: String,
    /// Index of the part; absent for all parts together.
    pub part_index: Option<usize>,
    /// The stack with its options.
    pub stack: String,
    /// The measurement as written.
    pub text: String,
}

/// What of a baseline is not measurements.
#[derive(Deserialize)]
struct BaselineHead {
    machines: BTreeMap<String, MachineFacts>,
    measurements: Vec<BaselineMeasurement>,
    stackline: String,
}

impl Baseline {
    /// The text of the baseline.
    #[must_use]
    pub fn text(&self) -> String {
        let line = |measurement: &BaselineMeasurement| {
            let mut rounded = measurement.clone();
            for value in rounded.figures.values_mut().flatten() {
                *value = round(*value);
            }
            format!("    {}", serde_json::json!(rounded))
        };
        let lines: Vec<String> = self.measurements.iter().map(line).collect();
        let machines = serde_json::json!(self.machines);
        let stackline = serde_json::json!(self.stackline);
        format!(
            "{{\n  \"format\": \"{FORMAT}\",\n  \"machines\": {machines},\n  \"measurements\": [\n{}\n  ],\n  \"stackline\": {stackline},\n  \"version\": {VERSION}\n}}\n",
            lines.join(",\n")
        )
    }

    /// Reads a baseline from a file.
    ///
    /// # Errors
    /// When it cannot be read, is cut off or no baseline, or was written by a newer version.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let shown = path.display();
        let text = guard_files::read_text(path, LARGEST).map_err(|cause| {
            Error::input(format!("cannot read the baseline {shown}"), AGAIN).because(&cause)
        })?;
        Self::parse(&text).map_err(|wrong| match wrong {
            WrongBaseline::Newer(version) => Error::input(
                format!("the baseline {shown} has version {version}, but this stackline reads up to {VERSION}"),
                "use the stackline that saved it, or save it again with this one",
            ),
            WrongBaseline::Foreign => {
                Error::input(format!("{shown} is not a baseline"), "name a run, or a file that `stackline gate --save FILE RUN` wrote")
            }
            WrongBaseline::Damaged(cause) => {
                Error::input(format!("the baseline {shown} is damaged"), AGAIN).because(&cause)
            }
        })
    }

    fn parse(text: &str) -> Result<Self, WrongBaseline> {
        let damaged = |cause: serde_json::Error| WrongBaseline::Damaged(cause.to_string());
        let value: Value = serde_json::from_str(text).map_err(|cause| {
            // A text that is cut off begins as a baseline does.
            match text.contains(FORMAT) {
                true => damaged(cause),
                false => WrongBaseline::Foreign,
            }
        })?;
        if value.get("format").and_then(Value::as_str) != Some(FORMAT) {
            return Err(WrongBaseline::Foreign);
        }
        match value.get("version").and_then(Value::as_u64) {
            Some(version) if version > VERSION => return Err(WrongBaseline::Newer(version)),
            Some(1..) => {}
            _ => return Err(WrongBaseline::Damaged("it has no version".to_owned())),
        }
        let head: BaselineHead = serde_json::from_value(value).map_err(damaged)?;
        let figures = head
            .measurements
            .iter()
            .flat_map(|one| one.figures.values());
        let is_possible = |value: &&f64| (0.0..LARGEST_FIGURE).contains(*value);
        if let Some(wrong) = figures.flatten().find(|value| !is_possible(value)) {
            let cause = format!("no figure can be {wrong}");
            return Err(WrongBaseline::Damaged(cause));
        }
        Ok(Self {
            machines: head.machines,
            measurements: head.measurements,
            stackline: head.stackline,
        })
    }
}

/// Why a text cannot be read as a baseline.
#[derive(Debug, PartialEq)]
enum WrongBaseline {
    /// It was written by a version that is not known here.
    Newer(u64),
    /// It is something else.
    Foreign,
    /// It is a baseline, but not a whole one.
    Damaged(String),
}

/// A figure with nine digits: more than any measurement has, and the same on every machine.
fn round(value: f64) -> f64 {
    format!("{value:.8e}").parse().unwrap_or(value)
}

/// Properties of the machines of a run, by the names of their hosts: only those on which figures depend.
#[must_use]
pub fn machines_of(run: &StoredRun) -> BTreeMap<String, MachineFacts> {
    machines_in(&run.environment)
}

/// The machines that the description of an environment names, by the names of their hosts.
#[must_use]
pub fn machines_in(environment: &Value) -> BTreeMap<String, MachineFacts> {
    let mut found = BTreeMap::new();
    let worlds = environment.get("worlds").and_then(Value::as_object);
    for world in worlds.into_iter().flat_map(|worlds| worlds.values()) {
        let networks = world.get("networks").and_then(Value::as_object);
        let scenes = networks.into_iter().flat_map(|networks| networks.values());
        for scene in scenes.chain([world]) {
            let hosts = scene.get("hosts").and_then(Value::as_object);
            for (name, host) in hosts.into_iter().flatten() {
                if let Some(fixed) = host.get("static") {
                    found.insert(name.clone(), facts(fixed));
                }
            }
        }
    }
    found
}

/// The version of stackline that made a run; empty where that is not known.
#[must_use]
pub fn version_of(run: &StoredRun) -> String {
    let version = run.environment.get("stackline").and_then(Value::as_str);
    version.unwrap_or_default().to_owned()
}

/// Names of facts, and where they stand in the description of a machine.
const FACTS: [(&str, &str); 6] = [
    ("architecture", "/system/architecture"),
    ("governor", "/processor/frequency/governor"),
    ("hypervisor", "/system/hypervisor"),
    ("kernel", "/system/kernel"),
    ("processor", "/processor/model"),
    ("processors", "/processor/online"),
];

fn facts(fixed: &Value) -> MachineFacts {
    let fact = |(name, place): (&str, &str)| {
        let text = match fixed.pointer(place)? {
            Value::String(text) => text.clone(),
            Value::Null => return None,
            other => other.to_string(),
        };
        Some((name.to_owned(), text))
    };
    FACTS.into_iter().filter_map(fact).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn baseline() -> Baseline {
        let machine = [("kernel", "6.1"), ("processor", "a \"quoted\" one")];
        let machine = machine.map(|(name, fact)| (name.to_owned(), fact.to_owned()));
        let measurement = |text: &str| BaselineMeasurement {
            application: "request_response".into(),
            figures: [("response_s".to_owned(), vec![1.0 / 3.0e3, 3.4e-4])].into(),
            part: text.into(),
            part_index: Some(0),
            stack: "tcp".into(),
            text: text.into(),
        };
        Baseline {
            machines: [("local".to_owned(), machine.into())].into(),
            measurements: vec![measurement("2 rr 32*10"), measurement("2 rr 64*10")],
            stackline: "0.1.0".into(),
        }
    }

    #[test]
    fn a_baseline_is_small_sorted_and_the_same_again() {
        let text = baseline().text();
        assert_eq!(text, BASELINE);
        let again = Baseline::parse(&text).unwrap();
        assert_eq!(again.text(), text);
        let value: Value = serde_json::from_str(&text).unwrap();
        let keys: Vec<&String> = value.as_object().unwrap().keys().collect();
        assert!(keys.is_sorted(), "{keys:?}");
        let measured = value["measurements"][0].as_object().unwrap();
        assert!(measured.keys().is_sorted());
    }

    const BASELINE: &str = r#"{
  "format": "stackline baseline",
  "machines": {"local":{"kernel":"6.1","processor":"a \"quoted\" one"}},
  "measurements": [
    {"application":"request_response","figures":{"response_s":[0.000333333333,0.00034]},"part":"2 rr 32*10","part_index":0,"stack":"tcp","text":"2 rr 32*10"},
    {"application":"request_response","figures":{"response_s":[0.000333333333,0.00034]},"part":"2 rr 64*10","part_index":0,"stack":"tcp","text":"2 rr 64*10"}
  ],
  "stackline": "0.1.0",
  "version": 1
}
"#;

    #[test]
    fn what_is_cut_off_newer_or_foreign_is_refused() {
        let text = baseline().text();
        for length in 40..text.len() - 2 {
            if text.is_char_boundary(length) {
                let cut = Baseline::parse(&text[..length]);
                assert!(
                    matches!(cut, Err(WrongBaseline::Damaged(_))),
                    "{length}: {cut:?}"
                );
            }
        }
        let newer = text.replace("\"version\": 1", "\"version\": 2, \"more\": []");
        assert_eq!(Baseline::parse(&newer), Err(WrongBaseline::Newer(2)));
        for foreign in [
            "",
            "{}",
            "[]",
            "10 rr 32*10;",
            "{\"format\": \"another\", \"version\": 1}",
        ] {
            assert_eq!(
                Baseline::parse(foreign),
                Err(WrongBaseline::Foreign),
                "{foreign}"
            );
        }
        let wrong = [
            ("\"version\": 1", "\"version\": \"1\""),
            ("0.00034", "-1"),
            ("0.00034", "1e300"),
            ("0.00034", "null"),
            ("\"tcp\"", "7"),
            ("\"machines\"", "\"engines\""),
        ];
        for (from, to) in wrong {
            let found = Baseline::parse(&text.replace(from, to));
            assert!(
                matches!(found, Err(WrongBaseline::Damaged(_))),
                "{to}: {found:?}"
            );
        }
    }

    #[test]
    fn a_machine_is_what_figures_depend_on() {
        let fixed = serde_json::json!({
            "processor": {"model": "X", "online": 4, "microcode": "0x1"},
            "system": {"kernel": "6.1", "hypervisor": true, "absent": {}},
        });
        let facts = facts(&fixed);
        let all: Vec<(&str, &str)> = facts
            .iter()
            .map(|(a, b)| (a.as_str(), b.as_str()))
            .collect();
        assert_eq!(
            all,
            [
                ("hypervisor", "true"),
                ("kernel", "6.1"),
                ("processor", "X"),
                ("processors", "4")
            ]
        );
    }
}
