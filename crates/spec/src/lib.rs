//! The stackline language: text to a checked [`Plan`], or diagnostics; the formatter; the prelude.
//!
//! It never does what a text says, opens no file and reads no clock: `no_std` makes those things unnameable here.
//! The files a text may name, of an empirical distribution or a trace, are read through a function that is given.
//!
//! The way of a text: `token` (characters to tokens), `parse` (tokens to a `tree`), `check` (tree to plan);
//! `layout` and `format` print tokens again. `docs/LANGUAGE.md` is the manual.

#![no_std]

extern crate alloc;

mod check;
mod diagnostic;
mod format;
mod layout;
mod names;
mod parse;
mod token;
mod tree;

pub use diagnostic::{Diagnostic, Origin, Severity, nearest};
pub use format::format;

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use diagnostic::Report;
use layout::Marked;
use stackline_core::catalogue::{Capabilities, StackTable};
use stackline_core::plan::{HostPlan, Plan, Via, World};

/// The standard application types, in the language.
pub const PRELUDE: &str = include_str!("prelude.stackline");

/// What a text is checked against.
pub struct Context<'a> {
    /// The worlds there are.
    pub worlds: &'a [Available<'a>],
    /// Reads the file of an `empirical` distribution or of a `trace`; the error is a cause in words.
    pub read_file: &'a dyn Fn(&str) -> Result<String, String>,
}

/// A world that a text may ask for.
#[derive(Clone, Copy, Debug)]
pub struct Available<'a> {
    /// What it can do.
    pub can: Capabilities,
    /// Its stacks.
    pub stacks: &'a [StackTable],
}

/// What the command line says in the place of the text.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// Stacks, as after `over`.
    pub over: Option<String>,
    /// The world.
    pub world: Option<World>,
    /// Hosts; how to reach them replaces what the text says.
    pub hosts: Vec<(String, HostPlan)>,
    /// The seed.
    pub seed: Option<u64>,
    /// Cores of initiators and responders, for every part.
    pub cpu: Option<(usize, usize)>,
    /// Whether only the declarations matter: then nothing is settled, and no world is asked what it can do.
    pub declarations_only: bool,
}

/// The outcome of [`check`].
#[derive(Clone, Debug)]
pub struct Checked {
    /// There exactly when no diagnostic is an error.
    pub plan: Option<Plan>,
    /// In the order of the text.
    pub diagnostics: Vec<Diagnostic>,
    /// What was made up because the text does not say it.
    pub notes: Vec<String>,
}

/// Reads a specification and resolves it to a plan. All its mistakes come out at once.
#[must_use]
pub fn check(source: &str, context: &Context<'_>, overrides: &Overrides) -> Checked {
    let mut report = Report::default();
    let over_text = overrides.over.as_deref().unwrap_or("");
    let over_tokens = token::lex(over_text, Origin::Over, &mut report);
    let mut over_marked = Marked::new(over_text, &over_tokens);
    let stacks =
        overrides.over.as_ref().map(|_| parse::parse_stacks(&mut over_marked, &mut report).unwrap_or_default());
    let instead = stacks.map(|stacks| check::Instead { stacks, marked: &over_marked });
    let tokens = token::lex(source, Origin::File, &mut report);
    let mut marked = Marked::new(source, &tokens);
    let tree = parse::parse(&mut marked, &mut report);
    let (plan, note) = check::check(&tree, &marked, instead, context, overrides, &mut report);
    let plan = (report.errors() == 0).then_some(plan);
    Checked { plan, diagnostics: report.finish(), notes: note.into_iter().collect() }
}

/// Reads a host as the command line gives it: `khons=local`, `khons=ssh:user@10.0.0.5`.
///
/// # Errors
/// One sentence: what is wrong with it.
pub fn host_argument(text: &str) -> Result<(String, HostPlan), String> {
    let Some((name, place)) = text.split_once('=') else {
        return Err(alloc::format!(
            "`{text}` is not a host; expected as in `khons=local` or `khons=ssh:user@10.0.0.5`"
        ));
    };
    let letter = name.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    if !letter || !name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')) {
        return Err(alloc::format!("`{name}` is not the name of a host"));
    }
    let via = match place.split_once(':') {
        None if place == "local" => Via::Local,
        Some(("ssh", destination)) => match check::bad_destination(destination) {
            None => Via::Ssh(destination.to_string()),
            Some(what) => return Err(what),
        },
        _ => {
            return Err(alloc::format!(
                "`{place}` is not a way to reach a host; expected `local` or `ssh:DESTINATION`"
            ));
        }
    };
    Ok((name.to_string(), HostPlan { via, ..HostPlan::default() }))
}
