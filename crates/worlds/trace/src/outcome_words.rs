//! The outcome of a trace in words.

use crate::program_trace::TraceOutcome;
use stackline_core::units;
use stackline_requests::collector::counted_requests;

impl TraceOutcome {
    /// What was seen and what observing cost, one line each.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self
            .programs
            .iter()
            .map(|program| {
                let name = match program.name.as_str() {
                    "" => "(not seen)",
                    name => name,
                };
                format!("{:<12} {name:<20} {}", program.place, program.protocols)
            })
            .collect();
        let requests =
            counted_requests(&self.by_protocol).unwrap_or_else(|| "no requests".to_owned());
        lines.push(format!(
            "{requests} from {} and {} in {}; packets lost: {}, records lost: {}; tracing took {} of CPU time{}",
            units::counted(self.packets, "packet"),
            units::counted(self.records, "record"),
            units::format_time(self.seconds),
            self.lost_packets,
            self.lost_records,
            units::format_time(self.cost_s),
            self.cost_words()
        ));
        lines
    }

    /// What observing cost the traced programs, as the end of a sentence; empty if it was not measured.
    fn cost_words(&self) -> String {
        let Some(cost) = &self.cost else {
            return String::new();
        };
        let (without, with) = cost.medians_ns;
        let of = if self.stopped { "" } else { " of CPU time" };
        format!(
            ", and cost programs {}{of} per message and answer",
            units::format_time((with - without).max(0.0) / 1e9)
        )
    }

    /// The notes, the most important first: what was not recorded, how programs ended, what was left out, what is not known.
    #[must_use]
    pub fn all_notes(&self) -> Vec<String> {
        let absent = self
            .absent
            .iter()
            .map(|(what, why)| format!("not recorded: {what}: {why}"));
        let foreign = (self.foreign > 0).then(|| match self.foreign {
            1 => "1 request from another program was left out".to_owned(),
            foreign => format!("{foreign} requests from other programs were left out"),
        });
        let notes = self.notes.iter().cloned();
        absent
            .chain(notes)
            .chain(self.unknown.left_out.lines())
            .chain(self.unknown.lines())
            .chain(foreign)
            .collect()
    }

    /// Compares the durations of its requests with those of an earlier trace. Requests that were made for others are not counted.
    #[must_use]
    pub fn compared_with(&self, before: &Self) -> String {
        let median = |times: &[u64]| {
            let mut times = times.to_vec();
            times.sort_unstable();
            times.get(times.len() / 2).map(|ns| *ns as f64 / 1e9)
        };
        match (median(&before.call_times), median(&self.call_times)) {
            (Some(was), Some(is)) => format!(
                "{}, median {}, against {} for {} before: {:.2} times as fast",
                units::counted(self.call_times.len() as u64, "request"),
                units::format_time(is),
                units::format_time(was),
                before.call_times.len(),
                was / is.max(1e-9)
            ),
            _ => "at least one run has no requests, so nothing can be compared".to_owned(),
        }
    }
}
