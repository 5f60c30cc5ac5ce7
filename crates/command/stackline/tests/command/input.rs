//! What is wrong with a specification or a command line is said before anything runs.

use crate::support::Place;
use std::os::unix::ffi::OsStrExt as _;

#[test]
fn all_mistakes_of_a_file_are_reported_at_once() {
    let place = Place::new();
    let file = place.write(
        "many.stackline",
        "10 bulk_gett 32*10;\n10 rr 32*10 over tpc;\n10 rr 32*10 unifrom(1, 2);\n10 rr 0*10;\n10 rr 32*10 over tcp(nodely);\n",
    );
    for command in ["check", "run", "plan"] {
        let output = place.stackline(&[command, file.to_str().unwrap()]);
        output.mistakes(&[
            "unknown application type `bulk_gett`",
            "unknown stack `tpc`",
            "unknown distribution `unifrom`",
            "the size of a data unit must be at least 1",
            "the stack `tcp` has no option `nodely`",
        ]);
        for (line, near) in [(1, "bulk_get"), (2, "tcp"), (3, "uniform"), (5, "nodelay")] {
            assert!(
                output.err.contains(&format!("many.stackline:{line}:")),
                "{}",
                output.err
            );
            assert!(
                output.err.contains(&format!("did you mean `{near}`?")),
                "{}",
                output.err
            );
        }
    }
    assert!(place.runs().is_empty());
}

#[test]
fn one_mistake_each() {
    let place = Place::new();
    for (text, word, hint) in [
        (
            "10 from khons rr 32*10; host khon via local;",
            "unknown host `khons`",
            "did you mean `khon`?",
        ),
        (
            "10 rr 70000*10 over udp",
            "`udp` carries data units of at most 65507 bytes",
            "smaller units",
        ),
        (
            "10 rr 5 TB*10",
            "the size of a data unit must be at most 1099511627776",
            "",
        ),
        (
            "10 rr 2 GiB*10",
            "`tcp` carries data units of at most 1073741824 bytes",
            "smaller units",
        ),
        (
            "10 timelimit 0 rr 32*10",
            "a time limit must be above zero",
            "",
        ),
        ("10 rr 32*10 over udp(timeout = fast)", "timeout", ""),
        (
            "10 bulk_get 1000*10 < file x over udp",
            "`udp` does not carry files",
            "another stack",
        ),
        ("10 bulk_get 1000", "", ""),
        ("rr 32*10", "", ""),
    ] {
        let output = place.stackline(&["check", "-e", text]);
        output.mistakes(&[word]);
        if !hint.is_empty() {
            output.hints(hint);
        }
    }
}

#[test]
fn a_file_that_is_not_there() {
    let place = Place::new();
    for command in ["run", "check", "plan", "fmt"] {
        place
            .stackline(&[command, "missing.stackline"])
            .fails(2, &["missing.stackline cannot be read", "No such file"]);
    }
}

#[test]
fn a_file_that_is_no_text() {
    let place = Place::new();
    place.write("noise", [0xff, 0xfe, 0x00, 0x9f]);
    place
        .stackline(&["run", "noise"])
        .fails(2, &["noise cannot be read", "UTF-8"]);
    place
        .stackline(&["run", "."])
        .fails(2, &["cannot be read", "directory"]);
}

#[test]
fn what_never_ends_or_is_a_directory_is_refused_with_a_hint() {
    let place = Place::new();
    let watch = [
        "watch",
        "--for",
        "1ms",
        "--snmp",
        "127.0.0.1:1",
        "--snmp-secrets",
    ];
    let readers: [&[&str]; 8] = [
        &["check"],
        &["fmt"],
        &["plan"],
        &["run"],
        &["predict"],
        &["net", "show"],
        &["import", "--as", "text"],
        &watch,
    ];
    for reader in readers {
        for what in ["/dev/zero", "/dev/full", ".", "nowhere/file"] {
            let output = place.stackline(&[reader, &[what]].concat());
            output.fails(2, &[what]).hints("");
            assert_eq!(
                output.err.lines().count(),
                2,
                "{reader:?} {what}: {}",
                output.err
            );
        }
    }
    assert!(place.runs().is_empty());
}

#[test]
fn a_text_that_measures_nothing() {
    let place = Place::new();
    let network = "network n { host a, b; link a - b 1 Mbit/s 1 ms; }";
    let output = place.stackline(&["check", "-e", network]);
    assert_eq!((output.status.code(), output.err.as_str()), (Some(0), ""));
    for text in ["", "# nothing\n", "host a via local;"] {
        let output = place.stackline(&["check", "-e", text]);
        assert_eq!(output.status.code(), Some(0));
        output.hints("write a specification such as");
        assert!(
            output
                .err
                .contains("the specification contains no measurement"),
            "{}",
            output.err
        );
        for command in ["run", "plan"] {
            let output = place.stackline(&[command, "-e", text]);
            output
                .fails(
                    2,
                    &["there is nothing to do: the specification (expression) has no measurements"],
                )
                .hints("add one");
            assert_eq!(
                (output.err.lines().count(), output.out.as_str()),
                (2, ""),
                "{}",
                output.err
            );
        }
    }
    let file = place.write("empty.stackline", "");
    place
        .stackline(&["run", file.to_str().unwrap()])
        .fails(2, &["nothing to do", "empty.stackline"]);
    place.stackline(&["fmt", file.to_str().unwrap()]).succeeds();
    assert!(place.runs().is_empty());
}

#[test]
fn the_live_world_makes_no_network() {
    let place = Place::new();
    let output =
        place.run("network wan { host a, b; link a - b 1 Mbit/s 1 ms; }\n1 from a to b rr 32*10 across wan in live;");
    output
        .mistakes(&["the live world cannot model the network `wan`"])
        .hints("use `in simulated` (or `--in simulated`), or `in emulated` for real packets");
    assert!(place.runs().is_empty());
}

/// Closed forms ask for a network, not for a world.
#[test]
fn a_prediction_needs_no_world() {
    let place = Place::new();
    let network = "network wan { host a, b; link a - b 10 Mbit/s 1 ms queue 50 kB; }";
    let output = place.stackline(&[
        "predict",
        "-e",
        &format!("{network}\n1 from a to b bulk_put 1000*10 over udp across wan;"),
    ]);
    output.succeeds();
    assert_eq!(output.err, "");
    assert!(
        output.out.contains("no datagram meets a full queue"),
        "{}",
        output.out
    );
}

#[test]
fn a_core_that_is_not_there() {
    for cpu in ["1000", "100000"] {
        let place = Place::new();
        let output = place.stackline(&["run", "-e", "1 rr 32*10", "--cpu", cpu]);
        output
            .mistakes(&[&format!("this machine has no core {cpu}")])
            .hints("available cores: 0");
        assert!(place.runs().is_empty());
    }
    let place = Place::new();
    let checked = place.stackline(&["check", "-e", "host a; 1 from a rr 32*10 on cpu 1000"]);
    checked.mistakes(&["this machine has no core 1000"]);
    // Other machines have cores of their own.
    let elsewhere = "host a via ssh \"b\"; 1 from a to a rr 32*10 on cpu 1000";
    place.stackline(&["check", "-e", elsewhere]).succeeds();
    Place::new()
        .stackline(&["run", "-e", "1 rr 32*10", "--cpu", "0,1,2"])
        .fails(2, &["--cpu takes one core, or two"]);
}

#[test]
fn flags_that_make_no_sense() {
    let place = Place::new();
    let text = ["run", "--trace", "-e", "1 rr 32*10 in simulated"];
    for (flags, why, hint) in [
        (
            &["--seeds", "7..9"][..],
            "keeps no events",
            "--seed 7 --trace",
        ),
        (
            &["--check-determinism"],
            "performs every run twice",
            "omit one of them",
        ),
    ] {
        place
            .stackline(&[&text[..], flags].concat())
            .fails(2, &[why])
            .hints(hint);
    }
    place
        .stackline(&[&text[..], &["--seed", "7"]].concat())
        .succeeds();
    for flags in [
        &["run"][..],
        &["run", "-e", "1 rr 32*10", "--seed", "x"],
        &["runn"],
        &["run", "x", "-e", "y"],
    ] {
        let output = place.stackline(flags);
        assert_eq!(output.status.code(), Some(2), "{}", output.err);
        assert!(output.err.starts_with("error: "), "{}", output.err);
    }
    place
        .stackline(&["run", "-e", "1 rr 32*10", "--host", "khons"])
        .fails(2, &["khons"])
        .hints("NAME=local");
    let hosts = [
        "run",
        "-e",
        "1 from khons rr 32*10",
        "--host",
        "khons=local",
        "--host",
        "khon=ssh:nowhere",
    ];
    let output = place.stackline(&hosts);
    output
        .mistakes(&["the specification has no host `khon`"])
        .hints("did you mean `khons`?");
    assert!(
        output.err.contains("--host:1:1") && output.err.contains("khon=ssh:nowhere"),
        "{}",
        output.err
    );
    place
        .stackline(&["run", "-e", "1 rr 32*10", "--over", "tpc"])
        .mistakes(&["unknown stack `tpc`"])
        .hints("tcp");
}

#[test]
fn a_command_line_that_cannot_be_read_is_one_sentence_with_a_hint() {
    let place = Place::new();
    for (line, error, hint) in [
        (
            "displya serve",
            "unrecognized subcommand 'displya'",
            "did you mean `display`?",
        ),
        (
            "run --jsn x",
            "unexpected argument '--jsn' found",
            "did you mean `--json`?",
        ),
        (
            "tarce curl",
            "unrecognized subcommand 'tarce'",
            "did you mean `trace`?",
        ),
        (
            "runs remve x",
            "the subcommand 'x' cannot be used",
            "did you mean `remove`?",
        ),
        (
            "trace --hlep",
            "unexpected argument '--hlep' found",
            "did you mean `--help`?",
        ),
        (
            "trace --pid nginx",
            "invalid value 'nginx' for '--pid",
            "pgrep -n NAME",
        ),
        (
            "trace --for 1s -- sleep 3",
            "--for applies only to programs that are already running",
            "timeout 10 COMMAND",
        ),
        (
            "help langauge",
            "neither a command nor a topic",
            "did you mean `stackline help language`?",
        ),
        (
            "report last -o x.gif",
            "the type of x.gif is unknown",
            "FILE.html",
        ),
        (
            "display bench --level fast",
            "invalid value 'fast'",
            "expected one of stop-and-wait, pipelined",
        ),
        (
            "display bench --trials 0",
            "0 is not in 1..=10000",
            "see `stackline display bench --help`",
        ),
        (
            "blocks get",
            "were not provided: <SET>",
            "usage: `stackline blocks get <SET>`; see `stackline blocks get",
        ),
    ] {
        let refused = place.stackline(&line.split(' ').collect::<Vec<_>>());
        refused.fails(2, &[error]).hints(hint);
        assert_eq!(refused.err.lines().count(), 2, "{}", refused.err);
    }
    let refused = place.stackline(&["run", "--json", "--bogus"]);
    let json: serde_json::Value = serde_json::from_str(&refused.out).unwrap();
    assert_eq!(json["ok"], false, "{json}");
    let refused = place.stackline(&["trace", "--bogus", "--json"]);
    assert!(refused.out.contains("\"ok\": false"), "{}", refused.out);
    let of_curl = ["trace", "--pid", "abc", "curl", "--json"];
    assert_eq!(place.stackline(&of_curl).out, "");
    let mut command = place.command(&["run"]);
    command
        .arg(std::ffi::OsStr::from_bytes(b"caf\xe9.stackline"))
        .arg("--bogus");
    place
        .finish(&mut command)
        .fails(2, &["unexpected argument '--bogus'"]);
    assert!(
        place
            .stackline(&["blocks", "get", "--help"])
            .succeeds()
            .out
            .contains("Usage:")
    );
}

#[test]
fn the_help_of_run_fits_a_screen() {
    let place = Place::new();
    let output = place.stackline(&["run", "--help"]);
    output.succeeds();
    let lines: Vec<&str> = output.out.lines().collect();
    assert!(
        lines.len() <= 48 && lines.iter().all(|line| line.chars().count() <= 80),
        "{}",
        output.out
    );
    for word in [
        "run [OPTIONS] <SPEC | -e TEXT>",
        "live, emulated, simulated]",
        "STACKLINE_RUNS",
    ] {
        assert!(output.out.contains(word), "no `{word}` in: {}", output.out);
    }
    // The example that needs no file is one.
    let example = output
        .out
        .lines()
        .find_map(|line| line.split_once("run -e '"))
        .unwrap()
        .1
        .trim_end_matches('\'');
    place.stackline(&["check", "-e", example]).succeeds();
}

#[test]
fn runs_that_cannot_be_kept_are_not_begun() {
    let place = Place::new();
    place.write("runs", "a file where the directory should be");
    place
        .run("1 rr 32*10")
        .fails(3, &["cannot write", "runs"])
        .hints("STACKLINE_RUNS");
}

#[test]
fn a_drawn_size_beyond_all_memory() {
    for (text, side) in [
        ("1 bulk_put pareto(1 MiB, 0.1)*1000", "initiator"),
        ("1 bulk_get pareto(1 MiB, 0.1)*1000", "responder"),
    ] {
        let place = Place::new();
        place
            .run(text)
            .fails(3, &[side, "was drawn, but the maximum is 1 GiB"]);
        assert!(place.runs().is_empty());
    }
    let output = Place::new().run("1 bulk_put pareto(1000, 0.3)*1000 over udp");
    output
        .fails(2, &["initiator", "is too long for this path"])
        .hints("65507");
}

#[test]
fn an_option_beyond_what_a_socket_takes() {
    let finished = Place::new().run("1 rr 32*10 over tcp(send_buffer = 1 TB)");
    finished
        .mistakes(&["the option `send_buffer` must be at most 1073741824"])
        .hints("1 B to 1 GiB");
}

#[test]
fn a_file_of_numbers_lies_beside_its_specification() {
    let place = Place::new();
    place.write("deep/sizes", "100\n200\n");
    place.write("deep/text", "1 rr empirical(file \"sizes\")*10");
    place.stackline(&["check", "deep/text"]).succeeds();
    place.write("text", "1 rr empirical(file \"deep/sizes\")*10");
    place.stackline(&["check", "./text"]).succeeds();
}

#[test]
fn streams_of_a_single_pair_are_warned_of() {
    let place = Place::new();
    let checked = |text: &str| place.stackline(&["check", "-e", text]);
    let alone = checked("8 rr 32*10 over quic(streams = 8)");
    alone.succeeds();
    let said = format!("{}{}", alone.out, alone.err);
    assert!(
        said.contains("`streams = 8` has no effect on a single pair") && said.contains("`1 8`"),
        "{said}"
    );
    let eight = checked("1 8 rr 32*10 over quic(streams = 8)");
    assert!(!eight.err.contains("no effect"), "{}", eight.err);
}
