//! What is compared: each cell is one specification, carried out in both worlds. To add a cell, add it to [`all`].

/// What two worlds are to agree in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Mean throughput, within 5 %.
    Throughput,
    /// The same where losses are drawn, within 10 %.
    LossyThroughput,
    /// Mean response time, within 5 %.
    Response,
    /// Mean time until all calls of a page are done, within 10 %: a queue that overflows or losses that are drawn decide.
    PageTime,
    /// Data units lost, equal.
    Losses,
}

impl Kind {
    /// Largest difference of a figure that counts as agreement, as a share.
    pub(crate) const fn bound(self) -> f64 {
        match self {
            Self::Throughput | Self::Response => 0.05,
            Self::LossyThroughput | Self::PageTime => 0.1,
            Self::Losses => 0.0,
        }
    }
}

/// One row of the table.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub(crate) kind: Kind,
    /// What words on the command line select by.
    pub(crate) name: String,
    /// The specification, without its world.
    pub(crate) spec: String,
}

const RATES: [(&str, u64); 3] = [
    ("1 Mbit/s", 1_000_000),
    ("10 Mbit/s", 10_000_000),
    ("100 Mbit/s", 100_000_000),
];
const DELAYS: [u64; 3] = [1, 20, 100];
/// A transfer takes as long at the full rate, or at twice the rate that losses allow.
const SECONDS: u64 = 3;
/// So many runs where losses are drawn: their figures scatter.
const RUNS: u64 = 5;

/// Every cell, in the order of printing; `quick` makes one run of a third of the data in each.
pub(crate) fn all(quick: bool) -> Vec<Cell> {
    let (seconds, drawn) = if quick {
        (SECONDS / 3, 1)
    } else {
        (SECONDS, RUNS)
    };
    let mut cells = Vec::new();
    for congestion in ["cubic", "reno"] {
        for loss in ["", "loss 0.1%"] {
            for rate in RATES {
                let runs = if loss.is_empty() { 1 } else { drawn };
                cells.extend(
                    DELAYS.map(|delay| throughput(congestion, loss, rate, delay, (runs, seconds))),
                );
            }
        }
    }
    for (name, sizes) in [("100 B", "100"), ("1 KiB for 64 KiB", "1 KiB, 64 KiB")] {
        cells.extend(DELAYS.map(|delay| response(name, sizes, delay, quick)));
    }
    cells.extend(DELAYS.map(|delay| losses(delay, drawn)));
    cells.extend(buffers(seconds));
    cells.extend(queues(seconds));
    cells.extend(marks(seconds));
    cells.extend(neighbours(seconds, drawn));
    cells.extend(models(seconds));
    cells.extend(return_paths(seconds));
    cells.extend(heavy_losses(seconds, drawn));
    cells.extend(blasts(seconds));
    cells.extend(overtaking(seconds, drawn));
    cells.extend(pages(quick));
    cells
}

/// A transfer of so many seconds at a rate of so many Mbit/s over a bottleneck described, one way with the delay of it.
fn bulk(
    name: String,
    stack: &str,
    mbit_s: u64,
    bottleneck: &str,
    (runs, seconds): (u64, u64),
) -> Cell {
    let bytes = mbit_s * seconds * 1_000_000 / 8;
    let spec = format!(
        "network n {{ host a, b; switch x; link a - x 1 Gbit/s 0 ms; {bottleneck} }} \
         {runs} timelimit {} from a to b bulk_put 16384 {bytes} B over {stack} across n;",
        4 * seconds
    );
    Cell {
        kind: Kind::Throughput,
        name,
        spec,
    }
}

/// Windows and send buffers that limit.
fn buffers(seconds: u64) -> Vec<Cell> {
    let mut cells = Vec::new();
    for option in ["receive_buffer", "send_buffer"] {
        for kib in [16, 32, 64, 128, 256] {
            for delay in [5, 20, 50] {
                let name = format!("bulk_put tcp {option} {kib} KiB, 50 Mbit/s, {delay} ms");
                let stack = format!("tcp(congestion = cubic, {option} = {kib} KiB)");
                let fills = (kib * 1024 * 8 / (2 * delay) / 1000).clamp(1, 50);
                let bottleneck = format!("link x - b 50 Mbit/s {delay} ms queue 2 MB;");
                cells.push(bulk(name, &stack, fills, &bottleneck, (1, seconds)));
            }
        }
    }
    cells
}

/// Disciplines of queues, and queues that are short.
fn queues(seconds: u64) -> Vec<Cell> {
    let mut cells = Vec::new();
    let kinds = [
        "codel",
        "fq_codel",
        "pie",
        "red(min = 30 kB, max = 90 kB)",
        "",
        "queue 100 packets",
        "queue 50 packets",
    ];
    for kind in kinds {
        for (mbit_s, delay) in [(10, 5), (10, 20), (40, 5), (40, 20)] {
            let (queue, named) = match kind {
                "" => ("queue 1 MB".to_owned(), "a long queue"),
                kind if kind.starts_with("queue") => (kind.to_owned(), kind),
                kind => (format!("queue 500 packets {kind}"), kind),
            };
            let bottleneck = format!("link x - b {mbit_s} Mbit/s {delay} ms {queue};");
            let name = format!("bulk_put tcp, {named}, {mbit_s} Mbit/s, {delay} ms");
            cells.push(bulk(
                name,
                "tcp(congestion = cubic)",
                mbit_s,
                &bottleneck,
                (1, 2 * seconds),
            ));
        }
    }
    cells
}

/// Queues that mark instead of dropping.
fn marks(seconds: u64) -> Vec<Cell> {
    let mut cells = Vec::new();
    for kind in ["codel", "fq_codel", "pie", "red(min = 30 kB, max = 90 kB)"] {
        for congestion in ["cubic", "reno"] {
            for (mbit_s, delay) in [(10, 20), (40, 5)] {
                let bottleneck =
                    format!("link x - b {mbit_s} Mbit/s {delay} ms queue 500 packets {kind} ecn;");
                let name =
                    format!("bulk_put tcp {congestion}, {kind} ecn, {mbit_s} Mbit/s, {delay} ms");
                let stack = format!("tcp(congestion = {congestion})");
                cells.push(bulk(name, &stack, mbit_s, &bottleneck, (1, 2 * seconds)));
            }
        }
    }
    cells
}

/// A transfer beside another one whose round trip is four times as long, or a quarter of it. Who loses when is chance, so runs differ.
fn neighbours(seconds: u64, runs: u64) -> Vec<Cell> {
    let mut cells = Vec::new();
    for kind in ["fq_codel", "codel"] {
        for (own, other) in [(5, 20), (20, 5), (20, 20)] {
            let spec = format!(
                "network n {{ host a, b, c; switch x; link a - x 1 Gbit/s {own} ms; link c - x 1 Gbit/s {other} ms; \
                 link x - b 20 Mbit/s 1 ms queue 500 packets {kind}; }} \
                 {runs} timelimit {} background across n: from a to b bulk_put 16384 over tcp(congestion = cubic) \
                 | from c to b bulk_put 16384 over tcp(congestion = cubic);",
                2 * seconds
            );
            let name = format!(
                "bulk_put tcp beside another, {kind}, 20 Mbit/s, {own} ms beside {other} ms"
            );
            cells.push(Cell {
                kind: Kind::Throughput,
                name,
                spec,
            });
        }
    }
    cells
}

/// A sender that goes by a model of its path.
fn models(seconds: u64) -> Vec<Cell> {
    let paths = [
        (10, "10 Mbit/s 20 ms queue 250 packets"),
        (40, "40 Mbit/s 5 ms queue 250 packets"),
        (20, "20 Mbit/s 20 ms queue 20 kB"),
        (20, "20 Mbit/s 5 ms queue 2 MB"),
        (5, "5 Mbit/s 100 ms queue 100 packets"),
        (20, "20 Mbit/s 20 ms queue 500 packets codel"),
    ];
    let cell = |(mbit_s, path): (u64, &str)| {
        let bottleneck = format!("link x - b {path};");
        bulk(
            format!("bulk_put tcp bbr, {path}"),
            "tcp(congestion = bbr)",
            mbit_s,
            &bottleneck,
            (1, 2 * seconds),
        )
    };
    paths.into_iter().map(cell).collect()
}

/// Acknowledgements that have to wait for a narrow way back.
fn return_paths(seconds: u64) -> Vec<Cell> {
    let mut cells = Vec::new();
    for back in [100, 200, 400, 1000] {
        for delay in [5, 20] {
            let bottleneck = format!(
                "link x -> b 20 Mbit/s {delay} ms queue 250 packets; link b -> x {back} kbit/s {delay} ms queue 100 packets;"
            );
            let name = format!("bulk_put tcp, {back} kbit/s back, 20 Mbit/s, {delay} ms");
            cells.push(bulk(
                name,
                "tcp(congestion = cubic)",
                10,
                &bottleneck,
                (1, 2 * seconds),
            ));
        }
    }
    cells
}

/// Packets that overtake one another.
fn overtaking(seconds: u64, runs: u64) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (mbit_s, delay) in [(10, 20), (20, 10)] {
        for jitter in [5, 20] {
            let bottleneck = format!(
                "link x - b {mbit_s} Mbit/s {delay} ms jitter uniform(0, {jitter} ms) reordering queue 500 packets;"
            );
            let name =
                format!("bulk_put tcp, overtaking within {jitter} ms, {mbit_s} Mbit/s, {delay} ms");
            let cell = bulk(
                name,
                "tcp(congestion = cubic)",
                mbit_s,
                &bottleneck,
                (runs, seconds),
            );
            cells.push(Cell {
                kind: Kind::LossyThroughput,
                ..cell
            });
        }
    }
    cells
}

/// Losses that come often, or in bursts.
fn heavy_losses(seconds: u64, runs: u64) -> Vec<Cell> {
    let mut cells = Vec::new();
    for loss in ["1%", "2%", "gilbert_elliott(0.2%, 25%)"] {
        for (mbit_s, delay) in [(10, 5), (10, 20), (40, 10)] {
            let bottleneck =
                format!("link x - b {mbit_s} Mbit/s {delay} ms loss {loss} queue 250 packets;");
            let name = format!("bulk_put tcp, loss {loss}, {mbit_s} Mbit/s, {delay} ms");
            let cell = bulk(
                name,
                "tcp(congestion = cubic)",
                4,
                &bottleneck,
                (runs, seconds),
            );
            cells.push(Cell {
                kind: Kind::LossyThroughput,
                ..cell
            });
        }
    }
    cells
}

/// Our own protocol, the same lines in both worlds.
fn blasts(seconds: u64) -> Vec<Cell> {
    let mut cells = Vec::new();
    for stack in ["blast", "blast(selective)"] {
        for (mbit_s, delay) in [(5, 5), (20, 5), (20, 20), (50, 10)] {
            let bottleneck = format!("link x - b {mbit_s} Mbit/s {delay} ms queue 250 packets;");
            cells.push(bulk(
                format!("bulk_put {stack}, {mbit_s} Mbit/s, {delay} ms"),
                stack,
                mbit_s,
                &bottleneck,
                (1, seconds),
            ));
        }
    }
    cells
}

/// A page of 40 objects of 20 kB by versions of the web's protocols, handshakes included; with one congestion control in both worlds, whatever
/// the kernel prefers.
fn pages(quick: bool) -> Vec<Cell> {
    const PAGE: &str = "procedure page { \
         initiator { StartMeasurement; ConnectRequest; repeat count { RPCCall(unit, reply); } StopMeasurement; DisconnectRequest; } \
         responder { AwaitConnectIndication; repeat count { RPCAwaitCallInd(unit); RPCReturn(reply); } AwaitDisconnectIndication; } }";
    let stacks = [
        ("http1(tls, congestion = cubic)", 6, 7),
        ("http2(tls, streams = 40, congestion = cubic)", 40, 1),
        ("quic(streams = 40)", 40, 1),
    ];
    let mut cells = Vec::new();
    for (stack, pairs, calls) in stacks {
        for delay in [10, 50] {
            for loss in [0, 1, 3] {
                let runs = match loss {
                    _ if quick => 1,
                    0 => 3,
                    _ => 20,
                };
                let network = network(
                    "20 Mbit/s",
                    delay,
                    &format!("loss {loss}% queue 200 packets"),
                );
                cells.push(Cell {
                    kind: Kind::PageTime,
                    name: format!("page {stack}, 20 Mbit/s, {delay} ms, loss {loss}%"),
                    spec: format!(
                        "{network} {PAGE} {runs} from a to b {pairs} page 400, 20000*{calls} over {stack} across n;"
                    ),
                });
            }
        }
    }
    cells
}

fn throughput(
    congestion: &str,
    loss: &str,
    (named, rate): (&str, u64),
    delay: u64,
    (runs, seconds): (u64, u64),
) -> Cell {
    const UNIT: u64 = 16 << 10;
    let expected = if loss.is_empty() {
        rate
    } else {
        rate.min(2 * loss_bound(delay))
    };
    let count = (expected * seconds / 8 / UNIT).max(1);
    let network = network(named, delay, &format!("{loss} queue 250 packets"));
    let ends = if loss.is_empty() { "no loss" } else { loss };
    Cell {
        kind: if loss.is_empty() {
            Kind::Throughput
        } else {
            Kind::LossyThroughput
        },
        name: format!("bulk_get tcp {congestion}, {named}, {delay} ms, {ends}"),
        spec: format!(
            "{network} {runs} timelimit 8 from b to a bulk_get {UNIT}*{count} over tcp(congestion = {congestion}) across n;"
        ),
    }
}

fn response(name: &str, sizes: &str, delay: u64, quick: bool) -> Cell {
    let (network, calls) = (
        network("100 Mbit/s", delay, "queue 250 packets"),
        if quick { 10 } else { 50 },
    );
    Cell {
        kind: Kind::Response,
        name: format!("rr tcp {name}, 100 Mbit/s, {delay} ms"),
        spec: format!(
            "{network} 1 timelimit 15 from b to a rr {sizes}*{calls} over tcp(congestion = cubic, nodelay) across n;"
        ),
    }
}

/// What TCP reaches against losses of 0.1 %, in bit/s: segment / round trip x sqrt(1.5 / loss).
fn loss_bound(delay_ms: u64) -> u64 {
    const SEGMENT: f64 = 1448.0;
    (SEGMENT * 8.0 / (2.0 * delay_ms as f64 / 1e3) * (1.5 / 1e-3_f64).sqrt()) as u64
}

/// No limit to the queue: what is lost is drawn, and not what a moment's crowd would have overflowed.
fn losses(delay: u64, runs: u64) -> Cell {
    let network = network("10 Mbit/s", delay, "loss 1%");
    Cell {
        kind: Kind::Losses,
        name: format!("bulk_get udp lost units, 10 Mbit/s, {delay} ms, loss 1%"),
        spec: format!(
            "{network} {runs} timelimit 8 from b to a bulk_get 1000*2000 over udp(receive_buffer = 4 MiB) across n;"
        ),
    }
}

/// Host, switch, host; the second link is the bottleneck.
fn network(rate: &str, delay: u64, rest: &str) -> String {
    format!(
        "network n {{ host a, b; switch x; link a - x 1 Gbit/s 0 ms; link x - b {rate} {delay} ms {rest}; }}"
    )
}
