//! `stackline load`: latency against offered load, and the highest rate that meets an expectation.

use crate::checked_plan::{is_over_all, overrides, source_of};
use crate::exit::{Blame, Error, Exit, Result, already_shown};
use crate::flags::LoadFlags;
use crate::interrupt::listen_for_ctrl_c;
use crate::output;
use stackline_analyze::curves::{CurveMetric, CurveQuestion, CurveRun, CurveSet, curves};
use stackline_analyze::summarise;
use stackline_report::offered_load::{
    LoadForm, highest_rate, highest_rate_json, load_curve, load_curve_json,
};
use stackline_report::plot::{PlotWidth, TextPlotForm, line_picture, text_plot};
use stackline_report::scene::picture_file::PictureFileFormat;
use stackline_whatif::offered_load::highest_rate::{expectations_of, find_highest_rate};
use stackline_whatif::offered_load::load_sweep::sweep_load;
use stackline_whatif::offered_load::{KeptLoad, LoadWish, LoadedSpec};
use stackline_whatif::unattended_runs::UnattendedOptions;
use std::io::{IsTerminal as _, stderr, stdout};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Columns of a plot where there is no terminal.
const COLUMNS: usize = 80;

/// Offers load and prints what came of it.
pub(crate) fn load(flags: &LoadFlags) -> Result {
    let picture = flags.output.as_deref().map(picture_file).transpose()?;
    let expectations = flags.meet.as_deref().map(expectations_of).transpose()?;
    if is_over_all(&flags.text) {
        return Err(Error::input("one stack is loaded at a time").hint("name one after --over"));
    }
    let source = source_of(&flags.text)?;
    let (ended, signalled) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
    listen_for_ctrl_c([&ended, &signalled])?;
    let options = UnattendedOptions {
        trace: false,
        capture: Vec::new(),
        ended: &ended,
        signalled: &signalled,
        warn: |words| output::say(&words),
    };
    let mut loaded = LoadedSpec::new(
        &source,
        overrides(&flags.text)?,
        &wish(flags),
        options,
        match stderr().is_terminal() {
            true => |words| output::say(&words),
            false => |_| {},
        },
    )?;
    let answer = match &expectations {
        None => LoadAnswer::curve(&mut loaded, flags)?,
        Some(expectations) => {
            let found = find_highest_rate(&mut loaded, expectations, flags.precision)?;
            LoadAnswer::highest(found)
        }
    };
    let kept = loaded.keep(flags.sharing.access(), !answer.is_interrupted)?;
    let form = LoadForm {
        pairs: loaded.pairs()?,
        is_poisson: loaded.is_poisson(),
        runs: loaded.extent().runs,
        directory: kept
            .as_ref()
            .map(|kept| kept.directory.display().to_string()),
    };
    answer.print(flags, &form)?;
    if let Some(kept) = kept {
        draw(flags, &kept, picture)?;
    }
    match answer.is_interrupted {
        true => Err(already_shown(Blame::Interrupted)),
        false => Ok(answer.exit),
    }
}

fn wish(flags: &LoadFlags) -> LoadWish {
    LoadWish {
        line: flags.line,
        is_poisson: flags.arrivals.as_deref().map(|word| word == "poisson"),
        seconds: flags.seconds,
        runs: flags.runs,
        rates: flags.rates,
    }
}

/// Gives the answer in a form, for programs if that is true.
type ShownLoad = Box<dyn Fn(&LoadForm, bool) -> Shown>;

/// What came of it, as it is printed.
struct LoadAnswer {
    shown: ShownLoad,
    exit: Exit,
    is_interrupted: bool,
}

/// An answer for people, or for programs.
enum Shown {
    Text(String),
    Json(serde_json::Value),
}

impl LoadAnswer {
    fn curve(loaded: &mut LoadedSpec<'_>, flags: &LoadFlags) -> Result<Self> {
        use stackline_analyze::offered_load::LoadStop;
        let curve = sweep_load(loaded, flags.steps)?;
        Ok(Self {
            is_interrupted: curve.stop == LoadStop::Interrupted,
            exit: Exit::Done,
            shown: Box::new(move |form, json| match json {
                true => Shown::Json(load_curve_json(&curve, form)),
                false => Shown::Text(load_curve(&curve, form)),
            }),
        })
    }

    fn highest(found: stackline_analyze::offered_load::HighestRate) -> Self {
        Self {
            is_interrupted: found.is_interrupted,
            exit: match (found.found.met_per_s, found.found.missed_per_s) {
                (Some(_), _) => Exit::Done,
                (None, Some(_)) => Exit::Worse,
                (None, None) => Exit::Unclear,
            },
            shown: Box::new(move |form, json| match json {
                true => Shown::Json(highest_rate_json(&found, form)),
                false => Shown::Text(highest_rate(&found, form)),
            }),
        }
    }

    fn print(&self, flags: &LoadFlags, form: &LoadForm) -> Result<()> {
        match (self.shown)(form, flags.text.json) {
            Shown::Text(text) => output::print(&text),
            Shown::Json(value) => output::json(&value, false),
        }
    }
}

/// The file of the picture and its format.
fn picture_file(path: &Path) -> Result<(&Path, PictureFileFormat)> {
    let format = PictureFileFormat::from_path(path).ok_or_else(|| {
        Error::input(format!("the type of {} is unknown", path.display()))
            .hint("name a picture FILE.svg, .png or .pdf")
    })?;
    Ok((path, format))
}

/// Draws the 99th percentile against the offered rate: in a file, and in the text.
fn draw(
    flags: &LoadFlags,
    kept: &KeptLoad,
    picture: Option<(&Path, PictureFileFormat)>,
) -> Result<()> {
    let is_shown = flags.plot || (stdout().is_terminal() && !flags.text.json);
    if !is_shown && picture.is_none() {
        return Ok(());
    }
    let set = match curve_set(kept) {
        Ok(set) => set,
        Err(error) => {
            output::say(&format_args!("note: no curve was drawn: {}", error.message));
            return Ok(());
        }
    };
    if is_shown {
        let form = TextPlotForm {
            columns: output::columns(stdout()).unwrap_or(COLUMNS),
            is_ascii: !output::is_utf8_locale(),
            is_heat: false,
            log: None,
        };
        output::print(&text_plot(&set, form))?;
    }
    if let Some((path, format)) = picture {
        let scene = line_picture(&set, PlotWidth::Single, None);
        output::file(path, scene.encode(format).map_err(Error::measurement)?)?;
        if !flags.text.json {
            output::print(&format!("drawn in {}\n", path.display()))?;
        }
    }
    Ok(())
}

fn curve_set(kept: &KeptLoad) -> Result<CurveSet> {
    let mut summaries = summarise(&kept.plan, &kept.records);
    summaries.retain(|summary| summary.part_index.is_none_or(|part| part == 0));
    let run = CurveRun {
        name: "load".to_owned(),
        summaries,
    };
    let y = CurveMetric::parse("p99").map_err(Error::measurement)?;
    curves(
        &[run],
        &CurveQuestion {
            x: Some(stackline_spec::OFFERED.to_owned()),
            y,
            ..CurveQuestion::default()
        },
    )
}
