//! `stackline bufferbloat`: how much latency grows while a path is loaded.

use crate::checked_plan::mistake_shown;
use crate::exit::{Blame, Error, Exit, Result, already_shown};
use crate::flags::BufferbloatFlags;
use crate::interrupt::listen_for_ctrl_c;
use crate::output;
use stackline_report::bufferbloat::{
    PlotCharacters, PlotForm, TitledBufferbloat, bufferbloat as answers_text, bufferbloat_json,
    latency_picture,
};
use stackline_report::scene::picture_file::PictureFileFormat;
use stackline_whatif::bufferbloat::{
    AccessLine, BufferbloatAddresses, BufferbloatQuestion, BufferbloatServer, LoadedPath,
    measure_bufferbloat,
};
use stackline_whatif::unattended_runs::UnattendedOptions;
use std::io::{IsTerminal as _, stdout};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Columns of a plot where there is no terminal.
const COLUMNS: usize = 80;

/// Measures and prints the answer.
pub(crate) fn bufferbloat(flags: &BufferbloatFlags) -> Result {
    let picture = flags.output.as_deref().map(picture_file).transpose()?;
    let questions = questions(flags)?;
    // All are checked before anything runs.
    for (_, question) in &questions {
        if let LoadedPath::Line(line) = &question.path {
            line.check().map_err(mistake_shown)?;
        }
        question.plan()?;
    }
    if let (true, Some((_, question))) = (flags.spec, questions.first()) {
        return output::print_for_programs(&question.specification()).map(|()| Exit::Done);
    }
    let answers = answers(flags, questions)?;
    let form = (flags.plot || stdout().is_terminal()).then(plot_form);
    match flags.json {
        true => output::json(&bufferbloat_json(&answers), false)?,
        false => output::print(&answers_text(&answers, form))?,
    }
    if let Some((path, format)) = picture {
        draw(&answers, path, format, flags.json)?;
    }
    // Without a grade the question is not answered.
    match answers.iter().all(|one| one.answer.grade.is_some()) {
        true => Ok(Exit::Done),
        false => Err(already_shown(Blame::Measurement)),
    }
}

/// Measures all that is asked.
fn answers(
    flags: &BufferbloatFlags,
    questions: Vec<(String, BufferbloatQuestion)>,
) -> Result<Vec<TitledBufferbloat>> {
    let (ended, signalled) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
    listen_for_ctrl_c([&ended, &signalled])?;
    let mut answers = Vec::new();
    for (title, question) in questions {
        let options = UnattendedOptions {
            trace: false,
            capture: Vec::new(),
            ended: &ended,
            signalled: &signalled,
            warn: |words| output::say(&words),
        };
        let made = measure_bufferbloat(&question, flags.sharing.access(), options)?;
        if signalled.load(Ordering::Relaxed) {
            return Err(already_shown(Blame::Interrupted));
        }
        answers.push(TitledBufferbloat {
            title,
            answer: made.answer,
            http: question.shown_http_version(),
            directory: made.directory,
        });
    }
    Ok(answers)
}

/// The file of the picture and its format.
fn picture_file(path: &Path) -> Result<(&Path, PictureFileFormat)> {
    let format = PictureFileFormat::from_path(path).ok_or_else(|| {
        Error::input(format!("the type of {} is unknown", path.display()))
            .hint("name a picture FILE.svg, .png or .pdf")
    })?;
    Ok((path, format))
}

fn draw(
    answers: &[TitledBufferbloat],
    path: &Path,
    format: PictureFileFormat,
    for_programs: bool,
) -> Result<()> {
    let Some(scene) = latency_picture(answers) else {
        output::say(&"note: no picture was drawn: no probe was answered");
        return Ok(());
    };
    output::file(path, scene.encode(format).map_err(Error::measurement)?)?;
    match for_programs {
        true => Ok(()),
        false => output::print(&format!("drawn in {}\n", path.display())),
    }
}

fn plot_form() -> PlotForm {
    PlotForm {
        characters: match output::is_utf8_locale() {
            true => PlotCharacters::Blocks,
            false => PlotCharacters::Ascii,
        },
        columns: output::columns(stdout()).unwrap_or(COLUMNS),
    }
}

/// The questions with what they are about: the path as it is, and with another queue.
fn questions(flags: &BufferbloatFlags) -> Result<Vec<(String, BufferbloatQuestion)>> {
    let question = |path| BufferbloatQuestion {
        path,
        seconds: flags.seconds,
        loads: flags.loads,
    };
    if let Some(url) = &flags.url {
        let server = server(flags, url)?;
        return Ok(vec![(server.title(), question(LoadedPath::Server(server)))]);
    }
    let (down, up) = (flags.down.clone(), flags.up.clone());
    let line = AccessLine {
        down: down.unwrap_or_default(),
        up: up.unwrap_or_default(),
        rtt: flags.rtt.clone(),
        queue: flags.queue.clone(),
        world: flags.world.clone(),
    };
    let of_queue = |queue: &str| {
        let line = AccessLine {
            queue: queue.to_owned(),
            ..line.clone()
        };
        (format!("queue {queue}"), question(LoadedPath::Line(line)))
    };
    let cure = (flags.cure != "none").then(|| of_queue(&flags.cure));
    Ok(std::iter::once(of_queue(&flags.queue))
        .chain(cure)
        .collect())
}

fn server(flags: &BufferbloatFlags, url: &str) -> Result<BufferbloatServer> {
    let version = flags.http.as_deref();
    let version = version.map(|written| written.trim_start_matches("http"));
    BufferbloatServer::ask(BufferbloatAddresses {
        url: url.to_owned(),
        probe: flags.probe.clone(),
        upload: flags.upload.clone(),
        version: version.map(|number| format!("http{number}")),
        insecure: flags.insecure,
    })
}
