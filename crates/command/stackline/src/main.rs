//! The command `stackline`: flags, wiring, exit codes; the only place where everything meets.
//!
//! stdout carries results, stderr words and progress. Exit codes: see [`exit`].

mod across;
mod advice;
mod agent;
mod blocks;
mod clean;
mod client;
mod compare;
mod contents;
mod diagnose;
mod diagnostics;
mod display;
mod exit;
mod export;
mod factors;
mod flags;
mod formats;
mod import;
mod keepers;
mod kept;
mod keywords;
mod lifelines;
mod loaded;
mod manual;
mod ncc;
mod net;
mod output;
mod predict;
mod progress;
mod query;
mod refused;
mod report;
mod reproduce;
mod run;
mod show;
mod simulated;
mod source;
mod text;
mod trace;
mod truth;
mod unattended;
mod watch;

use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _};
use exit::Exit;
use flags::{Command, Flags};
use std::io::ErrorKind;
use std::process::ExitCode;

fn main() -> ExitCode {
    let matches = Flags::command().try_get_matches();
    let json = matches.as_ref().is_ok_and(asks_for_json);
    let flags = match matches.and_then(|matches| Flags::from_arg_matches(&matches)) {
        Ok(flags) => flags,
        Err(words) => return explained(&words),
    };
    if let Err(error) = keepers::keep(&flags.command) {
        return Exit::from_error(error, json).into();
    }
    let done = match flags.command {
        Command::Run(flags) => run::run(&flags),
        Command::Show(flags) => show::show(&flags),
        Command::Check(flags) => text::check(&flags),
        Command::Fmt(flags) => text::fmt(&flags),
        Command::Plan(flags) => text::plan(&flags),
        Command::Predict(flags) => predict::predict(&flags),
        Command::Factors(flags) => factors::factors(&flags),
        Command::Stacks(flags) => text::stacks(&flags),
        Command::Keywords(flags) => keywords::keywords(&flags),
        Command::Truth(flags) => truth::truth(&flags),
        Command::Clean(flags) => clean::clean(&flags),
        Command::Client(flags) => client::client(&flags),
        Command::Agent(flags) => agent::agent(&flags),
        Command::Compare(flags) => compare::compare(&flags),
        Command::Diagnose(flags) => diagnose::diagnose(&flags),
        Command::Ncc(flags) => ncc::ncc(&flags),
        Command::Import(flags) => import::import(&flags),
        Command::Export(flags) => export::export(&flags),
        Command::Lifelines(flags) => lifelines::lifelines(&flags),
        Command::Report(flags) => report::report(&flags),
        Command::Query(flags) => query::query(&flags),
        Command::Watch(flags) => watch::watch(&flags),
        Command::Trace(flags) => trace::trace(&flags),
        Command::Open(flags) => report::open(&flags),
        Command::Net(flags) => net::net(&flags),
        Command::Blocks(flags) => blocks::blocks(&flags),
        Command::Display(flags) => display::display(&flags),
        Command::Reproduce(flags) => reproduce::reproduce(&flags),
        Command::Completions(flags) => manual::completions(&flags),
        Command::Man(flags) => manual::man(&flags),
        Command::Emulate(flags) => net::emulate(&flags),
        Command::Ptrace(flags) => trace::ptrace(&flags),
        Command::Measure(flags) => reproduce::measure(&flags),
    };
    done.unwrap_or_else(|error| Exit::from_error(error, json))
        .into()
}

/// Prints help, or what is wrong with the flags.
fn explained(words: &clap::Error) -> ExitCode {
    if words.use_stderr()
        && words.kind() != clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    {
        return Exit::from_error(refused::error(words), false).into();
    }
    match words.print() {
        Err(cause) if !words.use_stderr() && cause.kind() != ErrorKind::BrokenPipe => {
            Exit::from_error(output::unwritten("stdout", &cause), false).into()
        }
        _ => ExitCode::from(if words.use_stderr() {
            Exit::Input
        } else {
            Exit::Done
        }),
    }
}

/// Whether the command, or the one below it, has `--json`.
fn asks_for_json(matches: &ArgMatches) -> bool {
    let here = matches
        .try_get_one::<bool>("json")
        .ok()
        .flatten()
        .is_some_and(|json| *json);
    here || matches
        .subcommand()
        .is_some_and(|(_, below)| asks_for_json(below))
}
