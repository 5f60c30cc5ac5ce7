//! Factors of a designed experiment. A factor is a property that is varied; its levels are the values it takes. This
//! module reads factors from a specification or a flag, and writes a specification text with factors at given levels.
//!
//! A level changes only the text, so [`crate::check`] checks each run of a design like any other text, and each can be
//! run by hand. Which levels a design combines is decided elsewhere.

mod level;
mod level_edit;
mod link_levels;
mod node_levels;
mod offered_load;
mod part_levels;
mod written_spec;

pub use level::FactorLevel;
pub use offered_load::{
    LoadExtent, OFFERED, OfferedLoad, WrittenLoad, with_offered_load, written_load,
};

use crate::TextOrigin;
use crate::diagnostic::{Diagnostic, DiagnosticReport};
use crate::parse;
use crate::token::lex;
use crate::token_layout::Marked;
use crate::tree::{FactorItem, LevelItem, LinkProperty, SpecItem, VariedProperty};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use level_edit::{LevelEdit, apply_edits};
use stackline_core::error::{Error, Result};
use written_spec::{WrittenSpec, with_parsed};

/// A property that is varied, with its levels.
#[derive(Clone, Debug, PartialEq)]
pub struct Factor {
    what: VariedProperty,
    /// The property as it is written, without the levels: `bandwidth of a - b`.
    pub name: String,
    /// The levels, at least two.
    pub levels: Vec<FactorLevel>,
}

impl core::fmt::Display for Factor {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let levels: Vec<String> = self
            .levels
            .iter()
            .filter(|l| **l != FactorLevel::AsWritten)
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
    /// The multiple of the written value that stands for an ideal one: 1000 for a bandwidth, 0.001 for a delay. `None`
    /// for a property such as the stack, of which neither more nor less is simply better.
    #[must_use]
    pub const fn better(&self) -> Option<f64> {
        match &self.what {
            VariedProperty::Link(LinkProperty::Bandwidth | LinkProperty::Queue, _)
            | VariedProperty::Cpu(_)
            | VariedProperty::Buffer(_) => Some(1000.0),
            VariedProperty::Link(LinkProperty::Delay | LinkProperty::Loss, _) => Some(0.001),
            _ => None,
        }
    }

    /// For a property of links: its word, and the ends of the link if it is that of one link.
    #[must_use]
    pub fn of_link(&self) -> Option<(&'static str, Option<(&str, &str)>)> {
        match &self.what {
            VariedProperty::Link(property, ends) => Some((
                property.word(),
                ends.as_ref()
                    .map(|(first, second)| (first.as_str(), second.as_str())),
            )),
            _ => None,
        }
    }

    /// Whether its levels change the amount of work, so that times can be compared only per unit of work.
    #[must_use]
    pub const fn changes_work(&self) -> bool {
        matches!(self.what, VariedProperty::Size | VariedProperty::Clients)
    }

    /// Whether it is a property of measurements, so that a text with only declarations does not have it.
    #[must_use]
    pub const fn is_of_measurement(&self) -> bool {
        matches!(
            self.what,
            VariedProperty::Stack
                | VariedProperty::Size
                | VariedProperty::Clients
                | VariedProperty::Place(_)
        )
    }

    /// The multiple of the written value that the level stands for; `None` for a level that is a text, or that does
    /// not exist.
    #[must_use]
    pub fn times(&self, level: usize) -> Option<f64> {
        match self.levels.get(level)? {
            FactorLevel::AsWritten => Some(1.0),
            FactorLevel::Times(times) => Some(*times),
            FactorLevel::Text(_) => None,
        }
    }
}

/// The factors that a specification text declares with `factor`.
///
/// # Errors
/// The mistakes of the text.
pub fn factors(source: &str) -> core::result::Result<Vec<Factor>, Vec<Diagnostic>> {
    let mut report = DiagnosticReport::default();
    let tokens = lex(source, TextOrigin::File, &mut report);
    let mut marked = Marked::new(source, &tokens);
    let tree = parse::parse(&mut marked, &mut report);
    if report.errors() > 0 {
        return Err(report.finish());
    }
    let items = tree.items.iter().filter_map(|item| {
        if let SpecItem::Factor(factor) = item {
            Some(factor)
        } else {
            None
        }
    });
    Ok(items.map(|item| made(item, source)).collect())
}

/// Parses a factor given as a flag: `bandwidth of a - b x 10`.
///
/// # Errors
/// The mistakes of the text.
pub fn factor(text: &str) -> core::result::Result<Factor, Vec<Diagnostic>> {
    let mut report = DiagnosticReport::default();
    let tokens = lex(text, TextOrigin::File, &mut report);
    let mut marked = Marked::new(text, &tokens);
    let item = parse::parse_factor(&mut marked, &mut report);
    match item.filter(|_| report.errors() == 0) {
        Some(item) => Ok(made(&item, text)),
        None => Err(report.finish()),
    }
}

/// The factor of a syntax tree item; `source` is the text that the item was parsed from.
fn made(item: &FactorItem, source: &str) -> Factor {
    let level = |level: &LevelItem| match level {
        LevelItem::Times(times) => FactorLevel::Times(*times),
        LevelItem::Set(span) => FactorLevel::Text(
            source
                .get(span.start..span.end)
                .unwrap_or("")
                .trim()
                .to_string(),
        ),
    };
    let mut levels: Vec<FactorLevel> = item.levels.iter().map(level).collect();
    // A single level, and multiples, are compared with the written value, which becomes the first level.
    if levels.len() < 2 || matches!(levels.first(), Some(FactorLevel::Times(_))) {
        levels.insert(0, FactorLevel::AsWritten);
    }
    Factor {
        name: named(&item.what),
        what: item.what.clone(),
        levels,
    }
}

/// The property as it is written in the language.
fn named(what: &VariedProperty) -> String {
    match what {
        VariedProperty::Link(property, Some((first, second))) => {
            format!("{} of {first} - {second}", property.word())
        }
        VariedProperty::Link(property, None) => property.word().to_string(),
        VariedProperty::Cpu(Some(node)) => format!("cpu of {node}"),
        VariedProperty::Cpu(None) => "cpu".to_string(),
        VariedProperty::Share(Some(node)) => format!("share of {node}"),
        VariedProperty::Share(None) => "share".to_string(),
        VariedProperty::Buffer(Some(node)) => format!("buffer of {node}"),
        VariedProperty::Buffer(None) => "buffer".to_string(),
        VariedProperty::Stack => "stack".to_string(),
        VariedProperty::Size => "size".to_string(),
        VariedProperty::Clients => "clients".to_string(),
        VariedProperty::Place(crate::tree::FactorSide::From) => "from".to_string(),
        VariedProperty::Place(crate::tree::FactorSide::To) => "to".to_string(),
        VariedProperty::Named(name) => name.clone(),
    }
}

/// Returns the specification text with each factor at its level. If `line` is given, only the measurement that begins
/// on that line is kept.
///
/// # Errors
/// A factor that cannot be varied in this text, with a hint of what can.
pub fn vary(
    source: &str,
    line: Option<usize>,
    changes: &[(&Factor, &FactorLevel)],
) -> Result<String> {
    vary_beside(source, line, changes, &[])
}

/// Like [`vary`], for a caller that adds work to the hosts `working` which the text does not have: the `cpu` of these
/// hosts can be varied although the text gives no cost for them.
///
/// # Errors
/// As [`vary`].
pub fn vary_beside(
    source: &str,
    line: Option<usize>,
    changes: &[(&Factor, &FactorLevel)],
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

/// Returns the text with one factor at a level.
fn with(text: &str, factor: &Factor, level: &FactorLevel, working: &[&str]) -> Result<String> {
    if *level == FactorLevel::AsWritten {
        return Ok(text.to_string());
    }
    let edits = with_parsed(text, |written: WrittenSpec<'_>| match &factor.what {
        VariedProperty::Link(property, ends) => {
            link_levels::edits(&written, *property, ends.as_ref(), level)
        }
        VariedProperty::Cpu(host) => node_levels::cpu(&written, host.as_deref(), level, working),
        VariedProperty::Share(host) => node_levels::share(&written, host.as_deref(), level),
        VariedProperty::Buffer(switch) => node_levels::buffer(&written, switch.as_deref(), level),
        VariedProperty::Stack => part_levels::stack(&written, level),
        VariedProperty::Size => part_levels::size(&written, level),
        VariedProperty::Clients => part_levels::clients(&written, level),
        VariedProperty::Place(side) => part_levels::edit_host(&written, *side, level),
        VariedProperty::Named(name) => part_levels::edit_variable(&written, name, level),
    });
    edits
        .map(|edits| apply_edits(text, edits))
        .map_err(|error| error.within(&format!("factor `{}`", factor.name)))
}

/// Returns the text without the measurements that begin on other lines than `line`.
fn alone(source: &str, line: usize) -> Result<String> {
    with_parsed(source, |written: WrittenSpec<'_>| {
        let mut lines = Vec::new();
        let mut edits: Vec<LevelEdit> = Vec::new();
        for item in &written.tree.items {
            let SpecItem::Specification(item) = item else {
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
                edits.push(LevelEdit::without(
                    written.span(first).to(written.span(last)),
                ));
            }
        }
        if !lines.contains(&line.to_string()) {
            let message = format!("no measurement begins on line {line}");
            return Err(Error::input(message).hint(format!(
                "lines where measurements begin: {}",
                lines.join(", ")
            )));
        }
        Ok(edits)
    })
    .map(|edits| apply_edits(source, edits))
}
