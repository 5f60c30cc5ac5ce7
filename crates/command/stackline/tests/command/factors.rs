//! `stackline factors`: which factor matters, by how much, what limits then; what is refused; experiments that go on.

use crate::support::{Place, skip};
use serde_json::Value;

/// A window of 64 KiB over 10 ms each way: some 30 Mbit/s of the link's 200.
const WINDOW: &str = "network n { host a, b; switch s; link a - s 1 Gbit/s 0 us; link s - b 200 Mbit/s 10 ms; \
                      host c; link c - s 1 Gbit/s 0 us; }\n\
                      2 from a to b bulk_put 16 KiB 3 MB over tcp(receive_buffer = 64 KiB) across n;\n";

const LEVELS: [&str; 8] = [
    "-f",
    "bandwidth of s - b x 4",
    "-f",
    "delay of s - b x 0.25",
    "-f",
    "receive_buffer x 4",
    "-f",
    "bandwidth of c - s x 10",
];

fn effect<'v>(answer: &'v Value, factor: &str) -> &'v Value {
    let effects = answer["responses"][0]["answer"]["effects"]
        .as_array()
        .unwrap();
    effects
        .iter()
        .find(|one| one["factor"] == factor)
        .unwrap_or_else(|| panic!("no {factor}: {answer}"))
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("no number: {value}"))
}

#[test]
fn the_factor_that_limits_is_named_with_its_gain_and_the_next_limit() {
    let place = Place::new();
    place.write("window.stackline", WINDOW);
    let words = [
        &["factors", "--json", "--replicates", "2", "window.stackline"],
        &LEVELS[..],
    ]
    .concat();
    let answer = place.stackline(&words).succeeds().json();
    assert_eq!(
        (answer["runs"].as_u64(), answer["failed"].as_u64()),
        (Some(32), Some(0))
    );
    assert_eq!(answer["responses"][0]["name"], "throughput");
    // Window / round trip: four times the one or a quarter of the other is nearly four times the throughput, until the link is full.
    for factor in ["receive_buffer", "delay of s - b"] {
        let alone = number(&effect(&answer, factor)["alone"]);
        assert!((2.5..=4.1).contains(&alone), "{factor}: {alone}");
    }
    let bandwidth = number(&effect(&answer, "bandwidth of s - b")["alone"]);
    assert!((0.97..1.2).contains(&bandwidth), "{bandwidth}");
    let inert = effect(&answer, "bandwidth of c - s");
    assert_eq!(inert["may_be_nothing"], true, "{inert}");
    let limit = answer["limits"]
        .as_array()
        .unwrap()
        .iter()
        .find(|limit| limit["factor"] == "delay of s - b")
        .unwrap();
    assert!(
        limit["then"].as_str().unwrap().contains("s>b is full"),
        "{limit}"
    );
    let most = number(&limit["times_as_fast"]);
    assert!(
        (3.5..6.5).contains(&most),
        "the link's rate over what the window allows: {most}"
    );
    // The throughput is the window over the round trip, and the link's at most: half way it is not on the line.
    let middle = [
        &[
            "factors",
            "window.stackline",
            "--no-limits",
            "--replicates",
            "2",
            "--centre",
            "2",
        ][..],
        &LEVELS[2..6],
    ];
    let middle = place.stackline(&middle.concat()).succeeds().out.clone();
    assert!(
        middle.contains("10 runs") && middle.contains("halfway between its levels"),
        "{middle}"
    );
    // Squares add up.
    let answer = &answer["responses"][0]["answer"];
    let terms: f64 = answer["terms"]
        .as_array()
        .unwrap()
        .iter()
        .map(|term| number(&term["squares"]))
        .sum();
    let (total, left) = (
        number(&answer["total_squares"]),
        number(&answer["residual_squares"]),
    );
    assert!((terms + left - total).abs() < 1e-9 * total);
}

#[test]
fn every_design_answers_and_says_what_it_cannot_tell_apart() {
    let place = Place::new();
    place.write("window.stackline", WINDOW);
    let of = |design: &[&str]| {
        let words = [
            &[
                "factors",
                "window.stackline",
                "--no-limits",
                "--replicates",
                "2",
            ],
            design,
            &LEVELS[..],
        ]
        .concat();
        place.stackline(&words).succeeds().out.clone()
    };
    let half = of(&["--design", "fraction=8"]);
    assert!(
        half.contains("2^(4-1) fraction of resolution 4") && half.contains("16 runs"),
        "{half}"
    );
    assert!(half.contains(" = "), "interactions are mixed: {half}");
    let screening = of(&["--design", "screening"]);
    assert!(
        screening.contains("12 combinations; 24 runs"),
        "{screening}"
    );
    let single = of(&["--design", "one-at-a-time"]);
    assert!(
        single.contains("interactions between factors are not estimated"),
        "{single}"
    );
    let budget = [
        &[
            "factors",
            "window.stackline",
            "--no-limits",
            "--budget",
            "2s",
        ],
        &LEVELS[..],
    ]
    .concat();
    let budget = place.stackline(&budget).succeeds().out.clone();
    assert!(budget.contains("within 2.00 s, with runs of"), "{budget}");
}

#[test]
fn what_cannot_be_is_refused_before_anything_runs() {
    let place = Place::new();
    place.write("window.stackline", WINDOW);
    let live = ["factors", "-e", "2 rr 32*100 over tcp"];
    let table: [(&[&str], &str, &str); 13] = [
        (
            &["factors", "window.stackline"],
            "no factor is specified",
            "--factor",
        ),
        (
            &["-f", "bandwidth of a - b x 2"],
            "no link connects `a` and `b`",
            "known links: `a - s`",
        ),
        (&["-f", "congestion = fast"], "congestion", ""),
        (
            &["-f", "delay x 0.5", "-f", "delay x 2"],
            "is specified twice",
            "all its levels at once",
        ),
        (&["-f", "mtu of s - b = 10 B"], "mtu", ""),
        (
            &["-f", "receive_buffer = 64 KiB"],
            "changes nothing",
            "a level that differs from the specification",
        ),
        (&["-f", "cpu of a x 2"], "takes no time", "copy"),
        (&["-f", "stack = tcp, unix"], "unix", ""),
        (
            &["-f", "bandwidth x 2", "--design", "fraction=12"],
            "no fractional design",
            "omit `--design`",
        ),
        (
            &["-f", "bandwidth x 2", "--cost", "delay x 2 = 3"],
            "no factor has the level `delay x 2`",
            "known levels:",
        ),
        (
            &["-f", "bandwidth x 2", "--cost", "bandwidth x 2 = free"],
            "`free` is not a valid price",
            "as in",
        ),
        (
            &["-f", "congestion = reno", "--centre", "2"],
            "no level halfway",
            "WHAT x NUMBER",
        ),
        (
            &["-f", "bandwidth x 2", "--response", "p99"],
            "the runs have no p99",
            "they have throughput",
        ),
    ];
    for (words, sentence, hint) in table {
        let words = if words[0] == "factors" {
            words.to_vec()
        } else {
            [&["factors", "window.stackline"], words].concat()
        };
        place.stackline(&words).fails(2, &[sentence]).hints(hint);
    }
    let live = [&live[..], &["-f", "bandwidth x 10"]].concat();
    place
        .stackline(&live)
        .fails(2, &["no declared network"])
        .hints("simulated and emulated worlds");
    let two = [
        "factors",
        "-e",
        "2 rr 32*100 over tcp, unix",
        "-f",
        "size x 2",
    ];
    place
        .stackline(&two)
        .fails(2, &["2 measurements"])
        .hints("stack = tcp");
}

#[test]
fn an_experiment_goes_on_where_it_was() {
    let place = Place::new();
    place.write("window.stackline", WINDOW);
    let words = [
        &[
            "factors",
            "--json",
            "--no-limits",
            "--replicates",
            "2",
            "window.stackline",
        ],
        &LEVELS[..],
    ]
    .concat();
    let first = place.stackline(&words).succeeds().json();
    let directory = first["directory"].as_str().unwrap().to_owned();
    let runs = std::path::Path::new(&directory).join("runs.jsonl");
    let text = std::fs::read_to_string(&runs).unwrap();
    // As if it had been killed in the middle of a line.
    std::fs::write(&runs, &text[..text.len() * 2 / 5]).unwrap();
    let again = [&words[..], &["--resume", &directory]].concat();
    let second = place.stackline(&again).succeeds().json();
    assert_eq!(first["responses"], second["responses"]);
    let other = [
        "factors",
        "window.stackline",
        "-f",
        "delay x 2",
        "--resume",
        &directory,
    ];
    place
        .stackline(&other)
        .fails(2, &["a different experiment"]);
    // It is no run: the newest of those is another.
    let none = place.stackline(&["show", "last"]);
    assert!(none.err.contains("no run at last"), "{}", none.err);
}

#[test]
fn a_combination_is_a_specification_and_sets_have_prices() {
    let place = Place::new();
    place.write("window.stackline", WINDOW);
    let words = [
        &["factors", "window.stackline", "--combination", "2"],
        &LEVELS[..],
    ]
    .concat();
    let text = place.stackline(&words).succeeds().out.clone();
    assert!(
        text.contains("800 Mbit/s") && text.contains("# bandwidth of s - b: x 4"),
        "{text}"
    );
    place.write("second.stackline", text);
    place.stackline(&["run", "second.stackline"]).succeeds();
    let prices = [
        "--cost",
        "bandwidth of s - b x 4 = 100, delay x 0.25 = 200, receive_buffer x 4 = 10",
        "--spend",
        "150",
    ];
    let words = [
        &[
            "factors",
            "--json",
            "--no-limits",
            "--pictures",
            "figures",
            "--replicates",
            "2",
            "window.stackline",
        ],
        &prices[..],
        &LEVELS[..],
    ]
    .concat();
    let answer = place.stackline(&words).succeeds().json();
    let offers = answer["offers"].as_array().unwrap();
    // The window is the cheapest and brings most; only what brings more for its price stands behind it.
    assert_eq!(offers[1]["bought"][0], "receive_buffer x 4", "{offers:?}");
    assert!(
        offers
            .windows(2)
            .all(|pair| number(&pair[0]["times_as_fast"]) < number(&pair[1]["times_as_fast"]))
    );
    let best = offers.iter().find(|offer| offer["best"] == true).unwrap();
    assert!(number(&best["cost"]) <= 150.0);
    let page = std::fs::read_to_string(place.path("figures/index.html")).unwrap();
    assert_eq!(page.matches("<svg").count(), 4);
    for name in ["effects", "tornado", "half-normal", "interaction"] {
        let svg = std::fs::read_to_string(place.path(&format!("figures/{name}.svg"))).unwrap();
        assert!(
            svg.starts_with("<svg") && svg.ends_with("</svg>\n") && !svg.contains("NaN"),
            "{name}"
        );
        let png = std::fs::read(place.path(&format!("figures/{name}.png"))).unwrap();
        assert!(png.starts_with(b"\x89PNG") && png.len() > 4000, "{name}");
    }
}

#[test]
fn stacks_are_factors_where_time_is_real() {
    let place = Place::new();
    let words = [
        "factors",
        "--json",
        "-e",
        "2 rr 32*300 over tcp",
        "-f",
        "stack = tcp, unix",
        "-f",
        "nodelay = on, off",
    ];
    // `unix` has no such option: the two exclude each other.
    place
        .stackline(&words)
        .fails(2, &["`stack` at unix", "nodelay"]);
    let words = [
        "factors",
        "--json",
        "-e",
        "3 rr 32*300 over tcp",
        "-f",
        "stack = tcp, unix",
        "-f",
        "clients = 1, 2",
    ];
    let answer = place.stackline(&words).succeeds().json();
    assert_eq!(
        (answer["world"].as_str(), answer["runs"].as_u64()),
        (Some("live"), Some(12))
    );
    let runs = answer["responses"][0]["runs"].as_array().unwrap();
    let blocks: std::collections::BTreeSet<u64> = runs
        .iter()
        .map(|run| run["block"].as_u64().unwrap())
        .collect();
    assert_eq!(blocks.len(), 3, "each round of combinations is a block");
    assert!(
        answer["notes"]
            .to_string()
            .contains("changes the amount of work")
    );
}

#[test]
fn the_account_of_one_run_tells_the_limit_of_calls() {
    let place = Place::new();
    // 1055 bytes there and 255 back, 22 ms each way: of 55.5 ms the slow link takes 10.5, the distance s - b 40.
    let text = "network n { host a, b; switch s; link a - s 1 Mbit/s 2 ms; link s - b 10 Mbit/s 20 ms; } \
                2 from a to b rr 1000, 200*30 over tcp(nodelay) across n;";
    let words = [
        "factors",
        "--json",
        "-e",
        text,
        "-f",
        "bandwidth of a - s x 10",
        "-f",
        "delay of s - b x 0.5",
    ];
    let answer = place.stackline(&words).succeeds().json();
    for (limit, expected) in answer["limits"]
        .as_array()
        .unwrap()
        .iter()
        .zip([55.5 / 45.0, 55.5 / 15.5])
    {
        for field in ["times_as_fast", "by_account"] {
            let gain = number(&limit[field]);
            assert!(
                (gain / expected - 1.0).abs() < 0.02,
                "{field} {gain} instead of {expected}: {limit}"
            );
        }
    }
}

/// The processor of a host counts where programs are real: with a hundredth of it, a transfer waits for seconds.
#[test]
fn a_share_of_a_processor_is_a_factor_where_it_can_be_given() {
    let place = Place::new();
    let text = "host a; host b; 3 from a to b bulk_put 64 KiB 30 MB over tcp;";
    let words = [
        "factors",
        "--json",
        "-e",
        text,
        "-f",
        "share of b = 1%, 100%",
    ];
    let ran = place.stackline(&words);
    if ran.status.code() == Some(3) {
        ran.hints("run as root");
        return skip("control groups cannot be written here");
    }
    let answer = ran.succeeds().json();
    let share = effect(&answer, "share of b");
    let elapsed = number(&share["alone"]);
    assert!(elapsed > 1.5, "{share}");
    assert!(
        answer["notes"].to_string().contains("throttled"),
        "{}",
        answer["notes"]
    );
    // What no world has is refused, with what there is.
    let network =
        "network n { host a, b; link a - b 1 Mbit/s 1 ms; } 2 from a to b rr 10*10 across n;";
    let refused = place.stackline(&["factors", "-e", network, "-f", "share of b = 50%"]);
    refused
        .fails(
            2,
            &["`share of b` at 50%", "which simulated hosts cannot have"],
        )
        .hints("cpu 0.5");
    place
        .stackline(&["factors", "-e", network, "-f", "cpu of b x 2"])
        .fails(2, &["cpu of b"])
        .hints("share of a = 50%");
    place
        .stackline(&["factors", "-e", network, "-f", "share of c = 50%"])
        .fails(2, &["no network has a host `c`"]);
    place
        .stackline(&["check", "-e", "host a share 0.5%; 1 rr 1*1;"])
        .mistakes(&["between 1% and 6400%"]);
}

/// Hosts and switches that stand in one declaration are varied apart.
#[test]
fn what_is_declared_together_is_varied_apart() {
    let place = Place::new();
    let text = "network n { host a, b { copy 1 ms per packet; } switch s, t { buffer 3 kB; } link a - s 10 Mbit/s 1 ms; \
                link s - t 10 Mbit/s 1 ms; link t - b 2 Mbit/s 1 ms; } 1 from a to b bulk_put 1024*200 over saw(packet = 1024) across n;";
    let words = [
        "factors",
        "--json",
        "--no-limits",
        "-e",
        text,
        "-f",
        "cpu of a x 2",
        "-f",
        "cpu of b x 2",
    ];
    let answer = place.stackline(&words).succeeds().json();
    let [a, b] = ["cpu of a", "cpu of b"].map(|factor| number(&effect(&answer, factor)["alone"]));
    assert!(a > 1.05 && (a / b - 1.0).abs() < 1e-6, "{a} {b}");
    let combination = |factor: &str| {
        place
            .stackline(&["factors", "-e", text, "-f", factor, "--combination", "2"])
            .succeeds()
            .out
            .clone()
    };
    let one = combination("buffer of s x 4");
    assert!(
        one.contains("buffer 12 kB") && one.contains("t { buffer 3 kB"),
        "{one}"
    );
    assert_eq!(combination("buffer x 4").matches("buffer 12 kB").count(), 1);
}
