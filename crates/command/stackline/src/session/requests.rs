//! The requests of a session: their form, and which of their fields exist.

use serde::Deserialize;
use serde_json::{Number, Value};
use stackline_core::error::{Error, Result};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A line that was understood.
#[derive(Debug)]
pub(super) enum SessionRequest {
    /// Ends a request early.
    Cancel(u64),
    /// Ends the session.
    Quit,
    /// Is carried out in its turn.
    Work { id: u64, work: Box<SessionWork> },
}

/// What is to be done.
#[derive(Debug)]
pub(super) enum SessionWork {
    Run(RequestedRun),
    Simulate(RequestedStudy),
    Check(RequestedText),
    Predict(RequestedPrediction),
    Compare(RequestedComparison),
}

/// A line that was not understood; its id, if that could be read.
#[derive(Debug)]
pub(super) struct Unread {
    pub(super) id: Option<u64>,
    pub(super) error: Error,
}

/// A specification, and what replaces parts of it.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct RequestedText {
    /// The text itself.
    pub(super) specification: Option<String>,
    /// Or its file.
    pub(super) file: Option<PathBuf>,
    /// Values of variables, instead of those in the text.
    #[serde(default)]
    pub(super) variables: BTreeMap<String, VariableValues>,
    pub(super) over: Option<String>,
    pub(super) world: Option<String>,
    /// In the form of `--host`.
    #[serde(default)]
    pub(super) hosts: Vec<String>,
    pub(super) seed: Option<u64>,
    #[serde(default)]
    pub(super) cpu: Vec<usize>,
    #[serde(flatten)]
    unknown: BTreeMap<String, Value>,
}

impl RequestedText {
    /// A text as it is.
    pub(super) fn plain(text: &str) -> Self {
        Self {
            specification: Some(text.to_owned()),
            ..Self::default()
        }
    }
}

/// The value of a variable, or several.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum VariableValues {
    Number(Number),
    Text(String),
    Several(Vec<Self>),
}

impl VariableValues {
    /// As it is written in a specification.
    pub(super) fn written(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Text(text) => text.clone(),
            Self::Several(values) => {
                let values: Vec<String> = values.iter().map(Self::written).collect();
                values.join(", ")
            }
        }
    }
}

/// `run`.
#[derive(Debug, Deserialize)]
pub(super) struct RequestedRun {
    #[serde(default)]
    pub(super) trace: bool,
    /// Whether the runs are kept in a directory.
    #[serde(default = "yes")]
    pub(super) keep: bool,
    /// The given name of the directory.
    pub(super) name: Option<String>,
    /// Directory for the files of `< file` and `> file`.
    pub(super) files: Option<PathBuf>,
    #[serde(default)]
    pub(super) percentiles: Vec<String>,
    #[serde(flatten)]
    pub(super) text: RequestedText,
}

const fn yes() -> bool {
    true
}

/// `simulate`: many specifications, none of which is kept.
#[derive(Debug, Deserialize)]
pub(super) struct RequestedStudy {
    pub(super) specifications: Vec<StudiedText>,
    #[serde(default)]
    pub(super) percentiles: Vec<String>,
    #[serde(flatten)]
    unknown: BTreeMap<String, Value>,
}

/// A specification of a study: its text, or a text with what replaces parts of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum StudiedText {
    Plain(String),
    Whole(Box<RequestedText>),
}

/// `predict`.
#[derive(Debug, Deserialize)]
pub(super) struct RequestedPrediction {
    /// Takes up to a minute for what no form covers, instead of two seconds.
    #[serde(default)]
    pub(super) simulate: bool,
    /// Simulates nothing.
    #[serde(default)]
    pub(super) forms: bool,
    /// A kept run whose figures stand beside the predictions.
    pub(super) run: Option<PathBuf>,
    #[serde(flatten)]
    pub(super) text: RequestedText,
}

/// `compare`: two kept runs, or the stacks of one.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RequestedComparison {
    pub(super) before: PathBuf,
    pub(super) after: Option<PathBuf>,
}

/// The words of requests that are carried out.
const WORDS: [&str; 5] = ["run", "simulate", "check", "predict", "compare"];

impl SessionRequest {
    /// Reads a line.
    pub(super) fn parse(line: &[u8]) -> Result<Self, Unread> {
        let unread = |id, error| Unread { id, error };
        let mut fields: BTreeMap<String, Value> =
            serde_json::from_slice(line).map_err(|cause| {
                let message = format!("the line is not a JSON object: {cause}");
                unread(None, Error::input(message).hint(EXAMPLE))
            })?;
        let number = |value: Value, what: &str| {
            let wrong = || Error::input(format!("{what} has to be a whole number, not {value}"));
            value.as_u64().ok_or_else(wrong)
        };
        let id = fields.remove("id").map(|value| number(value, "`id`"));
        let id = id.transpose().map_err(|error| unread(None, error))?;
        let mut asked = fields.into_iter();
        let (Some((word, value)), None) = (asked.next(), asked.next()) else {
            let message = "a request has an id and one word of what to do";
            return Err(unread(id, Error::input(message).hint(EXAMPLE)));
        };
        match (&word[..], id) {
            ("quit", _) => Ok(Self::Quit),
            ("cancel", _) => number(value, "`cancel`")
                .map(Self::Cancel)
                .map_err(|error| unread(id, error)),
            (word, Some(id)) if WORDS.contains(&word) => SessionWork::read(word, value)
                .map(|work| {
                    let work = Box::new(work);
                    Self::Work { id, work }
                })
                .map_err(|error| unread(Some(id), error)),
            (word, None) if WORDS.contains(&word) => {
                let message = format!("`{word}` needs an `id`, which its answer has too");
                Err(unread(None, Error::input(message).hint(EXAMPLE)))
            }
            (word, id) => {
                let known = WORDS.join(", ");
                let error = Error::input(format!("`{word}` is not a request"))
                    .hint(format!("use one of {known}, cancel, quit"));
                Err(unread(id, error))
            }
        }
    }
}

/// A line that works.
const EXAMPLE: &str =
    r#"write a line such as {"id": 1, "check": {"specification": "10 rr 32*1000"}}"#;

impl SessionWork {
    fn read(word: &str, value: Value) -> Result<Self> {
        let wrong = |cause: serde_json::Error| Error::input(format!("`{word}`: {cause}"));
        let work = match word {
            "run" => Self::Run(serde_json::from_value(value).map_err(wrong)?),
            "simulate" => Self::Simulate(serde_json::from_value(value).map_err(wrong)?),
            "check" => Self::Check(serde_json::from_value(value).map_err(wrong)?),
            "predict" => Self::Predict(serde_json::from_value(value).map_err(wrong)?),
            _ => Self::Compare(serde_json::from_value(value).map_err(wrong)?),
        };
        let unknown = match &work {
            Self::Run(run) => vec![&run.text.unknown],
            Self::Check(text) => vec![&text.unknown],
            Self::Predict(prediction) => vec![&prediction.text.unknown],
            Self::Simulate(study) => {
                let whole = study.specifications.iter().filter_map(|text| match text {
                    StudiedText::Plain(_) => None,
                    StudiedText::Whole(text) => Some(&text.unknown),
                });
                whole.chain([&study.unknown]).collect()
            }
            Self::Compare(_) => Vec::new(),
        };
        match unknown.into_iter().find_map(BTreeMap::first_key_value) {
            Some((field, _)) => Err(Error::input(format!("`{word}` has no field `{field}`"))
                .hint("docs/JSON.md, section session, lists the fields")),
            None => Ok(work),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(line: &str) -> (Option<u64>, String) {
        let unread = SessionRequest::parse(line.as_bytes()).unwrap_err();
        (unread.id, unread.error.message)
    }

    #[test]
    fn a_field_that_does_not_exist_is_refused_by_name() {
        for (line, message) in [
            (
                r#"{"id": 7, "run": {"specification": "", "kep": true}}"#,
                "`run` has no field `kep`",
            ),
            (
                r#"{"id": 7, "check": {"specification": "", "keep": true}}"#,
                "`check` has no field `keep`",
            ),
            (
                r#"{"id": 7, "simulate": {"specifications": [{"specification": "", "name": "x"}]}}"#,
                "`simulate` has no field `name`",
            ),
            (
                r#"{"id": 7, "simulate": {"specifications": [], "seed": 1}}"#,
                "`simulate` has no field `seed`",
            ),
            (r#"{"id": 7, "think": {}}"#, "`think` is not a request"),
            (
                r#"{"id": 7, "run": {}, "check": {}}"#,
                "a request has an id and one word of what to do",
            ),
        ] {
            assert_eq!(refused(line), (Some(7), message.to_owned()), "{line}");
        }
        let (_, message) = refused(r#"{"id": 1, "compare": {"before": "a", "afer": "b"}}"#);
        assert!(message.contains("unknown field `afer`"), "{message}");
        for line in ["", "[", "7", "{\"id\": -1}", "{\"check\": {}}", "\u{1}"] {
            assert_eq!(refused(line).0, None, "{line}");
        }
    }

    #[test]
    fn a_run_has_its_own_fields_and_those_of_its_text() {
        let line = r#"{"id": 1, "run": {"file": "a", "variables": {"N": [1, "8 KiB"], "M": 0.5}, "seed": 18446744073709551615, "keep": false}}"#;
        let Ok(SessionRequest::Work { id: 1, work }) = SessionRequest::parse(line.as_bytes())
        else {
            panic!("{line}")
        };
        let SessionWork::Run(run) = *work else {
            panic!("{work:?}")
        };
        assert!(!run.keep && !run.trace);
        assert_eq!(run.text.seed, Some(u64::MAX));
        let values = run.text.variables.values();
        let written: Vec<String> = values.map(VariableValues::written).collect();
        assert_eq!(written, ["0.5", "1, 8 KiB"]);
    }
}
