//! Table 3: the traffic that the processor of each machine sustains between its own message generator and discard, to
//! a dead host and to itself.

use super::network_setup::{CountedTime, add_fake_host, imp_options_of, network, outcomes};
use super::printed::{ALONE, INTERNAL};
use crate::printed_and_here::{self, PrintedValue};
use stackline_core::time::Instant;
use stackline_model::arpanet_messages::unshared_rate;
use stackline_proto::papers::imp::ImpHardware;
use stackline_report::sheet::{Sheet, SheetCell};

/// The machines, in the order of the table.
pub(super) const MACHINES: [(&str, ImpHardware); 3] = [
    ("516 IMP", ImpHardware::H516),
    ("316 IMP", ImpHardware::H316),
    ("316 TIP", ImpHardware::TIP),
];
/// The share of the processor that the IMP itself needs: for messages to a dead host, and to itself (2.2.1.1).
const SHARES: [f64; 2] = [0.20, 0.45];
const SECONDS: f64 = 20.0;
const TIMES: CountedTime = CountedTime {
    warm_s: 0.0,
    counted_s: SECONDS,
};

/// The rate of messages that were sent and answered in any way, kbit/s.
fn rate(machine: ImpHardware, is_dead: bool, seed: u64) -> f64 {
    let mut plan = network(&[imp_options_of(machine)], Vec::new());
    let (from, to) = (add_fake_host(&mut plan, 0), add_fake_host(&mut plan, 0));
    let to = if is_dead {
        stackline_proto::papers::imp::ImpHostAddress { host: 7, ..to }
    } else {
        to
    };
    // A host continues at once after a message that failed.
    let sender = stackline_sim::papers::imps::traffic::ImpTrafficSender {
        begins: Instant(0),
        ..super::network_setup::full_message_sender(from, to, 4)
    };
    let found = &outcomes(&plan, &[sender], seed, TIMES)[0];
    let of_dead: u64 = found.failed.values().sum();
    let bits = if is_dead {
        of_dead as f64 * f64::from(sender.bits)
    } else {
        found.delivered.1 as f64
    };
    let time = if is_dead {
        super::network_setup::BEGINS_S + SECONDS
    } else {
        SECONDS
    };
    bits / time / 1e3
}

/// The measured rates.
pub(super) fn rates(seed: u64) -> Sheet {
    let mut sheet = printed_and_here::sheet(
        "Table 3A",
        "throughput within an IMP, kbit/s: published, and simulated here",
        &[("to", "to"), ("machine", "machine")],
    );
    for (to, printed) in INTERNAL {
        for ((name, machine), printed) in MACHINES.iter().zip(printed) {
            let value = PrintedValue::new(printed, rate(*machine, to == "dead", seed), 0);
            sheet.rows.push(value.row([to, *name].map(SheetCell::text)));
        }
    }
    sheet
        .note("Cycle times are 1.0, 1.6 and 2.2 us. A word costs 25 cycles to generate and 20 to discard (published); its cost to the IMP itself is fitted, one constant per row: 7.8 cycles to a dead host, 37 to itself. To match the published rates, the 316 alone would need 9.0 and 38.3, and the 516 alone 6.7 and 37.0.")
}

/// The rates that the IMP alone, and the fake hosts alone, would achieve.
pub(super) fn derived() -> Sheet {
    let mut sheet = printed_and_here::sheet(
        "Table 3B",
        "rate of the IMP alone, or of the generator and discard alone, kbit/s: published, and computed here as rate / share",
        &[("to", "to"), ("machine", "machine"), ("alone", "alone")],
    );
    for (((to, measured), (_, printed)), share) in INTERNAL.iter().zip(ALONE).zip(SHARES) {
        for (((machine, _), rate), (imp, fakes)) in MACHINES.iter().zip(measured).zip(printed) {
            for (alone, printed, share) in [
                ("the IMP", imp, share),
                ("generator and discard", fakes, 1.0 - share),
            ] {
                let value = PrintedValue::new(printed, unshared_rate(*rate, share).floor(), 0);
                sheet
                    .rows
                    .push(value.row([to, *machine, alone].map(SheetCell::text)));
            }
        }
    }
    sheet.note("Shares of 20 and 45 %, as published; 165 should be 163 (90 / 0.55).")
}
