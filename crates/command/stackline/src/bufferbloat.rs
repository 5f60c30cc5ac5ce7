//! `stackline bufferbloat`: how much latency grows while a path is loaded.

use crate::checked_plan::mistake_shown;
use crate::exit::{Blame, Exit, Result, already_shown};
use crate::flags::BufferbloatFlags;
use crate::interrupt::listen_for_ctrl_c;
use crate::output;
use stackline_core::far_end::FarEndAddress;
use stackline_report::bufferbloat::{
    TitledBufferbloat, bufferbloat as answers_text, bufferbloat_json,
};
use stackline_whatif::bufferbloat::{
    AccessLine, BufferbloatQuestion, BufferbloatServer, LoadedPath, measure_bufferbloat,
};
use stackline_whatif::unattended_runs::UnattendedOptions;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Measures and prints the answer.
pub(crate) fn bufferbloat(flags: &BufferbloatFlags) -> Result {
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
    let (ended, signalled) = (Arc::default(), Arc::<AtomicBool>::default());
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
            directory: made.directory,
        });
    }
    match flags.json {
        true => output::json(&bufferbloat_json(&answers), false)?,
        false => output::print(&answers_text(&answers))?,
    }
    // Without a grade the question is not answered.
    match answers.iter().all(|one| one.answer.grade.is_some()) {
        true => Ok(Exit::Done),
        false => Err(already_shown(Blame::Measurement)),
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
        let title = format!("{url} ({})", server.version);
        return Ok(vec![(title, question(LoadedPath::Server(server)))]);
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
    let address = FarEndAddress::parse(url)?;
    let has_tls = address.scheme == "https";
    let usual = if has_tls { "http2" } else { "http1" };
    let host = url.find("://").map_or(0, |at| at + 3);
    let end = url[host..].find(['/', '?', '#']);
    let root = &url[..end.map_or(url.len(), |end| host + end)];
    Ok(BufferbloatServer {
        url: url.to_owned(),
        probe: flags.probe.clone().unwrap_or_else(|| format!("{root}/")),
        upload: flags.upload.clone().unwrap_or_else(|| url.to_owned()),
        version: flags.http.clone().unwrap_or_else(|| usual.to_owned()),
        insecure: flags.insecure,
    })
}
