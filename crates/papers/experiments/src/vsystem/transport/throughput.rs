//! Lantz, Nowicki and Theimer (1985), sections 7.2, 7.3 and 9.1: TCP throughput in the best case, the effect of timers, and of larger
//! blocks from the client.

use super::rows::{RowBasis, row, row_of_value, sheet};
use super::session::{VSystemSessionFigures, run_all, tcp, transfer};
use crate::printed_and_here::{PrintedFigure, PrintedValue};
use stackline_core::error::Result;
use stackline_report::sheet::{Sheet, SheetCell};

/// Data bytes of a packet.
const PACKET: u32 = 1000;

/// By how much `found` is slower than `than`, percent.
fn slower(than: &VSystemSessionFigures, found: &VSystemSessionFigures) -> f64 {
    100.0 * (1.0 - found.kbit_s / than.kbit_s)
}

/// The table of section 7.3: two workstations of 10 MHz.
pub(in super::super) fn best() -> Result<Sheet> {
    let over = tcp(PACKET, "packet_buffers = 4");
    let get = format!("1 from a to b bulk_get {PACKET}*2000 over {over} across suns;");
    let [put, get, small] = run_all([
        transfer(PACKET, &over, "suns"),
        get,
        transfer(500, &tcp(500, "packet_buffers = 4"), "suns"),
    ])?;
    let ms = |found: &VSystemSessionFigures, packet: f64| packet * 8.0 / found.kbit_s;
    let mut sheet = sheet(
        "7.3 best case",
        "TCP between two 10 MHz workstations over 10 Mbit/s",
    );
    sheet.rows = vec![
        row(
            "kbit/s with packets of 1000 bytes",
            PrintedFigure::Figure(450.0),
            put.kbit_s,
            0,
            RowBasis::Sets,
        ),
        row(
            "ms per packet",
            PrintedFigure::Figure(18.0),
            ms(&put, 1000.0),
            1,
            RowBasis::Sets,
        ),
        row(
            "kbit/s in the other direction (bulk_get)",
            PrintedFigure::Figure(450.0),
            get.kbit_s,
            0,
            RowBasis::Sets,
        ),
        row(
            "ms per packet of 500 bytes",
            PrintedFigure::Nothing,
            ms(&small, 500.0),
            1,
            RowBasis::Shown,
        ),
    ];
    Ok(sheet.note(
        "The time per byte, 13.7 us, is chosen to match the published value; everything else about these hosts is set by other \
         tables (2.84 ms for each block that a program sends or receives) or by Zwaenepoel's interface (91 us per \
         packet).",
    ))
}

/// The results of the transfers with each timer.
struct TimerRuns {
    /// A fixed timeout of 250 ms, without loss.
    usual: VSystemSessionFigures,
    /// 40 ms: longer than the round trip.
    enough: VSystemSessionFigures,
    /// 30 ms: shorter than the round trip.
    short: VSystemSessionFigures,
    /// 20 ms.
    shorter: VSystemSessionFigures,
    /// 250 ms, with every packet acknowledged by itself.
    single: VSystemSessionFigures,
    /// 250 ms, where 1 packet in 1990 is lost.
    quick: VSystemSessionFigures,
    /// 4 s, where 1 packet in 1990 is lost.
    long: VSystemSessionFigures,
    /// 250 ms, where 1 packet in 500 is lost.
    quick_500: VSystemSessionFigures,
    /// 4 s, where 1 packet in 500 is lost.
    long_500: VSystemSessionFigures,
}

/// Simulates the transfers of section 7.2.
fn run_timers() -> Result<TimerRuns> {
    let fixed = |buffers: u32, timeout: &str| {
        tcp(
            PACKET,
            &format!("packet_buffers = {buffers}, fixed_timeout = {timeout}"),
        )
    };
    let lossy = |timeout: &str, across: &str| {
        format!(
            "1 from a to b bulk_put {PACKET}*20000 over {} across {across};",
            fixed(3, timeout)
        )
    };
    let [
        usual,
        enough,
        short,
        shorter,
        single,
        quick,
        long,
        quick_500,
        long_500,
    ] = run_all([
        transfer(PACKET, &fixed(4, "250 ms"), "suns"),
        transfer(PACKET, &fixed(4, "40 ms"), "suns"),
        transfer(PACKET, &fixed(4, "30 ms"), "suns"),
        transfer(PACKET, &fixed(4, "20 ms"), "suns"),
        transfer(
            PACKET,
            &tcp(
                PACKET,
                "packet_buffers = 4, fixed_timeout = 250 ms, delayed_ack = 0 s",
            ),
            "suns",
        ),
        lossy("250 ms", "suns_lossy"),
        lossy("4 s", "suns_lossy"),
        lossy("250 ms", "suns_lossier"),
        lossy("4 s", "suns_lossier"),
    ])?;
    Ok(TimerRuns {
        usual,
        enough,
        short,
        shorter,
        single,
        quick,
        long,
        quick_500,
        long_500,
    })
}

fn timer_rows(runs: &TimerRuns) -> Vec<Vec<SheetCell>> {
    let TimerRuns {
        usual,
        enough,
        short,
        shorter,
        single,
        quick,
        long,
        quick_500,
        long_500,
    } = runs;
    let times = |found: &VSystemSessionFigures| usual.kbit_s / found.kbit_s;
    vec![
        row(
            "times slower with a 40 ms timeout",
            PrintedFigure::Nothing,
            times(enough),
            2,
            RowBasis::Shown,
        ),
        row(
            "times slower with a 30 ms timeout",
            PrintedFigure::AtLeast(2.0),
            times(short),
            2,
            RowBasis::Predicts,
        ),
        row(
            "times slower with a 20 ms timeout",
            PrintedFigure::AtLeast(2.0),
            times(shorter),
            2,
            RowBasis::Predicts,
        ),
        row(
            "% slower with a 4 s timeout instead of 0.25 s, 1 in 1990 lost",
            PrintedFigure::Figure(10.0),
            slower(quick, long),
            1,
            RowBasis::Sets,
        ),
        row(
            "the same, 1 in 500 lost",
            PrintedFigure::Nothing,
            slower(quick_500, long_500),
            1,
            RowBasis::Shown,
        ),
        row(
            "times as many acks, ack timer of 0",
            PrintedFigure::Figure(2.0),
            single.packets[1] / usual.packets[1],
            2,
            RowBasis::Predicts,
        ),
        row_of_value(
            "% slower, ack timer of 0",
            &PrintedValue::new(1.0, slower(usual, single), 1)
                .because("here, a byte of an acknowledgement costs as much as a byte of data"),
            RowBasis::Predicts,
        ),
    ]
}

/// The table of section 7.2: timeouts and acknowledgements.
pub(in super::super) fn timers() -> Result<Sheet> {
    let runs = run_timers()?;
    let mut sheet = sheet(
        "7.2 timers",
        "retransmission timeouts that do not adapt to the round trip, and acknowledgements",
    );
    sheet.rows = timer_rows(&runs);
    let again = 100.0 * runs.short.again / 2000.0;
    Ok(sheet
        .note(format!(
            "A timeout of 40 ms is longer than the round trip, so nothing is sent twice; with 30 ms, {again:.0} % of the packets are. Loss rates were not published; the rate used is that at which a timeout of 4 s costs 10 %, with windows of three packets: with larger windows, three duplicate acknowledgements would trigger fast retransmit, which was unknown in 1985.",
        ))
        .note(
            "An acknowledgement is 52 bytes long. If it cost only the interface's time (0.16 ms), twice as many would \
             cost about half a percent.",
        ))
}

/// The table of section 9.1: larger blocks between the client and its TCP server, in packets of the same size.
pub(in super::super) fn blocks() -> Result<Sheet> {
    let over = tcp(1024, "packet_buffers = 4");
    let [one, two, four, eight] = run_all([1024, 2048, 4096, 8192].map(|block| {
        format!(
            "1 from a to b bulk_put {block}*{} over {over} across suns;",
            (2 << 20) / block
        )
    }))?;
    let gain = |found: &VSystemSessionFigures| 100.0 * (found.kbit_s / one.kbit_s - 1.0);
    let mut sheet = sheet(
        "9.1 blocks",
        "larger client blocks sent in packets of 1 KB, compared with blocks of 1 KB",
    );
    sheet.rows = vec![
        row(
            "% faster with blocks of 2 KB",
            PrintedFigure::Nothing,
            gain(&two),
            1,
            RowBasis::Shown,
        ),
        row(
            "% faster with blocks of 4 KB",
            PrintedFigure::Range(15.0, 20.0),
            gain(&four),
            1,
            RowBasis::Predicts,
        ),
        row(
            "% faster with blocks of 8 KB",
            PrintedFigure::Nothing,
            gain(&eight),
            1,
            RowBasis::Shown,
        ),
    ];
    Ok(sheet.note(
        "The saving is one operation and one message for three blocks in four, with the settings of the display tables.",
    ))
}
