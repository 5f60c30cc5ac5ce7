//! From the command line to a checked plan.

use crate::diagnostics;
use crate::exit::{Blame, Error, Result, already_shown};
use crate::flags::SpecTextFlags;
use crate::output;
use stackline_core::catalogue::{Capabilities, StackTable};
use stackline_core::plan::{Plan, World};
use stackline_guard::files as guard_files;
use stackline_spec::{Available, CheckContext, Checked, Overrides, Severity};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Longest specification that is read.
const LONGEST: u64 = 16 << 20;

/// A specification's text and its name in messages.
#[derive(Debug)]
pub(crate) struct SpecSource {
    pub(crate) name: String,
    pub(crate) text: String,
    /// Where it lies, when it is a file.
    directory: Option<PathBuf>,
}

impl SpecSource {
    /// Reads what the flags name.
    pub(crate) fn of(flags: &SpecTextFlags) -> Result<Self> {
        Self::named_by(flags.expression.as_deref(), flags.spec.as_deref())
    }

    /// The text itself, or what its file holds.
    pub(crate) fn named_by(expression: Option<&str>, spec: Option<&Path>) -> Result<Self> {
        match (expression, spec) {
            (Some(text), _) => Ok(Self {
                name: "expression".into(),
                text: text.to_owned(),
                directory: None,
            }),
            (None, Some(path)) => Self::read(path),
            (None, None) => Err(Error::input("there is no specification")
                .hint("name a file, or give the text with -e")),
        }
    }

    /// A text that was made here, and its name in messages.
    pub(crate) fn made(name: &str, text: String) -> Self {
        Self {
            name: name.into(),
            text,
            directory: None,
        }
    }

    /// Reads a file, or standard input for `-`.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let name = if path == Path::new("-") {
            "standard input".to_string()
        } else {
            path.display().to_string()
        };
        match guard_files::read_text(path, LONGEST) {
            Err(error) if error.kind() == ErrorKind::FileTooLarge => {
                let hint =
                    "no specification is so long; name the file of one, or - for standard input";
                Err(Error::input(format!("{name} is longer than 16 MiB")).hint(hint))
            }
            Ok(text) => Ok(Self {
                name,
                text,
                directory: path.parent().map(Path::to_owned),
            }),
            Err(error) => {
                let unread = Error::input(format!("{name} cannot be read: {error}"));
                // Nobody's file has a star or a semicolon in its name, and a specification begins with a number.
                let text = name.contains(['*', ';'])
                    || name.starts_with(|c: char| c.is_ascii_digit()) && name.contains(' ');
                Err(if text {
                    unread.hint(format!(
                        "to give the specification itself, write -e '{name}'"
                    ))
                } else {
                    unread.hint("name a file of a specification, or - for standard input")
                })
            }
        }
    }

    /// Checks it and reports warnings and errors. The plan, and notes of what was made up for it.
    pub(crate) fn plan(&self, flags: &SpecTextFlags) -> Result<(Plan, Vec<String>)> {
        self.report(self.checked(&overrides(flags)?), flags)
    }

    fn report(&self, checked: Checked, flags: &SpecTextFlags) -> Result<(Plan, Vec<String>)> {
        let wrong = diagnostics::print(&checked.diagnostics, self.named(), Some(flags));
        if wrong && flags.json {
            output::json(&diagnostics::json(&checked, self.named(), flags), true)?;
        }
        Ok((
            checked.plan.ok_or_else(|| already_shown(Blame::Input))?,
            checked.notes,
        ))
    }

    /// The same for those who want to see what is to be done: without a measurement there is nothing.
    pub(crate) fn work(&self, flags: &SpecTextFlags) -> Result<(Plan, Vec<String>)> {
        let checked = self.checked(&overrides(flags)?);
        if checked
            .plan
            .as_ref()
            .is_some_and(|plan| plan.measurements.is_empty())
        {
            let message = format!(
                "there is nothing to do: the specification ({}) has no measurement",
                self.name
            );
            return Err(
                Error::input(message).hint("write one, such as `10 request_response 32*1000;`")
            );
        }
        self.report(checked, flags)
    }

    /// As it is carried out in the simulated world, whatever it says; else its first mistake there, which nobody is shown.
    pub(crate) fn simulated_as(&self, flags: &SpecTextFlags) -> Result<Plan> {
        self.in_world(World::Simulated, overrides(flags)?)
    }

    /// The same as it stands.
    pub(crate) fn simulated(&self) -> Result<Plan> {
        self.as_in(World::Simulated)
    }

    /// As it is carried out in that world, else its first mistake there, which nobody is shown.
    pub(crate) fn as_in(&self, world: World) -> Result<Plan> {
        self.in_world(world, Overrides::default())
    }

    fn in_world(&self, world: World, given: Overrides) -> Result<Plan> {
        silently(self.checked(&Overrides {
            world: Some(world),
            ..given
        }))
    }

    /// The same place with another text.
    pub(crate) fn varied(&self, text: String) -> Self {
        Self {
            name: self.name.clone(),
            text,
            directory: self.directory.clone(),
        }
    }

    /// As the flags have it, else its first mistake, which nobody is shown.
    pub(crate) fn quietly(&self, flags: &SpecTextFlags) -> Result<Plan> {
        silently(self.checked(&overrides(flags)?))
    }

    /// Its declarations alone, else its first mistake, which nobody is shown.
    pub(crate) fn declared(&self) -> Result<Plan> {
        silently(self.checked(&Overrides {
            declarations_only: true,
            ..Overrides::default()
        }))
    }

    /// Its declarations alone; warnings are about measurements, so only errors are reported.
    pub(crate) fn declarations(&self, flags: &SpecTextFlags) -> Result<Plan> {
        let checked = self.checked(&Overrides {
            declarations_only: true,
            ..Overrides::default()
        });
        match checked.plan {
            Some(plan) => Ok(plan),
            None => self.report(checked, flags).map(|(plan, _)| plan),
        }
    }

    /// What a flag's value gives, read between two pieces of text; mistakes are shown in the value alone.
    pub(crate) fn value(
        flag: &str,
        [before, value, after]: [&str; 3],
        example: &str,
    ) -> Result<Plan> {
        let overrides = Overrides {
            declarations_only: true,
            ..Overrides::default()
        };
        let checked = Self::made(flag, [before, value, after].concat()).checked(&overrides);
        checked.plan.ok_or_else(|| {
            let mut mistakes = checked.diagnostics;
            let end = before.len() + value.len();
            for mistake in &mut mistakes {
                if mistake.span.start >= end {
                    mistake.message = format!("{flag} does not hold one whole value");
                    let hint = mistake
                        .hint
                        .take()
                        .filter(|hint| !value.is_empty() && !hint.contains('}'));
                    mistake.hint = hint.or_else(|| Some(format!("one value, as in `{example}`")));
                    mistake.label = "it ends here".into();
                }
                let last = value.floor_char_boundary(value.len().saturating_sub(1));
                let within = |at: usize, most: usize| at.saturating_sub(before.len()).min(most);
                mistake.span =
                    within(mistake.span.start, last)..within(mistake.span.end, value.len());
                // What is a clause of a link is a flag here.
                mistake.hint = mistake
                    .hint
                    .take()
                    .map(|hint| hint.replace("`loss ", "`--loss "));
            }
            diagnostics::print(&mistakes, (flag, value), None);
            already_shown(Blame::Input)
        })
    }

    /// Where a file that it names lies: beside it, else in the working directory.
    fn beside(&self, name: &str) -> PathBuf {
        let beside = self
            .directory
            .as_ref()
            .map(|directory| directory.join(name));
        beside
            .filter(|path| path.exists())
            .unwrap_or_else(|| name.into())
    }

    /// Its name and its text.
    pub(crate) fn named(&self) -> (&str, &str) {
        (&self.name, &self.text)
    }

    fn checked(&self, overrides: &Overrides) -> Checked {
        let worlds = worlds();
        let read_file = |name: &str| read_named(&self.beside(name));
        let cores = stackline_live::cores();
        let context = CheckContext {
            worlds: &available(&worlds),
            read_file: &read_file,
            cores: &cores,
        };
        let mut checked = stackline_spec::check(&self.text, &context, overrides);
        if checked.plan.is_none() {
            let begun = Instant::now();
            stackline_spec::repair(&self.text, &context, overrides, &mut checked, &|| {
                begun.elapsed() > LOOK
            });
        }
        checked
    }
}

/// The plan, else the first mistake, which nobody is shown.
fn silently(checked: Checked) -> Result<Plan> {
    let mistake = checked
        .diagnostics
        .into_iter()
        .find(|diagnostic| diagnostic.severity == Severity::Error);
    checked.plan.ok_or_else(|| {
        let (message, hint) = mistake
            .map(|mistake| (mistake.message, mistake.hint))
            .unwrap_or_default();
        Error {
            hint,
            ..Error::input(message)
        }
    })
}

/// How long a text that would be right is looked for.
const LOOK: Duration = Duration::from_millis(300);

/// Every world there is, and its stacks.
pub(crate) fn worlds() -> Vec<(Capabilities, Vec<StackTable>)> {
    vec![
        (
            stackline_live::CAPABILITIES,
            stackline_live::stacks::stack_tables(),
        ),
        (
            stackline_emu::CAPABILITIES,
            stackline_live::stacks::stack_tables(),
        ),
        (stackline_sim::CAPABILITIES, stackline_sim::stack_tables()),
    ]
}

/// The same as those who judge and show take them.
pub(crate) fn available(worlds: &[(Capabilities, Vec<StackTable>)]) -> Vec<Available<'_>> {
    worlds
        .iter()
        .map(|(can, stacks)| Available { can: *can, stacks })
        .collect()
}

/// Reads a file that a specification names: a regular one of bounded size, since a device or a pipe may never end.
fn read_named(name: &Path) -> std::result::Result<String, String> {
    let cause = |error: std::io::Error| match error.kind() {
        ErrorKind::FileTooLarge => "it is longer than 16 MiB".to_owned(),
        _ => error.to_string(),
    };
    // Not of a pipe: nobody may ever write to it.
    guard_files::open_regular(name)
        .and_then(|file| guard_files::read_text_of(file, LONGEST))
        .map_err(cause)
}

fn overrides(flags: &SpecTextFlags) -> Result<Overrides> {
    let parsed = flags
        .hosts
        .iter()
        .map(|text| stackline_spec::host_argument(text));
    let hosts = parsed.collect::<std::result::Result<Vec<_>, String>>();
    let hosts = hosts
        .map_err(|e| Error::input(e).hint("--host NAME=local or --host NAME=ssh:USER@ADDRESS"))?;
    Ok(Overrides {
        over: flags.over.clone(),
        world: flags.world.map(Into::into),
        hosts,
        seed: flags.seed,
        cpu: cores(&flags.cpu)?,
        declarations_only: false,
    })
}

/// `--cpu` holds for every part.
fn cores(cpu: &[usize]) -> Result<Option<(usize, usize)>> {
    match cpu {
        [] => Ok(None),
        [one] => Ok(Some((*one, *one))),
        [initiator, responder] => Ok(Some((*initiator, *responder))),
        _ => Err(
            Error::input("--cpu takes one core, or two: initiator,responder")
                .hint("--cpu 0 or --cpu 0,1"),
        ),
    }
}
