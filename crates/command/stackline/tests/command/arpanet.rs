//! Specifications over `ncp` across IMPs: files over the map of 1973, where their time went, what IMPs reported, what is refused.

use crate::support::Place;
use serde_json::Value;

/// Two hosts, two IMPs, a line between them.
const PAIR: &str = "network pair { imp A, B 516; host x, y; link x - A 100 kbit/s 0 us; link y - B 100 kbit/s 0 us; \
                    link A - B 50 kbit/s 5 ms; }\n";

fn example() -> String {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../examples/arpanet.stackline"
    );
    std::fs::read_to_string(path).unwrap()
}

fn mean(measurement: &Value, metric: &str) -> f64 {
    measurement[metric]["mean"]
        .as_f64()
        .unwrap_or_else(|| panic!("{measurement}"))
}

#[test]
fn files_cross_the_map_of_1973_and_their_path_is_reported() {
    let place = Place::new();
    place.write("arpanet.stackline", example());
    let run = place
        .stackline(&["run", "--trace", "--json", "arpanet.stackline"])
        .succeeds()
        .json();
    let measurements = run["measurements"].as_array().unwrap();
    // A message of 1003 B in each round trip, and four of them; a way of 50 kbit/s carries 40 of data.
    let (one, four) = (
        mean(&measurements[0], "throughput_bit_s"),
        mean(&measurements[1], "throughput_bit_s"),
    );
    assert!(
        (11e3..14e3).contains(&one) && (2.5 * one..40e3).contains(&four),
        "{one} {four}"
    );
    let (ftp, echo) = (
        mean(&measurements[2], "throughput_bit_s"),
        mean(&measurements[4], "response_s"),
    );
    assert!(
        (0.95 * one..one).contains(&ftp) && (0.09..0.14).contains(&echo),
        "{ftp} {echo}"
    );
    let lines = place
        .stackline(&["lifelines", "last"])
        .succeeds()
        .out
        .clone();
    for segment in [
        "queue harvard-host>Harvard",
        "link Harvard>BBN",
        "queue Case>GWC",
        "link NOAA>USC",
        "queue USC>usc-host",
    ] {
        assert!(lines.contains(segment), "no {segment}: {lines}");
    }
    let found = place
        .stackline(&["diagnose", "last"])
        .succeeds()
        .out
        .clone();
    assert!(
        found.contains("a link") && found.contains("until its RFNM"),
        "{found}"
    );
    let reports = place
        .stackline(&["ncc", "last", "--json", "--svg", "map.svg"])
        .succeeds()
        .json();
    let line = |port: &str| {
        reports["lines"]
            .as_array()
            .unwrap()
            .iter()
            .find(|line| line["port"] == port)
            .unwrap()
            .clone()
    };
    // What went to USC went over its line; nothing but routing, 3.6 % of it, went to Hawaii.
    assert!(
        line("NOAA>USC")["busy"].as_f64().unwrap() > 0.3,
        "{reports}"
    );
    let idle = line("Ames-TIP>Hawaii")["busy"].as_f64().unwrap();
    assert!((0.03..0.045).contains(&idle), "{idle}");
    assert_eq!(reports["imps"].as_array().unwrap().len(), 34);
    assert!(
        std::fs::read_to_string(place.path("map.svg"))
            .unwrap()
            .contains("NOAA&gt;USC")
    );
}

#[test]
fn every_application_type_runs_over_ncp() {
    let place = Place::new();
    let types = [
        "connect_disconnect 0*3",
        "bulk_get 900*30",
        "bulk_put 900*30",
        "rr 64, 3000*5",
        "stream 160*20 constant(50 ms)",
    ];
    let lines = types.map(|one| {
        format!("2 from x to y {one} over ncp, ncp(links = 3, allocate = 2000) across pair;")
    });
    place.write("pair.stackline", format!("{PAIR}{}", lines.join("\n")));
    let run = place
        .stackline(&["run", "--trace", "--json", "pair.stackline"])
        .succeeds()
        .json();
    let measurements = run["measurements"].as_array().unwrap();
    assert_eq!(measurements.len(), 2 * types.len());
    assert!(measurements.iter().all(|one| one["runs"] == 2), "{run}");
    // Runs of one seed are the same to the last event.
    place
        .stackline(&["run", "--check-determinism", "pair.stackline"])
        .succeeds();
}

#[test]
fn it_is_predicted_what_runs() {
    let place = Place::new();
    let text = format!(
        "{PAIR}1 from x to y bulk_put 2 kB 60 kB over ncp across pair;\n1 from x to y rr 100*20 over ncp across pair;"
    );
    place.write("pair.stackline", text);
    let run = place
        .stackline(&["run", "--json", "pair.stackline"])
        .succeeds()
        .json();
    let predicted = place
        .stackline(&["predict", "--json", "pair.stackline"])
        .succeeds()
        .json();
    for (at, metric) in [(0, "throughput_bit_s"), (1, "response_s")] {
        let measured = mean(&run["measurements"][at], metric);
        let interval = &predicted["predictions"][at]["interval"];
        let (least, most) = (interval[0].as_f64().unwrap(), interval[1].as_f64().unwrap());
        assert!(
            (least..=most).contains(&measured),
            "{measured} of {predicted}"
        );
    }
    assert_eq!(predicted["predictions"][0]["limit"], "messages in flight");
}

#[test]
fn other_stacks_and_other_networks_are_refused() {
    let place = Place::new();
    let refused = |text: &str, words: &str| {
        place.write("wrong.stackline", text);
        place
            .stackline(&["run", "wrong.stackline"])
            .mistakes(&[words])
            .hints("");
    };
    refused(
        &format!("{PAIR}1 from x to y rr 1*1 over tcp across pair;"),
        "tcp cannot cross the IMPs",
    );
    refused(
        &format!("{PAIR}1 from x to y rr 1*1 over ncp across pair in emulated;"),
        "the simulated world supports it",
    );
    let held = PAIR.replace("link x - A 100 kbit/s 0 us", "link x - A 100 kbit/s 5 ms");
    refused(
        &format!("{held}1 from x to y rr 1*1 over ncp across pair;"),
        "the interface x - A has a delay",
    );
    for (names, twice) in [
        ("host x, y;", "host x, y, y;"),
        ("imp A, B 516;", "imp A, A, B 516;"),
    ] {
        refused(
            &format!(
                "{}1 from x to y rr 1*1 over ncp across pair;",
                PAIR.replace(names, twice)
            ),
            "declared twice",
        );
    }
    let slow = PAIR.replace("host x, y;", "host x, y { copy 1 ms per packet; }");
    refused(
        &format!("{slow}1 from x to y rr 1*1 over ncp across pair;"),
        "its interface can only have a rate",
    );
    let plain = "network n { host x, y; link x - y 1 Mbit/s 1 ms; }\n1 from x to y rr 1*1 over ncp across n in simulated;";
    refused(plain, "ncp can be used only across IMPs");
    place.write(
        "plain.stackline",
        "network n { host x, y; link x - y 1 Mbit/s 1 ms; }\n1 from x to y rr 1*1 across n in simulated;",
    );
    place
        .stackline(&["run", "--trace", "plain.stackline"])
        .succeeds();
    place
        .stackline(&["ncc", "last"])
        .fails(2, &["no IMP reported"])
        .hints("examples/arpanet");
}

#[test]
fn a_host_that_is_down_is_waited_for_or_given_up_and_why_is_said() {
    let place = Place::new();
    let with = |down: &str| {
        let text = PAIR.replace(
            "host x, y;",
            &format!("host x; host y {{ down from 2 s{down}; }}"),
        );
        format!("{text}1 from x to y bulk_put 1003 20 kB over ncp across pair;")
    };
    let seconds = |text: &str| {
        let run = place
            .stackline(&["run", "--json", "-e", text])
            .succeeds()
            .json();
        run["measurements"][0]["elapsed_s"]["mean"]
            .as_f64()
            .unwrap()
    };
    let (up, down) = (seconds(&with(" to 2.001 s")), seconds(&with(" to 30 s")));
    // Nothing comes between 2 and 30 s; a message goes again every half second.
    assert!((27.0..29.5).contains(&(down - up)), "{up} {down}");
    let failed = place.stackline(&["run", "-e", &with("")]);
    failed
        .fails(1, &["the other side's host was dead"])
        .hints("a long outage");
    let never_up = with("").replace("from 2 s", "from 0 s");
    place
        .stackline(&["run", "-e", &never_up])
        .fails(
            1,
            &["a connection request was not answered: the IMPs report that the other side's host is dead"],
        )
        .hints("`down`");
    let elsewhere = "network n { host a; host b { down from 1 s; } link a - b 1 Mbit/s 1 ms; } 1 from a to b rr 1*1 across n;";
    place
        .stackline(&["check", "-e", elsewhere])
        .mistakes(&["hosts can go down only in networks of IMPs"]);
}

#[test]
fn the_control_center_shows_what_was_reported_over_time() {
    let place = Place::new();
    place.write(
        "two.stackline",
        format!("{PAIR}1 from x to y bulk_put 1003 40 kB over ncp across pair;"),
    );
    place
        .stackline(&["run", "--trace", "two.stackline"])
        .succeeds();
    let whole = place
        .stackline(&["ncc", "--json", "last"])
        .succeeds()
        .json();
    let each = place
        .stackline(&["ncc", "--each", "2s", "--json", "last"])
        .succeeds()
        .json();
    let spans = each["spans"].as_array().unwrap();
    assert!(spans.len() > 2, "{each}");
    let received = |reports: &Value| {
        reports["imps"]
            .as_array()
            .unwrap()
            .iter()
            .map(|imp| imp["messages_received"].as_u64().unwrap())
            .sum::<u64>()
    };
    assert_eq!(
        spans
            .iter()
            .map(|span| received(&span["reports"]))
            .sum::<u64>(),
        received(&whole)
    );
    let shown = place
        .stackline(&["ncc", "--each", "2s", "last"])
        .succeeds()
        .out
        .clone();
    assert!(
        shown.contains("busiest processor") && shown.contains("A>B"),
        "{shown}"
    );
}

#[test]
fn a_fake_host_costs_its_imp_a_word_or_a_packet_at_a_time() {
    let place = Place::new();
    // At 230.4 kbit/s a 316 that handles each word is what limits (2.2.1.6).
    let network = |fake: &str| {
        format!(
            "network pair {{ imp A, B 316 {{ reassembly 10; }} host x, y {{ fake {fake}; }} link x - A unlimited 0 us; \
             link y - B unlimited 0 us; link A - B 230.4 kbit/s 0 us; }}\n"
        )
    };
    let rate = |fake: &str| {
        let text = format!(
            "{}1 from x to y bulk_put 1003 100 kB over ncp(links = 4) across pair;",
            network(fake)
        );
        let run = place
            .stackline(&["run", "--json", "-e", &text])
            .succeeds()
            .json();
        8.0 * 100e3
            / run["measurements"][0]["elapsed_s"]["mean"]
                .as_f64()
                .unwrap()
    };
    let (word, packet) = (rate("word"), rate("packet"));
    // 63 words of 1.6 us times 25, and 4.6 of the interface: 3.0 ms a packet and 1.1 for the line; a packet at a time, the line.
    assert!(packet > 1.05 * word, "{word} {packet}");
    assert!((120e3..192e3).contains(&packet), "{packet}");
    let refused = |text: &str, says: &str| {
        let text = format!("{text}1 from x to y rr 1*1 over ncp across pair;");
        place.stackline(&["check", "-e", &text]).mistakes(&[says]);
    };
    refused(
        &network("word").replace("x - A unlimited", "x - A 100 kbit/s"),
        "a fake host has no interface",
    );
    refused(
        &PAIR.replace("x - A 100 kbit/s", "x - A unlimited"),
        "cannot have a rate that changes or is unlimited",
    );
    refused(
        &PAIR.replace("host x, y;", "host x, y { fake slow; }"),
        "expected `word` or `packet`",
    );
    let plain = "network pair { host x { fake word; } host y; link x - y 1 Mbit/s 1 ms; } 1 from x to y rr 1*1 across pair;";
    place
        .stackline(&["check", "-e", plain])
        .mistakes(&["fake hosts are programs that run on IMPs"]);
}

/// The rule of September 1973 answers a message once its host has the first packet: the others are delivered all the same.
#[test]
fn messages_of_several_packets_arrive_under_the_rule_of_september() {
    let place = Place::new();
    let rate = |rule: &str| {
        let network = PAIR.replace(
            "imp A, B 516;",
            &format!("imp A, B 516 {{ reassembly 10; routing {rule}; }}"),
        );
        let text =
            format!("{network}1 from x to y bulk_put 1003*100 over ncp(links = 4) across pair;");
        let run = place
            .stackline(&["run", "--json", "-e", &text])
            .succeeds()
            .json();
        mean(&run["measurements"][0], "throughput_bit_s")
    };
    let (january, september) = (rate("january"), rate("september"));
    // 168 bits beside the data of each packet instead of 152; answers leave before there is room, which is asked for then.
    assert!(
        (0.93..0.99).contains(&(september / january)),
        "{january} {september}"
    );
}

/// What IMPs report names what holds messages up: each limit is the one that is planted, and what would lift it does.
#[test]
fn diagnose_names_what_holds_messages_up_among_imps() {
    let place = Place::new();
    let network = |imps: &str, line: &str| {
        format!(
            "network n {{ imp A, B {imps} host x, y; link x - A 1 Mbit/s 0 us; link y - B 1 Mbit/s 0 us; link A - B {line}; }}\n\
             1 from x to y bulk_put 1003*200 over ncp(links = 4) across n;"
        )
    };
    let cases = [
        (
            network("516 { window 1; }", "50 kbit/s 1 ms"),
            "(its `window`)",
            "window 2",
        ),
        (
            network("516 { reassembly 10; channels 2; }", "50 kbit/s 50 ms"),
            "has 2 channels",
            "channels 8",
        ),
        (
            network("tip { reassembly 10; }", "500 kbit/s 1 ms")
                .replace("1 Mbit/s", "unlimited")
                .replace("host x, y;", "host x, y { fake word; }"),
            "the processor of IMP B (tip) is at its limit",
            "imp B 516",
        ),
    ];
    for (text, says, try_this) in cases {
        place.write("limited.stackline", &text);
        place
            .stackline(&["run", "--trace", "limited.stackline"])
            .succeeds();
        let found = place
            .stackline(&["diagnose", "--json", "last"])
            .succeeds()
            .json();
        let first = &found["findings"][0];
        assert!(
            first["sentence"].as_str().unwrap().contains(says),
            "{text}: {found}"
        );
        assert!(first["tries"][0].to_string().contains(try_this), "{first}");
    }
}
