//! Cores, interrupts, context switches, forks and paging: `/proc/stat` and `/proc/vmstat`.

use super::sample::{Sampled, Started, Step, grown};
use crate::parse::{pairs, stat};
use stackline_events::{Keyword, Tape, Value};

/// Fewer ticks of a core than these (10 ms each) say nothing: its time is told with a later round.
const FEWEST_TICKS: u64 = 5;

/// The monitors.
pub(crate) fn all() -> Vec<Started> {
    vec![Sampled::start("processor", ["/proc/stat", "/proc/vmstat"], read, tell)]
}

/// Counters since boot.
struct Counted {
    /// Each core's ticks, and how long ago they were read when they are told, ns.
    cores: Vec<(u32, stat::Times)>,
    untold_ns: u64,
    counts: [Option<u64>; 9],
}

fn read([stat, vmstat]: [&str; 2]) -> Option<Counted> {
    let stat = stat::parse(stat);
    let vmstat = pairs::counters(vmstat);
    let of = |name: &str| vmstat.get(name).copied();
    // Reading and writing are counted in KiB; pages are what the others are in.
    let pages = |name: &str| of(name).map(|kib| kib / 4);
    let counts = [
        stat.interrupts,
        stat.context_switches,
        stat.forks,
        of("pgfault"),
        of("pgmajfault"),
        pages("pgpgin"),
        pages("pgpgout"),
        of("pswpin"),
        of("pswpout"),
    ];
    (!stat.each.is_empty()).then_some(Counted { cores: stat.each, untold_ns: 0, counts })
}

fn tell(step: Step, before: &Counted, now: &mut Counted, tape: &mut Tape) {
    static VMSTAT: Keyword = Keyword::new("VMSTAT");
    let counts = before.counts.iter().zip(&now.counts);
    let values: Vec<Value<'_>> =
        counts.map(|(before, now)| before.zip(*now).map(|(b, n)| grown(b, n)).into()).collect();
    step.tell(tape, &VMSTAT, &values);

    let since = before.untold_ns + step.interval_ns;
    let ticks = |counted: &Counted| counted.cores.first().map_or(0, |(_, times)| times.total());
    if ticks(now).saturating_sub(ticks(before)) < FEWEST_TICKS {
        now.cores.clone_from(&before.cores);
        now.untold_ns = since;
        return;
    }
    let step = Step { interval_ns: since, ..step };
    for (core, times) in &now.cores {
        if let Some((_, earlier)) = before.cores.iter().find(|(other, _)| other == core) {
            tell_core(step, *core, earlier, times, tape);
        }
    }
}

fn tell_core(step: Step, core: u32, before: &stat::Times, now: &stat::Times, tape: &mut Tape) {
    static CPU_USE: Keyword = Keyword::new("CPU_USE");
    // Some of the kernel's ticks go back by one now and then; such a one did not move.
    let mut moved = [0; stat::KINDS.len()];
    for (moved, (before, now)) in moved.iter_mut().zip(before.ticks.iter().zip(&now.ticks)) {
        *moved = now.saturating_sub(*before);
    }
    let total = moved.iter().sum::<u64>().max(1);
    let ppm = |ticks: u64| Value::from(ticks.saturating_mul(1_000_000) / total);
    let [user, nice, system, idle, iowait, irq, softirq, steal] = moved;
    let shares = [ppm(user + nice), ppm(system), ppm(softirq), ppm(irq), ppm(steal), ppm(idle), ppm(iowait)];
    let mut values = [Value::from(core); 8];
    values[1..].copy_from_slice(&shares);
    step.tell(tape, &CPU_USE, &values);
}

#[cfg(test)]
mod tests {
    use super::super::sample::told;
    use super::*;
    use proptest::prelude::*;

    const STAT: &str = "cpu  30 0 20 100 0 0 0 0 0 0\ncpu0 10 5 10 50 0 0 0 0 0 0\ncpu1 20 0 10 50 0 0 0 0 0 0\n\
        intr 1000 5 0\nctxt 77\nprocesses 3\n";
    const LATER: &str = "cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 30 10 20 95 5 3 6 11 0 0\ncpu1 20 0 10 150 0 0 0 0 0 0\n\
        intr 1500 5 0\nctxt 177\nprocesses 3\n";

    #[test]
    fn shares_are_of_the_time_that_passed() {
        let rows = told(read, tell, [STAT, "pgfault 5\npgpgin 8\n"], [LATER, "pgfault 9\npgpgin 16\n"]);
        assert_eq!(
            rows,
            [
                "VMSTAT 1000000000;500;100;0;4;;2;;;",
                "CPU_USE 1000000000;0;238095;95238;57142;28571;104761;428571;47619",
                "CPU_USE 1000000000;1;0;0;0;0;0;1000000;0",
            ]
        );
    }

    #[test]
    fn a_few_ticks_wait_for_a_later_round() {
        let short = LATER.replace("cpu0 30 10 20 95 5 3 6 11", "cpu0 10 5 10 53 0 0 0 0");
        let (before, mut now) = (read([STAT, ""]).unwrap(), read([&short, ""]).unwrap());
        let mut tape = Tape::default();
        tell(Step { at_ns: 9, interval_ns: 30 }, &before, &mut now, &mut tape);
        assert_eq!(tape.records().count(), 1, "VMSTAT alone");
        let mut later = read([LATER, ""]).unwrap();
        let mut tape = Tape::default();
        tell(Step { at_ns: 19, interval_ns: 10 }, &now, &mut later, &mut tape);
        let cores: Vec<_> = tape.records().filter(|record| record.keyword == "CPU_USE").collect();
        assert_eq!(cores[0].values[0], Value::Number(40), "both rounds together");
        assert_eq!(cores[0].values[2], Value::Number(238_095));
    }

    proptest! {
        #[test]
        fn any_text_is_harmless(before in "(cpu[0-9]? [0-9 ]{0,40}\n|\\PC{0,20}\n){0,6}", now in "(cpu[0-9]? [0-9 ]{0,40}\n){0,6}") {
            if let (Some(before), Some(mut now)) = (read([&before, &before]), read([&now, &now])) {
                tell(Step { at_ns: 2, interval_ns: 1 }, &before, &mut now, &mut Tape::default());
            }
        }
    }
}
