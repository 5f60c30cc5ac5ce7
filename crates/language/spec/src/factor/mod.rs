//! Factors of a designed experiment: read out of a specification or a flag, and written into a specification at one of their levels.
//!
//! A level changes the text and nothing else, so [`crate::check`] judges every run of a design as it judges any text, and whoever wants
//! to can run one by hand. Nothing here knows designs.

mod edit;
mod level;
mod link;
mod node;
mod part;
mod written;

pub use level::Level;

use crate::Origin;
use crate::diagnostic::{Diagnostic, Report};
use crate::layout::Marked;
use crate::parse;
use crate::token::lex;
use crate::tree::{FactorItem, Item, LevelItem, LinkProperty, Varied};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use edit::{Edit, applied};
use stackline_core::error::{Error, Result};
use written::{Written, parsed};

/// What is varied, and its levels.
#[derive(Clone, Debug, PartialEq)]
pub struct Factor {
    what: Varied,
    /// As it is written, without its levels: `bandwidth of a - b`.
    pub name: String,
    /// At least two.
    pub levels: Vec<Level>,
}

impl core::fmt::Display for Factor {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let levels: Vec<String> = self
            .levels
            .iter()
            .filter(|l| **l != Level::AsWritten)
            .map(ToString::to_string)
            .collect();
        let sign = if levels.iter().all(|level| level.starts_with("x ")) {
            ""
        } else {
            "= "
        };
        write!(f, "{} {sign}{}", self.name, levels.join(", "))
    }
}

impl Factor {
    /// How many times better is better without end: `None` where more of it is no better, such as of a stack.
    #[must_use]
    pub const fn better(&self) -> Option<f64> {
        match &self.what {
            Varied::Link(LinkProperty::Bandwidth | LinkProperty::Queue, _)
            | Varied::Cpu(_)
            | Varied::Buffer(_) => Some(1000.0),
            Varied::Link(LinkProperty::Delay | LinkProperty::Loss, _) => Some(0.001),
            _ => None,
        }
    }

    /// The property of a link that it is, and which link where it is one: its ends.
    #[must_use]
    pub fn of_link(&self) -> Option<(&'static str, Option<(&str, &str)>)> {
        match &self.what {
            Varied::Link(property, ends) => Some((
                property.word(),
                ends.as_ref()
                    .map(|(first, second)| (first.as_str(), second.as_str())),
            )),
            _ => None,
        }
    }

    /// Whether its levels change how much work there is, so that times cannot be compared but for a unit of it.
    #[must_use]
    pub const fn changes_work(&self) -> bool {
        matches!(self.what, Varied::Size | Varied::Clients)
    }

    /// Whether it is of a measurement, so that declarations alone do not have it.
    #[must_use]
    pub const fn is_of_measurement(&self) -> bool {
        matches!(
            self.what,
            Varied::Stack | Varied::Size | Varied::Clients | Varied::Place(_)
        )
    }

    /// By how much a level changes it against what is written, where that is a number.
    #[must_use]
    pub fn times(&self, level: usize) -> Option<f64> {
        match self.levels.get(level)? {
            Level::AsWritten => Some(1.0),
            Level::Times(times) => Some(*times),
            Level::Text(_) => None,
        }
    }
}

/// The factors that a specification declares.
///
/// # Errors
/// Its mistakes.
pub fn factors(source: &str) -> core::result::Result<Vec<Factor>, Vec<Diagnostic>> {
    let mut report = Report::default();
    let tokens = lex(source, Origin::File, &mut report);
    let mut marked = Marked::new(source, &tokens);
    let tree = parse::parse(&mut marked, &mut report);
    if report.errors() > 0 {
        return Err(report.finish());
    }
    let items = tree.items.iter().filter_map(|item| {
        if let Item::Factor(factor) = item {
            Some(factor)
        } else {
            None
        }
    });
    Ok(items.map(|item| made(item, source)).collect())
}

/// A factor as a flag gives it: `bandwidth of a - b x 10`.
///
/// # Errors
/// Its mistakes.
pub fn factor(text: &str) -> core::result::Result<Factor, Vec<Diagnostic>> {
    let mut report = Report::default();
    let tokens = lex(text, Origin::File, &mut report);
    let mut marked = Marked::new(text, &tokens);
    let item = parse::parse_factor(&mut marked, &mut report);
    match item.filter(|_| report.errors() == 0) {
        Some(item) => Ok(made(&item, text)),
        None => Err(report.finish()),
    }
}

fn made(item: &FactorItem, source: &str) -> Factor {
    let level = |level: &LevelItem| match level {
        LevelItem::Times(times) => Level::Times(*times),
        LevelItem::Set(span) => Level::Text(
            source
                .get(span.start..span.end)
                .unwrap_or("")
                .trim()
                .to_string(),
        ),
    };
    let mut levels: Vec<Level> = item.levels.iter().map(level).collect();
    // One level alone, or multiples, stand beside what is written.
    if levels.len() < 2 || matches!(levels.first(), Some(Level::Times(_))) {
        levels.insert(0, Level::AsWritten);
    }
    Factor {
        name: named(&item.what),
        what: item.what.clone(),
        levels,
    }
}

fn named(what: &Varied) -> String {
    match what {
        Varied::Link(property, Some((first, second))) => {
            format!("{} of {first} - {second}", property.word())
        }
        Varied::Link(property, None) => property.word().to_string(),
        Varied::Cpu(Some(node)) => format!("cpu of {node}"),
        Varied::Cpu(None) => "cpu".to_string(),
        Varied::Share(Some(node)) => format!("share of {node}"),
        Varied::Share(None) => "share".to_string(),
        Varied::Buffer(Some(node)) => format!("buffer of {node}"),
        Varied::Buffer(None) => "buffer".to_string(),
        Varied::Stack => "stack".to_string(),
        Varied::Size => "size".to_string(),
        Varied::Clients => "clients".to_string(),
        Varied::Place(crate::tree::Side::From) => "from".to_string(),
        Varied::Place(crate::tree::Side::To) => "to".to_string(),
        Varied::Named(name) => name.clone(),
    }
}

/// The specification with each factor at that level. Only the measurement of `line` stays, where one is given.
///
/// # Errors
/// What cannot be varied in it, and what could.
pub fn vary(source: &str, line: Option<usize>, changes: &[(&Factor, &Level)]) -> Result<String> {
    vary_beside(source, line, changes, &[])
}

/// The same where processors of some hosts take time for what is not written in the text.
///
/// # Errors
/// As [`vary`].
pub fn vary_beside(
    source: &str,
    line: Option<usize>,
    changes: &[(&Factor, &Level)],
    working: &[&str],
) -> Result<String> {
    let mut text = match line {
        Some(line) => alone(source, line)?,
        None => source.to_string(),
    };
    for (factor, level) in changes {
        text = with(&text, factor, level, working)?;
    }
    Ok(text)
}

fn with(text: &str, factor: &Factor, level: &Level, working: &[&str]) -> Result<String> {
    if *level == Level::AsWritten {
        return Ok(text.to_string());
    }
    let edits = parsed(text, |written: Written<'_>| match &factor.what {
        Varied::Link(property, ends) => link::edits(&written, *property, ends.as_ref(), level),
        Varied::Cpu(host) => node::cpu(&written, host.as_deref(), level, working),
        Varied::Share(host) => node::share(&written, host.as_deref(), level),
        Varied::Buffer(switch) => node::buffer(&written, switch.as_deref(), level),
        Varied::Stack => part::stack(&written, level),
        Varied::Size => part::size(&written, level),
        Varied::Clients => part::clients(&written, level),
        Varied::Place(side) => part::place(&written, *side, level),
        Varied::Named(name) => part::named(&written, name, level),
    });
    edits
        .map(|edits| applied(text, edits))
        .map_err(|error| error.within(&format!("factor `{}`", factor.name)))
}

/// The text without the measurements of other lines.
fn alone(source: &str, line: usize) -> Result<String> {
    parsed(source, |written: Written<'_>| {
        let mut lines = Vec::new();
        let mut edits: Vec<Edit> = Vec::new();
        for item in &written.tree.items {
            let Item::Specification(item) = item else {
                continue;
            };
            lines.push(item.line.to_string());
            if item.line != line {
                let first = item.at.start;
                let last = written
                    .marked
                    .mark(first)
                    .extent
                    .unwrap_or(item.at.end)
                    .saturating_sub(1);
                edits.push(Edit::without(written.span(first).to(written.span(last))));
            }
        }
        if !lines.contains(&line.to_string()) {
            let message = format!("no measurement begins on line {line}");
            return Err(Error::input(message)
                .hint(format!("measurements begin on line {}", lines.join(", "))));
        }
        Ok(edits)
    })
    .map(|edits| applied(source, edits))
}
