//! The live table: the latest sample of every monitor and the last trace events, redrawn in place. It keeps no history.
//!
//! Only what changes is shown: an idle interface or an unchanged counter has no line.

use crate::terminal_text::steers;
use stackline_analyze::slow_connections::{SampledConnection, SlowConnectionTable};
use stackline_core::units;
use stackline_events::{EventLog, EventRecord, catalogue};
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::time::Duration;

/// Width of a bar, characters.
const BAR: usize = 24;
/// Most connections and most trace events that are shown.
const MOST: usize = 8;
/// A line is removed after so many intervals without a new sample.
const STALE: u32 = 20;
/// The state of the table.
#[derive(Debug)]
pub struct LiveTable {
    interval: Duration,
    newest_ns: u64,
    events: u64,
    /// Lines by section and name, with the time of their sample.
    lines: BTreeMap<(Section, String), (u64, String)>,
    connections: SlowConnectionTable,
    trace_events: VecDeque<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Section {
    Cores,
    Machine,
    Interfaces,
    Switches,
    Protocols,
}

impl Section {
    const ALL: [(Self, &'static str); 5] = [
        (
            Self::Cores,
            "cores        # user  = system  ~ interrupts  ! steal  . idle",
        ),
        (Self::Machine, "machine"),
        (Self::Interfaces, "interfaces"),
        (Self::Switches, "switch ports"),
        (Self::Protocols, "protocols"),
    ];
}

impl LiveTable {
    /// An empty table of monitors that sample once per interval.
    #[must_use]
    pub fn new(interval: Duration) -> Self {
        Self {
            interval,
            newest_ns: 0,
            events: 0,
            lines: BTreeMap::new(),
            connections: SlowConnectionTable::new(stale_ns(interval)),
            trace_events: VecDeque::new(),
        }
    }

    /// Adds events and returns their number.
    pub fn add(&mut self, log: &EventLog) -> u64 {
        let mut count = 0;
        for record in log.records() {
            count += 1;
            self.newest_ns = self.newest_ns.max(record.at_ns);
            self.connections.add(&record);
            self.add_record(&RecordFields::new(&record));
        }
        self.events += count;
        count
    }

    fn add_record(&mut self, record: &RecordFields<'_>) {
        let at_ns = record.record.at_ns;
        let (section, name, line) = match record.record.keyword {
            "CPU_USE" => (
                Section::Cores,
                format!("{:>4}", record.number("core")),
                core(record),
            ),
            "VMSTAT_SYS_CALLS" => (Section::Machine, "system calls".into(), record.changed()),
            "VMSTAT" => (Section::Machine, "counts".into(), record.changed()),
            "MEMORY" => (Section::Machine, "memory".into(), memory(record)),
            "PRESSURE" => (
                Section::Machine,
                format!("pressure {}", record.text("resource")),
                pressure(record),
            ),
            "THROTTLED" => (Section::Machine, "throttled".into(), record.changed()),
            "NETIF" => (
                Section::Interfaces,
                record.text("interface").into(),
                traffic(record, "received", "sent"),
            ),
            "SWITCH_PORT" => (
                Section::Switches,
                record.text("port").into(),
                traffic(record, "in", "out"),
            ),
            "NETSTAT_TCP" => (Section::Protocols, "tcp".into(), record.changed()),
            "NETSTAT_UDP" => (Section::Protocols, "udp".into(), record.changed()),
            // Those of connections are in their own table.
            "TCP_INFO" | "CONNECTION_OWNER" | "SOFTNET" => return,
            // Every other monitor; a pause is an occurrence.
            keyword if keyword != "PROCESS_PAUSED" && catalogue::is_monitor(keyword) => {
                (Section::Machine, record.subject(), record.changed())
            }
            keyword => {
                self.trace_events
                    .push_back(format!("{keyword} {}", record.changed()));
                self.trace_events
                    .drain(..self.trace_events.len().saturating_sub(MOST));
                return;
            }
        };
        if line.is_empty() {
            self.lines.remove(&(section, name));
        } else {
            self.lines.insert((section, name), (at_ns, line));
        }
    }

    /// The terminal codes that draw it in place, as large as the terminal. `elapsed` is the time since it was opened. What steers a
    /// terminal in names of others is left out of the lines.
    #[must_use]
    pub fn codes(&self, elapsed: Duration, columns: usize, rows: usize) -> String {
        let mut codes = "\x1b[H".to_owned();
        for line in self.text(elapsed).iter().take(rows.saturating_sub(1)) {
            codes.extend(line.chars().filter(|letter| !steers(*letter)).take(columns));
            codes += "\x1b[K\r\n";
        }
        codes + "\x1b[J"
    }

    fn text(&self, elapsed: Duration) -> Vec<String> {
        let (elapsed, interval) = (elapsed.as_secs_f64(), self.interval.as_secs_f64());
        let mut text = vec![format!(
            "watching every {}   {elapsed:.1} s   events: {}   Ctrl-C exits",
            units::format_time(interval),
            self.events
        )];
        let stale_ns = stale_ns(self.interval);
        for (section, title) in Section::ALL {
            let lines = self.lines.iter().filter(|((other, _), (at_ns, _))| {
                *other == section && self.newest_ns.saturating_sub(*at_ns) <= stale_ns
            });
            let mut lines = lines.peekable();
            if lines.peek().is_some() {
                text.push(String::new());
                text.push(title.into());
            }
            text.extend(lines.map(|((_, name), (_, line))| format!("  {name:<12} {line}")));
        }
        text.extend(self.connection_lines());
        if !self.trace_events.is_empty() {
            text.push(String::new());
            text.push("last events".into());
            text.extend(
                self.trace_events
                    .iter()
                    .rev()
                    .map(|line| format!("  {line}")),
            );
        }
        text
    }

    /// The slowest connections, with their heading; nothing if there are none.
    fn connection_lines(&self) -> Vec<String> {
        let slowest = self.connections.slowest_first();
        if slowest.is_empty() {
            return Vec::new();
        }
        let heading = format!(
            "{:<17} {:>7} {:>6} {:>8} {:>9} {:>11}  {}",
            "slow connections", "pid", "resent", "rtt", "queued", "acked", "to"
        );
        let lines = slowest.iter().take(MOST).map(|connection| {
            let resent = self.connections.retransmits_lately(connection);
            format!("  {}", connection_line(connection, resent))
        });
        let more = slowest.len().saturating_sub(MOST);
        let rest = (more > 0).then(|| format!("  and {more} more"));
        [String::new(), heading]
            .into_iter()
            .chain(lines)
            .chain(rest)
            .collect()
    }
}

/// How long a line stays without a new sample, ns.
fn stale_ns(interval: Duration) -> u64 {
    u64::try_from((interval * STALE).as_nanos()).unwrap_or(u64::MAX)
}

/// A record whose fields are found by name.
struct RecordFields<'r> {
    record: &'r EventRecord<'r>,
    names: &'static [&'static str],
}

impl<'r> RecordFields<'r> {
    fn new(record: &'r EventRecord<'r>) -> Self {
        Self {
            record,
            names: catalogue::find(record.keyword).map_or(&[], |entry| entry.data),
        }
    }

    fn at(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|other| *other == name)
    }

    fn number(&self, name: &str) -> i64 {
        self.at(name)
            .and_then(|at| self.record.values.get(at)?.number())
            .unwrap_or(0)
    }

    fn text(&self, name: &str) -> &str {
        self.at(name)
            .and_then(|at| self.record.values.get(at)?.text())
            .unwrap_or("?")
    }

    /// The keyword, and what of it the event is about if its first field behind the interval names that.
    fn subject(&self) -> String {
        let named = self
            .record
            .values
            .get(1)
            .and_then(|value| value.text())
            .unwrap_or_default();
        format!("{} {named}", self.record.keyword.to_lowercase())
            .trim_end()
            .to_owned()
    }

    /// Every field but the interval that is neither empty nor zero.
    fn changed(&self) -> String {
        let mut line = String::new();
        for (name, value) in self.names.iter().zip(&self.record.values) {
            let value = value.to_string();
            if *name != "interval_ns" && !value.is_empty() && value != "0" {
                let _ = write!(line, "{name} {value}  ");
            }
        }
        line.trim_end().to_owned()
    }

    #[expect(clippy::cast_precision_loss, reason = "printed with three digits")]
    fn per_second(&self, name: &str) -> f64 {
        let interval = self.number("interval_ns").max(1);
        self.number(name) as f64 / (interval as f64 / 1e9)
    }
}

/// A bar of a core's time and the shares in percent.
fn core(record: &RecordFields<'_>) -> String {
    let share = |names: &[&str]| names.iter().map(|name| record.number(name)).sum::<i64>();
    let parts = [
        ('#', share(&["user_ppm"])),
        ('=', share(&["system_ppm"])),
        ('~', share(&["softirq_ppm", "irq_ppm"])),
        ('!', share(&["steal_ppm"])),
    ];
    let (mut bar, mut sum) = (String::new(), 0);
    for (letter, ppm) in parts {
        sum += ppm;
        let until = usize::try_from(sum * BAR as i64 / 1_000_000)
            .unwrap_or(0)
            .min(BAR);
        bar.extend(std::iter::repeat_n(letter, until.saturating_sub(bar.len())));
    }
    let percents: Vec<String> = parts
        .iter()
        .map(|(_, ppm)| format!("{:>3} %", ppm / 10_000))
        .collect();
    format!("{bar:.<BAR$}  {}", percents.join(" "))
}

fn memory(record: &RecordFields<'_>) -> String {
    let size = |name: &str| {
        units::format_size(u64::try_from(record.number(name)).unwrap_or(0) >> 20 << 20)
    };
    format!(
        "available {}  free {}  dirty {}",
        size("available_bytes"),
        size("free_bytes"),
        size("dirty_bytes")
    )
}

/// Pressure; empty when nothing waited.
fn pressure(record: &RecordFields<'_>) -> String {
    let (some, full) = (record.number("some_ppm"), record.number("full_ppm"));
    if some == 0 {
        String::new()
    } else {
        format!("some {} %  full {} %", some / 10_000, full / 10_000)
    }
}

/// Rates in both directions, drops and errors; empty when there is no traffic.
fn traffic(record: &RecordFields<'_>, in_name: &str, out_name: &str) -> String {
    let mut line = String::new();
    for (direction, name) in [("in", in_name), ("out", out_name)] {
        let bits = record.per_second(&format!("{name}_bytes")) * 8.0;
        let packets = record.per_second(&format!("{name}_packets"));
        if packets > 0.0 {
            let _ = write!(
                line,
                "{direction} {} {}packets  ",
                units::format_rate(bits),
                units::per_second(packets).replace("/s", "")
            );
        }
        for problem in ["drops", "discards", "errors"] {
            let count = record.number(&format!("{name}_{problem}"));
            if count > 0 {
                let _ = write!(line, "{count} {direction} {problem}  ");
            }
        }
    }
    line.trim_end().to_owned()
}

/// A connection: its program and process, what makes it slow, and its ends.
#[expect(clippy::cast_precision_loss, reason = "printed with three digits")]
fn connection_line(connection: &SampledConnection, resent: f64) -> String {
    let program = connection.process.program.as_deref().unwrap_or("?");
    let pid = connection
        .process
        .pid
        .map_or_else(|| "?".to_owned(), |pid| pid.to_string());
    let seconds = connection.interval_ns.max(1) as f64 / 1e9;
    let local_port = connection.ends.local.rsplit(':').next().unwrap_or_default();
    format!(
        "{program:<15.15} {pid:>7} {resent:>6} {:>8} {:>9} {:>11}  {} from :{local_port}",
        units::format_time(connection.rtt_ns as f64 / 1e9),
        units::format_size(connection.send_queue_bytes),
        units::format_rate(connection.acked_bytes as f64 * 8.0 / seconds),
        connection.ends.remote,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackline_events::catalogue::rows::{ConnectionOwner, TcpInfo};
    use stackline_events::{EventValue, keyword};

    fn table(records: &[(&str, &[i64])]) -> LiveTable {
        let mut log = EventLog::default();
        log.host("khons");
        for (name, numbers) in records {
            let values: Vec<EventValue<'_>> = numbers
                .iter()
                .map(|number| EventValue::Number(*number))
                .collect();
            log.push(keyword::intern(name), 1_000, &values);
        }
        let mut table = LiveTable::new(Duration::from_millis(100));
        assert_eq!(table.add(&log), records.len() as u64);
        table
    }

    #[test]
    fn a_core_has_a_bar_of_its_time() {
        let table = table(&[("CPU_USE", &[100, 3, 500_000, 250_000, 0, 0, 0, 250_000, 0])]);
        let text = table.text(Duration::ZERO);
        assert!(
            text.iter()
                .any(|line| line.contains("3         ############======......   50 %  25 %")),
            "{text:#?}"
        );
    }

    #[test]
    fn an_unchanged_counter_has_no_line() {
        let table = table(&[
            ("NETSTAT_TCP", &[100, 0, 0, 0]),
            ("NETSTAT_UDP", &[100, 3, 0, 0, 0]),
            ("NETIF", &[100, 5, 0, 0, 0, 0, 0, 0, 0, 0]),
        ]);
        let text = table.text(Duration::ZERO).join("\n");
        assert!(
            text.contains("udp          in 3")
                && !text.contains("tcp ")
                && !text.contains("interfaces"),
            "{text}"
        );
    }

    #[test]
    fn a_monitor_without_a_form_of_its_own_has_a_line_for_each_thing_and_a_pause_is_an_occurrence()
    {
        let mut log = EventLog::default();
        log.push(
            keyword::intern("DISK"),
            1_000,
            &[100.into(), "vda".into(), 3.into()],
        );
        log.push(
            keyword::intern("DISK"),
            1_000,
            &[100.into(), "vdb".into(), 5.into()],
        );
        log.push(
            keyword::intern("PROCESS_PAUSED"),
            1_000,
            &[100.into(), 7.into(), 50.into()],
        );
        let mut table = LiveTable::new(Duration::from_millis(100));
        table.add(&log);
        let text = table.text(Duration::ZERO);
        let [.., machine, vda, vdb, _, last, pause] = &text[..] else {
            panic!("{text:#?}")
        };
        assert_eq!([machine, last], ["machine", "last events"]);
        assert_eq!(
            [vda, vdb],
            [
                "  disk vda     device vda  reads 3",
                "  disk vdb     device vdb  reads 5"
            ]
        );
        assert_eq!(pause, "  PROCESS_PAUSED pid 7  waited_ns 50");
    }

    #[test]
    fn connections_name_their_program_and_the_slowest_is_first() {
        let mut log = EventLog::default();
        for number in 1..=10_u64 {
            let remote = format!("192.0.2.{number}:443");
            let (local, remote) = (
                EventValue::Text("192.0.2.99:40000"),
                EventValue::Text(&remote),
            );
            ConnectionOwner {
                local,
                remote,
                pid: (100 + number).into(),
                program: EventValue::Text("curl"),
            }
            .write(&mut log, 1_000);
            TcpInfo {
                interval_ns: 100_000_000_u64.into(),
                local,
                remote,
                retransmits: (number / 10).into(),
                rtt_ns: (30_000_000 - number).into(),
                unsent_bytes: 65_536_u64.into(),
                acked_bytes: 125_000_u64.into(),
                ..TcpInfo::default()
            }
            .write(&mut log, 1_000);
        }
        let mut table = LiveTable::new(Duration::from_millis(100));
        table.add(&log);
        let text = table.text(Duration::ZERO);
        let at = text
            .iter()
            .position(|line| line.starts_with("slow connections"))
            .unwrap();
        assert_eq!(
            text[at..at + 3],
            [
                "slow connections      pid resent      rtt    queued       acked  to",
                "  curl                110      1  30.0 ms    64 KiB 10.0 Mbit/s  192.0.2.10:443 from :40000",
                "  curl                101      0  30.0 ms    64 KiB 10.0 Mbit/s  192.0.2.1:443 from :40000",
            ]
        );
        assert_eq!(text.last().unwrap(), "  and 2 more");
    }

    #[test]
    fn control_characters_never_reach_the_terminal() {
        let mut log = EventLog::default();
        let data = [
            EventValue::Absent,
            EventValue::Absent,
            EventValue::Absent,
            EventValue::Absent,
            EventValue::Text("loss\x1b[2J"),
        ];
        log.push(keyword::intern("TCP_STATE"), 1_000, &data);
        let mut table = LiveTable::new(Duration::from_millis(100));
        table.add(&log);
        let codes = table.codes(Duration::ZERO, 100, 40);
        assert!(codes.contains("TCP_STATE state loss[2J\x1b[K"), "{codes:?}");
    }
}
