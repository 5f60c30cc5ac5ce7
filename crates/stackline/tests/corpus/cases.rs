//! The labelled corpus: specifications with one planted cause each and the kind of finding that names it, and healthy ones.
//!
//! Several sizes, rates, delays, stacks and seeds stand for a cause. Cases that are `held` were never looked at while the
//! thresholds of findings were chosen; their figure is printed beside the others'.

#[path = "elsewhere.rs"]
mod elsewhere;

/// One run with its label.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// What is planted, and with which parameters.
    pub(crate) name: String,
    /// The kind that has to be at rank one.
    pub(crate) label: &'static str,
    /// The specification.
    pub(crate) text: String,
    /// The root of its randomness.
    pub(crate) seed: u64,
    /// Whether it was held out.
    pub(crate) held: bool,
    /// In which world it runs.
    pub(crate) world: &'static str,
    /// What is done beside the specification.
    pub(crate) plant: Plant,
}

/// What a specification cannot plant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plant {
    /// Nothing.
    Nothing,
    /// The network says nothing of itself, as in the live world: its counts and its events are taken away.
    Blind,
    /// So many of a hundred events are taken away and counted as lost.
    Lose(u32),
    /// The responder's process is stopped for so many ms, after so many ms.
    Pause(u64, u64),
    /// So many other programs compute on core 0, which both ends are pinned to.
    Crowd(u32),
}

/// Procedures that the standard ones do not have: an application that is slow between its operations, a request in two pieces.
const PROCEDURES: &str = "\
procedure slow_writer(think) {
  initiator { ConnectRequest; StartMeasurement; StartBulkPut; repeat count { Delay(think); DataRequest(unit); } StopBulkPut; StopMeasurement; DisconnectRequest; }
  responder { AwaitConnectIndication; AwaitStartBulkPut; repeat count { AwaitDataIndication(unit); } AwaitStopBulkPut; AwaitDisconnectIndication; }
}
procedure slow_reader(think) {
  initiator { ConnectRequest; StartMeasurement; StartBulkPut; repeat count { DataRequest(unit); } StopBulkPut; StopMeasurement; DisconnectRequest; }
  responder { AwaitConnectIndication; AwaitStartBulkPut; repeat count { AwaitDataIndication(unit); Delay(think); } AwaitStopBulkPut; AwaitDisconnectIndication; }
}
procedure slow_getter(think) {
  initiator { ConnectRequest; StartMeasurement; StartBulkGet; repeat count { AwaitDataIndication(unit); Delay(think); } StopBulkGet; StopMeasurement; DisconnectRequest; }
  responder { AwaitConnectIndication; AwaitStartBulkGet; repeat count { DataRequest(unit); } AwaitStopBulkGet; AwaitDisconnectIndication; }
}
procedure two_pieces(arrival, between) {
  initiator { ConnectRequest; StartMeasurement; repeat count { Pace(arrival); DataRequest(unit); Delay(between); RPCCall(unit, reply); } StopMeasurement; DisconnectRequest; }
  responder { AwaitConnectIndication; repeat count { AwaitDataIndication(unit); RPCAwaitCallInd(unit); RPCReturn(reply); } AwaitDisconnectIndication; }
}
";

/// All cases; `other` is added to each case's seed: chance that nobody has looked at.
pub(crate) fn all(other: u64) -> Vec<Case> {
    let mut cases = Vec::new();
    losses(&mut cases);
    windows(&mut cases);
    applications(&mut cases);
    several_streams(&mut cases);
    hosts(&mut cases);
    full_links(&mut cases);
    events(&mut cases);
    healthy(&mut cases);
    emulated(&mut cases);
    elsewhere::all(&mut cases);
    for case in &mut cases {
        case.text = format!("seed {};\n{}", case.seed + other, case.text);
    }
    cases
}

/// Two hosts, `a` and `b`, behind a switch: a fast link to it, and one with these properties behind it.
fn pair(link: &str) -> String {
    format!("network n {{ host a, b; switch s; link a - s 1 Gbit/s 50 us; link s - b {link}; }}\n")
}

struct Family<'c> {
    cases: &'c mut Vec<Case>,
    label: &'static str,
    what: &'static str,
    world: &'static str,
}

impl<'c> Family<'c> {
    fn new(cases: &'c mut Vec<Case>, label: &'static str, what: &'static str) -> Self {
        Self { cases, label, what, world: "simulated" }
    }

    /// A measurement over a network, with a seed.
    fn add(&mut self, held: bool, network: &str, measurement: &str, seed: u64) {
        self.plant(held, network, measurement, seed, Plant::Nothing);
    }

    fn plant(&mut self, held: bool, network: &str, measurement: &str, seed: u64, plant: Plant) {
        let count = self.cases.iter().filter(|case| case.name.starts_with(self.what)).count() + 1;
        let world = self.world;
        // The clause stands before the colon of a composer, else at the end.
        let clause = format!("across n in {world}");
        let measurement = match measurement.split_once(": ") {
            Some((composer, parts)) => format!("{composer} {clause}: {parts}"),
            None => format!("{measurement} {clause}"),
        };
        let text = format!("{PROCEDURES}{network}1 {measurement};\n");
        let name = format!("{} {count}", self.what);
        self.cases.push(Case { name, label: self.label, text, seed, held, world, plant });
    }
}

/// Packets dropped by a queue or lost on a link.
fn losses(cases: &mut Vec<Case>) {
    let mut family = Family::new(cases, "queue_drop", "small queue");
    for (held, link, put, seed) in [
        (false, "20 Mbit/s 10 ms queue 6 packets", "bulk_put 16 KiB 6 MB", 1),
        (false, "50 Mbit/s 20 ms queue 20 packets", "bulk_get 64 KiB 16 MB", 2),
        (false, "10 Mbit/s 25 ms queue 6 kB", "bulk_put 8 KiB 3 MB over tcp(congestion = reno)", 3),
        (true, "30 Mbit/s 15 ms queue 10 packets", "bulk_get 32 KiB 10 MB", 4),
        (true, "100 Mbit/s 5 ms queue 12 kB", "bulk_put 64 KiB 20 MB over tcp(congestion = reno)", 5),
    ] {
        family.add(held, &pair(link), &format!("from a to b {put}"), seed);
    }
    let mut family = Family::new(cases, "link_loss", "loss on a link");
    for (held, link, what, seed) in [
        (false, "20 Mbit/s 10 ms loss 1%", "bulk_put 16 KiB 5 MB", 6),
        (false, "100 Mbit/s 20 ms loss 0.2%", "bulk_get 64 KiB 10 MB", 7),
        (false, "20 Mbit/s 10 ms loss 2%", "rr 64*300 constant(60 ms)", 8),
        (false, "50 Mbit/s 20 ms loss bit errors 2e-7", "bulk_put 16 KiB 8 MB", 9),
        (true, "50 Mbit/s 30 ms loss 0.5%", "bulk_put 32 KiB 6 MB", 10),
        (true, "10 Mbit/s 5 ms loss gilbert_elliott(1%, 40%)", "rr 200, 800*400 constant(40 ms)", 11),
        (true, "30 Mbit/s 15 ms loss 1%", "bulk_get 16 KiB 4 MB over quic", 12),
        (true, "40 Mbit/s 25 ms loss 0.7%", "bulk_put 16 KiB 5 MB over tcp(congestion = reno)", 13),
        // Calls that come late behind a lost one.
        (false, "100 Mbit/s 5 ms loss 2%", "rr 64*200 constant(20 ms)", 103),
        // Calls that are given up, connections whose first packets are lost.
        (false, "100 Mbit/s 5 ms loss 2%", "rr 64*200 constant(20 ms) over udp", 107),
        (false, "100 Mbit/s 5 ms loss 5%", "connect_disconnect 0*40 constant(50 ms)", 108),
    ] {
        family.add(held, &pair(link), &format!("from a to b {what}"), seed);
    }
    let mut family = Family::new(cases, "retransmission_stall", "loss where the network tells nothing");
    for (held, link, what, seed) in [
        (false, "20 Mbit/s 10 ms loss 2%", "rr 64*300 constant(60 ms)", 14),
        (true, "50 Mbit/s 5 ms loss 3%", "rr 500, 2000*200 constant(50 ms)", 15),
    ] {
        family.plant(held, &pair(link), &format!("from a to b {what}"), seed, Plant::Blind);
    }
}

/// Windows and buffers below what the path holds; transfers that are over before their window is open.
fn windows(cases: &mut Vec<Case>) {
    let mut family = Family::new(cases, "window_below_bdp", "small window");
    for (held, link, what, seed) in [
        (false, "100 Mbit/s 20 ms", "bulk_put 16 KiB 5 MB over tcp(receive_buffer = 64 KiB)", 20),
        (false, "200 Mbit/s 30 ms", "bulk_get 64 KiB 10 MB over tcp(receive_buffer = 256 KiB)", 21),
        (false, "50 Mbit/s 5 ms", "bulk_put 16 KiB*20 over saw", 22),
        (true, "500 Mbit/s 10 ms", "bulk_put 64 KiB 20 MB over tcp(receive_buffer = 192 KiB)", 23),
        (true, "100 Mbit/s 10 ms", "bulk_put 64 KiB*20 over window(n = 8)", 24),
    ] {
        family.add(held, &pair(link), &format!("from a to b {what}"), seed);
    }
    let mut family = Family::new(cases, "socket_buffer", "small send buffer");
    for (held, link, what, seed) in [
        (false, "100 Mbit/s 20 ms", "bulk_put 16 KiB 5 MB over tcp(send_buffer = 64 KiB)", 25),
        (false, "200 Mbit/s 15 ms", "bulk_get 64 KiB 10 MB over tcp(send_buffer = 128 KiB)", 26),
        (true, "300 Mbit/s 25 ms", "bulk_put 32 KiB 12 MB over tcp(send_buffer = 400 KiB)", 27),
    ] {
        family.add(held, &pair(link), &format!("from a to b {what}"), seed);
    }
    let mut family = Family::new(cases, "slow_start", "short transfer");
    for (held, link, what, seed) in [
        (false, "100 Mbit/s 40 ms", "bulk_put 16 KiB 1 MB", 28),
        (true, "1 Gbit/s 25 ms", "bulk_get 64 KiB 4 MB", 29),
        // Small units, whose ends are small segments; one loss, which costs less than the window's growth.
        (false, "50 Mbit/s 30 ms", "bulk_get 100*5000", 105),
        (false, "100 Mbit/s 40 ms loss 0.4%", "bulk_put 16 KiB 1 MB", 106),
    ] {
        family.add(held, &pair(link), &format!("from a to b {what}"), seed);
    }
}

/// What applications do with their time, and how their operations follow one another.
fn applications(cases: &mut Vec<Case>) {
    let mut family = Family::new(cases, "application_limited", "slow application");
    for (held, link, what, seed) in [
        (false, "100 Mbit/s 20 ms", "slow_writer 16 KiB*300 constant(5 ms)", 30),
        (false, "50 Mbit/s 2 ms", "slow_writer 4 KiB*500 exponential(4 ms)", 31),
        (false, "100 Mbit/s 1 ms", "rr 100, 2000*200 constant(30 ms) constant(15 ms)", 32),
        (true, "200 Mbit/s 10 ms", "slow_writer 64 KiB*200 uniform(5 ms, 15 ms)", 33),
        (true, "100 Mbit/s 2 ms", "rr 64, 500*200 constant(40 ms) exponential(12 ms)", 34),
        // A service that is slower than the pace.
        (false, "100 Mbit/s 1 ms", "rr 64*100 constant(50 ms) constant(60 ms)", 104),
    ] {
        family.add(held, &pair(link), &format!("from a to b {what}"), seed);
    }
    let mut family = Family::new(cases, "receiver_limited", "slow reader");
    for (held, link, what, seed) in [
        (false, "100 Mbit/s 5 ms", "slow_reader 16 KiB*800 constant(5 ms)", 35),
        (false, "100 Mbit/s 1 ms", "slow_getter 32 KiB*400 exponential(10 ms)", 36),
        (true, "200 Mbit/s 10 ms", "slow_reader 64 KiB*300 uniform(5 ms, 15 ms)", 37),
        (true, "1 Gbit/s 1 ms", "slow_getter 8 KiB*1500 constant(2 ms) over tcp(receive_buffer = 512 KiB)", 38),
    ] {
        family.add(held, &pair(link), &format!("from a to b {what}"), seed);
    }
    let mut family = Family::new(cases, "serial_round_trips", "chain of round trips");
    for (held, link, what, seed) in [
        (false, "100 Mbit/s 10 ms", "rr 64*200", 39),
        (false, "1 Gbit/s 2 ms", "rr 200, 4000*300 over quic", 40),
        (false, "100 Mbit/s 15 ms", "connect_disconnect 0*50", 41),
        (true, "50 Mbit/s 40 ms", "rr 1000, 100*60", 42),
        (true, "100 Mbit/s 5 ms", "rr 64*200 over udp", 43),
    ] {
        family.add(held, &pair(link), &format!("from a to b {what}"), seed);
    }
    let mut family = Family::new(cases, "nagle_delayed_ack", "request in two pieces");
    for (held, link, what, seed) in [
        (false, "100 Mbit/s 1 ms", "two_pieces 100*150 constant(100 ms) constant(200 us)", 44),
        (false, "1 Gbit/s 250 us", "two_pieces 400, 4000*150 constant(80 ms) constant(100 us)", 45),
        (true, "50 Mbit/s 3 ms", "two_pieces 20, 200*120 constant(120 ms) constant(500 us)", 46),
    ] {
        family.add(held, &pair(link), &format!("from a to b {what}"), seed);
    }
}

/// Senders `x`, `y`, ... of one receiver `o` behind a switch with these properties.
fn fan(senders: usize, switch: &str, near: &str, last: &str) -> String {
    let names: Vec<String> = (0..senders).map(|at| format!("h{at}")).collect();
    let links: Vec<String> = names.iter().map(|name| format!("link {name} - s {near};")).collect();
    format!("network n {{ host {}, o; switch s {switch} {} link s - o {last}; }}\n", names.join(", "), links.join(" "))
}

/// The same from each sender.
fn from_each(senders: usize, what: &str) -> String {
    let parts: Vec<String> = (0..senders).map(|at| format!("from o to h{at} {what}")).collect();
    format!("parallel: {}", parts.join(" | "))
}

/// Streams that meet at one queue.
fn several_streams(cases: &mut Vec<Case>) {
    let mut family = Family::new(cases, "undersized_buffer", "buffer below streams");
    let magic = "network n { host h0, h1, h2, o; switch s { buffer 1500 bytes per port; cells 53; } link h0 - s 100 Mbit/s 6 ms mtu 9180; link h1 - s 100 Mbit/s 6 ms mtu 9180; link h2 - s 100 Mbit/s 50 us mtu 9180; link s - o 100 Mbit/s 50 us mtu 9180; }\n";
    family.add(false, magic, &from_each(3, "bulk_get 48 KiB*50"), 50);
    family.add(
        false,
        &fan(6, "{ buffer 7 kB per port; }", "1 Gbit/s 2 ms", "100 Mbit/s 5 ms"),
        &from_each(6, "bulk_get 16 KiB 2 MB"),
        51,
    );
    family.add(true, magic, &from_each(3, "bulk_get 48 KiB*120"), 52);
    family.add(
        true,
        &fan(8, ";", "1 Gbit/s 1 ms", "50 Mbit/s 8 ms queue 6 packets"),
        &from_each(8, "bulk_get 32 KiB 1 MB"),
        53,
    );
    let mut family = Family::new(cases, "synchronised_loss", "streams that lose together");
    family.add(
        false,
        &fan(3, ";", "1 Gbit/s 10 ms", "100 Mbit/s 20 ms queue 12 packets"),
        &from_each(3, "bulk_get 64 KiB 6 MB"),
        54,
    );
    family.add(
        false,
        &fan(4, ";", "1 Gbit/s 5 ms", "100 Mbit/s 30 ms queue 20 packets"),
        &from_each(4, "bulk_get 32 KiB 5 MB"),
        55,
    );
    family.add(
        true,
        &fan(4, ";", "1 Gbit/s 15 ms", "80 Mbit/s 15 ms queue 16 packets"),
        &from_each(4, "bulk_get 64 KiB 5 MB"),
        56,
    );
}

/// What hosts cost: copying, pacing, clocks.
fn hosts(cases: &mut Vec<Case>) {
    let slow = |copy: &str, slow: &str, link: &str| {
        let other = if slow == "a" { "b" } else { "a" };
        format!("network n {{ host {slow} {{ copy {copy}; }} host {other}; link a - b {link}; }}\n")
    };
    let mut family = Family::new(cases, "cpu_limit", "slow processor");
    for (held, copy, host, link, what, seed) in [
        (false, "0.3 ms per packet", "a", "100 Mbit/s 1 ms", "bulk_put 16 KiB 5 MB", 60),
        (false, "0.1 ms per packet, 0.2 us per byte", "b", "100 Mbit/s 2 ms", "bulk_put 16 KiB 3 MB", 61),
        (false, "2 ms per packet", "b", "100 Mbit/s 0.5 ms", "rr 64*200 constant(20 ms)", 62),
        (true, "0.05 ms per packet, 0.1 us per byte", "a", "100 Mbit/s 3 ms", "bulk_get 32 KiB 4 MB", 63),
        (true, "1.35 ms per packet, 0.47 us per byte", "a", "10 Mbit/s 5 us", "rr 64, 1000*100 constant(30 ms)", 64),
    ] {
        family.add(held, &slow(copy, host, link), &format!("from a to b {what}"), seed);
    }
    let mut family = Family::new(cases, "sender_limited", "paced interface");
    for (held, pace, what, seed) in [(false, 10, "bulk_put 16 KiB 5 MB", 65), (true, 40, "bulk_put 64 KiB 20 MB", 66)] {
        let network = format!("network n {{ host a {{ pace {pace} Mbit/s; }} host b; link a - b 100 Mbit/s 3 ms; }}\n");
        family.add(held, &network, &format!("from a to b {what}"), seed);
    }
    let mut family = Family::new(cases, "clock_trouble", "faulty clock");
    for (held, clock, what, seed) in [
        (false, "clock ahead 1 s at 2 s;", "rr 64*100 constant(50 ms)", 67),
        (false, "clock behind 300 ms at 1 s;", "stream 1000*200 constant(20 ms)", 68),
        (true, "clock behind 40 ms at 3 s;", "rr 200, 1000*200 constant(30 ms)", 69),
    ] {
        let network = format!("network n {{ host a; host b {{ {clock} }} link a - b 100 Mbit/s 2 ms; }}\n");
        family.add(held, &network, &format!("from a to b {what}"), seed);
    }
}

/// Links at capacity.
fn full_links(cases: &mut Vec<Case>) {
    let mut family = Family::new(cases, "network_limited", "full link");
    for (held, link, what, seed) in [
        (false, "20 Mbit/s 2 ms", "from a to b bulk_put 16 KiB 8 MB", 70),
        (false, "50 Mbit/s 10 ms queue 200 kB", "from a to b bulk_get 64 KiB 40 MB", 71),
        (
            false,
            "20 Mbit/s 10 ms queue 256 KiB",
            "background: from a to b rr 64*60 constant(50 ms) | from a to b bulk_get 16 KiB",
            72,
        ),
        (true, "10 Mbit/s 5 ms", "from a to b bulk_get 32 KiB 6 MB over quic", 73),
        (
            true,
            "100 Mbit/s 1 ms queue 100 packets",
            "from a to b bulk_put 64 KiB 40 MB over tcp(congestion = reno)",
            74,
        ),
        (true, "30 Mbit/s 5 ms", "parallel: from a to b bulk_get 16 KiB 5 MB | from a to b bulk_get 16 KiB 5 MB", 75),
    ] {
        family.add(held, &pair(link), what, seed);
    }
}

/// Events that are missing.
fn events(cases: &mut Vec<Case>) {
    let mut family = Family::new(cases, "lost_events", "lost events");
    family.plant(false, &pair("100 Mbit/s 2 ms"), "from a to b rr 64*200 constant(20 ms)", 80, Plant::Lose(30));
    family.plant(true, &pair("50 Mbit/s 5 ms"), "from a to b stream 1000*300 constant(20 ms)", 81, Plant::Lose(50));
}

/// Runs that nothing limits but their work: at a pace that is kept, or a few operations.
fn healthy(cases: &mut Vec<Case>) {
    let mut family = Family::new(cases, "healthy", "healthy");
    for (held, link, what, seed) in [
        (false, "100 Mbit/s 1 ms", "rr 64*200 constant(20 ms)", 90),
        (false, "50 Mbit/s 20 ms", "rr 200, 4000*100 constant(100 ms)", 91),
        (false, "100 Mbit/s 5 ms", "stream 160*300 constant(20 ms)", 92),
        (false, "20 Mbit/s 10 ms loss 0.01%", "rr 64*300 constant(50 ms)", 93),
        (false, "100 Mbit/s 5 ms", "rr 64*300 exponential(30 ms) over quic", 94),
        (false, "100 Mbit/s 2 ms", "connect_disconnect 0*40 constant(50 ms)", 95),
        (false, "100 Mbit/s 10 ms", "bulk_put 16 KiB*200 constant(10 ms)", 96),
        (true, "200 Mbit/s 3 ms", "rr 100, 8000*200 exponential(40 ms)", 97),
        (true, "30 Mbit/s 8 ms", "stream 1000*400 exponential(15 ms)", 98),
        (true, "100 Mbit/s 1 ms", "rr 500*300 uniform(5 ms, 25 ms) over udp", 99),
        (true, "100 Mbit/s 15 ms queue 100 packets", "bulk_get 32 KiB*200 constant(20 ms)", 100),
        (true, "10 Mbit/s 30 ms jitter uniform(0, 2 ms)", "rr 64*200 constant(80 ms)", 101),
        (true, "100 Mbit/s 2 ms", "two_pieces 100*100 constant(80 ms) constant(200 us) over tcp(nodelay)", 102),
    ] {
        family.add(held, &pair(link), &format!("from a to b {what}"), seed);
    }
}

/// Real time, the kernel's TCP.
fn emulated(cases: &mut Vec<Case>) {
    let rows: [(&'static str, &'static str, bool, &str, &str, Plant); 14] = [
        (
            "network_limited",
            "kernel: full link",
            false,
            "20 Mbit/s 5 ms queue 100 kB",
            "from a to b bulk_put 64 KiB 8 MB",
            Plant::Nothing,
        ),
        (
            "link_loss",
            "kernel: loss on a link",
            false,
            "20 Mbit/s 10 ms loss 1%",
            "from a to b bulk_put 64 KiB 4 MB over tcp(congestion = cubic)",
            Plant::Nothing,
        ),
        (
            "queue_drop",
            "kernel: small queue",
            false,
            "20 Mbit/s 15 ms queue 6 packets",
            "from a to b bulk_put 64 KiB 6 MB over tcp(congestion = reno)",
            Plant::Nothing,
        ),
        (
            "window_below_bdp",
            "kernel: small window",
            true,
            "50 Mbit/s 20 ms",
            "from a to b bulk_put 64 KiB 4 MB over tcp(receive_buffer = 64 KiB)",
            Plant::Nothing,
        ),
        (
            "serial_round_trips",
            "kernel: chain of round trips",
            false,
            "50 Mbit/s 10 ms",
            "from a to b rr 64*100",
            Plant::Nothing,
        ),
        (
            "application_limited",
            "kernel: slow application",
            true,
            "50 Mbit/s 5 ms",
            "from a to b slow_writer 16 KiB*300 constant(10 ms)",
            Plant::Nothing,
        ),
        (
            "receiver_limited",
            "kernel: slow reader",
            true,
            "50 Mbit/s 5 ms",
            "from a to b slow_reader 64 KiB*200 constant(15 ms)",
            Plant::Nothing,
        ),
        (
            "paused_process",
            "kernel: paused process",
            false,
            "50 Mbit/s 2 ms",
            "from a to b rr 64*150 constant(20 ms)",
            Plant::Pause(800, 700),
        ),
        (
            "paused_process",
            "kernel: paused process",
            true,
            "50 Mbit/s 5 ms",
            "from a to b stream 1000*200 constant(20 ms)",
            Plant::Pause(1200, 900),
        ),
        (
            "healthy",
            "kernel: healthy",
            false,
            "50 Mbit/s 5 ms",
            "from a to b rr 64*100 constant(30 ms)",
            Plant::Nothing,
        ),
        (
            "healthy",
            "kernel: healthy",
            true,
            "100 Mbit/s 2 ms",
            "from a to b stream 500*150 constant(20 ms)",
            Plant::Nothing,
        ),
        (
            "cpu_limit",
            "kernel: crowded core",
            false,
            "1 Gbit/s 1 ms",
            "from a to b bulk_put 1 KiB 20 MB on cpu 0",
            Plant::Crowd(8),
        ),
        (
            "cpu_limit",
            "kernel: crowded core",
            true,
            "1 Gbit/s 3 ms",
            "from a to b bulk_get 512 10 MB on cpu 0",
            Plant::Crowd(6),
        ),
        ("undersized_buffer", "kernel: MAGIC", false, "", "", Plant::Nothing),
    ];
    for (seed, (label, what, held, link, measurement, plant)) in (120..).zip(rows) {
        let mut family = Family { cases, label, what, world: "emulated" };
        if link.is_empty() {
            let magic = "network n { host h0, h1, h2, o; switch s { buffer 1500 bytes per port; cells 53; } link h0 - s 100 Mbit/s 6 ms mtu 9180; link h1 - s 100 Mbit/s 6 ms mtu 9180; link h2 - s 100 Mbit/s 50 us mtu 9180; link s - o 100 Mbit/s 50 us mtu 9180; }\n";
            family.plant(held, magic, &from_each(3, "bulk_get 48 KiB*50"), seed, plant);
        } else {
            family.plant(held, &pair(link), measurement, seed, plant);
        }
    }
}
