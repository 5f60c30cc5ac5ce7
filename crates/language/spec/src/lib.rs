//! The stackline language: turns a text into a checked [`Plan`](stackline_core::plan::Plan) or diagnostics; also the
//! formatter and the prelude (the predefined application types).
//!
//! Nothing here carries out what a text says, opens a file or reads a clock: the crate is `no_std`, so such calls do
//! not compile. Files that a text names (an empirical distribution, a trace) are read through a function that the
//! caller gives.
//!
//! The stages: `token` (characters to tokens), `parse` (tokens to a `tree`), `check` (tree to plan); `token_layout`
//! and `format` print tokens again. `docs/LANGUAGE.md` is the manual.

#![no_std]

extern crate alloc;

mod agent_destination;
mod alert_text;
mod check;
mod context;
mod diagnostic;
#[cfg(test)]
mod editor_grammar;
mod factor;
mod format;
mod markdown;
mod parse;
mod prelude;
mod repair;
mod spelling;
mod token;
mod token_layout;
mod tree;

pub use alert_text::{AlertText, AlertTextCondition, alert_text};
pub use context::{Available, CheckContext, Checked, Overrides};
pub use diagnostic::{Diagnostic, DiagnosticStage, Severity, TextOrigin, nearest};
pub use factor::{
    Factor, FactorLevel, LoadExtent, OFFERED, OfferedLoad, WrittenLoad, factor, factors, vary,
    vary_beside, with_offered_load, written_load,
};
pub use format::format;
pub use markdown::{MarkdownBlock, format_markdown, markdown_blocks};
pub use prelude::{PRELUDE, TEMPLATES};

use alloc::string::{String, ToString};
use diagnostic::DiagnosticReport;
use stackline_core::plan::{HostPlan, Via};
use token_layout::Marked;

/// Parses a specification and resolves it to a plan. All mistakes are reported at once.
#[must_use]
pub fn check(source: &str, context: &CheckContext<'_>, overrides: &Overrides) -> Checked {
    let mut report = DiagnosticReport::default();
    let over_text = overrides.over.as_deref().unwrap_or("");
    let over_tokens = token::lex(over_text, TextOrigin::Over, &mut report);
    let mut over_marked = Marked::new(over_text, &over_tokens);
    let stacks = overrides
        .over
        .as_ref()
        .map(|_| parse::parse_stacks(&mut over_marked, &mut report).unwrap_or_default());
    let instead = stacks.map(|stacks| check::Instead {
        stacks,
        marked: &over_marked,
    });
    let tokens = token::lex(source, TextOrigin::File, &mut report);
    let mut marked = Marked::new(source, &tokens);
    let mut tree = parse::parse(&mut marked, &mut report);
    report.begin_meaning();
    check::host_sets::expand(&mut tree, overrides.seed, &mut report);
    let (plan, note) = check::check(&tree, &marked, instead, context, overrides, &mut report);
    let plan = (report.errors() == 0).then_some(plan);
    Checked {
        plan,
        diagnostics: report.finish(),
        right: None,
        notes: note.into_iter().collect(),
    }
}

/// Searches for a small change at the first mistake of a wrong text that makes the text right, until `enough` returns
/// true. If one is found, `right` is the corrected text, and the mistake gets a hint unless it has one that is as
/// good.
pub fn repair(
    source: &str,
    context: &CheckContext<'_>,
    overrides: &Overrides,
    checked: &mut Checked,
    enough: &dyn Fn() -> bool,
) {
    let judge = |text: &str| check(text, context, overrides).diagnostics;
    checked.right = repair::repair(source, &mut checked.diagnostics, judge, enough);
}

/// Parses a host as given on the command line: `khons=local`, `khons=ssh:user@10.0.0.5`, `khons=tcp:10.0.0.5:7777`.
///
/// # Errors
/// One sentence that says what is wrong with it.
pub fn host_argument(text: &str) -> Result<(String, HostPlan), String> {
    let Some((name, place)) = text.split_once('=') else {
        return Err(alloc::format!(
            "`{text}` is not a valid host; expected a form such as `khons=local` or `khons=ssh:user@10.0.0.5`"
        ));
    };
    let letter = name
        .chars()
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    if !letter
        || !name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
    {
        return Err(alloc::format!("`{name}` is not a valid host name"));
    }
    let via = match place.split_once(':') {
        None if place == "local" => Via::Local,
        Some((way, destination)) if agent_destination::WAYS.iter().any(|known| known.0 == way) => {
            agent_destination::via(way, destination)?
        }
        _ => {
            return Err(alloc::format!(
                "`{place}` is not a way to reach a host; expected `local`, `ssh:DESTINATION`, `tcp:HOST:PORT` or `exec:COMMAND`{}",
                if place.contains("://") {
                    "; to see a server as its clients do, trace a client: `stackline trace curl URL`"
                } else {
                    ""
                }
            ));
        }
    };
    Ok((
        name.to_string(),
        HostPlan {
            via,
            ..HostPlan::default()
        },
    ))
}
