//! A plan as text: what exactly will be done, with every default written out.

mod network;

use crate::grid::{Align, line, widths, wrap};
use crate::phrases::Phrases;
use crate::procedure::{size, steps};
use crate::table::WIDTH;
use stackline_core::catalogue::{Available, OptionTable, OptionValue, StackTable};
use stackline_core::far_end::is_address;
use stackline_core::plan::{
    Composer, DataAccess, HostPlan, Measurement, MeasurementPart, Plan, Stack, UnitCount, Via,
    Warmup, World,
};
use stackline_core::units;
use stackline_core::units::counted;

/// The plan as lines of text. `worlds` gives the stacks of each world with the defaults of their options.
#[must_use]
pub fn plan(plan: &Plan, worlds: &[Available<'_>]) -> String {
    let mut lines = vec![format!(
        "seed {}: one sequence of random sizes and delays for each measurement, part, run and replica",
        plan.seed
    )];
    let runs: u64 = plan.measurements.iter().map(|m| u64::from(m.runs)).sum();
    let most = plan.most_time().map_or_else(String::new, |time| {
        format!(", at most {time} given the time limits")
    });
    lines.push(format!(
        "measurements {}, runs {runs}{most}",
        plan.measurements.len()
    ));
    let declared = plan.hosts.iter().filter(|(name, _)| reached(name, plan));
    lines.extend(declared.map(|(name, host)| format!("host {name}: {}", self::host(host))));
    lines.extend(plan.networks.iter().flat_map(network::lines));
    for (index, measurement) in plan.measurements.iter().enumerate() {
        lines.push(String::new());
        lines.extend(self::measurement(index, measurement, plan, worlds));
    }
    lines
        .into_iter()
        .map(|line| line.trim_end().to_owned() + "\n")
        .collect()
}

fn host(host: &HostPlan) -> String {
    let mut said = vec![via(&host.via)];
    said.with(host.address.as_ref(), |address| {
        format!("address {address}")
    });
    said.with(host.cpu, |core| format!("on core {core}"));
    said.with(host.files.as_ref(), |directory| {
        format!("files under {directory}")
    });
    said.join(", ")
}

fn via(via: &Via) -> String {
    match via {
        Via::Local => "a child process on this machine".to_owned(),
        Via::Ssh(destination) => format!("ssh {destination} stackline agent"),
        Via::Tcp(address) => format!("the agent at {address}"),
        Via::Exec(command) => format!("the command `{command}`"),
        Via::FarEnd(_) => "a server outside the run".to_owned(),
    }
}

/// Whether a host needs a line that says how it is reached: not if it is used only in modelled networks.
fn reached(name: &str, plan: &Plan) -> bool {
    let mut using = plan
        .measurements
        .iter()
        .filter(|m| m.parts.iter().any(|part| is_end(part, name)))
        .peekable();
    using.peek().is_none() || using.any(|m| m.world == World::Live)
}

fn is_end(part: &MeasurementPart, name: &str) -> bool {
    [&part.from, &part.to]
        .into_iter()
        .any(|end| end.as_deref() == Some(name))
}

fn measurement(
    index: usize,
    m: &Measurement,
    plan: &Plan,
    worlds: &[Available<'_>],
) -> Vec<String> {
    let mut lines = vec![format!("{}. {}  (line {})", index + 1, m.text, m.line)];
    lines.extend(
        wrap(&runs(m), WIDTH)
            .into_iter()
            .map(|line| format!("   {line}")),
    );
    let across = m
        .across
        .as_ref()
        .map_or_else(String::new, |network| format!(" across {network}"));
    lines.push(format!(
        "   world {}{across}; {}",
        m.world,
        composer(m.composer)
    ));
    if !m.variables.is_empty() {
        let values: Vec<String> = m
            .variables
            .iter()
            .map(|(name, value)| format!("{name} = {value}"))
            .collect();
        lines.push(format!("   with {}", values.join(", ")));
    }
    for (index, part) in m.parts.iter().enumerate() {
        lines.extend(
            self::part(index, part, m, plan, worlds)
                .into_iter()
                .map(|line| format!("   {line}")),
        );
    }
    for expectation in &m.expectations {
        let of = match expectation.part {
            Some(index) if m.parts.len() > 1 => format!(" of part {}", index + 1),
            _ => String::new(),
        };
        lines.push(format!("   expects {}{of}", expectation.text));
    }
    lines
}

fn runs(m: &Measurement) -> String {
    let least = if m.until.is_some() { "at least " } else { "" };
    let mut said = vec![format!(
        "{least}{} counted",
        counted(u64::from(m.runs), "run")
    )];
    said.push(match m.warmup {
        Warmup::Runs(0) => "no warm-up".to_owned(),
        Warmup::Runs(n) => format!("after {}", counted(u64::from(n), "warm-up run")),
        Warmup::Time(time) => format!("after {time} of warm-up runs"),
    });
    said.with(m.time_limit, |limit| format!("each run at most {limit}"));
    said.with(m.until, |until| {
        let share = units::three_digits(until.share * 100.0);
        format!(
            "repeated until the 95 % interval is within {share} % of the mean, at most {} runs",
            until.at_most
        )
    });
    said.join(", ")
}

const fn composer(composer: Composer) -> &'static str {
    match composer {
        Composer::Basic => "one part alone",
        Composer::Parallel => "all parts at once, each measured",
        Composer::Background => "the first part is measured; the others are background load",
        Composer::PriorityBackground => {
            "the first part is measured at a higher priority; the others are background load"
        }
        Composer::Total => "all parts at once, one figure for all",
    }
}

fn part(
    index: usize,
    part: &MeasurementPart,
    m: &Measurement,
    plan: &Plan,
    worlds: &[Available<'_>],
) -> Vec<String> {
    let load = if part.background { " (load)" } else { "" };
    let mut lines = vec![format!("part {}: {}{load}", index + 1, part.text)];
    let mut add = |line: String| lines.push(format!("  {line}"));
    let world = worlds
        .iter()
        .find(|available| available.can.world == m.world);
    let cores = world.is_none_or(|world| world.can.processors);
    add(format!(
        "initiator  {}",
        end(part.from.as_deref(), cores.then_some(part.cpu.0), m, plan)
    ));
    add(format!(
        "responder  {}",
        end(part.to.as_deref(), cores.then_some(part.cpu.1), m, plan)
    ));
    add(format!("data       {}", data(part)));
    rate(part)
        .into_iter()
        .for_each(|rate| add(format!("rate       {rate}")));
    stack(&part.stack, world.map_or(&[], |world| world.stacks))
        .into_iter()
        .for_each(&mut add);
    sides(part).into_iter().for_each(&mut add);
    lines
}

/// How often the operations of a part begin: of each pair, and of all together.
fn rate(part: &MeasurementPart) -> Option<String> {
    let timing = part.procedure.pacing_timing()?;
    let mean = part.data.timings.get(timing)?.mean();
    let each = 1.0 / mean.filter(|seconds| *seconds > 0.0)?;
    let per_second = units::per_second;
    if part.replicas == 1 {
        return Some(per_second(each));
    }
    let turns = if part.data.takes_turns {
        ", which take turns"
    } else {
        ""
    };
    let total = per_second(each * f64::from(part.replicas));
    Some(format!(
        "{} for each of {} pairs{turns}, {total} in total",
        per_second(each),
        part.replicas
    ))
}

/// One end of a part: its host, how it is reached or modelled, and the requested core if the world has processors.
fn end(name: Option<&str>, core: Option<Option<usize>>, m: &Measurement, plan: &Plan) -> String {
    let host = name.and_then(|name| plan.hosts.get(name));
    let reached = match m.world {
        World::Live => host.map_or_else(|| via(&Via::Local), |host| via(&host.via)),
        World::Emulated => {
            "a child process on this machine, in its own network namespace".to_owned()
        }
        modelled => modelled.to_string(),
    };
    let is_far_end = host.is_some_and(|host| matches!(host.via, Via::FarEnd(_)));
    let name = name.map_or_else(String::new, |name| format!("{name}: "));
    let Some(core) = core.filter(|_| !is_far_end) else {
        return name + &reached;
    };
    let core = core.or(host.and_then(|host| host.cpu));
    let core = core.map_or_else(
        || "no core specified".to_owned(),
        |core| format!("pinned to core {core}"),
    );
    format!("{name}{reached}, {core}")
}

fn data(part: &MeasurementPart) -> String {
    let data = &part.data;
    let reply = if data.reply == data.unit {
        String::new()
    } else {
        format!(" and {}", size(&data.reply, data.least_drawn))
    };
    let count = match data.count {
        UnitCount::Units(n) => counted(n, "unit"),
        UnitCount::Amount(bytes) => match data.last_unit() {
            Some(last) => format!(
                "{} in total (last unit {}), in units",
                units::format_size(bytes),
                units::format_size(last)
            ),
            None => format!("{} in total, in units", units::format_size(bytes)),
        },
        UnitCount::WholeFile => "the whole file, in units".to_owned(),
        UnitCount::Unlimited => "unlimited units".to_owned(),
    };
    let pairs = if part.replicas == 1 {
        String::new()
    } else {
        format!(", by {} pairs at once", part.replicas)
    };
    let (from, to) = (access(&part.source), access(&part.destination));
    format!(
        "{count} of {}{reply}, from {from} to {to}{pairs}",
        size(&data.unit, data.least_drawn)
    )
}

fn access(access: &DataAccess) -> String {
    match access {
        DataAccess::Memory => "memory".to_owned(),
        DataAccess::VirtualMemory => "virtual memory".to_owned(),
        DataAccess::File(path) => format!("file {path}"),
    }
}

/// The stack, with every written option and the default of every other.
fn stack(stack: &Stack, stacks: &[StackTable]) -> Vec<String> {
    let table = stacks.iter().find(|table| table.name == stack.name);
    let known = table.map_or(&[][..], |table| table.options);
    let written = stack
        .options
        .iter()
        .map(|(name, value)| vec![name.clone(), option(name, value, known)]);
    let missing = known
        .iter()
        .filter(|option| !stack.options.contains_key(option.name));
    let defaults = missing.map(|option| {
        vec![
            option.name.to_owned(),
            format!("{} (default)", option.default),
        ]
    });
    let rows: Vec<Vec<String>> = written.chain(defaults).collect();
    let widths = widths(&rows);
    let summary = table.map_or_else(String::new, |table| format!(": {}", table.summary));
    let options = rows
        .iter()
        .map(|row| format!("  {}", line(row, &widths, &[Align::Left, Align::Left])));
    std::iter::once(format!("stack      {}{summary}", stack.name))
        .chain(options)
        .collect()
}

fn option(name: &str, value: &OptionValue, known: &[OptionTable]) -> String {
    use stackline_core::catalogue::OptionKind::Bytes;
    let bytes = known
        .iter()
        .any(|option| option.name == name && matches!(option.kind, Bytes(..)));
    match value {
        OptionValue::Set => "on".to_owned(),
        OptionValue::Number(number) if bytes => units::format_size(*number),
        OptionValue::Number(number) => number.to_string(),
        OptionValue::Seconds(seconds) => units::format_time(*seconds),
        OptionValue::Word(word) => word.clone(),
        OptionValue::Text(text) => format!("\"{text}\""),
    }
}

/// The steps of both sides, next to each other.
fn sides(part: &MeasurementPart) -> Vec<String> {
    let (initiator, responder) = (&part.procedure.initiator, &part.procedure.responder);
    let left = steps(initiator, &part.data);
    let right = match part.to.as_deref().is_some_and(is_address) {
        true => vec!["whatever the server does".to_owned()],
        false => steps(responder, &part.data),
    };
    let cell = |lines: &[String], at: usize| lines.get(at).cloned().unwrap_or_default();
    let rows = (0..left.len().max(right.len())).map(|at| vec![cell(&left, at), cell(&right, at)]);
    let mut rows: Vec<Vec<String>> = rows.collect();
    rows.insert(0, vec!["initiator".to_owned(), "responder".to_owned()]);
    let widths = widths(&rows);
    let lines = rows
        .iter()
        .map(|row| format!("  {}", line(row, &widths, &[Align::Left, Align::Left])));
    std::iter::once(format!("procedure  {}", part.procedure.name))
        .chain(lines)
        .collect()
}

#[cfg(test)]
mod tests;
