//! `stackline display factors`: what a display's rates depend on, what to change first, what cannot be varied.

use crate::support::{Finished, Place};

/// Factors of a display whose host is the busier one where items come one by one, and whose client's host is where they come in batches.
fn factors(place: &Place, words: &[&str]) -> Finished {
    place.write(
        "lan.stackline",
        "network lan { host sun, vax { work 1 ms per message, 4 ms per operation; } link sun - vax 10 Mbit/s 0; }\n\
         network lossy { host sun; host vax { work 4 ms per operation; } link sun - vax 10 Mbit/s 1 ms loss 2%; }\n",
    );
    let own = [
        "display",
        "factors",
        "--across",
        "lan.stackline",
        "--draw",
        "request = 0.5 ms, pixel = 2 us, added = 8 ms",
    ];
    place.stackline(&[&own[..], words].concat())
}

#[test]
fn the_busier_host_matters_and_which_that_is_depends_on_the_level() {
    let place = Place::new();
    let varied = [
        "-f",
        "cpu of sun x 2",
        "-f",
        "cpu of vax x 2",
        "-f",
        "bandwidth x 4",
    ];
    let ranked = |level: &str, first: &str| {
        let words = [
            &["--network", "lan", "--level", level, "--json"],
            &varied[..],
        ]
        .concat();
        let json = factors(&place, &words).succeeds().json();
        let response = &json["responses"][0];
        assert_eq!(
            (response["name"].as_str(), response["unit"].as_str()),
            (Some("rate"), Some("vectors/s")),
            "{json}"
        );
        let effects = response["answer"]["effects"].as_array().unwrap();
        assert_eq!(
            (effects[0]["factor"].as_str(), effects[0]["rank"].as_u64()),
            (Some(first), Some(1)),
            "{json}"
        );
        assert!(effects[0]["share"].as_f64().unwrap() > 0.8, "{json}");
        assert_eq!(effects[2]["factor"], "bandwidth", "{json}");
        // Two runs of each combination, with other seeds, are equal.
        assert_eq!(
            (
                json["runs"].as_u64(),
                response["answer"]["intervals"].as_str()
            ),
            (Some(16), Some("none")),
            "{json}"
        );
    };
    ranked("pipelined", "cpu of sun");
    let text = factors(&place, &[&["--network", "lan"], &varied[..]].concat())
        .succeeds()
        .out
        .clone();
    assert!(
        text.contains("if a factor were ideal") && text.contains("  bandwidth: x 1.00"),
        "{text}"
    );
    ranked("batched", "cpu of vax");
    // A processor that only draws, of which nothing is written.
    let drawing = factors(
        &place,
        &["--network", "lossy", "-f", "cpu of sun x 2", "--json"],
    )
    .succeeds()
    .json();
    let effect = &drawing["responses"][0]["answer"]["effects"][0];
    assert!(
        effect["factor"] == "cpu of sun" && effect["rank"] == 1,
        "{drawing}"
    );
    let levels = [
        "--network",
        "lan",
        "-f",
        "level = pipelined, batched",
        "-f",
        "over = tcp(mss = 212), pup",
        "--class",
        "terminal",
    ];
    let report = factors(&place, &levels).succeeds().out.clone();
    for words in [
        "level = batched",
        "over = pup",
        "vectors/s with every factor at its first level",
        "of variation",
        "repeated runs are identical: deterministic",
    ] {
        assert!(report.contains(words), "{words}: {report}");
    }
    assert!(!report.contains("kept in"), "{report}");
    let lossy = factors(
        &place,
        &["--network", "lossy", "-f", "bandwidth x 4", "--json"],
    )
    .succeeds()
    .json();
    assert_eq!(
        (lossy["runs"].as_u64(), lossy["replicates"].as_u64()),
        (Some(10), Some(5)),
        "{lossy}"
    );
}

#[test]
fn what_to_change_first_is_reported_and_what_limits_then() {
    let place = Place::new();
    let varied = [
        "--network",
        "lan",
        "-f",
        "cpu of sun x 4",
        "-f",
        "cpu of vax x 4",
        "-f",
        "bandwidth x 4",
    ];
    let with = |words: &[&str]| factors(&place, &[&varied[..], words].concat());
    let json = with(&[
        "--cost",
        "cpu of sun x 4 = 100, cpu of vax x 4 = 80",
        "--spend",
        "120",
        "--json",
    ]);
    let json = json.succeeds().json();
    let steps: Vec<&str> = json["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| step["factor"].as_str().unwrap())
        .collect();
    // Each host waits for the other: the second one helps once the first is faster, the network never.
    assert_eq!(steps, ["cpu of sun", "cpu of vax"], "{json}");
    let limits = json["limits"].as_array().unwrap();
    let then = |name: &str| {
        limits.iter().find(|limit| limit["factor"] == name).unwrap()["then"]
            .as_str()
            .unwrap()
    };
    assert!(
        then("cpu of sun").starts_with("cpu of vax x 4 gains most"),
        "{json}"
    );
    assert!(
        then("bandwidth").starts_with("cpu of sun x 4 gains most"),
        "{json}"
    );
    let offers = json["offers"].as_array().unwrap();
    let best = offers.iter().find(|offer| offer["best"] == true).unwrap();
    assert_eq!(
        best["bought"],
        serde_json::json!(["cpu of sun x 4"]),
        "{json}"
    );
    let text = with(&["--budget", "1min"]).succeeds().out.clone();
    assert!(
        text.contains("what to change first") && text.contains("  1. cpu of sun x 4: x "),
        "{text}"
    );
    assert!(
        text.contains("within 60.0 s, with runs of") && text.contains("nothing is given up"),
        "{text}"
    );
    let text = with(&["--no-limits"]).succeeds().out.clone();
    assert!(
        !text.contains("what to change first") && !text.contains("if a factor were ideal"),
        "{text}"
    );
    with(&["--cost", "cpu of sun x 8 = 100"])
        .fails(2, &["no factor has the level"])
        .hints("cpu of sun x 4");
    with(&["--cost", "cpu of sun x 4 = 1, cpu of sun x 4 = 2"])
        .fails(2, &["two prices"])
        .hints("omit one");
    with(&["--cost", ""])
        .fails(2, &["no level has a price"])
        .hints("as in");
    with(&["--cost", "cpu of sun x 4 = 1", "--spend", "-3"])
        .fails(2, &["not a valid amount to spend"])
        .hints("--spend");
    let both = with(&["--budget", "1s", "--replicates", "3"]);
    assert!(
        both.status.code() == Some(2) && both.err.contains("cannot be used"),
        "{}",
        both.err
    );
}

#[test]
fn what_cannot_be_varied_of_a_display_is_refused_with_what_can() {
    let place = Place::new();
    let refused = |words: &[&str]| factors(&place, &[&["--network", "lan"], words].concat());
    refused(&[])
        .fails(2, &["no factor"])
        .hints("level = pipelined, batched");
    refused(&["-f", "stack = tcp, quic"])
        .fails(2, &["belongs to a measurement"])
        .hints("level, class, over");
    refused(&["-f", "level = pipelined, slow"])
        .fails(2, &["unknown level `slow`"])
        .hints("stop-and-wait");
    refused(&["-f", "gathers = 0, 1"])
        .fails(2, &["`gathers`: it must be at least 1B"])
        .hints("200 B");
    refused(&["-f", "gathers x 2"])
        .fails(2, &["cannot be multiplied"])
        .hints("write levels");
    refused(&["-f", "cpu of pdp x 2"])
        .fails(2, &["no network has a host `pdp`"])
        .hints("`vax`");
    refused(&["-f", "foo x 2"])
        .fails(2, &["unknown factor `foo`"])
        .hints("level, class, over");
    refused(&["-f", "class = agent, agent"])
        .fails(2, &["changes nothing"])
        .hints("not already in use");
    refused(&["-f", "over = tcp, udp"])
        .fails(2, &["with `over` at udp"])
        .hints("--over pup");
    refused(&["-f", "bandwidth x 2", "-f", "bandwidth of sun - vax x 2"])
        .fails(2, &["the same thing"])
        .hints("omit one");
    refused(&["-f", "bandwidth x 2", "--level", "structured"])
        .fails(2, &["no symbols"])
        .hints("rectangles");
    refused(&["-f", "pixel x 0.5"])
        .fails(2, &["changes nothing"])
        .hints("cpu of HOST x 2");
    refused(&["-f", "trials = 3, 4"])
        .fails(2, &["changes nothing"])
        .hints("the same for all combinations");
    // Losses that are not there cannot be taken away, and matter all the same.
    place.write(
        "free.stackline",
        "network free { host sun; host vax; link sun - vax 10 Mbit/s 1 ms; }\n",
    );
    let free = [
        "display",
        "factors",
        "--across",
        "free.stackline",
        "-f",
        "loss = 2%",
        "--trials",
        "3",
    ];
    let lossy = place.stackline(&free).succeeds().out.clone();
    assert!(
        lossy.contains("no limit for `loss`: ") && lossy.contains("loss to multiply"),
        "{lossy}"
    );
    refused(&["-f", "level = batched, structured"])
        .fails(2, &["with `level` at structured"])
        .hints("rectangles");
}
