//! Chooses by what property lifelines are coloured, in pictures and on the page alike: by the first of server, host, stack and
//! stream that is not the same for all lines. If there are more names than colours, they are put into quarters by their median
//! time. It draws nothing.

use crate::lifeline_percentiles::continuous;
use crate::lifelines::{Lifeline, Lifelines};
use crate::segments::lifeline_duration_ns;
use stackline_core::trace_index::Index;
use std::collections::BTreeMap;

/// The most names that get a colour each.
pub const MOST_COLOURS: usize = 8;

/// The kinds of lines, each with a colour, and the kind of each line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Colouring {
    /// The property by which lines are coloured: "server", "host", "stack" or "stream".
    pub by: &'static str,
    /// Names of the kinds, at most [`MOST_COLOURS`].
    pub names: Vec<String>,
    /// The kind of each line: an index into `names`.
    pub of: Vec<u32>,
}

/// A property of lines: its name, and the function that gives the value for a line.
type LineColouringRule = (&'static str, fn(&Lifelines, &Index, &Lifeline) -> String);

/// The first property with more than one value is taken.
const RULES: [LineColouringRule; 4] = [
    ("server", server),
    ("host", host),
    ("stack", stack),
    ("stream", stream),
];

impl Colouring {
    /// The colouring of these lines.
    #[must_use]
    pub fn from_lifelines(lifelines: &Lifelines, index: &Index) -> Self {
        let named = |(by, name): &LineColouringRule| {
            let names = lifelines
                .lines
                .iter()
                .map(|line| name(lifelines, index, line))
                .collect();
            let made = numbered(by, names);
            (made.names.len() > 1).then_some(made)
        };
        let first = || {
            numbered(
                RULES[0].0,
                lifelines
                    .lines
                    .iter()
                    .map(|line| server(lifelines, index, line))
                    .collect(),
            )
        };
        let made = RULES.iter().find_map(named).unwrap_or_else(first);
        if made.names.len() <= MOST_COLOURS {
            made
        } else {
            made.quarters(lifelines)
        }
    }

    /// Replaces the kinds by four: the quarters of the names by the median time of their lines.
    fn quarters(self, lifelines: &Lifelines) -> Self {
        let mut times: Vec<Vec<i64>> = vec![Vec::new(); self.names.len()];
        for (line, kind) in lifelines
            .lines
            .iter()
            .zip(&self.of)
            .filter(|(line, _)| !lifelines.is_connection(line))
        {
            times[*kind as usize].push(lifeline_duration_ns(lifelines, line));
        }
        let medians: Vec<f64> = times
            .iter_mut()
            .map(|times| continuous(times, 0.5).unwrap_or(0.0))
            .collect();
        let mut order: Vec<usize> = (0..medians.len()).collect();
        order.sort_by(|a, b| medians[*a].total_cmp(&medians[*b]));
        let mut quarter = vec![0; order.len()];
        order
            .iter()
            .enumerate()
            .for_each(|(rank, kind)| quarter[*kind] = (rank * 4 / order.len()) as u32);
        let all = self.names.len();
        let names = ["fastest", "second", "third", "slowest"]
            .map(|which| format!("{which} quarter of {all} {}s", self.by));
        Self {
            by: self.by,
            names: names.into(),
            of: self.of.iter().map(|kind| quarter[*kind as usize]).collect(),
        }
    }
}

/// A colouring with one kind for each different name, in alphabetical order. `lines` has the name of each line.
fn numbered(by: &'static str, lines: Vec<String>) -> Colouring {
    let mut numbers: BTreeMap<&str, u32> = lines.iter().map(|name| (name.as_str(), 0)).collect();
    numbers
        .values_mut()
        .enumerate()
        .for_each(|(at, number)| *number = at as u32);
    let of = lines.iter().map(|name| numbers[name.as_str()]).collect();
    Colouring {
        by,
        names: numbers.into_keys().map(str::to_owned).collect(),
        of,
    }
}

fn server(lifelines: &Lifelines, _: &Index, line: &Lifeline) -> String {
    lifelines
        .groups
        .get(line.group as usize)
        .cloned()
        .unwrap_or_default()
}

/// The host where a line begins.
fn host(lifelines: &Lifelines, _: &Index, line: &Lifeline) -> String {
    let first = lifelines.passages_of(line).first();
    first
        .map(|first| lifelines.points[first.point as usize].host.clone())
        .unwrap_or_default()
}

fn stack(_: &Lifelines, index: &Index, line: &Lifeline) -> String {
    line.flow
        .and_then(|flow| index.flow(flow))
        .map(|flow| flow.stack.clone())
        .unwrap_or_default()
}

/// The stream of a line: one pair of one part, the same in every run.
fn stream(_: &Lifelines, index: &Index, line: &Lifeline) -> String {
    let flow = line.flow.and_then(|flow| index.flow(flow));
    flow.map(|flow| {
        format!(
            "stream {}.{}",
            flow.part.saturating_add(1),
            flow.replica.saturating_add(1)
        )
    })
    .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assemble::{LifelineOptions, lifelines};
    use stackline_events::{EventTable, EventValue};

    /// One unit of each of so many hosts to one server, each host slower than the one before.
    fn from(hosts: u64) -> Colouring {
        let mut table = EventTable::default();
        for host in 0..hosts {
            let unit = [EventValue::Number(host as i64)];
            table.push("SEND", &format!("c{host:03}"), host * 1_000_000, &unit);
            table.push(
                "RECEIVED",
                "srv",
                host * 1_000_000 + 1_000 * (host + 1),
                &unit,
            );
        }
        Colouring::from_lifelines(
            &lifelines(&table, None, &LifelineOptions::default()),
            &Index::default(),
        )
    }

    #[test]
    fn lines_to_one_server_have_the_colours_of_their_hosts() {
        let three = from(3);
        assert_eq!(
            (three.by, three.names.join(" ")),
            ("host", "c000 c001 c002".into())
        );
        assert_eq!(three.of, [0, 1, 2]);
    }

    #[test]
    fn of_too_many_the_quarters_by_their_time() {
        let many = from(200);
        assert_eq!(many.names[0], "fastest quarter of 200 hosts");
        assert_eq!(many.names.len(), 4);
        let of = |kind: u32| many.of.iter().filter(|one| **one == kind).count();
        assert_eq!([of(0), of(1), of(2), of(3)], [50; 4]);
        assert_eq!((many.of[0], many.of[199]), (0, 3));
    }

    #[test]
    fn one_stream_has_one_colour() {
        assert_eq!(from(1).names, ["srv"]);
    }
}
