//! Evaluates values with their variables filled in: whole numbers, sizes and times within bounds, and distributions.

use super::referenced_files::SpecFiles;
use super::series::is_whole;
use crate::diagnostic::Diagnostic;
use crate::spelling;
use crate::tree::{Base, DistributionItem, SpecUnit, SpecValue};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use stackline_core::distribution::{Distribution, TABLE};
use stackline_core::time::Duration;

/// Longest time that may be written, in seconds.
pub(crate) const LONGEST: f64 = 1e6;
/// Largest number of cores that a host may have.
pub(crate) const MOST_CORES: u64 = 4095;

/// The current values of swept variables.
#[derive(Clone, Copy)]
pub(crate) struct Bindings<'b>(pub(crate) &'b [(String, f64)]);

impl Bindings<'_> {
    pub(crate) fn get(&self, name: &str) -> Option<f64> {
        self.0
            .iter()
            .find(|(variable, _)| variable == name)
            .map(|(_, value)| *value)
    }

    /// The value in its base unit. An undefined variable, which is reported elsewhere, counts as 1.
    pub(crate) fn number(&self, value: &SpecValue) -> f64 {
        let base = match &value.base {
            Base::Number(number) => *number,
            Base::Variable(name) => self.get(name).unwrap_or(1.0),
        };
        match value.unit {
            SpecUnit::PerSecond(seconds) => seconds / base,
            unit => base * unit.factor(),
        }
    }

    /// The text ` with N = 3` after a message about a value that has a variable.
    pub(crate) fn with(&self, value: &SpecValue) -> String {
        match &value.base {
            Base::Variable(name) => format!(" (with {name} = {})", self.get(name).unwrap_or(1.0)),
            Base::Number(_) => String::new(),
        }
    }

    /// A whole number from `least` to `most`. `what` begins the message.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "whole and within bounds"
    )]
    pub(crate) fn whole(
        &self,
        value: &SpecValue,
        what: &str,
        least: u64,
        most: u64,
    ) -> Result<u64, Diagnostic> {
        let number = self.number(value);
        let error =
            |message: String, label: String| Err(Diagnostic::error(value.span, message, label));
        if !is_whole(number) {
            let message = format!(
                "{what} must be a whole number, not {number}{}",
                self.with(value)
            );
            return error(message, "not a whole number".into());
        }
        let rounded = (number + 0.5) as u64;
        if rounded < least {
            let message = format!("{what} must be at least {least}{}", self.with(value));
            return error(message, format!("this is {rounded}"));
        }
        if rounded > most {
            let message = format!("{what} must be at most {most}{}", self.with(value));
            return error(message, format!("this is {rounded}"));
        }
        Ok(rounded)
    }

    /// A time above zero.
    pub(crate) fn time(&self, value: &SpecValue, what: &str) -> Result<Duration, Diagnostic> {
        let seconds = self.number(value);
        let duration = Duration::from_seconds(seconds);
        if duration == Duration::ZERO {
            let message = format!("{what} must be above zero{}", self.with(value));
            return Err(Diagnostic::error(value.span, message, "this is zero"));
        }
        if seconds > LONGEST {
            let message = format!(
                "{what} must be at most {LONGEST} seconds{}",
                self.with(value)
            );
            return Err(Diagnostic::error(value.span, message, "too long"));
        }
        Ok(duration)
    }

    /// A distribution; reads the file of an empirical one.
    pub(crate) fn distribution(
        &self,
        drawn: &DistributionItem,
        files: &mut SpecFiles<'_>,
    ) -> Result<Distribution, Diagnostic> {
        let name = spelling::fold(&drawn.name.text);
        if !spelling::is_distribution(&name) {
            let message = format!("unknown distribution `{}`", drawn.name.text);
            let known: Vec<&str> = TABLE
                .iter()
                .map(|(name, ..)| *name)
                .chain(["empirical"])
                .collect();
            let hint = format!("the distributions are {}", known.join(", "));
            return Err(
                Diagnostic::error(drawn.name.span, message, "expected a distribution")
                    .did_you_mean(&name, known, hint),
            );
        }
        match (&drawn.file, name.as_str()) {
            (Some(file), "empirical") => return files.values(file).map(Distribution::Empirical),
            (None, "empirical") => {
                return Err(Diagnostic::error(
                    drawn.span,
                    "`empirical` takes a file",
                    "expected `file` and a file name",
                )
                .hint("for example `empirical(file \"sizes.txt\")`, with one number per line"));
            }
            (Some(file), _) => {
                let message = format!("`{name}` takes numbers, not a file");
                return Err(Diagnostic::error(
                    file.span,
                    message,
                    "only `empirical` reads a file",
                ));
            }
            _ => {}
        }
        let is_never = |value: &&SpecValue| {
            matches!(value.unit, SpecUnit::PerSecond(_))
                && !(self.number(value) > 0.0 && self.number(value).is_finite())
        };
        if let Some(value) = drawn.parameters.iter().find(is_never) {
            let message = format!("a rate must be above 0{}", self.with(value));
            let label = "no further unit would ever be sent";
            return Err(Diagnostic::error(value.span, message, label));
        }
        self.parameters(&name, drawn)
    }

    fn parameters(&self, name: &str, drawn: &DistributionItem) -> Result<Distribution, Diagnostic> {
        let row = TABLE.iter().find(|(known, ..)| *known == name);
        if let Some(value) = row.and_then(|(.., plain)| drawn.parameters.get((*plain)?))
            && value.unit != SpecUnit::None
        {
            return Err(Diagnostic::error(
                value.span,
                "this parameter takes no unit",
                "expected a plain number",
            ));
        }
        let values: Vec<f64> = drawn
            .parameters
            .iter()
            .map(|value| self.number(value))
            .collect();
        Distribution::build(name, &values).map_err(|what| {
            let takes = row.map_or(&[][..], |(_, takes, ..)| *takes);
            Diagnostic::error(
                drawn.span,
                format!("invalid `{name}`: {what}"),
                "these parameters",
            )
            .hint(format!("it takes `{name}({})`", takes.join(", ")))
        })
    }
}

/// A whole number in a place where no variables are permitted.
pub(crate) fn fixed(
    value: &SpecValue,
    what: &str,
    least: u64,
    most: u64,
) -> Result<u64, Diagnostic> {
    Bindings(&[]).whole(value, what, least, most)
}
