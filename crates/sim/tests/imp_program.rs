//! The machines beside BBN's own program of September 1973, run in a machine emulator (open-simh a1f57fa, its image unchanged, in virtual
//! time with lines of 50 kbit/s, 72 bits of framing and hosts of 100 kbit/s): what that took, measured there, and what they take.

use stackline_core::network::Loss;
use stackline_core::random::Seed;
use stackline_core::time::{Duration, Instant};
use stackline_proto::imp::{Address, HostKind, Options, Rule};
use stackline_sim::imps::traffic::{Pace, Run, Sender};
use stackline_sim::imps::{Host, Line, Node, OVERHEAD_WITH_CHECKSUM_BITS, Plan};

fn at(seconds: f64) -> Instant {
    Instant(0) + Duration::from_seconds(seconds)
}

/// So many IMPs in a row as in September 1973, a host at each end.
fn row(imps: u16) -> Plan {
    let options = Options { rule: Rule::September, ..Options::default() };
    let line = |end| Line { ends: (end, end + 1), bit_s: 50e3, delay: Duration::ZERO, satellite: false, loss: Loss::None };
    let host = |imp| Host { imp, bit_s: Some(100e3), kind: HostKind::default() };
    Plan {
        imps: vec![Node { options, splits: false }; usize::from(imps)],
        lines: (0..imps - 1).map(line).collect(),
        hosts: vec![host(0), host(imps - 1)],
        overhead_bits: OVERHEAD_WITH_CHECKSUM_BITS,
        ..Plan::default()
    }
}

/// Mean time to the RFNM, ms, and kbit/s, of messages of so many bits.
fn sent(imps: u16, bits: u32, pace: Pace) -> (f64, f64) {
    let (from, to) = (Address { imp: 0, host: 0 }, Address { imp: imps - 1, host: 0 });
    let sender = Sender { from, to, bits, begins: at(20.0), pace };
    let result = Run::new(&row(imps), &[sender], Seed::root(1)).run((at(40.0), at(240.0))).remove(0);
    (1e3 * result.round_trips.0 / result.round_trips.1 as f64, result.rate(Duration::from_seconds(200.0)) / 1e3)
}

#[test]
fn show() {
    for imps in [2, 3] {
        let spaced = |bits| sent(imps, bits, Pace::Random(Duration::from_seconds(1.0))).0;
        let steady = |bits| sent(imps, bits, Pace::InFlight(1)).0;
        eprintln!("{imps}: spaced 16 {:.1} 992 {:.1} 8048 {:.1}; steady {:.1} {:.1} {:.1}", spaced(16), spaced(992), spaced(8048), steady(16), steady(992), steady(8048));
        for bits in [8048, 992] {
            let rates: Vec<String> = [1, 2, 3, 4, 5, 8].iter().map(|k| format!("{:.1}", sent(imps, bits, Pace::InFlight(*k)).1)).collect();
            eprintln!("   {bits}: {}", rates.join(" "));
        }
    }
}
