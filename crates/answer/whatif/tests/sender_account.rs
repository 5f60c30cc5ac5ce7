//! One account of a sender's time over all its connections: what is found of small simulated specifications, beside what taking the cause
//! out of the text saves.

#![expect(clippy::unwrap_used, reason = "tests")]

use stackline_analyze::findings::{Evidence, Finding};
use stackline_analyze::loaded_run::{LoadedRun, MOST_EVENTS};
use stackline_core::plan::World;
use stackline_runner::spec_source::SpecSource;
use stackline_runs::{RunDirectory, RunFileAccess};
use stackline_spec::Overrides;
use stackline_whatif::advice;
use stackline_whatif::simulated_runs::SimulationBudget;
use stackline_whatif::unattended_runs::{UnattendedOptions, make_unattended_runs};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

/// A call on a connection of its own, the same on one that is kept, and units there and back.
const PROCEDURES: &str = "
procedure fetch {
    initiator { StartMeasurement; repeat count { ConnectRequest; RPCCall; DisconnectRequest; } StopMeasurement; }
    responder { repeat count { AwaitConnectIndication; RPCAwaitCallInd; RPCReturn; AwaitDisconnectIndication; } }
}
procedure upload {
    initiator { StartMeasurement;
        repeat count { ConnectRequest; StartBulkPut; DataRequest(unit); StopBulkPut; DisconnectRequest; } StopMeasurement; }
    responder { repeat count { AwaitConnectIndication; AwaitStartBulkPut; AwaitDataIndication(unit); AwaitStopBulkPut;
        AwaitDisconnectIndication; } }
}
procedure turns(service) {
    initiator { ConnectRequest; StartMeasurement; repeat count { DataRequest(unit); AwaitDataIndication(reply); }
        StopMeasurement; DisconnectRequest; }
    responder { AwaitConnectIndication; repeat count { AwaitDataIndication(unit); Delay(service); DataRequest(reply); }
        AwaitDisconnectIndication; }
}
procedure slow_put(service) {
    initiator { ConnectRequest; StartMeasurement; StartBulkPut; repeat count { DataRequest(unit); } StopBulkPut; StopMeasurement;
        DisconnectRequest; }
    responder { AwaitConnectIndication; AwaitStartBulkPut; repeat count { AwaitDataIndication(unit); Delay(service); } AwaitStopBulkPut;
        AwaitDisconnectIndication; }
}
";

/// What was found, and how long the measured part took, s.
struct Diagnosed {
    findings: Vec<Finding>,
    elapsed_s: f64,
}

impl Diagnosed {
    /// Of a measurement over one link of that rate, delay and whatever else.
    fn run(link: &str, measurement: &str) -> Self {
        Self::of_parts(link, &format!("from a to b {measurement} across n"))
    }

    /// Of one run across that link.
    fn of_parts(link: &str, measurement: &str) -> Self {
        let text =
            format!("{PROCEDURES} network n {{ host a, b; link a - b {link}; }} 1 {measurement};");
        let source = SpecSource::made("case", text);
        let plan = source
            .plan_in(World::Simulated, Overrides::default())
            .unwrap();
        let scratch = tempfile::tempdir().unwrap();
        let access = RunFileAccess::default();
        let directory =
            RunDirectory::create(scratch.path(), "case", SystemTime::now(), access).unwrap();
        let path = directory.path().to_owned();
        let never = Arc::new(AtomicBool::new(false));
        let options = UnattendedOptions {
            trace: true,
            capture: Vec::new(),
            ended: &never,
            signalled: &never,
            warn: |words| println!("{words}"),
        };
        let records = make_unattended_runs(&plan, directory, options).unwrap();
        let loaded = LoadedRun::open(&path, MOST_EVENTS).unwrap();
        let elapsed_s = records
            .iter()
            .map(|record| record.elapsed_ns as f64 / 1e9)
            .sum();
        let diagnosed = Self {
            findings: advice::findings(&loaded, SimulationBudget::patience()),
            elapsed_s,
        };
        let of_time = diagnosed.findings.iter().filter(|one| !one.is_of_units);
        let sum: f64 = of_time.map(|one| one.share).sum();
        assert!(sum <= 1.0 + 1e-9, "{link}, {measurement}: {sum}");
        diagnosed
    }

    fn kinds(&self) -> Vec<&str> {
        self.findings.iter().map(|one| one.kind).collect()
    }

    #[track_caller]
    fn get(&self, kind: &str) -> &Finding {
        let found = self.findings.iter().find(|one| one.kind == kind);
        found.unwrap_or_else(|| panic!("no {kind} among {:?}", self.kinds()))
    }

    /// The share that taking something away saves.
    fn saved_by(&self, without: &Self) -> f64 {
        1.0 - without.elapsed_s / self.elapsed_s
    }
}

#[track_caller]
fn is_near(value: f64, wanted: f64, by: f64) {
    assert!((value - wanted).abs() <= by, "{value} instead of {wanted}");
}

/// A connection takes one round trip, a call another, and each round trip of slow start one more.
#[test]
fn a_connection_for_each_call_is_named_with_what_each_begins_with() {
    let link = "200 Mbit/s 22.5 ms";
    let found = Diagnosed::run(link, "fetch 300, 90 kB*20 over tcp");
    assert_eq!(
        found.kinds(),
        ["connection_per_call", "slow_start", "serial_round_trips"]
    );
    let all = found.findings.iter().map(|one| one.share).sum::<f64>();
    assert!(all > 0.93 && found.findings.iter().all(|one| one.confidence >= 0.9));
    is_near(found.get("connection_per_call").share, 0.25, 0.01);
    is_near(found.get("slow_start").share, 0.49, 0.03);
    let kept = Diagnosed::run(link, "request_response 300, 90 kB*20 over tcp");
    let saves = found.get("connection_per_call").saves.unwrap();
    is_near(saves, found.saved_by(&kept), 0.02);
}

#[test]
fn three_more_that_connect_each_time() {
    let small = Diagnosed::run("100 Mbit/s 20 ms", "fetch 200, 200*30 over tcp");
    assert_eq!(small.kinds(), ["connection_per_call", "serial_round_trips"]);
    is_near(small.get("connection_per_call").share, 0.5, 0.01);
    let upload = Diagnosed::run("100 Mbit/s 20 ms", "upload 200 kB*10 over tcp");
    assert_eq!(upload.kinds()[..2], ["connection_per_call", "slow_start"]);
    let quic = Diagnosed::run("100 Mbit/s 20 ms", "fetch 200, 60 kB*10 over quic");
    assert_eq!(
        quic.kinds()[..3],
        ["connection_per_call", "slow_start", "serial_round_trips"]
    );
    let wide = Diagnosed::run(
        "100 Mbit/s 20 ms",
        "fetch 200, 60 kB*10 over quic(initial_window = 120000)",
    );
    let saves = quic.get("slow_start").saves.unwrap();
    is_near(saves, 1.0 - wide.elapsed_s / quic.elapsed_s, 0.15);
}

/// Both fixes are compared by the time of the whole run, of which the calls are a part.
#[test]
fn of_two_fixes_the_one_that_saves_more_of_the_run_is_first() {
    let found = Diagnosed::run("100 Mbit/s 25 ms", "fetch 300, 120 kB*15 over quic");
    assert_eq!(found.kinds()[..2], ["connection_per_call", "slow_start"]);
    let wide = Diagnosed::run(
        "100 Mbit/s 25 ms",
        "fetch 300, 120 kB*15 over quic(initial_window = 150000)",
    );
    let saves = found.get("slow_start").saves.unwrap();
    is_near(saves, found.saved_by(&wide), 0.03);
}

/// A larger first window makes such runs faster or slower by chance, and on average not faster.
#[test]
fn what_helps_by_chance_alone_is_not_sure() {
    let link = "63.8 Mbit/s 9.7 ms jitter exponential(5.74 ms) reordering queue 244791 bytes";
    let found = Diagnosed::run(link, "bulk_put 64 KiB*56 over tcp(congestion = cubic)");
    let start = found.get("slow_start");
    let by_chance = |evidence: &Evidence| evidence.what.contains("helps in some runs and harms");
    assert!(start.evidence.iter().any(by_chance), "{start:?}");
    assert!(start.confidence <= 0.6, "{start:?}");
}

/// The writer hands all over at once, and its data leaves by and by.
#[test]
fn a_send_buffer_that_holds_everything_hides_no_slow_start() {
    let share = |buffer: &str| {
        let found = Diagnosed::run(
            "300 Mbit/s 40 ms",
            &format!("bulk_get 50 kB*10 over tcp{buffer}"),
        );
        assert_eq!(found.kinds(), ["slow_start"], "{buffer}");
        found.get("slow_start").share
    };
    let usual = share("");
    for buffer in ["512 KiB", "1 MiB", "4 MiB"] {
        is_near(share(&format!("(send_buffer = {buffer})")), usual, 0.25);
    }
    let large = Diagnosed::run(
        "300 Mbit/s 22.5 ms",
        "request_response 300, 90 kB*1 over quic",
    );
    assert_eq!(large.kinds(), ["slow_start"]);
    let wide = Diagnosed::run(
        "300 Mbit/s 22.5 ms",
        "request_response 300, 90 kB*1 over quic(initial_window = 150000)",
    );
    let found = large.get("slow_start");
    // A wide first window is paced over a part of the round trip.
    is_near(found.share, large.saved_by(&wide), 0.12);
    assert!(found.confidence >= 0.9);
}

#[test]
fn units_there_and_back_wait_for_distance_and_for_who_answers() {
    for stack in ["tcp", "quic"] {
        let idle = Diagnosed::run(
            "300 Mbit/s 15 ms",
            &format!("turns 900, 900*50 over {stack}"),
        );
        assert_eq!(idle.kinds(), ["serial_round_trips"], "{stack}");
        is_near(idle.get("serial_round_trips").share, 1.0, 0.03);
        let works = Diagnosed::run(
            "300 Mbit/s 15 ms",
            &format!("turns 900, 900*50 constant(30 ms) over {stack}"),
        );
        assert_eq!(works.kinds(), ["application_limited", "serial_round_trips"]);
        is_near(
            works.get("application_limited").share,
            works.saved_by(&idle),
            0.02,
        );
    }
}

/// Of two limits the one ranks first whose removal saves more; what saves nothing alone stands last and is not sure.
#[test]
fn order_is_by_removal() {
    let both = "send_buffer = 32 KiB, receive_buffer = 96 KiB";
    let found = Diagnosed::run(
        "100 Mbit/s 15 ms",
        &format!("bulk_put 16 KiB*500 over tcp({both})"),
    );
    assert_eq!(found.kinds()[..2], ["window_below_bdp", "socket_buffer"]);
    let [window, buffer] = ["window_below_bdp", "socket_buffer"].map(|kind| found.get(kind));
    assert!(window.saves > buffer.saves && buffer.saves > Some(0.1));
    assert!(
        buffer
            .sentence
            .contains("the path holds 375 kB in a round trip of 30.0 ms"),
        "{}",
        buffer.sentence
    );
    let link = "50 Mbit/s 10 ms loss 0.1%";
    let slow = Diagnosed::run(link, "slow_put 16 KiB*300 constant(9 ms) over tcp");
    assert_eq!(slow.kinds()[0], "receiver_limited");
    let lossy = Diagnosed::run(
        "100 Mbit/s 20 ms loss 0.05%",
        "bulk_put 64 KiB*150 over tcp(receive_buffer = 96 KiB)",
    );
    assert_eq!(lossy.kinds()[0], "window_below_bdp");
    let idle = lossy.findings.iter().filter(|one| one.is_idle());
    assert!(idle.clone().all(|one| one.confidence <= 0.5));
}

/// A new connection's bytes begin anew, and a large receive buffer limits nothing that fits into it.
#[test]
fn what_delays_nothing_is_not_named() {
    let door = Diagnosed::run("50 Mbit/s 18 ms", "fetch 4 kB, 30 kB*20 over tcp");
    assert!(
        !door.kinds().contains(&"nagle_delayed_ack"),
        "{:?}",
        door.kinds()
    );
    let wide = Diagnosed::run(
        "100 Mbit/s 20 ms queue 200 kB",
        "bulk_put 64 KiB*90 over tcp(first_window = 2000, receive_buffer = 16 MiB)",
    );
    assert!(
        !wide.kinds().contains(&"window_below_bdp"),
        "{:?}",
        wide.kinds()
    );
}

/// What a socket drops of data that nobody sends again is said beside the reader that is away, and the reader is what to change.
#[test]
fn a_reader_that_is_away_and_what_its_socket_drops_are_both_named() {
    let link = "50 Mbit/s 5 ms";
    let away = Diagnosed::run(
        link,
        "slow_put 1400*1000 constant(700 us) over udp(receive_buffer = 64 KiB)",
    );
    assert_eq!(away.kinds()[0], "receiver_limited");
    let drops = away.get("receive_buffer_loss");
    assert!(drops.is_of_units && drops.share > 0.4, "{drops:?}");
    assert!(
        drops.sentence.ends_with("the reader does not keep up"),
        "{drops:?}"
    );
    assert!(drops.confidence >= 0.8, "{drops:?}");
    let gain = drops.tries[0].expected.unwrap().times_as_fast[0];
    assert!(gain * (1.0 - drops.share) > 0.9, "{gain}: {drops:?}");
    let reads = Diagnosed::run(
        link,
        "slow_put 1400*1000 constant(0 us) over udp(receive_buffer = 64 KiB)",
    );
    assert!(!reads.kinds().contains(&"receive_buffer_loss"));
}

/// A discipline that drops early is taken away by one that does not, not by more room.
#[test]
fn early_drops_are_taken_away_by_a_queue_that_drops_when_it_is_full() {
    let found = Diagnosed::run(
        "20 Mbit/s 20 ms queue 200000 bytes red(min = 10 kB, max = 30 kB)",
        "bulk_put 16 KiB*400 over tcp",
    );
    let queue = found.get("queue_drop");
    let drop_tail = queue
        .tries
        .iter()
        .find(|one| one.what.contains("drop_tail"));
    let gain = drop_tail.and_then(|one| one.expected);
    assert!(
        gain.is_some_and(|gain| gain.times_as_fast[0] > 1.15),
        "{queue:?}"
    );
    assert!(queue.saves > Some(0.1), "{queue:?}");
}

/// Where losses make runs differ, more of them are made, and figures are means over them; where nothing differs, five are enough.
#[test]
fn what_chance_decides_is_tried_more_often() {
    let lossy = Diagnosed::run("20 Mbit/s 30 ms loss 1%", "bulk_get 100000*4 over tcp");
    let loss = lossy.get("link_loss");
    let expected = loss.tries.iter().find_map(|one| one.expected).unwrap();
    let [gain, least, greatest] = expected.times_as_fast;
    assert!(
        expected.runs == 25 && least < gain && gain < greatest,
        "{loss:?}"
    );
    is_near(gain, expected.then / expected.now, 1e-9);
    assert!(loss.saves > Some(0.3), "{loss:?}");
    let windowed = Diagnosed::run(
        "100 Mbit/s 40 ms",
        "bulk_put 16 KiB*200 over tcp(receive_buffer = 64 KiB)",
    );
    let tried = windowed.findings.iter().flat_map(|one| &one.tries);
    let runs: Vec<usize> = tried.filter_map(|one| Some(one.expected?.runs)).collect();
    assert!(
        !runs.is_empty() && runs.iter().all(|runs| *runs == 5),
        "{runs:?}"
    );
}

/// What advice of one finding takes away is not found a second time.
#[test]
fn a_load_that_delays_is_found_once() {
    let shared = Diagnosed::of_parts(
        "10 Mbit/s 5 ms queue 50 packets",
        "background across n: from a to b rr 200*100 over tcp | from a to b bulk_put 65536*200 over tcp",
    );
    let of_link = shared
        .kinds()
        .into_iter()
        .filter(|kind| *kind == "network_limited");
    assert_eq!(of_link.count(), 1, "{:?}", shared.kinds());
}
