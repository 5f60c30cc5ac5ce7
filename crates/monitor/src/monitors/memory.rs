//! Memory, pressure, and time that control groups were held back.

use super::sample::{Monitor, Round, Sampled, Started, Step, grown};
use crate::control_groups::Groups;
use crate::parse::cgroup::Throttling;
use crate::parse::{pairs, pressure};
use crate::root::Root;
use stackline_events::{Keyword, Tape, Value, clock};

/// The monitors.
pub(crate) fn all() -> Vec<Started> {
    vec![
        Sampled::start("memory", ["/proc/meminfo"], read_memory, tell_memory),
        Sampled::start("pressure/cpu", ["/proc/pressure/cpu"], read_pressure, |step, before, now, tape| {
            tell_pressure("cpu", step, before, now, tape);
        }),
        Sampled::start("pressure/memory", ["/proc/pressure/memory"], read_pressure, |step, before, now, tape| {
            tell_pressure("memory", step, before, now, tape);
        }),
        Sampled::start("pressure/io", ["/proc/pressure/io"], read_pressure, |step, before, now, tape| {
            tell_pressure("io", step, before, now, tape);
        }),
        ("throttling", Throttled::start()),
    ]
}

/// Bytes: available, free, dirty.
type Memory = [Option<u64>; 3];

fn read_memory([text]: [&str; 1]) -> Option<Memory> {
    let meminfo = pairs::meminfo(text);
    let of = |name: &str| meminfo.get(name).copied();
    let memory = [of("MemAvailable"), of("MemFree"), of("Dirty")];
    memory[1].map(|_| memory)
}

fn tell_memory(step: Step, _: &Memory, now: &mut Memory, tape: &mut Tape) {
    static MEMORY: Keyword = Keyword::new("MEMORY");
    step.tell(tape, &MEMORY, &now.map(Value::from));
}

/// Microseconds that some and all waited; older kernels say nothing of all for the processor.
type Pressure = (u64, Option<u64>);

fn read_pressure([text]: [&str; 1]) -> Option<Pressure> {
    let of = |kind| pressure::parse(text, kind).map(|stall| stall.total_us);
    Some((of("some")?, of("full")))
}

fn tell_pressure(resource: &str, step: Step, before: &Pressure, now: &Pressure, tape: &mut Tape) {
    static PRESSURE: Keyword = Keyword::new("PRESSURE");
    let ppm = |before: u64, now: u64| {
        let waited_ns = now.checked_sub(before)?.checked_mul(1_000)?;
        // What the kernel adds up in between may come a little late.
        let share = u128::from(waited_ns) * 1_000_000 / u128::from(step.interval_ns.max(1));
        Some(u64::try_from(share).unwrap_or(u64::MAX).min(1_000_000))
    };
    let full = before.1.zip(now.1).and_then(|(before, now)| ppm(before, now));
    step.tell(tape, &PRESSURE, &[Value::Text(resource), ppm(before.0, now.0).into(), full.into()]);
}

/// The control groups above this process.
struct Throttled {
    root: Root,
    groups: Groups,
    last: Option<(u64, Throttling)>,
}

impl Throttled {
    fn start() -> Result<Box<dyn Monitor>, String> {
        let root = Root::system();
        let groups = Groups::find(&root)?;
        groups.throttling(&root)?;
        Ok(Box::new(Self { root, groups, last: None }))
    }
}

impl Monitor for Throttled {
    fn name(&self) -> &'static str {
        "throttling"
    }

    fn look(&mut self, round: &mut Round<'_>) -> Result<(), String> {
        let (at_ns, now) = (clock::now_ns(), self.groups.throttling(&self.root)?);
        if let Some((before_ns, before)) = self.last {
            let step = Step { at_ns, interval_ns: at_ns.saturating_sub(before_ns) };
            tell_throttled(step, &before, &now, round.tape);
        }
        self.last = Some((at_ns, now));
        Ok(())
    }
}

fn tell_throttled(step: Step, before: &Throttling, now: &Throttling, tape: &mut Tape) {
    static THROTTLED: Keyword = Keyword::new("THROTTLED");
    let data = [grown(before.throttled_ns, now.throttled_ns), grown(before.throttled, now.throttled)];
    step.tell(tape, &THROTTLED, &data);
}

#[cfg(test)]
mod tests {
    use super::super::sample::{lines, told};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn memory_is_what_there_is_now() {
        let text = "MemTotal: 100 kB\nMemFree: 40 kB\nMemAvailable: 60 kB\nDirty: 1 kB\n";
        assert_eq!(told(read_memory, tell_memory, [text], [text]), ["MEMORY 1000000000;61440;40960;1024"]);
        let old = "MemTotal: 100 kB\nMemFree: 40 kB\n";
        assert_eq!(told(read_memory, tell_memory, [old], [old]), ["MEMORY 1000000000;;40960;"]);
        assert!(read_memory(["nothing of it"]).is_none());
    }

    #[test]
    fn pressure_is_a_share_of_the_interval() {
        let before =
            "some avg10=0.00 avg60=0.00 avg300=0.00 total=1000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=5\n";
        let after = "some avg10=9.10 avg60=0.00 avg300=0.00 total=251000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=2000000\n";
        let rows = told(read_pressure, |s, b, n, t| tell_pressure("io", s, b, n, t), [before], [after]);
        assert_eq!(rows, ["PRESSURE 1000000000;io;250000;1000000"]);
        let only_some = "some avg10=0.00 avg60=0.00 avg300=0.00 total=1000\n";
        let rows = told(read_pressure, |s, b, n, t| tell_pressure("cpu", s, b, n, t), [only_some], [only_some]);
        assert_eq!(rows, ["PRESSURE 1000000000;cpu;0;"]);
    }

    #[test]
    fn a_group_that_is_made_anew_grew_by_nothing_known() {
        let throttling = |throttled, throttled_ns| Throttling { periods: 9, throttled, throttled_ns };
        let step = Step { at_ns: 2, interval_ns: 1 };
        let mut tape = Tape::default();
        tell_throttled(step, &throttling(1, 500), &throttling(3, 800), &mut tape);
        tell_throttled(step, &throttling(3, 800), &throttling(0, 0), &mut tape);
        assert_eq!(lines(&tape), ["THROTTLED 1;300;2", "THROTTLED 1;;"]);
    }

    proptest! {
        #[test]
        fn any_text_is_harmless(text in "((some|full) avg10=[0-9.]{0,5} total=[0-9]{0,22}\n|\\PC{0,20}\n){0,4}") {
            if let Some(now) = read_pressure([&text]) {
                tell_pressure("cpu", Step { at_ns: 2, interval_ns: 0 }, &now, &now, &mut Tape::default());
            }
            let _ = read_memory([&text]);
        }
    }
}
