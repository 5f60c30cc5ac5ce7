//! Stacks of the user's own: a library in C and one in Rust, a pair of programs in Python, and what they do wrong.

use crate::agents::{ListeningAgent, SECRET};
use crate::support::emulated::Net;
use crate::support::{Finished, Place, has_program, skip};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Every application type, several pairs, both directions, and time limits.
const APPLICATIONS: &str = "
    procedure both {
        initiator { ConnectRequest; StartMeasurement; repeat count { DataRequest(unit); RPCCall(unit, unit); AwaitDataIndication(unit); }
                    StopMeasurement; DisconnectRequest; }
        responder { AwaitConnectIndication; repeat count { AwaitDataIndication(unit); RPCAwaitCallInd(unit); RPCReturn(unit);
                    DataRequest(unit); } AwaitDisconnectIndication; }
    }
    2 rr 32*50 over STACK; 1 rr 100, 200000*3 over STACK; 2 bulk_get 1000*300 over STACK; 2 bulk_put 1000*300 over STACK;
    1 bulk_put 300000*4 over STACK; 1 stream 500*20 constant(10 us) over STACK; 2 connect_disconnect 0*5 over STACK;
    1 both 3000*10 over STACK; 1 4 rr 32*20 over STACK;
    1 timelimit 0.05 bulk_get 1000 over STACK; 1 timelimit 0.05 bulk_put 1000 over STACK; 1 timelimit 0.05 rr 32*1000000 over STACK;
    1 timelimit 0.05 stream 200*100000 constant(1 ms) over STACK;
    1 timelimit 0.05 parallel over STACK: 2 bulk_get 1000 | rr 100*1000000;";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// Compiles a library in C; false, with the reason printed, where there is no compiler.
fn compile(place: &Place, name: &str, source: &str) -> bool {
    if !has_program("cc", "gcc") {
        skip("no cc");
        return false;
    }
    let source = place.write(&format!("{name}.c"), source);
    let mut command = Command::new("cc");
    command
        .args([
            "-std=c11", "-Wall", "-Wextra", "-Werror", "-O2", "-shared", "-fPIC", "-I",
        ])
        .arg(place.path(""))
        .arg("-I")
        .arg(root().join("clients/c"))
        .arg("-o")
        .arg(place.path(name));
    let output = command.arg(source).output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    true
}

/// The example in C.
fn example() -> String {
    fs::read_to_string(root().join("clients/c/stack_example.c")).unwrap()
}

/// The example in C with something wrong: a statement on `bad`, its table, after functions that it may name.
fn spoilt(functions: &str, statement: &str) -> String {
    format!(
        "#define stackline_stack right_stack
#include \"stack_example.c\"
#undef stackline_stack
static struct right_stack bad;
{functions}
__attribute__((constructor)) static void spoil(void) {{ bad = *right_stack(1); {statement} }}
__attribute__((visibility(\"default\"))) const void *stackline_stack(uint32_t version);
const void *stackline_stack(uint32_t version) {{ (void)version; return &bad; }}
"
    )
}

/// The pair of programs, as they are written in `over`; `None` where there is no Python.
fn pair(place: &Place) -> Option<&'static str> {
    if !has_program("python3", "python3") {
        skip("no python3");
        return None;
    }
    place.install(root().join("examples/stacks/pair.py"), "pair.py");
    Some("program(\"./pair.py\", \"./pair.py\")")
}

/// Runs every application type; all that was sent has come.
fn carries(place: &Place, stack: &str) -> Vec<Value> {
    let text = APPLICATIONS.replace("STACK", stack);
    let measurements = place.measure(&text);
    // Those of three parts have a row for each, and one for all together.
    assert_eq!(measurements.len(), 16, "{stack}");
    place.empties();
    measurements
}

/// One run that fails; agents have half the patience that they have otherwise.
fn failing(place: &Place, text: &str) -> Finished {
    let mut command = place.command(&["run", "-e", text]);
    let mut finished = place.finish(command.env("STACKLINE_SILENCE_S", "30"));
    // A long wait is said, too.
    let said = finished.err.lines();
    let is_wait = |line: &&str| line.starts_with("waiting up to ");
    finished.err = said
        .filter(|line| !is_wait(line))
        .map(|line| format!("{line}\n"))
        .collect();
    finished
}

#[test]
fn a_library_in_c_is_measured_like_any_stack() {
    let place = Place::new();
    if !compile(&place, "mystack.so", &example()) {
        return;
    }
    carries(&place, "plugin(\"./mystack.so\")");
    place.write("in", vec![7; 5000]);
    let over =
        "bulk_put 1000*5 < file in > file out over plugin(\"mystack.so\", options = \"a b\")";
    let files = place.path("").display().to_string();
    place
        .stackline(&["run", "--files", &files, "-e", &format!("1 {over}")])
        .succeeds();
    assert_eq!(fs::read(place.path("out")).unwrap(), vec![7; 5000]);
}

#[test]
fn a_library_is_beside_tcp_in_one_table_and_what_it_says_is_recorded() {
    let place = Place::new();
    if !compile(&place, "mystack.so", &example()) {
        return;
    }
    let over = "tcp, plugin(library = \"./mystack.so\", options = \"fast\")";
    let shown = place.stackline(&[
        "run",
        "--name",
        "beside",
        "-e",
        "3 rr 32*50",
        "--over",
        over,
    ]);
    shown.succeeds();
    let row = "plugin(library = \"./mystack.so\", options = \"fast\")";
    assert!(
        shown.out.contains("tcp") && shown.out.contains("mystack.so"),
        "{}",
        shown.out
    );
    let json = place.stackline(&["show", "beside", "--json"]).json();
    let stacks: Vec<&str> = json["measurements"]
        .as_array()
        .unwrap()
        .iter()
        .map(|measurement| measurement["stack"].as_str().unwrap())
        .collect();
    assert_eq!(stacks, ["tcp", row]);
    place.stackline(&["compare", "beside"]).succeeds();
    assert_eq!(
        json["measurements"][1]["initiator"]["settings"],
        serde_json::json!({"library": "./mystack.so", "name": "frames over TCP 1.0", "options": "fast"})
    );
    // What a plan prints of a stack can be written again.
    place
        .stackline(&["check", "-e", &format!("1 rr 32*1 over {row}")])
        .succeeds();
}

#[test]
fn an_installed_program_prints_all_that_a_stack_needs() {
    let place = Place::new();
    let printed = |flags: &[&str]| place.stackline(flags).succeeds().out.clone();
    place.write("stackline_stack.h", printed(&["client", "c", "--stack"]));
    let source = printed(&["client", "c", "--stack", "--example"]);
    if compile(&place, "mystack.so", &source) {
        place.measure("1 rr 32*5 over plugin(\"./mystack.so\")");
    }
    let pair = printed(&["client", "python", "--stack"]);
    assert_eq!(
        pair,
        fs::read_to_string(root().join("examples/stacks/pair.py")).unwrap()
    );
}

#[test]
fn a_library_in_rust_has_functions_of_its_own_for_calls_and_transfers() {
    let place = Place::new();
    if !has_program("rustc", "rustc") {
        skip("no rustc");
        return;
    }
    let mut command = Command::new("rustc");
    command
        .args([
            "--edition",
            "2024",
            "-D",
            "warnings",
            "-O",
            "--crate-type",
            "cdylib",
            "-o",
        ])
        .arg(place.path("mystack.so"))
        .arg(root().join("examples/stacks/mystack.rs"));
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    carries(&place, "plugin(\"./mystack.so\")");
}

#[test]
fn a_pair_of_programs_is_measured_like_any_stack() {
    let place = Place::new();
    let Some(stack) = pair(&place) else { return };
    carries(&place, stack);
    let both = format!("tcp, {stack}");
    let shown = place.stackline(&["run", "-e", "2 rr 32*10", "--over", &both]);
    shown.succeeds();
    assert!(shown.out.contains("program(client = "), "{}", shown.out);
    // Data units come from nothing of ours.
    let refused = place.run(&format!("1 bulk_put 10*10 < virtual memory over {stack}"));
    refused.mistakes(&["no data comes from stackline's memory"]);
    let refused = place.run(&format!("1 bulk_put 10*10 < file x over {stack}"));
    refused.mistakes(&["does not carry files"]);
}

#[test]
fn both_run_in_an_emulated_world_and_are_traced() {
    let Some(net) = Net::pair("own") else { return };
    let place = &net.place;
    let Some(program) = pair(place) else { return };
    if !compile(place, "mystack.so", &example()) {
        return;
    }
    for stack in ["plugin(\"./mystack.so\")", program] {
        let text = format!(
            "{} 1 from khons to udjat rr 100*5 over {stack} across {} in emulated",
            net.text, net.name
        );
        let run = place.stackline(&["run", "--trace", "--name", "traced", "--json", "-e", &text]);
        let json = run.json();
        // The link takes 5 ms in each direction.
        let median = json["measurements"][0]["response_s"]["median"].as_f64();
        assert!(median.is_some_and(|seconds| seconds >= 0.01), "{json}");
        let lifelines = place.stackline(&["lifelines", "last", "--json"]).json();
        let points = lifelines["points"].as_array().unwrap();
        for keyword in ["APP_CALL", "APP_INDICATION", "APP_REPLY", "APP_RESPONSE"] {
            let is_there = points.iter().any(|point| point["keyword"] == keyword);
            assert!(is_there, "{keyword}: {lifelines}");
        }
    }
}

#[test]
fn a_library_that_crashes_is_blamed_for_the_death_of_its_agent() {
    let place = Place::new();
    let crash = "static int64_t crash(void *c, void *r, size_t m, const volatile int *s) {
        (void)c; (void)r; (void)m; (void)s; volatile char *volatile nowhere = NULL; *nowhere = 1; return 0; }";
    if !compile(&place, "crash.so", &spoilt(crash, "bad.receive = crash;")) {
        return;
    }
    failing(&place, "1 rr 32*5 over plugin(\"./crash.so\")")
        .fails(
            3,
            &[
                "the plug-in ./crash.so ended the agent on host",
                "with SIGSEGV",
            ],
        )
        .hints("debugger");
    let abort = "static int quit(void *c, const volatile int *s) { (void)c; (void)s;
        fprintf(stderr, \"cannot go on\\n\"); abort(); }";
    compile(&place, "abort.so", &spoilt(abort, "bad.finish = quit;"));
    failing(&place, "1 rr 32*5 over plugin(\"./abort.so\")").fails(
        3,
        &[
            "the plug-in ./abort.so ended the agent on host",
            "with SIGABRT: cannot go on",
        ],
    );
    place.empties();
}

#[test]
fn a_library_that_blocks_is_named_with_its_function() {
    let place = Place::new();
    let hang = "static volatile int never; static int hang(const struct stackline_endpoint *e, const char *a, const volatile int *s, void **c) {
        (void)e; (void)a; (void)s; (void)c;
        while (!never) { pause(); }
        return -1; }";
    if !compile(&place, "hang.so", &spoilt(hang, "bad.connect = hang;")) {
        return;
    }
    failing(&place, "1 rr 32*5 over plugin(\"./hang.so\")")
        .fails(
            3,
            &["the plug-in ./hang.so did not return from `connect` within"],
        )
        .hints("*stop");
    // It also ends where the time limit says that it has to.
    let hang = "static volatile int never; static int64_t hang(void *c, void *r, size_t m, const volatile int *s) {
        if (m == 16) return receive_some(c, r, m, s);
        while (!never) { pause(); }
        return -1; }";
    compile(&place, "late.so", &spoilt(hang, "bad.receive = hang;"));
    failing(&place, "1 timelimit 0.1 rr 32*100000 over plugin(\"./late.so\")").fails(
        3,
        &["the plug-in ./late.so did not return from `receive` within 1.5 s after the run was ended"],
    );
    place.empties();
}

#[test]
fn what_is_not_a_stack_is_refused_with_the_reason() {
    let place = Place::new();
    let two = "static int two(void *c, void *r, size_t n, const volatile int *s) { (void)c; (void)r; (void)n; (void)s; return 1; }";
    if !compile(&place, "version.so", &spoilt("", "bad.version = 2;")) {
        return;
    }
    let libraries = [
        ("null.so", "#include \"stackline_stack.h\"\nconst struct stackline_stack *stackline_stack(uint32_t version) { (void)version; return 0; }".to_owned()),
        ("none.so", "int nothing_of_the_kind;".to_owned()),
        ("lacks.so", spoilt("", "bad.finish = NULL;")),
        ("half.so", spoilt(two, "bad.await_call = two;")),
        ("empty.so", spoilt("static int nowhere(const struct stackline_endpoint *e, char *a, void **l) { *a = 0; *l = (void *)e; return 0; } static void nothing(void *l) { (void)l; }", "bad.listen = nowhere; bad.close_listener = nothing;")),
    ];
    for (name, source) in &libraries {
        compile(&place, name, source);
    }
    place.write("text.so", "not a library");
    for (name, words) in [
        (
            "version.so",
            "has version 2 of the interface, but this stackline has version 1",
        ),
        (
            "null.so",
            "was not made for this version of the interface: this stackline has version 1",
        ),
        ("none.so", "exports no function stackline_stack"),
        ("lacks.so", "lacks the function `finish`"),
        (
            "half.so",
            "lacks the function `call`, but has others of its group",
        ),
        ("empty.so", "returned the address `` from `listen`"),
        ("text.so", "cannot be loaded: "),
        (
            "missing.so",
            "cannot be loaded: cannot open shared object file",
        ),
    ] {
        let blamed = format!("the plug-in ./{name} ");
        failing(&place, &format!("1 rr 32*5 over plugin(\"./{name}\")"))
            .fails(3, &[&blamed, words])
            .hints("");
    }
}

#[test]
fn what_a_library_says_or_prints_goes_where_it_belongs() {
    let place = Place::new();
    let fails = "static int fails(const struct stackline_endpoint *e, const char *a, const volatile int *s, void **c) {
        (void)a; (void)s; (void)c; snprintf(why, sizeof why, \"no luck with %s\", e->options); return -1; }";
    if !compile(&place, "fails.so", &spoilt(fails, "bad.connect = fails;")) {
        return;
    }
    failing(
        &place,
        "1 rr 32*5 over plugin(\"./fails.so\", options = \"a, b\")",
    )
    .fails(
        1,
        &["the plug-in ./fails.so failed in `connect`: no luck with a, b"],
    );
    let much = "static int64_t much(void *c, const void *b, size_t n, const volatile int *s) {
        (void)c; (void)b; (void)s; return (int64_t)n + 1; }";
    compile(&place, "much.so", &spoilt(much, "bad.send = much;"));
    failing(&place, "1 rr 32*5 over plugin(\"./much.so\")").fails(
        3,
        &["the plug-in ./much.so broke the interface in `send`: it returned 17, although 16 bytes were passed"],
    );
    // Standard output of an agent is its coordinator's.
    let prints = "static int64_t loud(void *c, const void *b, size_t n, const volatile int *s) {
        printf(\"sends %zu\\n\", n); fflush(stdout); return send_some(c, b, n, s); }";
    compile(&place, "loud.so", &spoilt(prints, "bad.send = loud;"));
    place.measure("1 rr 32*20 over plugin(\"./loud.so\")");
}

/// A server or client in shell that does this when it gets a command, else answers like the pair.
fn program(place: &Place, name: &str, cases: &str) {
    let text = format!(
        "#!/bin/sh\nwhile read -r command rest; do case $command in\n{cases}\nlisten) echo ok 4711;;\n*) echo ok;;\nesac; done\n"
    );
    place.script(name, &text);
}

#[test]
fn programs_that_die_or_do_not_answer_or_answer_rubbish_are_blamed() {
    let place = Place::new();
    program(&place, "good", "");
    let cases = [
        (
            "await_call) echo something >&2; echo out of memory >&2; exit 7;;",
            3,
            "the program ./bad ended with exit code 7 at `await_call 32`: something; out of memory",
        ),
        (
            "await_call) kill -9 $$;;",
            3,
            "the program ./bad was ended by SIGKILL at `await_call 32`",
        ),
        (
            "listen) sleep 1000;;",
            3,
            "the program ./bad did not answer `listen 127.0.0.1` within 5 s",
        ),
        (
            "stackline) exec >&-; sleep 1000;;",
            3,
            "the program ./bad closed its standard output at the greeting `stackline`",
        ),
        (
            "await_call) echo hello there;;",
            3,
            "the program ./bad answered `await_call 32` with `hello there`",
        ),
        (
            // In one write, so that both are there when the first is read.
            "await_call) printf 'ok\\nok\\n';;",
            3,
            "the program ./bad answered `await_call 32` with several lines, the first of which is `ok`",
        ),
        (
            "reply) echo ok 7;;",
            3,
            "the program ./bad answered `reply 32` with `ok 7`",
        ),
        (
            "listen) echo ok;;",
            3,
            "the program ./bad answered `listen 127.0.0.1` with `ok`",
        ),
        (
            "accept) head -c 5000 /dev/zero | tr '\\0' x; echo;;",
            3,
            "the program ./bad answered `accept` with more than 4096 bytes, which begin with `xxxx",
        ),
        (
            "reply) echo error the disk is full;;",
            1,
            "the program ./bad failed at `reply 32`: the disk is full",
        ),
    ];
    for (case, code, words) in cases {
        program(&place, "bad", case);
        // The client waits with its answer: what is wrong is at the server.
        program(&place, "client", "call) sleep 1000;;");
        failing(&place, "1 rr 32*5 over program(\"./bad\", \"./client\")").fails(code, &[words]);
        place.empties();
    }
    failing(&place, "1 rr 32*5 over program(\"./missing\", \"./good\")")
        .fails(
            3,
            &["the program ./missing cannot be started: No such file"],
        )
        .hints("relative path");
    program(&place, "bad", "connect) echo error $rest;;");
    failing(&place, "1 rr 32*5 over program(\"./good\", \"./bad\")").fails(
        1,
        &["the program ./bad failed at `connect 127.0.0.1:4711`: 127.0.0.1:4711"],
    );
    place.empties();
}

#[test]
fn programs_get_their_options_and_a_run_that_waits_ends_at_its_limit() {
    let place = Place::new();
    program(
        &place,
        "server",
        "options) [ \"$rest\" = 'a  b;c' ] && echo ok || echo error \"[$rest]\";;",
    );
    program(&place, "client", "");
    place.measure("1 rr 32*5 over program(\"./server\", \"./client\", options = \"a  b;c\")");
    program(&place, "client", "call) sleep 1000;;");
    failing(
        &place,
        "1 timelimit 0.1 rr 32*5 over program(\"./server\", \"./client\")",
    )
    .fails(
        1,
        &["the program ./client had not answered `call 32 32` when the run was ended"],
    );
    place.empties();
}

#[test]
fn what_a_program_starts_ends_with_it() {
    let place = Place::new();
    program(&place, "server", "listen) sleep 1000 & echo ok 4711;;");
    program(
        &place,
        "client",
        "disconnect) trap '' TERM HUP; (sleep 1000 &) ; echo ok; sleep 1000;;",
    );
    place.measure("1 rr 32*5 over program(\"./server\", \"./client\")");
    place.empties();
}

#[test]
fn an_agent_that_listens_runs_own_stacks_only_with_leave() {
    let place = Place::new();
    if !compile(&place, "mystack.so", &example()) {
        return;
    }
    let Some(pair) = pair(&place) else { return };
    for (flags, is_allowed) in [(&[][..], false), (&["--allow-own-stacks"], true)] {
        let listening = ListeningAgent::with(&place, flags);
        for (stack, what) in [
            ("plugin(\"./mystack.so\")", "the plug-in ./mystack.so"),
            (pair, "the programs ./pair.py and ./pair.py"),
        ] {
            let text = listening.host_b(&format!("1 to b rr 32*5 over {stack}"));
            // The initiator's agent is here, where the same files are.
            let here = Place::new();
            here.write(SECRET, fs::read(place.path(SECRET)).unwrap());
            fs::copy(place.path("mystack.so"), here.path("mystack.so")).unwrap();
            here.install(place.path("pair.py"), "pair.py");
            let run = here.run(&text);
            match is_allowed {
                true => drop(run.succeeds()),
                false => {
                    let refused = format!("this agent does not run {what}");
                    run.fails(3, &[&refused]).hints("--allow-own-stacks");
                }
            }
        }
    }
}

#[test]
fn texts_of_stacks_are_checked_and_formatted() {
    let place = Place::new();
    let formatted = place.stackline(&[
        "fmt",
        "-e",
        "1 rr 32*1 over plugin( \"./x.so\",options=\"a  b\" ),tcp",
    ]);
    assert_eq!(
        formatted.succeeds().out,
        "1 rr 32*1 over plugin(\"./x.so\", options = \"a  b\"), tcp;\n"
    );
    for (stack, words) in [
        ("plugin", "the stack `plugin` needs its option `library`"),
        (
            "program(\"./x\")",
            "the stack `program` needs its option `client`",
        ),
        (
            "plugin(\"./x\", \"./y\")",
            "takes no further text without a name",
        ),
        (
            "plugin(\"./x\", library = \"./y\")",
            "the option `library` is given twice",
        ),
        ("plugin(x)", "has no option `x`"),
        (
            "plugin(library = x)",
            "the option `library` needs a different kind of value",
        ),
        (
            "plugin(\"\")",
            "the option `library` needs a text within its bounds",
        ),
        ("tcp(\"x\")", "the stack `tcp` takes no text without a name"),
    ] {
        place
            .stackline(&["check", "-e", &format!("1 rr 32*1 over {stack}")])
            .mistakes(&[words]);
    }
    let shown = place.stackline(&["stacks", "program"]);
    assert!(
        shown
            .succeeds()
            .out
            .contains("over program(\"SERVER\", \"CLIENT\", NAME = VALUE)"),
        "{}",
        shown.out
    );
    let json = place.stackline(&["stacks", "plugin", "--json"]).json();
    assert_eq!(json[0]["required"], serde_json::json!(["library"]));
    assert_eq!(
        json[0]["options"][0]["kind"],
        serde_json::json!({"text": 4095})
    );
}

#[test]
fn a_factor_varies_libraries() {
    let place = Place::new();
    if !compile(&place, "a.so", &example()) {
        return;
    }
    fs::copy(place.path("a.so"), place.path("b.so")).unwrap();
    let spec = place.write(
        "spec.stackline",
        "2 rr 32*5 over plugin(library = \"./a.so\");\n",
    );
    let shown = place.stackline(&[
        "factors",
        spec.to_str().unwrap(),
        "-f",
        "library = \"./a.so\", \"./b.so\"",
        "-f",
        "size = 32, 64",
    ]);
    shown.succeeds();
    assert!(shown.out.contains("b.so"), "{}", shown.out);
}
