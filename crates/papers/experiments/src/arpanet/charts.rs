//! Figures 1 and 2, whose curves the source lost: drawn from the model, and labelled so.

use crate::printed_and_here::{self, PrintedValue, nothing_printed};
use stackline_model::arpanet_messages::{
    Acknowledgement, PACKET_BITS, PACKET_DATA_BITS, SECONDS_A_MILE,
};
use stackline_proto::papers::imp::ImpHardware;
use stackline_proto::papers::imp::packet::FULL_MESSAGE_BITS;
use stackline_report::chart::{Axis, AxisScale, Chart, ChartCurve};
use stackline_report::sheet::{Sheet, SheetCell};

/// Cycles for a packet, in and out (2.1.1).
const CYCLES: f64 = PACKET_BITS;
/// The note of both figures.
const LOST: &str = "the report's own curves are lost; these follow the model in its text";

/// Both figures, by file name.
pub(super) fn charts() -> Vec<(&'static str, Chart)> {
    vec![("figure-1.svg", throughput()), ("figure-2.svg", buffers())]
}

/// The points of Figure 1 that the text gives.
pub(super) fn figure_1() -> Sheet {
    let full = f64::from(FULL_MESSAGE_BITS);
    let mut sheet = printed_and_here::sheet(
        "Figure 1",
        "throughput of an IMP with a saturated processor: as stated in the text, and from the text's model",
        &[("value", "value")],
    );
    let value = PrintedValue::new(1000.0, through(ImpHardware::H516, full, false), 0);
    let what = SheetCell::text("516, full messages, kbit/s on its lines (twenty of 50 kbit/s)");
    sheet.rows = vec![value.row([what])];
    sheet.note(format!("The curves are in `figure-1.svg`: {LOST}."))
}

/// Packets held for full use of lines of several lengths: points of Figure 2.
pub(super) fn figure_2() -> Sheet {
    let mut sheet = Sheet::new(
        "Figure 2",
        "packet buffers needed for full use of a line with full packets, by line length",
        &[
            ("miles", "miles"),
            ("held_50", "50 kbit/s"),
            ("held_230", "230.4 kbit/s"),
        ],
    );
    for miles in [10.0, 100.0, 1000.0, 3000.0] {
        let held =
            [50e3, 230.4e3].map(|bit_s| SheetCell::Number(held(bit_s, miles, PACKET_BITS), 1));
        sheet.rows.push(
            [SheetCell::Number(miles, 0)]
                .into_iter()
                .chain(held)
                .collect(),
        );
    }
    sheet.note(nothing_printed(
        "the curves are lost; these are points of the model",
    ))
}

/// Number of packets of a message and of its answer.
fn packets(bits: f64) -> f64 {
    (bits / PACKET_DATA_BITS).ceil().max(1.0)
}

/// Data of hosts, or all bits on lines, through an IMP whose processor is busy, kbit/s; each message is answered.
fn through(machine: ImpHardware, bits: f64, net: bool) -> f64 {
    let seconds = (packets(bits) + 1.0) * CYCLES * machine.cycle_ns as f64 / 1e9;
    let overhead = (PACKET_BITS - PACKET_DATA_BITS) * (packets(bits) + 1.0);
    (bits + if net { 0.0 } else { overhead }) / seconds / 1e3
}

fn throughput() -> Chart {
    let most = f64::from(FULL_MESSAGE_BITS);
    let lengths: Vec<f64> = (1..=400).map(|at| most * f64::from(at) / 400.0).collect();
    let mut curves = Vec::new();
    for (name, machine) in [("516", ImpHardware::H516), ("316", ImpHardware::H316)] {
        let of = |net: bool| {
            lengths
                .iter()
                .map(|bits| (*bits, through(machine, *bits, net)))
                .collect()
        };
        curves.push(ChartCurve {
            name: format!("{name}, all bits on its lines"),
            line: of(false),
            points: Vec::new(),
        });
        curves.push(ChartCurve {
            name: format!("{name}, host data"),
            line: of(true),
            points: Vec::new(),
        });
    }
    Chart {
        title: "Figure 1: throughput of an IMP against message length".into(),
        x: Axis {
            name: "message length, bits".into(),
            scale: AxisScale::Linear,
            from: 0.0,
            to: most,
        },
        y: Axis {
            name: "kbit/s".into(),
            scale: AxisScale::Linear,
            from: 0.0,
            to: 1000.0,
        },
        band: None,
        curves,
        below: format!("{LOST}: 1160 cycles per packet, one answer per message"),
    }
}

/// Packets that an end holds when a line is fully used.
fn held(bit_s: f64, miles: f64, bits: f64) -> f64 {
    let processing = CYCLES * ImpHardware::H516.cycle_ns as f64 / 2e9;
    Acknowledgement::over(bit_s, miles * SECONDS_A_MILE, bits, processing).buffers(bit_s, bits)
}

fn buffers() -> Chart {
    let miles: Vec<f64> = (0..=200).map(|at| f64::from(at) * 15.0).collect();
    // Of three packets two are short, or none is.
    let mixes = [
        ("full packets", PACKET_BITS),
        (
            "two short packets for each full-size one",
            (PACKET_BITS + 2.0 * 152.0) / 3.0,
        ),
    ];
    let mut curves = Vec::new();
    for (rate, bit_s) in [("50 kbit/s", 50e3), ("230.4 kbit/s", 230.4e3)] {
        for (mix, bits) in mixes {
            let needed = |miles: &f64| (*miles, held(bit_s, *miles, bits));
            let line = miles.iter().map(needed).collect();
            curves.push(ChartCurve {
                name: format!("{rate}, {mix}"),
                line,
                points: Vec::new(),
            });
        }
    }
    Chart {
        title: "Figure 2: packet buffers needed for full use of a line against line length".into(),
        x: Axis {
            name: "miles".into(),
            scale: AxisScale::Linear,
            from: 0.0,
            to: 3000.0,
        },
        y: Axis {
            name: "packets held".into(),
            scale: AxisScale::Logarithmic,
            from: 1.0,
            to: 50.0,
        },
        band: None,
        curves,
        below: format!("{LOST}: seven components of the time to an acknowledgement"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_516_passes_twenty_lines_of_full_messages() {
        // Section 2.1.1: 1 Mbit/s over twenty lines of 50 kbit/s, of which answers are a part.
        assert!((900.0..1000.0).contains(&through(ImpHardware::H516, 8064.0, false)));
        let ratio =
            through(ImpHardware::H516, 1008.0, true) / through(ImpHardware::H316, 1008.0, true);
        assert!((ratio - 1.6).abs() < 1e-9);
    }
}
