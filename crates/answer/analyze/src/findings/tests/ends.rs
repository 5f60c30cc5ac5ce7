//! Hosts and applications: processors, stopped processes, programs that keep others waiting.

use super::*;

#[test]
fn a_processor_limits_at_85_percent() {
    let computes = |share: f64| {
        bulk(1, 10.0, 30_000_000, None)
            .with(|given| given.records[0].responder.usage.system_s = 10.0 * share)
    };
    assert_eq!(computes(0.96).kinds(), ["cpu_limit"]);
    assert_eq!(computes(0.6).kinds(), NOTHING);
    let sentence = |given: Given| given.found().remove(0).sentence;
    let one = "the responder on b is at the limit of its core: it is on the CPU 96";
    assert!(
        sentence(computes(0.96)).starts_with(one),
        "{}",
        sentence(computes(0.96))
    );
    // The time of several pairs is a sum: what one takes is its mean.
    let four = computes(4.0 * 0.96).with(|given| {
        given.part().replicas = 4;
        given.records[0].replicas = 4;
    });
    let many =
        "the 4 responders on b are at the limit of their cores: on average, each is on the CPU 96";
    let four = sentence(four);
    assert!(four.starts_with(many), "{four}");
    // Or that of the threads that drive them.
    let shared = |used: f64| {
        computes(used).with(|given| {
            given.part().replicas = 64;
            given.records[0].replicas = 64;
            given.records[0].responder.settings = [("threads".into(), "2".into())].into();
        })
    };
    let two = "each of the 2 threads of the 64 responders on b is at the limit of its core: it is on the CPU 96";
    assert!(
        sentence(shared(2.0 * 0.96)).starts_with(two),
        "{}",
        sentence(shared(2.0 * 0.96))
    );
    assert_eq!(shared(1.2).kinds(), NOTHING);
    let held_back = |share: f64| {
        let host = HostUsage {
            throttled_s: Some(10.0 * share),
            ..HostUsage::default()
        };
        bulk(1, 10.0, 30_000_000, None).with(|given| given.records[0].initiator.host = Some(host))
    };
    assert_eq!(held_back(0.3).kinds(), ["cpu_limit"]);
    assert_eq!(held_back(0.01).kinds(), NOTHING);
}

#[test]
fn copying_packets_takes_a_simulated_processor() {
    let copies = |us: u64| {
        bulk(1, 10.0, 30_000_000, None).with(|given| {
            let host = given.plan.networks[0]
                .hosts
                .iter_mut()
                .find(|host| host.name == "b")
                .unwrap();
            host.interface.copy_per_packet = Duration(us * 1000);
        })
    };
    assert_eq!(copies(460).kinds(), ["cpu_limit"]);
    assert_eq!(copies(100).kinds(), NOTHING);
}

#[test]
fn a_stopped_process_is_no_process_without_a_core() {
    let paused = |ms: u64, reason: &str| {
        bulk(1, 10.0, 30_000_000, None).with(|given| {
            given.event(
                5_000_000,
                "b",
                "PROCESS_PAUSED",
                &format!("{}; 17; {}; {reason}", ms * MS, ms * MS),
            );
        })
    };
    assert_eq!(paused(900, "stopped").kinds(), ["paused_process"]);
    assert_eq!(paused(90, "stopped").kinds(), NOTHING);
    assert_eq!(paused(900, "waited for a core").kinds(), ["cpu_limit"]);
    // Whoever did something every 10 ms was not stopped for 900.
    let busy = paused(900, "stopped").with(|given| {
        (0..90).for_each(|tenth| {
            given.event(4_100_000 + 10_000 * tenth, "b", "SOCK_RECEIVED", "; ; ; ")
        });
    });
    assert_eq!(busy.kinds(), NOTHING);
}

#[test]
fn an_interface_that_paces_limits_its_sender() {
    let pace = |mbit_s: f64| {
        used(0.4)
            .with(|given| given.plan.networks[0].hosts[0].interface.pace_bit_s = Some(mbit_s * 1e6))
            .with(|given| {
                let port = given.records[0].network.as_mut().unwrap().ports[0].clone();
                given.port().for_each(|record| *record = port.clone());
                given.records[0]
                    .network
                    .as_mut()
                    .unwrap()
                    .ports
                    .push(PortRecord {
                        name: "a0>s".into(),
                        ..port
                    });
            })
    };
    assert_eq!(pace(41.0).kinds(), ["sender_limited"]);
    assert_eq!(pace(60.0).kinds(), NOTHING);
}

#[test]
fn a_short_transfer_is_over_before_its_window_is_open() {
    let short = |bytes: u64, seconds: f64| bulk(1, seconds, bytes, None);
    assert_eq!(short(200_000, 0.1).kinds(), ["slow_start"]);
    // The same in ten times the time is not explained by that.
    assert_eq!(short(200_000, 1.0).kinds(), NOTHING);
}

/// Units that are handed over `away` ms after one another, each of which takes `within` ms.
pub(super) fn writer(away: u64, within: u64) -> Given {
    bulk(1, 10.0, 30_000_000, None).with(|given| {
        let step = (away + within) * 1000;
        for n in 0..10_000_000 / step {
            let data = format!("{n}; 0; {}; 16384", n * 16_384);
            given.event(n * step + away * 1000, "a0", "APP_SEND", &data);
            given.event((n + 1) * step, "a0", "APP_SENT", &data);
        }
    })
}

#[test]
fn an_application_that_is_away_limits() {
    assert_eq!(writer(5, 1).kinds(), ["application_limited"]);
    assert_eq!(writer(1, 5).kinds(), NOTHING);
}

/// Units that are taken `away` ms after one another, each of which is waited for `within` ms.
fn reader(away: u64, within: u64) -> Given {
    bulk(1, 10.0, 30_000_000, None).with(|given| {
        let step = (away + within) * 1000;
        for n in 0..10_000_000 / step {
            let data = format!("{n}; 0; {}; 16384", n * 16_384);
            given.event(n * step + away * 1000, "b", "APP_AWAIT", &data);
            given.event((n + 1) * step, "b", "APP_RECEIVED", &data);
        }
    })
}

#[test]
fn a_receiver_with_a_backlog_limits() {
    assert_eq!(reader(5, 1).kinds(), ["receiver_limited"]);
    assert_eq!(reader(1, 5).kinds(), NOTHING);
}

#[test]
fn missing_events_of_a_host_that_lost_events_prove_nothing() {
    let missing = reader(5, 1).with(|given| {
        drop(given.index.hosts.insert(
            "b".into(),
            HostTrace {
                recorded: 70,
                lost: 30,
                ..HostTrace::default()
            },
        ))
    });
    assert!(!missing.kinds().contains(&"receiver_limited"));
}

/// A question every 90 ms, at a pace, that is answered after so many ms; `lies` ms later it is taken.
fn asker(answered: u64, lies: u64) -> Given {
    bulk(1, 9.0, 30_000, None).paced().with(|given| {
        let record = &mut given.records[0];
        (record.initiator.received_bytes, record.responder.sent_bytes) = (50_000, 50_000);
        (record.initiator.sent_bytes, record.responder.received_bytes) = (6_000, 6_000);
        let back = stream(0, EventStreamDirection::Back);
        for n in 0..100_u64 {
            let (at, ask, answer) = (
                n * 90_000,
                format!("; 0; {}; 60", n * 60),
                format!("; {back}; {}; 500", n * 500),
            );
            given.event(at, "a0", "APP_SEND", &ask);
            given.event(at, "a0", "APP_SENT", &ask);
            let came = at + answered * 1000;
            given.event(
                came,
                "a0",
                "NET_DELIVER",
                &format!("{answer}; a0; b>a0; 0; 1; 1; 552"),
            );
            let asks = if lies > 0 { came + lies * 1000 } else { at };
            given.event(asks, "a0", "APP_AWAIT", &answer);
            given.event(asks.max(came) + 1, "a0", "APP_RECEIVED", &answer);
        }
    })
}

#[test]
fn a_reader_that_requests_later_is_not_receiver_limited() {
    assert_eq!(asker(1, 0).all(), ["healthy"]);
    assert_eq!(asker(1, 60).kinds(), ["receiver_limited"]);
}

#[test]
fn bytes_in_flight_are_no_backlog() {
    // Taken 1 ms after it came, however long the application had been elsewhere before.
    assert_eq!(asker(60, 1).kinds(), NOTHING);
}

/// 100 calls of 20 ms each, with so much between them that the whole takes so many seconds.
fn caller(delay: Option<f64>, seconds: u64) -> Given {
    calls(&[(20, 100)]).with(|given| {
        (given.records[0].elapsed_ns, given.records[0].span_ns) =
            (seconds * SECOND, seconds * SECOND);
        let delay = delay.map(|delay| {
            ProcedureStep::Call(OperationCall::Delay(DelayArgument::Drawn(
                Distribution::Constant(delay),
            )))
        });
        given.part().procedure.initiator.extend(delay);
    })
}

#[test]
fn delays_in_the_specification_limit_the_caller() {
    let found = caller(Some(0.08), 10).found();
    assert_eq!(found[0].kind, "application_limited");
    assert!((found[0].share - 0.8).abs() < 1e-9, "{}", found[0].share);
    assert!(
        found[0]
            .sentence
            .contains("it delays each of its 100 calls by 80.0 ms"),
        "{}",
        found[0].sentence
    );
    assert!(!caller(None, 10).kinds().contains(&"application_limited"));
    // It cannot have been away for longer than it was in no call.
    assert!(
        !caller(Some(0.08), 2)
            .kinds()
            .contains(&"application_limited")
    );
    let paced = caller(Some(0.08), 10).paced();
    assert!(!paced.kinds().contains(&"application_limited"));
}

#[test]
fn for_a_processor_that_is_busy_all_the_time_every_caller_waits() {
    let served = |packets: u64| {
        bulk(3, 1.0, 1, None).with(|given| {
            let host = given.plan.networks[0]
                .hosts
                .iter_mut()
                .find(|host| host.name == "b")
                .unwrap();
            host.interface.copy_per_packet = Duration(4 * MS);
            for record in &mut given.records {
                record.calls = calls(&[(20, 50)]).records[0].calls.clone();
                record.initiator.transport = None;
            }
            given
                .port()
                .for_each(|port| (port.packets, port.bytes) = (packets, 64 * packets));
        })
    };
    let found = served(245).found();
    let cpu = found
        .iter()
        .find(|finding| finding.kind == "cpu_limit")
        .unwrap();
    assert!(cpu.share > 0.95, "{}", cpu.share);
    // At a third each call waits for its own copies at most: a tenth of its time.
    assert!(!served(80).kinds().contains(&"cpu_limit"));
}

/// A transfer within one machine: its ends compute for these shares of the time, its two cores are idle for that one.
fn within(computes: (f64, f64), idle: f64) -> Given {
    bulk(1, 10.0, 6_000_000_000, None).with(|given| {
        given.plan.networks.clear();
        given.plan.measurements[0].across = None;
        (given.part().from, given.part().to) = (None, None);
        given.transport(|t| t.rtt_s = 15e-6);
        let record = &mut given.records[0];
        (
            record.initiator.usage.system_s,
            record.responder.usage.system_s,
        ) = (10.0 * computes.0, 10.0 * computes.1);
        let (used, idle) = ((1e6 * (1.0 - idle)) as u64, (1e6 * idle) as u64);
        for core in 0..2 {
            let data = format!("{}; {core}; 0; {used}; 0; 0; 0; {idle}; 0", 9 * SECOND);
            given.event(9_500_000, "initiator", "CPU_USE", &data);
        }
    })
}

#[test]
fn within_one_machine_only_processors_limit() {
    assert_eq!(within((0.37, 0.33), 0.05).kinds(), ["cpu_limit"]);
    assert_eq!(within((0.95, 0.33), 0.3).kinds(), ["cpu_limit"]);
    // The cores are others': ends that wait for something else are not held up by them.
    assert!(!within((0.01, 0.01), 0.05).kinds().contains(&"cpu_limit"));
    let crowded = within((0.37, 0.33), 0.05)
        .with(|given| given.part().replicas = 2)
        .found()
        .remove(0)
        .sentence;
    assert!(
        crowded.ends_with("the ends of all 2 pairs together use 70 % of one core"),
        "{crowded}"
    );
    let found = within((0.37, 0.33), 0.5).found();
    assert_eq!(
        found.iter().map(|finding| finding.kind).collect::<Vec<_>>(),
        ["unexplained"]
    );
    assert!(
        found[0]
            .sentence
            .starts_with("no monitored resource was at its limit"),
        "{}",
        found[0].sentence
    );
    let of_two = within((0.37, 0.33), 0.5)
        .with(|given| given.part().replicas = 2)
        .found()
        .remove(0)
        .sentence;
    assert!(
        of_two.ends_with("of the time (means over 2 pairs)"),
        "{of_two}"
    );
    assert!(
        (found[0].share - 0.63).abs() < 1e-6 && found[0].confidence < 0.2,
        "{:?}",
        found[0]
    );
    // Over a short link it is not known what else was in the way.
    let apart = within((0.37, 0.33), 0.05).with(|given| given.part().to = Some("b".into()));
    assert!(
        apart.found()[0].sentence.contains("is unexplained"),
        "{}",
        apart.found()[0].sentence
    );
}

#[test]
fn a_core_that_both_sides_share_may_be_at_its_limit() {
    let pinned = |computes, core| {
        within(computes, 0.5).with(|given| given.part().cpu = (Some(0), Some(core)))
    };
    let found = pinned((0.5, 0.45), 0).found();
    assert_eq!(found[0].kind, "cpu_limit");
    assert!(
        found[0]
            .sentence
            .starts_with("core 0, which both sides share"),
        "{}",
        found[0].sentence
    );
    assert!(!pinned((0.5, 0.45), 1).kinds().contains(&"cpu_limit"));
}

/// A transfer over a link of 100 Mbit/s of which it used this share, with what its sender was in besides, each a share.
fn states(used: f64, spent: SenderLimitTimes, receive_window: f64) -> Given {
    bulk(
        1,
        10.0,
        (used * 10.0 * 100e6 / 8.0 * 1448.0 / 1500.0) as u64,
        None,
    )
    .with(|given| {
        let record = &mut given.records[0];
        let (start, mut stop) = record.initiator.transport.unwrap();
        stop = TransportRecord {
            receive_window_limited_s: Some(10.0 * receive_window),
            spent: Some(spent),
            ..stop
        };
        let start = TransportRecord {
            spent: Some(SenderLimitTimes::default()),
            receive_window_limited_s: Some(0.0),
            ..start
        };
        record.initiator.transport = Some((start, stop));
    })
}

#[test]
fn a_senders_states_explain_only_what_its_own_data_does_not_use() {
    let slow = SenderLimitTimes {
        slow_start_s: 4.0,
        ..SenderLimitTimes::default()
    };
    let share = |given: Given| {
        let found = given.found();
        found
            .iter()
            .find(|finding| finding.kind == "slow_start")
            .map_or(0.0, |finding| finding.share)
    };
    assert!((share(states(0.5, slow, 0.0)) - 0.4).abs() < 0.01);
    // Of half the time that is left two states take their parts: 0.5 * 0.4 / 0.7.
    let two = share(states(0.5, slow, 0.3));
    assert!((two - 0.286).abs() < 0.01, "{two}");
    assert_eq!(share(states(0.97, slow, 0.0)), 0.0);
}

#[test]
fn a_sender_that_waits_for_its_receipt_is_not_away() {
    let ends = |last: &'static str| {
        bulk(1, 10.0, 30_000_000, None).with(|given| {
            given.event(0, "a0", "APP_START", "; 0");
            given.event(1_000, "a0", "APP_SEND", "0; 0; 0; 100");
            given.event(2_000, "a0", "APP_SENT", "0; 0; 0; 100");
            given.event(
                9_000_000,
                "a0",
                last,
                if last == "APP_STOP" {
                    "; 0"
                } else {
                    "1; 0; 100; 100"
                },
            );
            given.event(9_000_100, "a0", "APP_SENT", "1; 0; 100; 100");
        })
    };
    assert!(!ends("APP_STOP").kinds().contains(&"application_limited"));
    assert!(ends("APP_SEND").kinds().contains(&"application_limited"));
}
