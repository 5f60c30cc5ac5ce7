//! From the command line to a checked plan.

use crate::diagnostics;
use crate::exit::{Blame, Error, Result, already_shown};
use crate::flags::Text;
use stackline_core::plan::Plan;
use stackline_live::stacks;
use stackline_spec::{Checked, Context, Overrides};
use std::io::Read;
use std::path::Path;

/// Longest specification that is read.
const LONGEST: u64 = 16 << 20;

/// A specification's text and its name in messages.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) text: String,
}

impl Source {
    /// Reads what the flags name.
    pub(crate) fn of(flags: &Text) -> Result<Self> {
        match (&flags.expression, &flags.spec) {
            (Some(text), _) => Ok(Self { name: "expression".into(), text: text.clone() }),
            (None, Some(path)) => Self::read(path),
            (None, None) => {
                Err(Error::input("there is no specification").hint("name a file, or give the text with -e"))
            }
        }
    }

    /// Reads a file, or standard input for `-`.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let name = if path == Path::new("-") { "standard input".to_string() } else { path.display().to_string() };
        let mut text = String::new();
        let read = if path == Path::new("-") {
            std::io::stdin().take(LONGEST).read_to_string(&mut text)
        } else {
            std::fs::File::open(path).and_then(|file| file.take(LONGEST).read_to_string(&mut text))
        };
        match read {
            Ok(n) if n as u64 == LONGEST => Err(Error::input(format!("{name} is longer than 16 MiB"))),
            Ok(_) => Ok(Self { name, text }),
            Err(error) => Err(Error::input(format!("{name} cannot be read: {error}"))),
        }
    }

    /// Checks it; tells warnings and mistakes.
    pub(crate) fn plan(&self, flags: &Text) -> Result<Plan> {
        self.told(self.checked(&overrides(flags)?), flags)
    }

    /// The same for those who want to see what is to be done: without a measurement there is nothing.
    pub(crate) fn work(&self, flags: &Text) -> Result<Plan> {
        self.done(flags, self.checked(&overrides(flags)?))
    }

    /// The same where no warning is due for a live measurement that crosses a network: closed forms ask for no world, and
    /// `run` refuses it.
    pub(crate) fn work_in_any_world(&self, flags: &Text) -> Result<Plan> {
        self.done(flags, self.checked(&Overrides { any_world: true, ..overrides(flags)? }))
    }

    fn done(&self, flags: &Text, checked: Checked) -> Result<Plan> {
        if checked.plan.as_ref().is_some_and(|plan| plan.measurements.is_empty()) {
            let message = format!("there is nothing to do: the specification ({}) has no measurement", self.name);
            return Err(Error::input(message).hint("write one, such as `10 request_response 32*1000;`"));
        }
        self.told(checked, flags)
    }

    fn checked(&self, overrides: &Overrides) -> Checked {
        let catalogue = stacks::catalogue();
        let simulated = stackline_sim::catalogue();
        let context = Context { stacks: &catalogue, simulated: &simulated, read_file: &named };
        stackline_spec::check(&self.text, &context, overrides)
    }

    fn told(&self, checked: Checked, flags: &Text) -> Result<Plan> {
        diagnostics::tell(&checked.diagnostics, self, Some(flags));
        let mut plan = checked.plan.ok_or_else(|| already_shown(Blame::Input))?;
        place(&mut plan, &flags.cpu)?;
        Ok(plan)
    }
}

/// Reads a file that a specification names: a regular one of bounded size, since a device or a pipe may never end.
pub(crate) fn named(name: &str) -> std::result::Result<String, String> {
    let told = |error: std::io::Error| error.to_string();
    // Opening a pipe would wait for a writer.
    let kind = std::fs::metadata(name).map_err(told)?;
    if !kind.is_file() {
        return Err("it is not a regular file".into());
    }
    let mut text = String::new();
    let file = std::fs::File::open(name).map_err(told)?;
    match file.take(LONGEST).read_to_string(&mut text).map_err(told)? {
        n if n as u64 == LONGEST => Err("it is longer than 16 MiB".into()),
        _ => Ok(text),
    }
}

fn overrides(flags: &Text) -> Result<Overrides> {
    let parsed = flags.hosts.iter().map(|text| stackline_spec::host_argument(text));
    let hosts = parsed.collect::<std::result::Result<Vec<_>, String>>();
    let hosts = hosts.map_err(|e| Error::input(e).hint("--host NAME=local or --host NAME=ssh:USER@ADDRESS"))?;
    Ok(Overrides {
        over: flags.over.clone(),
        world: flags.world.map(Into::into),
        hosts,
        seed: flags.seed,
        any_world: false,
    })
}

/// `--cpu` holds for every part.
fn place(plan: &mut Plan, cpu: &[usize]) -> Result<()> {
    let both = match cpu {
        [] => return Ok(()),
        [one] => (Some(*one), Some(*one)),
        [initiator, responder] => (Some(*initiator), Some(*responder)),
        _ => return Err(Error::input("--cpu takes one core, or two: initiator,responder")),
    };
    for part in plan.measurements.iter_mut().flat_map(|m| &mut m.parts) {
        part.cpu = both;
    }
    Ok(())
}
