//! The figures of a session, as text and as JSON. The first is the number of blocks that arrived before a newer list replaced theirs.

use serde_json::{Value, json};
use stackline_blocks::score::SEGMENTS;
use stackline_blocks::session_record::BlockSessionRecord;
use stackline_core::time::{Duration, Instant};
use stackline_core::units::{format_rate, format_time, three_digits};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The figures of a session, whether it was real, emulated or simulated.
#[derive(Debug)]
pub struct BlockSessionFigures {
    /// Its record.
    pub record: BlockSessionRecord,
    /// When it ended.
    pub end: Instant,
    /// How long lists were sent.
    pub asked_for: Duration,
    /// The names of the disk servers, by number.
    pub names: BTreeMap<u16, String>,
    /// Segments that each server retransmitted, by its name; empty if not known.
    pub again: BTreeMap<String, u64>,
    /// Lines about what did not go as planned.
    pub notes: Vec<String>,
    /// The directory of the run that the session is kept as, if any.
    pub run: Option<String>,
    /// How many packets the network dropped, by reason; empty if not known.
    pub drops: BTreeMap<String, u64>,
}

/// The value at `share` (0 to 1) of ascending times in ns, by nearest rank, in seconds; NaN if there are none.
fn at(sorted: &[u64], share: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    sorted
        .get((last as f64 * share).round() as usize)
        .map_or(f64::NAN, |ns| *ns as f64 / 1e9)
}

impl BlockSessionFigures {
    /// How long blocks were counted, s; never 0, as rates are divided by it.
    fn seconds(&self) -> f64 {
        self.record.score.seconds(Some(self.end)).max(1e-9)
    }

    /// The name of a server, or its number if the name is not known.
    fn name(&self, server: u16) -> String {
        self.names
            .get(&server)
            .cloned()
            .unwrap_or_else(|| format!("server {server}"))
    }

    /// The figures as text: totals, then tables of servers and of segments.
    #[must_use]
    pub fn text(&mut self) -> String {
        let mut out = String::new();
        let seconds = self.seconds();
        let score = &self.record.score;
        let share = score.delivered as f64 / (score.requested.max(1) as f64) * 100.0;
        let useful = score.useful_bytes as f64 * 8.0 / seconds;
        let _ = writeln!(
            out,
            "delivered before superseded  {} of {} blocks ({} %), lists: {} in {}",
            score.delivered,
            score.requested,
            three_digits(share),
            score.lists,
            format_time(self.asked_for.seconds())
        );
        let _ = writeln!(out, "useful throughput            {}", format_rate(useful));
        let late = format_rate(score.late_bytes as f64 * 8.0 / seconds);
        let _ = writeln!(out, "blocks that arrived too late {} ({late})", score.late);
        if score.missing > 0 {
            let _ = writeln!(out, "blocks that were not sent    {}", score.missing);
        }
        // `unanswered` is never less than `pending`.
        let never = score.unanswered() - score.pending;
        if never > 0 {
            let _ = writeln!(out, "blocks that never arrived    {never}");
        }
        if score.pending > 0 {
            let _ = writeln!(out, "blocks pending at the end    {}", score.pending);
        }
        self.write_servers(&mut out);
        self.write_segments(&mut out);
        if !self.drops.is_empty() {
            let drops: Vec<String> = self
                .drops
                .iter()
                .map(|(why, count)| format!("{count} {why}"))
                .collect();
            let _ = writeln!(out, "\npackets dropped: {}", drops.join(", "));
        }
        for note in &self.notes {
            let _ = writeln!(out, "note: {note}");
        }
        if let Some(run) = &self.run {
            let _ = writeln!(
                out,
                "\nkept in {run}; see `stackline diagnose last`, `lifelines last`, `open`"
            );
        }
        out
    }

    /// Writes the table of servers: what each of them sent.
    fn write_servers(&self, out: &mut String) {
        let (seconds, score) = (self.seconds(), &self.record.score);
        let again = !self.again.is_empty();
        let heading = if again { "      resent" } else { "" };
        let _ = writeln!(
            out,
            "\n{:12} {:>7} {:>8} {:>7} {:>12} {:>12} {:>12}{heading}",
            "server", "blocks", "flushed", "cached", "throughput", "burst of 5", "longest gap"
        );
        for (id, server) in &score.servers {
            let name = self.name(*id);
            let throughput = format_rate(server.bytes as f64 * 8.0 / seconds);
            let burst = if server.burst > 0.0 {
                format_rate(server.burst)
            } else {
                "-".into()
            };
            let gap = if server.blocks > 1 {
                format_time(server.longest_gap.seconds())
            } else {
                "-".into()
            };
            let again = self
                .again
                .get(&name)
                .map_or_else(String::new, |again| format!("  {again:>10}"));
            let _ = writeln!(
                out,
                "{name:12} {:>7} {:>8} {:>7} {throughput:>12} {burst:>12} {gap:>12}{again}",
                server.blocks, server.flushed, server.cached
            );
        }
    }

    /// Writes the table of segments: how long each part of a block's path took.
    fn write_segments(&mut self, out: &mut String) {
        let _ = writeln!(
            out,
            "\n{:22} {:>7} {:>9} {:>9} {:>9}",
            "segment", "n", "median", "p90", "max"
        );
        for (index, (_, _, words)) in SEGMENTS.iter().enumerate() {
            let times = self.record.score.segment(index);
            if times.is_empty() {
                continue;
            }
            let [median, p90, max] = [0.5, 0.9, 1.0].map(|share| format_time(at(times, share)));
            let _ = writeln!(
                out,
                "{words:22} {:>7} {median:>9} {p90:>9} {max:>9}",
                times.len()
            );
        }
    }

    /// The figures as JSON.
    #[must_use]
    pub fn json(&mut self) -> Value {
        let seconds = self.seconds();
        let segments: Vec<Value> = (0..SEGMENTS.len())
.filter_map(|index| { let times = self.record.score.segment(index); let [median, p90, max] = [0.5, 0.9, 1.0].map(|share| at(times, share)); (!times.is_empty()).then(|| { json!({"segment": SEGMENTS[index].2, "n": times.len(), "median_s": median, "p90_s": p90, "max_s": max}) }) })
.collect();
        let score = &self.record.score;
        let servers: Vec<Value> = score .servers .iter()
.map(|(id, server)| { let name = self.name(*id); json!({ "server": name, "blocks": server.blocks, "flushed": server.flushed, "cached": server.cached, "throughput_bit_s": server.bytes as f64 * 8.0 / seconds, "burst_bit_s": (server.burst > 0.0).then_some(server.burst), "longest_gap_s": (server.blocks > 1).then(|| server.longest_gap.seconds()), "sent_again": self.again.get(&name), }) })
.collect();
        json!({ "lists": score.lists, "requested": score.requested, "delivered_before_superseded": score.delivered, "late": score.late, "missing": score.missing + score.unanswered(), "failed": score.missing, "pending": score.pending, "elapsed_s": seconds, "useful_throughput_bit_s": score.useful_bytes as f64 * 8.0 / seconds, "late_throughput_bit_s": score.late_bytes as f64 * 8.0 / seconds, "useful_bit_s_by_second": score.by_second.iter().map(|bytes| bytes * 8).collect::<Vec<_>>(), "servers": servers, "segments": segments, "drops": self.drops, "notes": self.notes, "run": self.run, })
    }
}
