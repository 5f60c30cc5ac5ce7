//! From the text of a specification to a checked plan: the check knows all worlds, this machine's cores, and the files
//! that the specification names.

use stackline_core::catalogue::{Capabilities, StackTable};
use stackline_core::error::{Error, Result};
use stackline_core::plan::{Measurement, Plan, World};
use stackline_guard::files as guard_files;
use stackline_spec::{Available, CheckContext, Checked, Diagnostic, Overrides, Severity};
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The longest specification that is read, in bytes.
const LONGEST: u64 = 16 << 20;

/// The stacks of a world, by whether a specification can be carried out over them.
#[derive(Clone, Debug, Default)]
pub struct StacksThatCan {
    /// Those over which it can.
    pub can: Vec<&'static str>,
    /// Those over which it cannot, and why.
    pub cannot: Vec<(&'static str, String)>,
}

/// A specification's text and its name in messages.
#[derive(Clone, Debug)]
pub struct SpecSource {
    /// The name of the specification in messages.
    pub name: String,
    /// The text itself.
    pub text: String,
    /// The directory of the file, when it is one.
    directory: Option<PathBuf>,
}

impl SpecSource {
    /// The source that the user gave: the text itself (`-e`), or a file.
    ///
    /// # Errors
    /// When there is neither, or the file cannot be read.
    pub fn named_by(expression: Option<&str>, spec: Option<&Path>) -> Result<Self> {
        match (expression, spec) {
            (Some(text), _) => Ok(Self {
                name: "expression".into(),
                text: text.to_owned(),
                directory: None,
            }),
            (None, Some(path)) => Self::read(path),
            (None, None) => Err(Error::input("no specification was given")
                .hint("name a file, or give the specification with -e")),
        }
    }

    /// A text that the program made, with a name for messages.
    #[must_use]
    pub fn made(name: &str, text: String) -> Self {
        Self {
            name: name.into(),
            text,
            directory: None,
        }
    }

    /// Reads a file, or standard input for `-`.
    ///
    /// # Errors
    /// When the file cannot be read, or is too long.
    pub fn read(path: &Path) -> Result<Self> {
        let name = if path == Path::new("-") {
            "standard input".to_string()
        } else {
            path.display().to_string()
        };
        match guard_files::read_text(path, LONGEST) {
            Err(error) if error.kind() == ErrorKind::FileTooLarge => {
                let hint = "no specification is that large; name a specification file, or use - for standard input";
                Err(Error::input(format!("{name} is larger than 16 MiB")).hint(hint))
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
                    unread.hint("name a specification file, or use - for standard input")
                })
            }
        }
    }

    /// The plan with all measurements in that world, or its first mistake there.
    ///
    /// # Errors
    /// That mistake.
    pub fn plan_in(&self, world: World, given: Overrides) -> Result<Plan> {
        self.plan(&Overrides {
            world: Some(world),
            ..given
        })
    }

    /// Another text with the same name and directory.
    #[must_use]
    pub fn varied(&self, text: String) -> Self {
        Self {
            name: self.name.clone(),
            text,
            directory: self.directory.clone(),
        }
    }

    /// The checked plan, or the first mistake.
    ///
    /// # Errors
    /// That mistake.
    pub fn plan(&self, overrides: &Overrides) -> Result<Plan> {
        first_mistake_of(self.checked(overrides))
    }

    /// The plan of its declarations alone, without measurements, or the first mistake.
    ///
    /// # Errors
    /// That mistake.
    pub fn declared(&self) -> Result<Plan> {
        first_mistake_of(self.checked_declarations())
    }

    /// The check of its declarations alone, with all mistakes.
    #[must_use]
    pub fn checked_declarations(&self) -> Checked {
        self.checked(&Overrides {
            declarations_only: true,
            ..Overrides::default()
        })
    }

    /// The path of a file that the specification names: beside the specification if it exists there, else in the
    /// working directory.
    fn beside(&self, name: &str) -> PathBuf {
        let beside = self
            .directory
            .as_ref()
            .map(|directory| directory.join(name));
        beside
            .filter(|path| path.exists())
            .unwrap_or_else(|| name.into())
    }

    /// The name and the text.
    #[must_use]
    pub fn named(&self) -> (&str, &str) {
        (&self.name, &self.text)
    }

    /// The names of all stacks over which the specification can be carried out in its world, and of those over which it cannot, with why. Far
    /// ends are not among them: an address names those.
    #[must_use]
    pub fn stacks_that_can(&self, overrides: &Overrides) -> StacksThatCan {
        let mut stacks = StacksThatCan::default();
        let worlds = worlds();
        // Where the stacks that are written are wrong, all worlds are tried.
        let written = self.plan(overrides).ok();
        let is_used = |can: &Capabilities| {
            written.as_ref().is_none_or(|plan| {
                let mut measurements = plan.measurements.iter();
                measurements.any(|measurement| measurement.world == can.world)
            })
        };
        let used = worlds.iter().filter(|(can, _)| is_used(can));
        let tables = used.flat_map(|(_, tables)| tables);
        let mut seen = BTreeSet::new();
        for table in tables.filter(|table| !table.far_end && seen.insert(table.name)) {
            let over_it = Overrides {
                over: Some(table.name.to_string()),
                ..overrides.clone()
            };
            let plan = self.plan(&over_it).and_then(|plan| {
                // Hosts of a live measurement may be other machines.
                let runs_here = |measurement: &Measurement| match measurement.world {
                    World::Live => plan.hosts.is_empty(),
                    World::Emulated => true,
                    World::Simulated => false,
                };
                if plan.measurements.iter().any(runs_here) {
                    stackline_live::stacks::require_stack(table.name)?.probe()?;
                }
                Ok(plan)
            });
            match plan {
                Ok(_) => stacks.can.push(table.name),
                Err(error) => stacks.cannot.push((table.name, error.message)),
            }
        }
        stacks
    }

    /// Checks the text: all mistakes, and the plan where there are none. If there are, a correction is looked for.
    #[must_use]
    pub fn checked(&self, overrides: &Overrides) -> Checked {
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

/// The plan, else the first mistake.
fn first_mistake_of(checked: Checked) -> Result<Plan> {
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

/// How long a correct variant of a wrong text is looked for.
const LOOK: Duration = Duration::from_millis(300);

/// All worlds: what each can do, and its stacks.
#[must_use]
pub fn worlds() -> Vec<(Capabilities, Vec<StackTable>)> {
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

/// The worlds in the form that the checker takes.
#[must_use]
pub fn available(worlds: &[(Capabilities, Vec<StackTable>)]) -> Vec<Available<'_>> {
    worlds
        .iter()
        .map(|(can, stacks)| Available { can: *can, stacks })
        .collect()
}

/// Reads a file that a specification names: a regular one of bounded size, since a device or a pipe may never end.
fn read_named(name: &Path) -> std::result::Result<String, String> {
    let cause = |error: std::io::Error| match error.kind() {
        ErrorKind::FileTooLarge => "it is larger than 16 MiB".to_owned(),
        _ => error.to_string(),
    };
    // Only a regular file: a pipe may never be written to.
    guard_files::open_regular(name)
        .and_then(|file| guard_files::read_text_of(file, LONGEST))
        .map_err(cause)
}

/// What is wrong with a text that was given in a flag.
#[derive(Clone, Debug, PartialEq)]
pub enum FlagMistake {
    /// Mistakes that are shown inside the flag's value.
    InValue {
        /// The flag.
        flag: String,
        /// The value of the flag.
        value: String,
        /// What is wrong with the value.
        mistakes: Vec<Diagnostic>,
    },
    /// An error that concerns the flag as a whole.
    Whole(Error),
}

impl From<Error> for FlagMistake {
    fn from(error: Error) -> Self {
        Self::Whole(error)
    }
}

/// Reads a flag's value between two pieces of text as a specification. Positions of mistakes are converted to positions
/// in the value.
///
/// # Errors
/// What is wrong with it.
pub fn plan_of_flag(
    flag: &str,
    [before, value, after]: [&str; 3],
    example: &str,
) -> Result<Plan, FlagMistake> {
    let checked = SpecSource::made(flag, [before, value, after].concat()).checked_declarations();
    checked.plan.ok_or_else(|| {
        let mut mistakes = checked.diagnostics;
        let end = before.len() + value.len();
        for mistake in &mut mistakes {
            if mistake.span.start >= end {
                mistake.message = format!("{flag} does not contain a complete value");
                // Other hints would be about the text behind the value, which the user did not write.
                let hint = mistake.hint.take().filter(|hint| {
                    hint.starts_with("write") && !value.is_empty() && !hint.contains('}')
                });
                mistake.hint = hint.or_else(|| Some(format!("give one value, as in `{example}`")));
                mistake.label = "it ends here".into();
            }
            let last = value.floor_char_boundary(value.len().saturating_sub(1));
            let within = |at: usize, most: usize| at.saturating_sub(before.len()).min(most);
            mistake.span = within(mistake.span.start, last)..within(mistake.span.end, value.len());
            // A clause of a link is a flag of its own here.
            mistake.hint = mistake
                .hint
                .take()
                .map(|hint| hint.replace("`loss ", "`--loss "));
        }
        FlagMistake::InValue {
            flag: flag.to_owned(),
            value: value.to_owned(),
            mistakes,
        }
    })
}
