//! From the text of a specification to a checked plan: the check knows all worlds, this machine's cores, and the files
//! that the specification names.

use crate::markdown_reference::MarkdownReference;
use stackline_core::catalogue::{Capabilities, StackTable};
use stackline_core::error::{Error, Result};
use stackline_core::plan::{Measurement, Plan, World};
use stackline_guard::files as guard_files;
use stackline_spec::{
    Available, CheckContext, Checked, Diagnostic, MarkdownBlock, Overrides, Severity,
};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The longest specification that is read, in bytes.
const LONGEST: u64 = 16 << 20;
/// Most bytes of all files that a specification names, for them to be kept with a run.
const LARGEST_KEPT_FILES: usize = 64 << 20;

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
    /// The texts of the files that it names, where they were kept with a run; others are not read then.
    kept: Option<BTreeMap<String, String>>,
    /// The block of a Markdown file that it is; `text` is then that file with spaces in place of all else before.
    block: Option<SpecBlock>,
}

/// The Markdown file in which a specification stands, and where.
#[derive(Clone, Debug)]
struct SpecBlock {
    markdown: String,
    place: MarkdownBlock,
}

impl SpecBlock {
    /// The Markdown file with another text in place of the block's; what stands before the block in that text is left out.
    fn with_text(&self, in_place: &str) -> String {
        let Range { start, end } = self.place.span;
        let part = |range: Option<&str>| range.unwrap_or_default().to_owned();
        part(self.markdown.get(..start))
            + &part(in_place.get(start..))
            + &part(self.markdown.get(end..))
    }
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
                kept: None,
                block: None,
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
            kept: None,
            block: None,
        }
    }

    /// The specification of a kept run, with the files that it names as they were kept.
    #[must_use]
    pub fn from_run(name: &str, text: String, files: BTreeMap<String, String>) -> Self {
        Self {
            kept: Some(files),
            ..Self::made(name, text)
        }
    }

    /// Reads a file, or standard input for `-`. Of a Markdown file that is `README.md#2` or `README.md#NAME`, the block of that number
    /// or name; without it, the only one.
    ///
    /// # Errors
    /// When the file cannot be read, or is too long; when it has no such block.
    pub fn read(path: &Path) -> Result<Self> {
        let Some(reference) = MarkdownReference::new(path) else {
            return Self::read_whole(path);
        };
        let whole = Self::read_whole(&reference.file)?;
        let place = reference.chosen(&whole.text)?;
        Ok(whole.in_block(place))
    }

    /// All specifications that a path names: those of a Markdown file, if no block of it is chosen; else the one.
    ///
    /// # Errors
    /// As for [`Self::read`]; when a Markdown file has no specification.
    pub fn read_all(path: &Path) -> Result<Vec<Self>> {
        match MarkdownReference::new(path) {
            Some(reference) if reference.block.is_none() => {
                let whole = Self::read_whole(&reference.file)?;
                let blocks = reference.blocks(&whole.text)?;
                Ok(blocks
                    .into_iter()
                    .map(|place| whole.in_block(place))
                    .collect())
            }
            _ => Self::read(path).map(|one| vec![one]),
        }
    }

    /// One block of this text, which is a Markdown file's.
    fn in_block(&self, place: MarkdownBlock) -> Self {
        let name = place
            .name
            .clone()
            .unwrap_or_else(|| place.number.to_string());
        Self {
            name: format!("{}#{name}", self.name),
            text: place.in_place(&self.text),
            directory: self.directory.clone(),
            kept: None,
            block: Some(SpecBlock {
                markdown: self.text.clone(),
                place,
            }),
        }
    }

    /// The name and the text in which mistakes are shown: of a block of a Markdown file, that whole file.
    #[must_use]
    pub fn shown(&self) -> (&str, &str) {
        let Some(block) = &self.block else {
            return self.named();
        };
        (
            self.name
                .rsplit_once('#')
                .map_or(&*self.name, |(file, _)| file),
            &block.markdown,
        )
    }

    /// The specification alone, as it is kept with a run.
    #[must_use]
    pub fn own_text(&self) -> String {
        let block = self.block.as_ref();
        block.map_or_else(
            || self.text.clone(),
            |block| block.place.unindented(&block.markdown),
        )
    }

    /// What a run is called that is made of it, if nothing else is said.
    #[must_use]
    pub fn stem(&self) -> String {
        let named = self
            .block
            .as_ref()
            .and_then(|block| block.place.name.clone());
        let stem = || {
            let file = self.name.rsplit_once('#').filter(|_| self.block.is_some());
            let file = file.map_or(&*self.name, |(file, _)| file);
            let stem = Path::new(file).file_stem();
            stem.map_or_else(|| "run".into(), |stem| stem.to_string_lossy().into_owned())
        };
        named.unwrap_or_else(stem)
    }

    /// Whether it is a block of a Markdown file.
    #[must_use]
    pub const fn is_block(&self) -> bool {
        self.block.is_some()
    }

    /// The line on which it begins in its file, from 1.
    #[must_use]
    pub fn first_line(&self) -> usize {
        self.block.as_ref().map_or(1, |block| block.place.line)
    }

    /// The texts of the files that it names, by the names in it. They are left out if they are too large to be kept with a run.
    #[must_use]
    pub fn named_files(&self, overrides: &Overrides) -> BTreeMap<String, String> {
        // The names of files are texts in quotation marks.
        if !self.text.contains('"') {
            return BTreeMap::new();
        }
        let files = RefCell::new(BTreeMap::new());
        let read_file = |name: &str| -> std::result::Result<String, String> {
            let text = self.read_file(name)?;
            files.borrow_mut().insert(name.to_owned(), text.clone());
            Ok(text)
        };
        let worlds = worlds();
        let cores = stackline_live::cores();
        let context = CheckContext {
            worlds: &available(&worlds),
            read_file: &read_file,
            cores: &cores,
        };
        let _ = stackline_spec::check(&self.text, &context, overrides);
        let mut files = files.into_inner();
        if files.values().map(String::len).sum::<usize>() > LARGEST_KEPT_FILES {
            files.clear();
        }
        files
    }

    /// The text of a file that it names.
    fn read_file(&self, name: &str) -> std::result::Result<String, String> {
        match &self.kept {
            None => read_named(&self.beside(name)),
            Some(kept) => kept
                .get(name)
                .cloned()
                .ok_or_else(|| "it was not kept with the run".to_owned()),
        }
    }

    /// Whether a path names a Markdown file, and no block of it.
    #[must_use]
    pub fn is_markdown(path: &Path) -> bool {
        MarkdownReference::new(path).is_some_and(|reference| reference.block.is_none())
    }

    /// Reads a whole file, or standard input for `-`.
    ///
    /// # Errors
    /// When the file cannot be read, or is too long.
    pub fn read_whole(path: &Path) -> Result<Self> {
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
                directory: path.parent().map(Path::to_owned),
                ..Self::made(&name, text)
            }),
            Err(_) if stackline_runs::archive::is_archive(path) => {
                let message = format!("{name} is compressed; a specification is a text");
                let hint = "if it is an archive of a run, `stackline runs again FILE` makes that run again";
                Err(Error::input(message).hint(hint))
            }
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
            kept: self.kept.clone(),
            block: None,
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
        let read_file = |name: &str| self.read_file(name);
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
        if let (Some(block), Some(right)) = (&self.block, &mut checked.right) {
            *right = block.with_text(right);
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
