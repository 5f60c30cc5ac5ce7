//! The live table: the latest of every monitor, and the last things the kernel told of, drawn over the screen.
//!
//! Only what moves is shown: an interface through which nothing went, a counter that stands still have no line.

use stackline_core::units;
use stackline_events::{Record, Tape, catalogue};
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::io::{Write as _, stdout};
use std::time::{Duration, Instant};

/// Width of a bar, characters.
const BAR: usize = 24;
/// Most connections and last events shown.
const MOST: usize = 8;
/// After so many intervals without news a line goes.
const STALE: u32 = 20;
/// Another screen, so that what was there before comes back.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";

/// What is known now.
pub(super) struct Board {
    began: Instant,
    every: Duration,
    screen: bool,
    newest_ns: u64,
    events: u64,
    /// Lines by section and name, with when they were told.
    lines: BTreeMap<(Section, String), (u64, String)>,
    last: VecDeque<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Section {
    Cores,
    Machine,
    Interfaces,
    Switches,
    Protocols,
    Connections,
}

impl Section {
    const ALL: [(Self, &'static str); 6] = [
        (Self::Cores, "cores        # user  = system  ~ interrupts  ! stolen  . idle"),
        (Self::Machine, "machine"),
        (Self::Interfaces, "interfaces"),
        (Self::Switches, "switch ports"),
        (Self::Protocols, "protocols"),
        (Self::Connections, "connections"),
    ];
}

impl Drop for Board {
    fn drop(&mut self) {
        if self.screen {
            to_screen(LEAVE);
        }
    }
}

/// At once; nobody can be told when the terminal is gone.
fn to_screen(code: &str) {
    let mut out = stdout().lock();
    let _ = out.write_all(code.as_bytes()).and_then(|()| out.flush());
}

impl Board {
    /// On this terminal.
    pub(super) fn open(every: Duration) -> Self {
        let mut board = Self::new(every);
        board.screen = true;
        to_screen(ENTER);
        board
    }

    fn new(every: Duration) -> Self {
        let (lines, last) = (BTreeMap::new(), VecDeque::new());
        Self { began: Instant::now(), every, screen: false, newest_ns: 0, events: 0, lines, last }
    }

    /// Takes events; how many.
    pub(super) fn take(&mut self, tape: &Tape) -> u64 {
        let mut count = 0;
        for record in tape.records() {
            count += 1;
            self.newest_ns = self.newest_ns.max(record.at_ns);
            self.note(&Fields::of(&record));
        }
        self.events += count;
        count
    }

    fn note(&mut self, record: &Fields<'_>) {
        let at_ns = record.record.at_ns;
        let (section, name, line) = match record.record.keyword {
            "CPU_USE" => (Section::Cores, format!("{:>4}", record.number("core")), core(record)),
            "VMSTAT" => (Section::Machine, "counts".into(), record.moved(&["interval_ns"])),
            "MEMORY" => (Section::Machine, "memory".into(), memory(record)),
            "PRESSURE" => (Section::Machine, format!("pressure {}", record.text("resource")), pressure(record)),
            "THROTTLED" => (Section::Machine, "throttled".into(), record.moved(&["interval_ns"])),
            "NETIF" => (Section::Interfaces, record.text("interface").into(), traffic(record, "received", "sent")),
            "SWITCH_PORT" => (Section::Switches, record.text("port").into(), traffic(record, "in", "out")),
            "NETSTAT_TCP" => (Section::Protocols, "tcp".into(), record.moved(&["interval_ns"])),
            "NETSTAT_UDP" => (Section::Protocols, "udp".into(), record.moved(&["interval_ns"])),
            "TCP_INFO" => (
                Section::Connections,
                format!("{} > {}", record.text("local"), record.text("remote")),
                connection(record),
            ),
            "SOFTNET" => return,
            keyword => {
                let said = format!("{keyword} {}", record.moved(&["interval_ns"]));
                self.last.push_back(said);
                self.last.drain(..self.last.len().saturating_sub(MOST));
                return;
            }
        };
        if line.is_empty() {
            self.lines.remove(&(section, name));
        } else {
            self.lines.insert((section, name), (at_ns, line));
        }
    }

    /// What is drawn, with the codes that draw it in place of what was there.
    pub(super) fn drawn(&self) -> String {
        let (width, height) = terminal_size::terminal_size().map_or((100, 40), |(width, height)| (width.0, height.0));
        let mut drawn = "\x1b[H".to_owned();
        for line in self.shown().iter().take(usize::from(height).saturating_sub(1)) {
            drawn.extend(line.chars().filter(|letter| !letter.is_control()).take(usize::from(width)));
            drawn += "\x1b[K\r\n";
        }
        drawn + "\x1b[J"
    }

    fn shown(&self) -> Vec<String> {
        let (took, every) = (self.began.elapsed().as_secs_f64(), self.every.as_secs_f64());
        let mut shown =
            vec![format!("watching every {}   {took:.1} s   {} events   Ctrl-C ends", units::time(every), self.events)];
        let stale_ns = u64::try_from((self.every * STALE).as_nanos()).unwrap_or(u64::MAX);
        for (section, title) in Section::ALL {
            let lines = self
                .lines
                .iter()
                .filter(|((of, _), (at_ns, _))| *of == section && self.newest_ns.saturating_sub(*at_ns) <= stale_ns);
            let mut lines = lines.peekable();
            if lines.peek().is_some() {
                shown.push(String::new());
                shown.push(title.into());
            }
            let most = if section == Section::Connections { MOST } else { usize::MAX };
            shown.extend(lines.take(most).map(|((_, name), (_, line))| format!("  {name:<12} {line}")));
        }
        if !self.last.is_empty() {
            shown.push(String::new());
            shown.push("last".into());
            shown.extend(self.last.iter().rev().map(|line| format!("  {line}")));
        }
        shown
    }
}

/// A record whose fields are found by name.
struct Fields<'r> {
    record: &'r Record<'r>,
    names: &'static [&'static str],
}

impl<'r> Fields<'r> {
    fn of(record: &'r Record<'r>) -> Self {
        Self { record, names: catalogue::find(record.keyword).map_or(&[], |entry| entry.data) }
    }

    fn at(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|other| *other == name)
    }

    fn number(&self, name: &str) -> i64 {
        self.at(name).and_then(|at| self.record.values.get(at)?.number()).unwrap_or(0)
    }

    fn text(&self, name: &str) -> &str {
        self.at(name).and_then(|at| self.record.values.get(at)?.text()).unwrap_or("?")
    }

    /// Every field that is something else than nothing.
    fn moved(&self, but: &[&str]) -> String {
        let mut line = String::new();
        for (name, value) in self.names.iter().zip(&self.record.values) {
            let value = value.to_string();
            if !but.contains(name) && !value.is_empty() && value != "0" {
                let _ = write!(line, "{name} {value}  ");
            }
        }
        line.trim_end().to_owned()
    }

    #[expect(clippy::cast_precision_loss, reason = "for people")]
    fn per_second(&self, name: &str) -> f64 {
        let interval = self.number("interval_ns").max(1);
        self.number(name) as f64 / (interval as f64 / 1e9)
    }
}

/// A bar of a core's time, and its shares.
fn core(record: &Fields<'_>) -> String {
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
        let until = usize::try_from(sum * BAR as i64 / 1_000_000).unwrap_or(0).min(BAR);
        bar.extend(std::iter::repeat_n(letter, until.saturating_sub(bar.len())));
    }
    let percents: Vec<String> = parts.iter().map(|(_, ppm)| format!("{:>3} %", ppm / 10_000)).collect();
    format!("{bar:.<BAR$}  {}", percents.join(" "))
}

fn memory(record: &Fields<'_>) -> String {
    let size = |name: &str| units::size(u64::try_from(record.number(name)).unwrap_or(0) >> 20 << 20);
    format!("available {}  free {}  dirty {}", size("available_bytes"), size("free_bytes"), size("dirty_bytes"))
}

/// Empty where nothing waited.
fn pressure(record: &Fields<'_>) -> String {
    let (some, full) = (record.number("some_ppm"), record.number("full_ppm"));
    if some == 0 { String::new() } else { format!("some {} %  all {} %", some / 10_000, full / 10_000) }
}

/// Rates both ways, and what went wrong; empty where nothing went through.
fn traffic(record: &Fields<'_>, in_name: &str, out_name: &str) -> String {
    let mut line = String::new();
    for (way, name) in [("in", in_name), ("out", out_name)] {
        let bits = record.per_second(&format!("{name}_bytes")) * 8.0;
        let packets = record.per_second(&format!("{name}_packets"));
        if packets > 0.0 {
            let _ =
                write!(line, "{way} {} {}packets  ", units::rate(bits), units::per_second(packets).replace("/s", ""));
        }
        for wrong in ["drops", "discards", "errors"] {
            let count = record.number(&format!("{name}_{wrong}"));
            if count > 0 {
                let _ = write!(line, "{count} {way} {wrong}  ");
            }
        }
    }
    line.trim_end().to_owned()
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn connection(record: &Fields<'_>) -> String {
    let mut line = format!(
        "{}  rtt {}  cwnd {}",
        units::rate(record.per_second("acked_bytes") * 8.0),
        units::time(record.number("rtt_ns") as f64 / 1e9),
        units::size(u64::try_from(record.number("cwnd_bytes")).unwrap_or(0)),
    );
    let again = record.number("retransmits");
    if again > 0 {
        let _ = write!(line, "  {again} sent again");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackline_events::{Value, keyword};

    fn board(records: &[(&str, &[i64])]) -> Board {
        let mut tape = Tape::default();
        tape.host("khons");
        for (name, numbers) in records {
            let values: Vec<Value<'_>> = numbers.iter().map(|number| Value::Number(*number)).collect();
            tape.push(keyword::intern(name), 1_000, &values);
        }
        let mut board = Board::new(Duration::from_millis(100));
        assert_eq!(board.take(&tape), records.len() as u64);
        board
    }

    #[test]
    fn a_core_has_a_bar_of_its_time() {
        let board = board(&[("CPU_USE", &[100, 3, 500_000, 250_000, 0, 0, 0, 250_000, 0])]);
        let shown = board.shown();
        assert!(
            shown.iter().any(|line| line.contains("3         ############======......   50 %  25 %")),
            "{shown:#?}"
        );
    }

    #[test]
    fn what_stands_still_has_no_line() {
        let board = board(&[
            ("NETSTAT_TCP", &[100, 0, 0, 0]),
            ("NETSTAT_UDP", &[100, 3, 0, 0, 0]),
            ("NETIF", &[100, 5, 0, 0, 0, 0, 0, 0, 0, 0]),
        ]);
        let shown = board.shown().join("\n");
        assert!(
            shown.contains("udp          in 3") && !shown.contains("tcp ") && !shown.contains("interfaces"),
            "{shown}"
        );
    }

    #[test]
    fn instants_stand_last_first_and_no_code_reaches_the_terminal() {
        let mut tape = Tape::default();
        let data = [Value::Absent, Value::Absent, Value::Absent, Value::Absent, Value::Text("loss\x1b[2J")];
        tape.push(keyword::intern("TCP_STATE"), 1_000, &data);
        let mut board = Board::new(Duration::from_millis(100));
        board.take(&tape);
        let drawn = board.drawn();
        assert!(drawn.contains("TCP_STATE state loss[2J\x1b[K"), "{drawn:?}");
    }
}
