//! One specification in several worlds: what has to be the same is the same.

use crate::support::{Place, events, number, pair, skip};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::sync::atomic::{AtomicU32, Ordering};

/// Whether no network can be emulated here, with the reason told.
fn forbidden() -> bool {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let place = Place::new();
    // A network of its own: who shares one may leave it to others.
    let name = format!(
        "n{}_{}",
        std::process::id(),
        NUMBER.fetch_add(1, Ordering::Relaxed)
    );
    let network = format!("network {name} {{ host a, b; link a - b 1 Gbit/s 0 ms; }}");
    let tried = place.stackline(&["net", "exec", "-e", &network, "a", "--", "true"]);
    let forbidden = tried.status.code() == Some(3);
    if forbidden {
        skip(&tried.err);
    }
    forbidden
}

fn measured(place: &Place, text: &str, world: &str, more: &[&str]) -> Value {
    let mut arguments = vec!["run", "--json", "-e", text, "--in", world];
    arguments.extend(more);
    let mut json = place.stackline(&arguments).json();
    json["measurements"][0].take()
}

#[test]
fn the_same_packets_are_lost() {
    if forbidden() {
        return;
    }
    // All of it has room in the receiver's socket: a receiver that gets no core for long loses nothing there.
    for (loss, seed) in [
        ("loss 3%", "1"),
        ("loss 3%", "7"),
        ("loss state(2%, 40%, 20%, 50%, 1%)", "1"),
        ("loss gemodel(2%, 40%, 80%, 1%)", "1"),
    ] {
        let lossy = pair(loss);
        let text = format!("{lossy} 2 from a to b bulk_put 100*200 over udp across n;");
        let place = Place::new();
        let lost = |world| measured(&place, &text, world, &["--seed", seed])["lost"].as_u64();
        let (emulated, simulated) = (lost("emulated"), lost("simulated"));
        assert!(simulated.is_some_and(|lost| lost > 0));
        assert_eq!(emulated, simulated, "{loss}, seed {seed}");
    }
}

#[test]
fn a_variable_of_the_network_has_its_values_in_both() {
    let place = Place::new();
    let text = "network n { host a, b; link a - b 10 Mbit/s <D>; }
        1 from a to b rr 100*5 across n; D = 5 ms, 30 ms;";
    for world in if forbidden() {
        &["simulated"][..]
    } else {
        &["simulated", "emulated"]
    } {
        let json = place
            .stackline(&["run", "--json", "-e", text, "--in", world])
            .json();
        for (index, delay) in [0.005, 0.03].into_iter().enumerate() {
            assert_eq!(
                number(&json, &format!("/measurements/{index}/variables/D")),
                delay
            );
            let least = number(&json, &format!("/measurements/{index}/response_s/min"));
            assert!(least >= 2.0 * delay, "{world}: {least}");
        }
    }
}

#[test]
fn a_delay_changes_in_both() {
    let place = Place::new();
    let text = "network n { host a, b; link a - b 10 Mbit/s schedule(0 s 1 ms, 250 ms 40 ms); }
        1 timelimit 0.6 from a to b rr 100*100000 over udp across n;";
    for world in if forbidden() {
        &["simulated"][..]
    } else {
        &["simulated", "emulated"]
    } {
        let json = measured(&place, text, world, &[]);
        let [least, most] =
            ["min", "max"].map(|what| number(&json, &format!("/response_s/{what}")));
        assert!(least < 0.08 && most >= 0.08, "{world}: {least} to {most}");
    }
}

/// Calls beside a transfer that fills a queue of 240 ms: of strict priority they wait for one packet (1.2 ms), without for all.
#[test]
fn calls_of_a_strict_class_pass_a_full_queue_in_both() {
    let network = "network n { host a, b; link a - b 10 Mbit/s 1 ms queue 200 packets
        classes(ef strict, default weight 1); }";
    let worlds: &[&str] = if forbidden() {
        &["simulated"]
    } else {
        &["simulated", "emulated"]
    };
    for world in worlds {
        let median = |dscp: &str| {
            let text = format!(
                "{network} 1 timelimit 2 background across n: from a to b rr 100 over udp{dscp} |
                    from a to b bulk_put 1448 over tcp(congestion = cubic);"
            );
            let place = Place::new();
            number(&measured(&place, &text, world, &[]), "/response_s/median")
        };
        let (strict, plain) = (median("(dscp = 46)"), median(""));
        assert!(strict < 0.02 && plain > 0.04, "{world}: {strict} {plain}");
    }
}

/// 10 Mbit/s behind a burst of 15 kB: never more than both, and in the simulated world nearly that.
#[test]
fn a_shaper_limits_a_transfer_in_both() {
    let place = Place::new();
    let text = "network n { host a, b; link a - b 1 Gbit/s 1 ms shape 10 Mbit/s burst 15 kB latency 50 ms; }
        1 from a to b bulk_put 1448*2000 over tcp(congestion = cubic) across n;";
    for world in if forbidden() {
        &["simulated"][..]
    } else {
        &["simulated", "emulated"]
    } {
        let json = measured(&place, text, world, &[]);
        let throughput = number(&json, "/throughput_bit_s/mean");
        // Of 1500 bytes, 1448 are data; the burst is half a percent of it all.
        let most = 10e6 * 1448.0 / 1500.0 * 1.01;
        assert!(throughput < most, "{world}: {throughput}");
        assert!(
            *world == "emulated" || throughput > 0.95 * most,
            "{throughput}"
        );
    }
}

#[test]
fn a_simulated_capture_has_the_code_point() {
    let place = Place::new();
    let plain = pair("");
    let text =
        format!("{plain} 1 from a to b rr 100*3 over udp(dscp = 46), tcp(dscp = 10) across n;");
    measured(&place, &text, "simulated", &["--capture", "x>b"]);
    let captures = place.kept().0.join("captures");
    for (run, service) in [("n.1.1", 46 << 2), ("n.2.1", 10 << 2)] {
        let capture = std::fs::read(captures.join(format!("{run}.pcapng"))).unwrap();
        let headers = |byte: u8| {
            let begins = |four: &&[u8]| four[..2] == [0x45, byte] && four[2] == 0;
            capture.windows(4).filter(begins).count()
        };
        assert!(headers(service) >= 3, "{run}");
        assert_eq!(headers(0), 0, "{run}");
    }
}

#[test]
fn nothing_is_faster_than_its_path() {
    if forbidden() {
        return;
    }
    let place = Place::new();
    let plain = pair("");
    let text = format!("{plain} 2 from a to b rr 100*10 over udp, tcp across n;");
    let json = place
        .stackline(&["run", "--json", "-e", &text, "--in", "emulated"])
        .json();
    for (index, headers) in [(0, 28.0), (1, 52.0)] {
        let response = number(&json, &format!("/measurements/{index}/response_s/min"));
        let least = 4.0 * (100.0 + headers) * 8.0 / 10e6 + 0.02;
        assert!(response >= least, "{response} is below {least}");
    }
    let record = place.kept();
    let journal = std::fs::read_to_string(record.0.join("runs.jsonl")).unwrap();
    for line in journal.lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        let emulation = &record["network"]["emulation"];
        assert!(
            emulation["departures"].as_u64().is_some_and(|n| n > 0),
            "{record}"
        );
        assert!(
            emulation["lateness_max_ns"].as_u64() >= emulation["lateness_p50_ns"].as_u64(),
            "{record}"
        );
    }
    let environment = std::fs::read_to_string(record.0.join("environment.json")).unwrap();
    assert!(
        environment.contains("AF_PACKET") || environment.contains("af_packet"),
        "{environment}"
    );
    assert!(environment.contains("round_trip"), "{environment}");
}

#[test]
fn ipv6_costs_its_header_in_both() {
    let place = Place::new();
    let text = format!(
        "{} 2 from a to b rr 100*10 over udp(family = ipv6), tcp(family = ipv6) across n;",
        pair("")
    );
    for world in if forbidden() {
        &["simulated"][..]
    } else {
        &["simulated", "emulated"]
    } {
        let json = place
            .stackline(&["run", "--json", "-e", &text, "--in", world])
            .json();
        for (index, headers) in [(0, 48.0), (1, 72.0)] {
            let response = number(&json, &format!("/measurements/{index}/response_s/min"));
            let least = 4.0 * (100.0 + headers) * 8.0 / 10e6 + 0.02;
            assert!(response >= least - 1e-9, "{response} is below {least}");
            assert!(
                *world == "emulated" || response < least + 1e-6,
                "{response} is not {least}"
            );
        }
    }
}

#[test]
fn a_narrow_path_is_refused_for_ipv6() {
    let text = format!(
        "{} 1 from a to b rr 100*10 over tcp(family = ipv6) across n in simulated;",
        pair("mtu 1200")
    );
    let refused = Place::new().stackline(&["run", "-e", &text]);
    assert_eq!(refused.status.code(), Some(2), "{}", refused.err);
    let error = "IPv6 needs an MTU of 1280 bytes, but the path from a to b has 1200";
    assert!(refused.err.contains(error), "{}", refused.err);
}

#[test]
fn multipath_tcp_uses_both_ways() {
    if forbidden() {
        return;
    }
    if !std::fs::read_to_string("/proc/sys/net/mptcp/enabled").is_ok_and(|on| on.trim() == "1") {
        return skip("this kernel has no Multipath TCP");
    }
    let place = Place::new();
    let network = "network n { host a, b; switch r, s, t; link a - r 10 Mbit/s 5 ms; link r - t 1 Gbit/s 0 ms;
        link a - s 10 Mbit/s 5 ms; link s - t 1 Gbit/s 0 ms; link t - b 1 Gbit/s 0 ms; }";
    let bit_s = |stack: &str| {
        let text =
            format!("{network} 1 timelimit 2 from a to b bulk_put 64 KiB over {stack} across n;");
        let json = measured(&place, &text, "emulated", &[]);
        number(&json, "/throughput_bit_s/mean")
    };
    let (one, both) = (bit_s("tcp"), bit_s("mptcp"));
    assert!(one < 9.7e6, "{one} over one way of 10 Mbit/s");
    assert!(both > 1.5 * one, "{both} over both, {one} over one");
}

#[test]
fn both_keep_what_happens_in_the_network() {
    if forbidden() {
        return;
    }
    let lossy = pair("loss packets 3");
    let text = format!("{lossy} 1 from a to b bulk_put 1000*20 over udp across n;");
    let drops = |world: &str| {
        let place = Place::new();
        measured(&place, &text, world, &["--trace", "--capture", "x>b"]);
        let kept = place.kept().0;
        let events = ["b", "x"]
            .map(|host| events::lines(&kept.join("events").join(format!("{host}.parquet"))))
            .concat();
        let capture = std::fs::read(kept.join("captures/n.1.1.pcapng")).unwrap();
        assert!(
            String::from_utf8_lossy(&capture).contains("dropped: lost on the link"),
            "{world}"
        );
        let drops = events.iter().filter(|line| line.starts_with("NET_DROP"));
        // Place, way, segments, bytes, reason: not the instant, the flow, the number among other packets.
        drops
            .map(|line| {
                let fields: Vec<&str> = line.split("; ").collect();
                [&fields[..2], &fields[8..10], &fields[12..]]
                    .concat()
                    .join("; ")
            })
            .collect::<Vec<_>>()
    };
    let (emulated, simulated) = (drops("emulated"), drops("simulated"));
    assert_eq!(simulated.len(), 2, "{simulated:?}");
    assert_eq!(emulated, simulated);
}

#[test]
fn a_stack_of_one_host_has_none_to_speak_with() {
    if forbidden() {
        return;
    }
    let place = Place::new();
    let text = format!("{} 1 from a to b rr 100*10 over unix across n;", pair(""));
    let finished = place.stackline(&["run", "-e", &text, "--in", "emulated"]);
    assert_eq!(
        finished.status.code(),
        Some(2),
        "{}{}",
        finished.out,
        finished.err
    );
}

#[test]
fn a_killed_emulator_ends_the_run() {
    if forbidden() {
        return;
    }
    let place = Place::new();
    let text = format!(
        "{} 1 from a to b rr 100*100000 over udp across n in emulated;",
        pair("")
    );
    let run = place.running(&text);
    let emulator = place.emulator();
    run.agents(2);
    std::thread::sleep(std::time::Duration::from_millis(300));
    emulator.signal(Signal::SIGKILL);
    let output = run.finish();
    assert_eq!(
        output.status.code(),
        Some(1),
        "{}{}",
        output.out,
        output.err
    );
    assert!(
        output
            .err
            .contains("the emulator of network n exited in the middle of a run"),
        "{}",
        output.err
    );
}

#[test]
fn an_emulated_host_has_the_machines_clock() {
    let place = Place::new();
    let text = "network n { host a; host b { clock ahead 5 ms; } link a - b 1 Mbit/s 1 ms; } 1 from a to b rr 1*1 across n";
    let output = place.stackline(&["run", "-e", text, "--in", "emulated"]);
    assert_eq!(output.status.code(), Some(2), "{}", output.err);
    assert!(
        output
            .err
            .contains("host b of network n has a clock of its own"),
        "{}",
        output.err
    );
    output.hints("--in simulated");
    place
        .stackline(&["run", "-e", text, "--in", "simulated"])
        .succeeds();
    let declared = "network n { host a; host b { clock ahead 5 ms; } link a - b 1 Mbit/s 1 ms; }";
    place
        .stackline(&["net", "exec", "-e", declared, "a", "--", "true"])
        .fails(2, &["a clock of its own"]);
}

/// Before anything is made or kept, and by every command that reads the plan.
#[test]
fn what_a_world_cannot_obey_is_refused_first() {
    let network =
        "network n { host a, b; link a - b 1 Mbit/s 1 ms; }\n1 from a to b rr 1*1 across n;\n";
    let wrong = "network n { host a; host b { clock fast 9 ppm; } link a - b 1 Mbit/s 1 ms; }\n1 from a to b rr 1*1 across n;\n";
    for (world, network, row, message) in [
        (
            "simulated",
            network,
            "1 from a to b rr 1*1 on cpu 0 across n",
            "a simulated host has no cores",
        ),
        (
            "simulated",
            network,
            "1 priority background across n: from a to b rr 1*1 | from a to b rr 1*1",
            "simulated programs have no priorities",
        ),
        (
            "simulated",
            network,
            "1 from a to a rr 1*1 across n",
            "the host a would send to itself",
        ),
        (
            "simulated",
            network,
            "1 from b rr 1*1",
            "the host b would send to itself",
        ),
        (
            "simulated",
            network,
            "1 from a to b bulk_get 1*1 < virtual memory across n",
            "are not simulated",
        ),
        (
            "emulated",
            network,
            "1 from a to a rr 1*1 across n",
            "the host a would send to itself",
        ),
        (
            "emulated",
            network,
            "1 from a to b rr 1*1 over unix across n",
            "the stack `unix` works only within one host",
        ),
        (
            "emulated",
            wrong,
            "",
            "host b of network n has a clock of its own",
        ),
    ] {
        let text = format!("{network}{row}");
        for command in ["check", "plan", "run"] {
            let place = Place::new();
            let finished = place.stackline(&[command, "-e", &text, "--in", world]);
            finished.mistakes(&[message]).hints("");
            let line = text.trim_end().lines().count();
            assert!(
                finished.err.contains(&format!("expression:{line}:")),
                "{}",
                finished.err
            );
            assert!(!place.path("runs").exists(), "{command} {row}");
        }
    }
}

#[test]
fn a_network_that_loses_all_is_no_firewall() {
    if forbidden() {
        return;
    }
    let place = Place::new();
    let text = format!(
        "{} 1 from a to b rr 100*10 over udp across n;",
        pair("loss 100%")
    );
    let finished = place.stackline(&["run", "-e", &text, "--in", "emulated"]);
    assert!(
        finished
            .err
            .contains("hint: the network loses every packet"),
        "{}",
        finished.err
    );
    assert!(!finished.err.contains("firewall"), "{}", finished.err);
}

#[test]
fn what_only_the_kernel_has_is_sent_to_the_emulated_world() {
    let place = Place::new();
    let text = format!(
        "{} 1 from a to b rr 32*10 over tcp(congestion = vegas) across n;",
        pair("")
    );
    let refused = place.stackline(&["check", "-e", &text]);
    refused
        .mistakes(&["`vegas` is not a value"])
        .hints("cubic, reno, bbr; the emulated world supports it: `in emulated`");
    place
        .stackline(&["check", "--in", "emulated", "-e", &text])
        .succeeds();
    let typed = text.replace("vegas", "cubci");
    place
        .stackline(&["check", "-e", &typed])
        .mistakes(&["`cubci`"])
        .hints("did you mean `cubic`?");
}
