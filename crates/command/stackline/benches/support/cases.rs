//! The table of cases: what each compares, and how much work a round is. To add a case, add a function and its line in
//! [`all`].

use super::args::Options;
use super::bare::{self, Bulk, Socket};
use super::figure::{Figure, Unit};
use super::peer::{self, iperf2, iperf3, neper, netperf, qperf, sockperf};
use super::place::Place;
use super::subject;

/// Something to be compared with others.
pub(crate) struct Side {
    /// Its name, the tool first.
    pub(crate) name: String,
    /// One round.
    pub(crate) run: Box<dyn Fn() -> Result<Figure, String>>,
}

/// Sides that do the same work.
pub(crate) struct Case {
    /// Its name.
    pub(crate) name: String,
    /// What its figures are.
    pub(crate) unit: Unit,
    /// Who takes part; stackline first.
    pub(crate) sides: Vec<Side>,
    /// Its own number of rounds.
    pub(crate) rounds: Option<usize>,
    /// Who does not take part, and why.
    pub(crate) notes: Vec<String>,
}

impl Case {
    fn new(name: impl Into<String>, unit: Unit) -> Self {
        Self {
            name: name.into(),
            unit,
            sides: Vec::new(),
            rounds: None,
            notes: Vec::new(),
        }
    }

    fn side(mut self, name: &str, run: impl Fn() -> Result<Figure, String> + 'static) -> Self {
        self.sides.push(Side {
            name: name.to_owned(),
            run: Box::new(run),
        });
        self
    }

    /// A side that takes part only when its program is there.
    fn peer(
        self,
        program: &str,
        name: &str,
        run: impl Fn() -> Result<Figure, String> + 'static,
    ) -> Self {
        if peer::installed(program) {
            self.side(name, run)
        } else {
            self.without(name, "it is not installed")
        }
    }

    fn without(mut self, name: &str, reason: &str) -> Self {
        self.notes.push(format!("{name} left out: {reason}"));
        self
    }

    fn rounds(mut self, rounds: usize) -> Self {
        self.rounds = Some(rounds);
        self
    }
}

/// Every case, in the order of printing.
pub(crate) fn all(options: &Options) -> Vec<Case> {
    let mut cases = Vec::new();
    for place in [Place::Free, Place::Two] {
        cases.push(bulk(options, true, place));
        cases.push(bulk(options, false, place));
    }
    cases.push(truncate(options, Place::Two));
    for place in [Place::Free, Place::Two] {
        cases.push(small(options, false, place));
        cases.push(small(options, true, place));
    }
    for socket in [Socket::Tcp, Socket::Unix, Socket::Udp] {
        for size in [1, 32] {
            cases.push(calls(options, socket, size, Place::One));
            cases.push(calls(options, socket, size, Place::Two));
        }
    }
    cases.push(connects(options, Place::One));
    cases.push(connects(options, Place::Two));
    cases.push(called(options, Place::One));
    cases.push(many(options));
    cases.push(datagrams(options, Place::Free));
    cases.push(datagrams(options, Place::Two));
    cases.push(crowd(options));
    cases.push(first_figure(Place::Free));
    cases.push(first_figure(Place::One));
    for case in cases
        .iter_mut()
        .filter(|case| case.name.contains(Place::Two.name()) && !Place::Two.possible())
    {
        eprintln!("note: `{}` left out: this host has one core", case.name);
        case.sides.clear();
    }
    cases
}

const KIB: u64 = 1 << 10;

fn bulk(options: &Options, get: bool, place: Place) -> Case {
    let count = options.scaled(12_000);
    let all = Bulk {
        unit: 128 << 10,
        count,
        get,
        nodelay: false,
        truncate: false,
        place,
    };
    let procedure = if get { "bulk_get" } else { "bulk_put" };
    let spec = format!(
        "1 {procedure} {}*{count} over tcp{};",
        all.unit,
        place.clause()
    );
    let reverse: &'static [&'static str] = if get { &["-R"] } else { &[] };
    let case = Case::new(
        format!("{procedure} tcp 128 KiB, {}", place.name()),
        Unit::BitPerSecond,
    )
    .side("stackline", move || {
        subject::throughput(&spec, all.unit as u64, count)
    })
    .side("bare", move || bare::bulk(all))
    .peer("iperf3", "iperf3", move || {
        iperf3::transfer(128 * KIB, all.bytes(), reverse, place)
    });
    if get {
        return case; // iperf 2 has no such direction without a second connection
    }
    case.peer("iperf", "iperf", move || {
        iperf2::transfer(128 * KIB, all.bytes(), &[], place)
    })
}

/// Receiving without copying: what it saves.
fn truncate(options: &Options, place: Place) -> Case {
    let count = options.scaled(16_000);
    let all = Bulk {
        unit: 128 << 10,
        count,
        get: true,
        nodelay: false,
        truncate: true,
        place,
    };
    let spec = format!(
        "1 bulk_get {}*{count} over tcp(receive = truncate){};",
        all.unit,
        place.clause()
    );
    let case = Case::new(
        format!(
            "bulk_get tcp 128 KiB, received without copying, {}",
            place.name()
        ),
        Unit::BitPerSecond,
    )
    .side("stackline", move || {
        subject::throughput(&spec, all.unit as u64, count)
    })
    .side("bare", move || bare::bulk(all))
    .peer("iperf3", "iperf3 copying", move || {
        iperf3::transfer(128 * KIB, all.bytes(), &["-R"], place)
    });
    if !iperf3::has("--skip-rx-copy") {
        return case.without("iperf3 --skip-rx-copy", "this version does not have it");
    }
    let skipping = &["-R", "--skip-rx-copy"];
    case.side("iperf3 --skip-rx-copy", move || {
        iperf3::transfer(128 * KIB, all.bytes(), skipping, place)
    })
}

fn small(options: &Options, nodelay: bool, place: Place) -> Case {
    let count = options.scaled(if nodelay { 200_000 } else { 600_000 });
    let all = Bulk {
        unit: 1 << 10,
        count,
        get: false,
        nodelay,
        truncate: false,
        place,
    };
    let (words, stack) = if nodelay {
        ("nodelay", "tcp(nodelay)")
    } else {
        ("Nagle", "tcp")
    };
    let spec = format!(
        "1 bulk_put {}*{count} over {stack}{};",
        all.unit,
        place.clause()
    );
    let flags: &'static [&'static str] = if nodelay { &["-N"] } else { &[] };
    Case::new(
        format!("bulk_put tcp 1 KiB, {words}, {}", place.name()),
        Unit::BitPerSecond,
    )
    .side("stackline", move || {
        subject::throughput(&spec, all.unit as u64, count)
    })
    .side("bare", move || bare::bulk(all))
    .peer("iperf3", "iperf3", move || {
        iperf3::transfer(KIB, all.bytes(), flags, place)
    })
    .peer("iperf", "iperf", move || {
        iperf2::transfer(KIB, all.bytes(), flags, place)
    })
}

fn calls(options: &Options, socket: Socket, size: usize, place: Place) -> Case {
    let count = options.scaled(if place == Place::One { 60_000 } else { 10_000 });
    let spec = format!(
        "1 request_response {size}*{count} over {}{};",
        socket.name(),
        place.clause()
    );
    let name = format!(
        "request_response {} {size} B, {}",
        socket.name(),
        place.name()
    );
    let case = Case::new(name, Unit::Call)
        .side("stackline", move || {
            subject::times(&spec, "response_s", count)
        })
        .side("bare", move || bare::calls(socket, size, count, place));
    let tcp = socket == Socket::Tcp;
    if socket == Socket::Unix {
        return case; // no peer that is packaged does this
    }
    let case = case.peer("qperf", "qperf", move || qperf::ping_pong(size, tcp, place));
    if size < sockperf::LEAST {
        return case.without("sockperf", "its messages are longer");
    }
    case.peer("sockperf", "sockperf", move || {
        sockperf::ping_pong(size, tcp, place)
    })
}

fn connects(options: &Options, place: Place) -> Case {
    let count = options.scaled(4_000); // fits in the backlog of a server that does not get to run
    let spec = format!("1 connect_disconnect 0*{count} over tcp{};", place.clause());
    Case::new(
        format!("connect_disconnect tcp, {}", place.name()),
        Unit::Call,
    )
    .side("stackline", move || {
        subject::times(&spec, "connect_s", count)
    })
    .side("bare", move || bare::connects(count, place))
}

/// A connection a call.
fn called(options: &Options, place: Place) -> Case {
    let count = options.scaled(20_000);
    let spec = format!(
        "procedure once {{ initiator {{ StartMeasurement; repeat count {{ ConnectRequest; RPCCall(1 B, 1 B); DisconnectRequest; }} \
         StopMeasurement; }} responder {{ repeat count {{ AwaitConnectIndication; RPCAwaitCallInd(1 B); RPCReturn(1 B); \
         AwaitDisconnectIndication; }} }} }} 1 once 1*{count} over tcp{};",
        place.clause()
    );
    Case::new(
        format!("connection and call tcp 1 B, {}", place.name()),
        Unit::Call,
    )
    .side("stackline", move || subject::cycles(&spec, count))
    .side("bare", move || bare::called(count, place))
    .peer("netperf", "netperf", move || netperf::connections(place))
}

/// Many pairs of calls: by one thread a side, and by a thread each.
fn many(options: &Options) -> Case {
    const PAIRS: u32 = 64;
    let count = options.scaled(2_000);
    let side = move |option: &str| {
        let spec = format!("1 {PAIRS} request_response 1*{count} over tcp{option};");
        move || subject::cycles(&spec, count * u64::from(PAIRS))
    };
    Case::new(
        format!("{PAIRS} pairs of calls tcp 1 B, one thread a side"),
        Unit::Call,
    )
    .side("stackline", side("(threads = 1)"))
    .side("stackline, a thread each", side(""))
    .peer(neper::CALLS, "neper", || neper::calls(PAIRS))
}

fn datagrams(options: &Options, place: Place) -> Case {
    let count = options.scaled(3_200_000);
    let bytes = 1400 * count;
    let spec = format!("1 bulk_put 1400*{count} over udp(gso){};", place.clause());
    let case = Case::new(
        format!("bulk_put udp 1400 B with GSO, {}", place.name()),
        Unit::BitPerSecond,
    )
    .side("stackline", move || subject::throughput(&spec, 1400, count))
    .side("bare", move || bare::datagrams(1400, count, place));
    if iperf3::has("--gsro") {
        let flags = &["-u", "-b", "0", "--gsro"];
        return case.side("iperf3 --gsro", move || {
            iperf3::transfer(1400, bytes, flags, place)
        });
    }
    // a part of the work: without GSO it is that much slower
    case.peer("iperf3", "iperf3 without GSO", move || {
        iperf3::transfer(1400, bytes / 40, &["-u", "-b", "0"], place)
    })
}

/// The memory 1,000 initiators may take.
const CROWD_BYTES: u64 = 200_000_000;

fn crowd(options: &Options) -> Case {
    let runs = options.scaled(10);
    let spec = format!("{runs} parallel: 1000 request_response 32*100;");
    Case::new(
        format!("1,000 parallel initiators, {runs} runs of 100 calls each"),
        Unit::Command,
    )
    .side("stackline", move || subject::crowd(&spec, CROWD_BYTES))
    .rounds(1)
}

/// From the start of the command to its end.
fn first_figure(place: Place) -> Case {
    let spec = format!("1 request_response 32*1000{};", place.clause());
    Case::new(
        format!("the first figure: 1,000 calls of 32 B, {}", place.name()),
        Unit::Command,
    )
    .side("stackline", move || subject::command(&spec))
    .side("bare", move || whole(place))
    .rounds(20)
}

/// A bare loop of 1,000 calls with the start and the end of its two processes.
fn whole(place: Place) -> Result<Figure, String> {
    let start = std::time::Instant::now();
    let calls = bare::calls(Socket::Tcp, 32, 1000, place)?;
    Ok(Figure {
        value: start.elapsed().as_secs_f64(),
        cpu: calls.cpu.map(|each| each * 1000.0),
        note: String::new(),
    })
}
