//! The command `stackline`: parses flags, dispatches to the commands and sets the exit code. All crates meet here
//! only.
//!
//! Results go to stdout, messages and progress to stderr. Exit codes: see [`exit`].

mod ab;
mod again;
mod agent;
mod archive;
mod blocks;
mod bufferbloat;
mod checked_plan;
mod clean;
mod client;
mod command_keepers;
mod command_line_error;
mod compare;
mod declared_network;
mod diagnose;
mod display;
mod exit;
mod export;
mod factors;
mod flags;
mod gate;
mod help;
mod import;
mod interrupt;
mod keywords;
mod lifelines;
mod manual;
mod ncc;
mod net;
mod output;
mod plot;
mod predict;
mod progress;
mod query;
mod reference;
mod report;
mod reproduce;
mod run;
mod runs;
mod session;
mod show;
mod spec_commands;
mod trace;
mod truth;
mod verdicts;
mod watch;

use clap::{ArgMatches, FromArgMatches as _};
use exit::Exit;
use flags::{PaperCommand, StacklineCommand, StacklineFlags};
use std::io::ErrorKind;
use std::process::ExitCode;

fn main() -> ExitCode {
    let matches = flags::command_line().try_get_matches();
    let json = matches.as_ref().is_ok_and(asks_for_json);
    let flags = match matches.and_then(|matches| StacklineFlags::from_arg_matches(&matches)) {
        Ok(flags) => flags,
        Err(words) => return explained(&words),
    };
    if let Err(error) = command_keepers::keep(&flags.command) {
        return Exit::from_error(error, json).into();
    }
    let done = match flags.command {
        StacklineCommand::Run(flags) => run::run(&flags),
        StacklineCommand::Show(flags) => show::show(&flags),
        StacklineCommand::Runs(flags) => runs::runs(&flags),
        StacklineCommand::Archive(flags) => archive::archive(&flags),
        StacklineCommand::Check(flags) => spec_commands::check(&flags),
        StacklineCommand::Fmt(flags) => spec_commands::fmt(&flags),
        StacklineCommand::Plan(flags) => spec_commands::plan(&flags),
        StacklineCommand::Predict(flags) => predict::predict(&flags),
        StacklineCommand::Bufferbloat(flags) => bufferbloat::bufferbloat(&flags),
        StacklineCommand::Factors(flags) => factors::factors(&flags),
        StacklineCommand::Stacks(flags) => spec_commands::stacks(&flags),
        StacklineCommand::Keywords(flags) => keywords::keywords(&flags),
        StacklineCommand::Truth(flags) => truth::truth(&flags),
        StacklineCommand::Clean(flags) => clean::clean(&flags),
        StacklineCommand::Client(flags) => client::client(&flags),
        StacklineCommand::Agent(flags) => agent::agent(&flags),
        StacklineCommand::Session(flags) => session::session(&flags),
        StacklineCommand::Compare(flags) => compare::compare(&flags),
        StacklineCommand::Gate(flags) => gate::gate(&flags),
        StacklineCommand::Ab(flags) => ab::ab(&flags),
        StacklineCommand::Diagnose(flags) => diagnose::diagnose(&flags),
        StacklineCommand::Import(flags) => import::import(&flags),
        StacklineCommand::Export(flags) => export::export(&flags),
        StacklineCommand::Lifelines(flags) => lifelines::lifelines(&flags),
        StacklineCommand::Report(flags) => report::report(&flags),
        StacklineCommand::Plot(flags) => plot::plot(&flags),
        StacklineCommand::Query(flags) => query::query(&flags),
        StacklineCommand::Watch(flags) => watch::watch(&flags),
        StacklineCommand::Trace(flags) => trace::trace(&flags),
        StacklineCommand::Open(flags) => report::open(&flags),
        StacklineCommand::Net(flags) => net::net(&flags),
        StacklineCommand::Papers(flags) => of_a_paper(&flags.command),
        StacklineCommand::Paper(command) => of_a_paper(&command),
        StacklineCommand::Help(flags) => help::help(&flags),
        StacklineCommand::Completions(flags) => manual::completions(&flags),
        StacklineCommand::Man(flags) => manual::man(&flags),
        StacklineCommand::Emulate(flags) => net::emulate(&flags),
        StacklineCommand::Ptrace(flags) => trace::ptrace(&flags),
        StacklineCommand::Measure(flags) => reproduce::measure(&flags),
    };
    // A mistyped flag of `trace` is parsed as a program, and `--json` behind it as an argument of that program.
    let json = || json || command_line_error::asks_for_json();
    done.unwrap_or_else(|error| Exit::from_error(error, json()))
        .into()
}

fn of_a_paper(command: &PaperCommand) -> exit::Result {
    match command {
        PaperCommand::Blocks(flags) => blocks::blocks(flags),
        PaperCommand::Display(flags) => display::display(flags),
        PaperCommand::Reproduce(flags) => reproduce::reproduce(flags),
        PaperCommand::Ncc(flags) => ncc::ncc(flags),
    }
}

/// Prints help, or the error in the flags.
fn explained(words: &clap::Error) -> ExitCode {
    if words.use_stderr()
        && words.kind() != clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    {
        return Exit::from_error(
            command_line_error::error(words),
            command_line_error::asks_for_json(),
        )
        .into();
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

/// Whether the command or its subcommand was given `--json`.
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
