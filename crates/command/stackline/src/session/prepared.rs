//! The specification of a request, checked: its plan, or its mistakes.

use super::answers::error_json;
use super::requests::{RequestedText, VariableValues};
use crate::checked_plan::{SpecSource, checked, refuse_empty};
use crate::exit::{Blame, Error, Result};
use crate::flags::SpecTextFlags;
use serde_json::{Value, json};
use stackline_core::named::NamedValue as _;
use stackline_core::plan::{Plan, World};
use stackline_report::MistakenTexts;
use stackline_spec::{Checked, FactorLevel};
use std::collections::BTreeMap;
use std::path::Path;

/// Why a request has no result.
#[derive(Debug)]
pub(super) struct SessionRefusal {
    pub(super) error: Error,
    /// The mistakes of a specification, as `check --json` has them.
    mistakes: Option<Value>,
    /// The result of the runs that were made before it failed.
    pub(super) so_far: Option<Value>,
}

impl From<Error> for SessionRefusal {
    fn from(error: Error) -> Self {
        Self {
            error,
            mistakes: None,
            so_far: None,
        }
    }
}

impl From<stackline_runs::Error> for SessionRefusal {
    fn from(error: stackline_runs::Error) -> Self {
        Error::from(error).into()
    }
}

impl SessionRefusal {
    /// As an answer has it.
    pub(super) fn json(&self) -> Value {
        let mut json = error_json(&self.error);
        for field in ["diagnostics", "right"] {
            if let Some(value) = self.mistakes.as_ref().map(|mistakes| &mistakes[field]) {
                json[field] = value.clone();
            }
        }
        json
    }
}

/// A specification with what replaces parts of it.
#[derive(Debug)]
pub(super) struct PreparedSpec {
    pub(super) source: SpecSource,
    pub(super) flags: SpecTextFlags,
}

/// A checked specification.
#[derive(Debug)]
pub(super) struct PreparedPlan {
    pub(super) plan: Plan,
    /// What was assumed.
    pub(super) notes: Vec<String>,
}

impl PreparedSpec {
    /// Reads the text, and puts the values of variables into it.
    pub(super) fn read(asked: &RequestedText) -> Result<Self> {
        let source = match (&asked.specification, &asked.file) {
            (Some(text), None) => SpecSource::made("specification", text.clone()),
            (None, Some(file)) if file == Path::new("-") => {
                return Err(Error::input("stdin has the requests, not a specification")
                    .hint("give the text itself as `specification`"));
            }
            (None, Some(file)) => SpecSource::read(file)?,
            _ => {
                return Err(Error::input("a request names one specification")
                    .hint("give either its text as `specification` or its path as `file`"));
            }
        };
        let world = asked.world.as_deref().map(|name| {
            let unknown = || {
                Error::input(format!("`{name}` is not a world"))
                    .hint(format!("use one of {}", World::names()))
            };
            World::named(name).ok_or_else(unknown)
        });
        let flags = SpecTextFlags {
            over: asked.over.clone(),
            world: world.transpose()?,
            hosts: asked.hosts.clone(),
            seed: asked.seed,
            cpu: asked.cpu.clone(),
            json: true,
            ..SpecTextFlags::default()
        };
        let source = with_variables(source, &asked.variables)?;
        Ok(Self { source, flags })
    }

    /// Checks it.
    pub(super) fn checked(&self) -> Result<Checked> {
        checked(&self.source, &self.flags)
    }

    /// The plan of at least one measurement.
    pub(super) fn plan(&self) -> Result<PreparedPlan, SessionRefusal> {
        let checked = self.checked()?;
        refuse_empty(&self.source, &checked)?;
        let mistakes = self.mistakes(&checked);
        match checked.plan {
            Some(plan) => Ok(PreparedPlan {
                plan,
                notes: checked.notes,
            }),
            None => Err(refused(mistakes)),
        }
    }

    /// All diagnostics as JSON.
    pub(super) fn mistakes(&self, checked: &Checked) -> Value {
        let (name, text) = self.source.named();
        let texts = MistakenTexts {
            name,
            text,
            over: self.flags.over.as_deref(),
            hosts: &self.flags.hosts,
        };
        stackline_report::mistakes_json(checked, &texts)
    }
}

/// The refusal of a wrong specification: its first mistake, with its place, and all others.
fn refused(mistakes: Value) -> SessionRefusal {
    let all = mistakes["diagnostics"].as_array();
    let first = all.and_then(|all| all.iter().find(|one| one["severity"] == json!("error")));
    let text = |name: &str| first.and_then(|first| Some(first[name].as_str()?.to_owned()));
    let place = first.map_or_else(String::new, |first| {
        format!(
            "{}, line {}: ",
            text("source").unwrap_or_default(),
            first["line"]
        )
    });
    let error = Error {
        blame: Blame::Input,
        message: format!("{place}{}", text("message").unwrap_or_default()),
        hint: text("hint"),
    };
    SessionRefusal {
        mistakes: Some(mistakes),
        ..SessionRefusal::from(error)
    }
}

/// The text with these values of its variables; of options of stacks where no variable has the name, as `factors` sets them.
fn with_variables(
    source: SpecSource,
    variables: &BTreeMap<String, VariableValues>,
) -> Result<SpecSource> {
    let mut text = source.text.clone();
    for (name, values) in variables {
        let written = values.written();
        let has_other = |c: char| matches!(c, ';' | '#' | '{' | '}' | '\n' | '\r');
        if written.trim().is_empty() || written.contains(has_other) {
            return Err(
                Error::input(format!("`{written}` is not a value of `{name}`"))
                    .hint("give a number, a text such as \"64 KiB\", or a list of these"),
            );
        }
        let factor = stackline_spec::factor(&format!("{name} = 1"));
        let factor = factor.map_err(|_| {
            Error::input(format!("`{name}` is not the name of a variable"))
                .hint("write it as in the specification, such as N")
        })?;
        text = stackline_spec::vary(&text, None, &[(&factor, &FactorLevel::Text(written))])?;
    }
    Ok(source.varied(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared(line: &str) -> Result<PreparedSpec> {
        PreparedSpec::read(&serde_json::from_str(line).unwrap())
    }

    #[test]
    fn values_of_variables_take_the_place_of_those_in_the_text() {
        let line = r#"{"specification": "1 rr N*M; N = 1, 8; M = 5;", "variables": {"N": [2, "1 KiB"], "M": 7}}"#;
        let spec = prepared(line).unwrap();
        assert_eq!(spec.source.text, "1 rr N*M; N = 2, 1 KiB; M = 7;");
        let sizes = spec.plan().unwrap().plan.measurements;
        assert_eq!(sizes.len(), 2);
    }

    #[test]
    fn a_value_cannot_bring_another_statement() {
        for value in ["1; 1 rr 5*5", "", " ", "1\n2", "1 # 2"] {
            let request = json!({"specification": "1 rr N*5; N = 1", "variables": {"N": value}});
            assert!(prepared(&request.to_string()).is_err(), "{value}");
        }
    }

    #[test]
    fn a_mistake_is_said_with_its_line() {
        let spec = prepared(r#"{"specification": "seed 1;\n1 rr 32*5 over tcpp"}"#).unwrap();
        let refusal = spec.plan().unwrap_err();
        assert!(
            refusal.error.message.starts_with("specification, line 2: "),
            "{}",
            refusal.error.message
        );
        assert_eq!(refusal.json()["diagnostics"][0]["line"], 2);
        let nothing = prepared(r#"{"specification": "seed 1;"}"#).unwrap();
        assert!(
            nothing
                .plan()
                .unwrap_err()
                .error
                .message
                .contains("nothing to do")
        );
        for line in [
            "{}",
            r#"{"file": "-"}"#,
            r#"{"specification": "", "world": "none"}"#,
        ] {
            assert!(prepared(line).is_err(), "{line}");
        }
    }
}
