//! `net show`: networks as text, data and picture.

use crate::support::Place;

const TEXT: &str = "
network near { host a, b; link a - b 1 Gbit/s 50 us; }
network wan { host khons, udjat; switch edge; link khons - edge 100 Mbit/s 1 ms; link edge - udjat 10 Mbit/s 6 ms; }
";

#[test]
fn one_of_several_networks() {
    let place = Place::new();
    let all = place.stackline(&["net", "show", "-e", TEXT]);
    for words in [
        "network near: 2 hosts, 1 link\n",
        "network wan: 2 hosts, 1 switch, 2 links\n",
        "10.71.0.2",
        "6.00 ms",
    ] {
        assert!(
            all.succeeds().out.contains(words),
            "no `{words}` in {}",
            all.out
        );
    }
    assert_eq!(all.err, "", "that nothing is measured is no mistake here");
    let one = place.stackline(&["net", "show", "--network", "wan", "-e", TEXT]);
    assert!(
        one.succeeds().out.starts_with("network wan") && !one.out.contains("near"),
        "{}",
        one.out
    );
    place
        .stackline(&["net", "show", "--network", "van", "-e", TEXT])
        .fails(2, &["named van"])
        .hints("near, wan");
    place
        .stackline(&["net", "show", "-e", "1 rr 32*10"])
        .fails(2, &["does not declare a network"])
        .hints("network wan");
    place
        .stackline(&[
            "net",
            "show",
            "-e",
            "network x { host a; link a - c 1 Mbit/s 1 ms; }",
        ])
        .mistakes(&["no host or switch"]);
}

#[test]
fn as_data() {
    let json = Place::new()
        .stackline(&["net", "show", "--json", "--network", "wan", "-e", TEXT])
        .json();
    let wan = &json["networks"][0];
    assert_eq!(wan["addresses"]["udjat"], "10.71.0.2");
    assert_eq!(wan["network"]["links"].as_array().unwrap().len(), 2);
    assert_eq!(wan["paths"].as_array().unwrap().len(), 2);
    let path = &wan["paths"][0];
    assert_eq!(
        path["ports"],
        serde_json::json!(["khons>edge", "edge>udjat"])
    );
    assert_eq!(
        (&path["rate_bit_s"], &path["bandwidth_delay_bytes"]),
        (&10e6.into(), &17_500.0.into())
    );
    assert_eq!(
        (&wan["paths"][1]["from"], &wan["paths"][1]["to"]),
        (&"udjat".into(), &"khons".into())
    );
}

#[test]
fn a_picture_is_of_one_network() {
    let place = Place::new();
    let draw = |more: &[&str]| {
        place.stackline(&[&["net", "show", "--svg", "a.svg", "-e", TEXT], more].concat())
    };
    draw(&[])
        .fails(2, &["2 networks"])
        .hints("--network: near, wan");
    assert!(!place.path("a.svg").exists());
    draw(&["--network", "wan"]).succeeds();
    let svg = std::fs::read_to_string(place.path("a.svg")).unwrap();
    assert!(
        svg.starts_with("<svg ") && svg.contains(">khons<") && svg.contains("10.0 Mbit/s"),
        "{svg}"
    );
    let output = place.stackline(&[
        "net",
        "show",
        "--svg",
        "no/a.svg",
        "--network",
        "wan",
        "-e",
        TEXT,
    ]);
    output.fails(3, &["cannot write no/a.svg"]);
}

#[test]
fn a_network_whose_figures_vary_is_shown_and_measured_with_each_value() {
    const VARIED: &str = "network n { host a, b; link a - b 10 Mbit/s 1 ms queue <Q>; }
        1 from a to b bulk_put 1 KiB*100 across n; Q = 2 KiB, 16 KiB";
    let place = Place::new();
    let rows = place.run(VARIED);
    assert!(
        ["across n; Q = 2 KiB", "across n; Q = 16 KiB"]
            .iter()
            .all(|row| rows.succeeds().out.contains(row))
    );
    let one = place.stackline(&["net", "show", "--network", "n(Q = 2 KiB)", "-e", VARIED]);
    assert!(
        one.succeeds().out.contains("2 KiB") && !one.out.contains("16 KiB"),
        "{}",
        one.out
    );
    let exec = place.stackline(&["net", "exec", "-e", VARIED, "a", "--", "true"]);
    exec.fails(2, &["2 networks have a host named a"])
        .hints("--network 'n(Q = 2 KiB)'");
    place.stackline(&["predict", "-e", VARIED]).succeeds();
}

#[test]
fn what_changes_in_time_is_shown() {
    let text =
        "network n { host a, b; link a - b schedule(0 s 10 Mbit/s, 5 s 1 Mbit/s) schedule(0 s 1 ms, 2 s 3 ms) every 4 s
        loss schedule(0 s 0%, 3 s 2%); }";
    let shown = Place::new().stackline(&["net", "show", "-e", text]);
    for line in [
        "a - b rate: 10.0 Mbit/s from 0 s on, 1.00 Mbit/s from 5.00 s on",
        "a - b delay: 1.00 ms from 0 s on, 3.00 ms from 2.00 s on, repeating every 4.00 s",
        "a - b loss: none from 0 s on, 2 % from 3.00 s on",
        "~2.00 ms",
    ] {
        assert!(
            shown.succeeds().out.contains(line),
            "no `{line}` in {}",
            shown.out
        );
    }
}

#[test]
fn the_longest_outage_of_a_trace_is_shown() {
    let place = Place::new();
    place.write("up", "100\n150\n2150\n2200\n4200\n");
    let shown = place.stackline(&[
        "net",
        "show",
        "-e",
        "network n { host a, b; link a - b trace \"up\" 1 ms; }",
    ]);
    let line = "a - b rate: up repeats every 4.20 s; its longest pause is 2.00 s, starting at";
    assert!(shown.succeeds().out.contains(line), "{}", shown.out);
}

#[test]
fn a_network_that_no_measurement_crosses_is_a_warning_whose_hint_works() {
    let place = Place::new();
    let said = |text: &str| {
        place
            .stackline(&["check", "-e", &format!("{TEXT} {text};")])
            .succeeds()
            .err
            .clone()
    };
    let both = said("1 rr 32*10");
    assert!(
        both.contains("no measurement crosses the networks near, wan")
            && both.contains("across near"),
        "{both}"
    );
    let one = said("1 from khons to udjat rr 32*10 across wan");
    assert!(
        one.contains("crosses the network `near`")
            && one.contains("1 from a to b rr 32*1000 across near;"),
        "{one}"
    );
    assert_eq!(
        said("1 from khons to udjat rr 32*10 across wan; 1 from a to b rr 32*1000 across near"),
        ""
    );
    // What no text crosses may be shown, and programs may run on it.
    assert_eq!(
        place
            .stackline(&["net", "show", "-e", &format!("{TEXT} 1 rr 32*10")])
            .succeeds()
            .err,
        ""
    );
    // The only network there is needs no name where the world has to have one.
    let only = "network n { host a, b; link a - b 1 Gbit/s 50 us; } 1 rr 32*10";
    assert_eq!(
        place
            .stackline(&["check", "-e", only, "--in", "simulated"])
            .succeeds()
            .err,
        ""
    );
}

#[test]
fn marks_for_a_stack_that_takes_none_are_a_warning() {
    let place = Place::new();
    let said = |queue: &str, more: &[&str]| {
        let text = format!(
            "network n {{ host a, b; switch s {{ queue 64 KiB {queue}; }} link a - s 100 Mbit/s 1 ms; link s - b 10 Mbit/s 1 ms; }}
            2 from a to b bulk_put 16 KiB*4 over smoltcp, tcp, quic across n in simulated;"
        );
        place
            .stackline(&[&["check", "-e", &text], more].concat())
            .succeeds()
            .err
            .clone()
    };
    let said_of_all = said("codel ecn", &[]);
    assert_eq!(
        said_of_all
            .matches("does not support ECN in the simulated world")
            .count(),
        1,
        "{said_of_all}"
    );
    assert!(said_of_all.contains("`smoltcp`"), "{said_of_all}");
    for way in ["`over tcp`", "`over http2`", "`over quic`"] {
        assert!(said_of_all.contains(way), "{said_of_all}");
    }
    // All ways of the hint.
    assert_eq!(said("codel ecn", &["--over", "quic"]), "");
    assert_eq!(said("codel ecn", &["--over", "tcp"]), "");
    assert_eq!(
        said("codel ecn", &["--in", "emulated", "--over", "tcp"]),
        ""
    );
    assert_eq!(said("codel", &[]), "");
}

/// Two hundred hosts in three lines run in virtual time; a host of the loop is named by its index everywhere.
#[test]
fn a_loop_of_hosts() {
    let text =
        "network big { switch s; for i in 1..200 { host w[i]; link w[i] - s 1 Gbit/s 10 us; } }
        2 from w[3] to w[200] rr 32*10 across big;";
    let place = Place::new();
    let measured = place.measure(text);
    assert_eq!(measured.len(), 1);
    let shown = place.stackline(&["net", "show", "-e", text]);
    let first = "network big: 200 hosts, 1 switch, 200 links\n";
    assert!(shown.succeeds().out.starts_with(first), "{}", shown.out);
}

/// All hosts send to one at the same time: one row for the set, one for each pair where that is asked for.
#[test]
fn a_set_of_hosts() {
    let network = "network big { switch s; host sink; link s - sink 10 Mbit/s 1 ms;
        for i in 1..8 { host w[i]; link w[i] - s 1 Gbit/s 10 us; } }";
    let place = Place::new();
    let one = place.measure(&format!(
        "{network} 1 from w[*] to sink bulk_put 1000*100 across big;"
    ));
    assert_eq!(one.len(), 1);
    assert_eq!(
        (&one[0]["part"], &one[0]["replicas"]),
        (&"all".into(), &8.into())
    );
    let each = place.run(&format!(
        "{network} 1 parallel: from w[1..4] to sink bulk_put 1000*100 across big;"
    ));
    for host in 1..=4 {
        let row = format!("from w[{host}] to sink bulk_put");
        assert!(each.succeeds().out.contains(&row), "{}", each.out);
    }
}

/// What other tools write becomes a text that `check` accepts.
#[test]
fn from_other_tools() {
    let place = Place::new();
    for (words, printed) in [
        (
            "tc qdisc add dev eth0 root netem delay 50ms 10ms",
            "link a -> b unlimited 40 ms jitter uniform(0, 20 ms) reordering;",
        ),
        (
            "mn --topo tree,depth=2,fanout=3 --link tc,bw=10,delay=5ms",
            "link s1 - s2 10 Mbit/s 5 ms;",
        ),
    ] {
        let from = place.stackline(&["net", "from", words]);
        assert!(from.succeeds().out.contains(printed), "{}", from.out);
        place.stackline(&["check", "-e", &from.out]).succeeds();
    }
    place
        .stackline(&[
            "net",
            "from",
            "tc qdisc add dev eth0 root cake bandwidth 20mbit",
        ])
        .fails(2, &["cake"])
        .hints("fq_codel");
    place
        .stackline(&["net", "from", "nothing.py"])
        .fails(2, &["nothing.py"])
        .hints("quotation marks");
}
