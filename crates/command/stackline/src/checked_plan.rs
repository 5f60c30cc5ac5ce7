//! Makes a checked plan from the command line. Mistakes of a specification are printed with their places in the text.

use crate::exit::{Blame, Error, Result, already_shown};
use crate::flags::SpecTextFlags;
use crate::output;
use stackline_core::plan::Plan;
use stackline_report::MistakenTexts;
use stackline_runner::spec_source::FlagMistake;
pub(crate) use stackline_runner::spec_source::SpecSource;
use stackline_spec::{Checked, Diagnostic, Overrides, Severity};
use std::io::stderr;

/// Reads the specification that the flags name.
pub(crate) fn source_of(flags: &SpecTextFlags) -> Result<SpecSource> {
    SpecSource::named_by(flags.expression.as_deref(), flags.spec.as_deref())
}

/// A specification whose mistakes are printed when it is checked.
pub(crate) trait Specification {
    /// The plan, and notes about what was assumed for it. A specification without measurements is an error: there would
    /// be nothing to run.
    fn work(&self, flags: &SpecTextFlags) -> Result<(Plan, Vec<String>)>;
    /// The declarations alone. Warnings concern measurements, so only errors are printed.
    fn declarations(&self, flags: &SpecTextFlags) -> Result<Plan>;
}

impl Specification for SpecSource {
    fn work(&self, flags: &SpecTextFlags) -> Result<(Plan, Vec<String>)> {
        let checked = checked(self, flags)?;
        refuse_empty(self, &checked)?;
        report(self, checked, flags)
    }

    fn declarations(&self, flags: &SpecTextFlags) -> Result<Plan> {
        let checked = self.checked_declarations();
        match checked.plan {
            Some(plan) => Ok(plan),
            None => report(self, checked, flags).map(|(plan, _)| plan),
        }
    }
}

/// `--over all`: every stack that can carry out the specification.
pub(crate) fn is_over_all(flags: &SpecTextFlags) -> bool {
    flags.over.as_deref().map(str::trim) == Some("all")
}

/// Refuses a specification without measurements.
pub(crate) fn refuse_empty(source: &SpecSource, checked: &Checked) -> Result<()> {
    let is_nothing = |plan: &Plan| plan.measurements.is_empty();
    if !checked.plan.as_ref().is_some_and(is_nothing) {
        return Ok(());
    }
    let message = format!(
        "there is nothing to do: the specification ({}) has no measurements",
        source.name
    );
    Err(Error::input(message).hint("add one, such as `10 request_response 32*1000;`"))
}

/// Checks a specification with what the flags override.
pub(crate) fn checked(source: &SpecSource, flags: &SpecTextFlags) -> Result<Checked> {
    let given = overrides(flags)?;
    if !is_over_all(flags) {
        return Ok(source.checked(&given));
    }
    let as_written = Overrides {
        over: None,
        ..given
    };
    let stacks = source.stacks_that_can(&as_written);
    if stacks.can.is_empty() {
        // What is wrong may not be the stack.
        let checked = source.checked(&as_written);
        return match stacks.cannot.into_iter().next() {
            Some((name, why)) if checked.plan.is_some() => {
                let hint = match why.contains("the address says the protocol") {
                    true => {
                        "omit `--over all`; to a web server `--over 'https, https(version = http2), https(version = http3)'` compares versions"
                    }
                    false => "omit `--over all`",
                };
                let message =
                    format!("no stack can carry this out, as `--over all` asks: {name}: {why}");
                Err(Error::input(message).hint(hint))
            }
            _ => Ok(checked),
        };
    }
    let mut checked = source.checked(&Overrides {
        over: Some(stacks.can.join(", ")),
        ..as_written
    });
    let left_out = stacks.cannot.into_iter();
    checked
        .notes
        .extend(left_out.map(|(name, why)| format!("left out: {name} ({why})")));
    Ok(checked)
}

/// The check of a specification for `check`, whose mistakes were printed.
pub(crate) struct ShownCheck {
    /// The plan, if there is no error.
    pub(crate) plan: Option<Plan>,
    /// Errors and warnings as JSON.
    pub(crate) diagnostics: Vec<serde_json::Value>,
    /// The corrected text, where one was found.
    pub(crate) right: Option<String>,
}

/// Reads all specifications that the flags name: of a Markdown file each of its blocks.
pub(crate) fn all_sources_of(flags: &SpecTextFlags) -> Result<Vec<SpecSource>> {
    match (&flags.expression, &flags.spec) {
        (None, Some(path)) => SpecSource::read_all(path),
        _ => source_of(flags).map(|one| vec![one]),
    }
}

/// Checks a specification and prints its mistakes.
pub(crate) fn shown_check(source: &SpecSource, flags: &SpecTextFlags) -> Result<ShownCheck> {
    let checked = checked(source, flags)?;
    let texts = mistaken_texts(source, flags);
    print_mistakes(&checked.diagnostics, &texts);
    Ok(ShownCheck {
        diagnostics: stackline_report::diagnostics_json(&checked.diagnostics, &texts),
        plan: checked.plan,
        right: checked.right,
    })
}

/// The texts in which the mistakes of a specification are shown.
fn mistaken_texts<'t>(source: &'t SpecSource, flags: &'t SpecTextFlags) -> MistakenTexts<'t> {
    let (name, text) = source.shown();
    MistakenTexts {
        name,
        text,
        over: flags.over.as_deref(),
        hosts: &flags.hosts,
    }
}

fn report(
    source: &SpecSource,
    checked: Checked,
    flags: &SpecTextFlags,
) -> Result<(Plan, Vec<String>)> {
    let texts = mistaken_texts(source, flags);
    let wrong = print_mistakes(&checked.diagnostics, &texts);
    if wrong && flags.json {
        output::json(&stackline_report::mistakes_json(&checked, &texts), true)?;
    }
    Ok((
        checked.plan.ok_or_else(|| already_shown(Blame::Input))?,
        checked.notes,
    ))
}

/// Prints all diagnostics of texts to stderr. Returns whether one of them is an error.
fn print_mistakes(diagnostics: &[Diagnostic], texts: &MistakenTexts<'_>) -> bool {
    let (columns, has_colours) = (output::columns(stderr()), output::has_colours(stderr()));
    for diagnostic in diagnostics {
        let drawn = stackline_report::mistake(diagnostic, texts, columns, has_colours);
        output::say_drawn(&drawn);
    }
    diagnostics
        .iter()
        .any(|diagnostic| diagnostic.severity == Severity::Error)
}

/// Prints the mistakes of one text, which `name` names. Returns the error that they were printed.
pub(crate) fn mistakes_shown(mistakes: &[Diagnostic], name: &str, text: &str) -> Error {
    let texts = MistakenTexts {
        name,
        text,
        over: None,
        hosts: &[],
    };
    print_mistakes(mistakes, &texts);
    already_shown(Blame::Input)
}

/// The error for a flag with a wrong text; mistakes in its value are printed with their places in it.
pub(crate) fn mistake_shown(mistake: FlagMistake) -> Error {
    match mistake {
        FlagMistake::Whole(error) => error,
        FlagMistake::InValue {
            flag,
            value,
            mistakes,
        } => mistakes_shown(&mistakes, &flag, &value),
    }
}

/// The settings of the command line that override those of the specification.
pub(crate) fn overrides(flags: &SpecTextFlags) -> Result<Overrides> {
    let parsed = flags
        .hosts
        .iter()
        .map(|text| stackline_spec::host_argument(text));
    let hosts = parsed.collect::<std::result::Result<Vec<_>, String>>();
    let hosts = hosts.map_err(|e| {
        Error::input(e).hint("use --host NAME=local, NAME=ssh:USER@ADDRESS, NAME=tcp:ADDRESS:PORT or NAME=exec:COMMAND")
    })?;
    Ok(Overrides {
        over: flags.over.clone(),
        world: flags.world,
        hosts,
        seed: flags.seed,
        cpu: cores(&flags.cpu)?,
        keeps_calls: false,
        declarations_only: false,
    })
}

/// The cores of initiator and responder from `--cpu`, which applies to every part.
fn cores(cpu: &[usize]) -> Result<Option<(usize, usize)>> {
    match cpu {
        [] => Ok(None),
        [one] => Ok(Some((*one, *one))),
        [initiator, responder] => Ok(Some((*initiator, *responder))),
        _ => Err(
            Error::input("--cpu takes one core, or two: initiator,responder")
                .hint("use --cpu 0 or --cpu 0,1"),
        ),
    }
}
