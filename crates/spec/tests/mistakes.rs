//! What is wrong with a text, said exactly.

mod common;

use common::{checked, context, mistake, shown};
use stackline_spec::{Origin, Overrides, Severity, check};

#[track_caller]
fn says(text: &str, expected: &str) {
    assert_eq!(mistake(text), expected);
}

/// Every diagnostic of a text has a message, a label and lies within the text.
#[track_caller]
fn mentions(text: &str, words: &str) {
    let result = checked(text);
    let list = shown(text, &result.diagnostics);
    assert!(list.contains(words), "{text}\n{list}");
    assert!(result.plan.is_none(), "{text}");
    for d in &result.diagnostics {
        assert!(text.get(d.span.clone()).is_some() && !d.label.is_empty() && !d.message.ends_with('.'), "{d:?}");
    }
}

#[test]
fn names_that_do_not_exist() {
    says(
        "10 bulk_gte 1024*10",
        "error: there is no application type `bulk_gte` [bulk_gte] expected an application type / did you mean `bulk_get`?",
    );
    says(
        "10 rr 32*10 over tpc",
        "error: there is no stack `tpc` [tpc] expected the name of a stack / did you mean `tcp`?",
    );
    says(
        "10 rr 32*10 over blast(selektive)",
        "error: the stack `blast` has no option `selektive` [selektive] expected an option of this stack / did you mean `selective`?",
    );
    says(
        "host khons via local; 10 from khon rr 32*10",
        "error: unknown host `khon` [khon] expected a declared host / did you mean `khons`? Otherwise write `host khon via local;` before it",
    );
    says(
        "10 from khons rr 32*10",
        "error: unknown host `khons` [khons] expected a declared host / write `host khons via local;` before it",
    );
    says(
        "host khons via local; network wan { host a, b; link a - b 1 Mbit/s 1 ms; } 10 from khons to b rr 32*10",
        "error: unknown host `b` [b] expected a declared host / it is a host of the network `wan`: write `across wan`",
    );
    says(
        "network wan { host a, b; link a - b 1 Mbit/s 1 ms; } 10 across wan: from a to b rr 32*10",
        "error: there is no composer `across` [across] expected a composer / a clause stands behind a composer, as in `3 parallel across wan: ...`, or at the end of a part",
    );
    says(
        "10 rr 32*10 across wan in simulated",
        "error: there is no network `wan` [wan] expected a declared network / declare it: `network wan { ... }`",
    );
    says(
        "10 rr exponental(3)*10",
        "error: there is no distribution `exponental` [exponental] expected a distribution / did you mean `exponential`?",
    );
    says(
        "10 paralel: rr 32*10",
        "error: there is no composer `paralel` [paralel] expected a composer / did you mean `parallel`?",
    );
    says(
        "10 bulk_get 64 kib*10",
        "error: unexpected `kib` [kib] expected `;` or a clause such as `over tcp` / did you mean `KiB`?",
    );
    says(
        "10 rr 32*10 ovr tcp",
        "error: unexpected `ovr` [ovr] expected `;` or a clause such as `over tcp` / did you mean `over`?",
    );
    says(
        "10 rr 32*10 in simulted",
        "error: unexpected `simulted` [simulted] expected `live`, `emulated` or `simulated` / did you mean `simulated`?",
    );
    says(
        "hots khons via local;",
        "error: unexpected `hots` [hots] expected a specification, `host`, `network`, `procedure` or `seed` / did you mean `host`?",
    );
    says(
        "bulk_get 1024*10;",
        "error: a specification begins with its number of runs [bulk_get] expected a number before this / write `10 bulk_get`",
    );
}

#[test]
fn numbers_out_of_bounds() {
    says("0 rr 32*10", "error: the number of runs has to be at least 1 [0] this is 0 / -");
    says("1.5 rr 32*10", "error: the number of runs has to be a whole number, not 1.5 [1.5] not a whole number / -");
    says("10 timelimit 0 rr 32*10", "error: a time limit has to be above zero [0] no time at all / -");
    says("10 rr 0*10", "error: the size of a data unit has to be at least 1 [0] this is 0 / -");
    says("10 rr 32*0", "error: the number of data units has to be at least 1 [0] this is 0 / -");
    says("10 rr N*10; N = 0, 1", "error: the size of a data unit has to be at least 1 with N = 0 [N] this is 0 / -");
    says(
        "10 rr 2 TiB*1",
        "error: the size of a data unit may be at most 1099511627776 [2 TiB] this is 2199023255552 / -",
    );
    says("10 parallel: 0 rr 1*1", "error: the number of pairs has to be at least 1 [0] this is 0 / -");
    says("10 parallel: 10001 rr 1*1", "error: the number of pairs may be at most 10000 [10001] this is 10001 / -");
    says(
        "10 parallel: N rr 1*1; N = 0",
        "error: no part is left to be measured with N = 0 [N rr 1*1] no pair does this / let the number of pairs begin at 1",
    );
    mentions("10 until 0% rr 1*1", "between 0 and 100");
    mentions("10 until 2% at most 5 rr 1*1", "the most runs has to be at least 10");
    mentions("99999999999999999999 rr 1*1", "the number is too large");
    mentions("1 rr 1*1 on cpu 5000", "the number of a core may be at most 4095");
    mentions("1 rr uniform(3, 1)*1", "its low end is above its high end");
    mentions("1 rr uniform(3)*1", "another number of parameters");
    mentions("1 rr 1*1 bivalue(1, 2, 3 ms)", "this parameter has no unit");
}

#[test]
fn what_a_stack_cannot_carry() {
    says(
        "10 rr 70000*10 over udp",
        "error: `udp` carries data units of at most 65507 bytes [70000] this can be 70000 / send smaller units, or choose a stack that carries a stream",
    );
    says(
        "10 bulk_get 8*10 over udp",
        "error: `udp` carries data units of at least 16 bytes here [8] this can be 8 / write 16 or more",
    );
    assert!(checked("10 rr 8*10 over udp").plan.is_some());
    mentions("10 rr uniform(1, 70000)*10 over udp", "at most 65507");
    mentions("host a, b via ssh \"x\"; 1 from a to b rr 1*1 over unix", "`unix` works within one host only");
    assert!(checked("host a, b via local; 1 from a to b rr 1*1 over unix").plan.is_some());
    assert!(checked("host a via ssh \"x\"; 1 from a to a rr 1*1 over unix").plan.is_some());
    mentions("1 bulk_get 16*1 over udp < file x", "unexpected");
    mentions("1 bulk_get 16*1 < file x over udp", "`udp` does not carry files");
    mentions("1 rr 16*1 < file x", "`request_response` has no use for a FILE");
    mentions("1 bulk_get 16*1 < file \"../x\"", "a FILE lies under the directory");
    mentions("1 bulk_get 16*1 < file \"/etc/x\"", "a FILE lies under the directory");
}

#[test]
fn files_that_nothing_or_more_than_one_would_write() {
    says(
        "1 bulk_get 16*1 > file x over tcp, tcp(receive = truncate)",
        "error: `tcp(receive = truncate)` drops the data that the FILE is for [x] nothing would come to it / leave `receive = truncate` out, or write `> memory`",
    );
    says(
        "1 2 bulk_get 16*1 > file x",
        "error: 2 pairs would overwrite one FILE [x] expected one pair, or no FILE / leave the number of pairs out, or write `> memory`",
    );
    mentions("1 parallel: N bulk_get 16*1 > file x | rr 1*1; N = 0, 1, 3", "3 pairs would overwrite one FILE");
    let two =
        |first: &str, second: &str| format!("host a, b via local; 1 parallel: {first} > file x | {second} > file x");
    mentions(
        &two("bulk_get 16*1", "bulk_put 16*1"),
        "error: two parts of a measurement would overwrite one FILE [x] another writer on this host has it / give each writer a FILE of its own, or write `> memory`",
    );
    mentions(&two("from a to b bulk_get 16*1", "from b to a bulk_put 16*1"), "two parts of a measurement");
    assert!(checked(&two("from a to b bulk_get 16*1", "from a to b bulk_put 16*1")).plan.is_some());
    assert!(checked("1 parallel: bulk_get 16*1 > file x | bulk_get 16*1 > file y").plan.is_some());
    let both = procedure(
        &PLAIN.0.replace("DataRequest;", "DataRequest; AwaitDataIndication;"),
        &PLAIN.1.replace("AwaitDataIndication;", "AwaitDataIndication; DataRequest;"),
    );
    mentions(&both.replace("1 p 1*1", "1 p 1*1 > file x"), "both sides of `p` would overwrite one FILE");
    let apart = both.replace("1 p 1*1", "host a, b via local; 1 from a to b p 1*1 > file x");
    assert!(checked(&apart).plan.is_some());
    assert!(checked("1 bulk_get 16*1 < file x over tcp(receive = truncate)").plan.is_some());
    assert!(checked("1 bulk_get 16*1 > file x over tcp(receive = block)").plan.is_some());
    assert!(checked("1 4 bulk_get 16*1 < file x").plan.is_some());
}

#[test]
fn options_of_stacks() {
    says(
        "1 rr 1*1 over tcp(nodelay = 3)",
        "error: the option `nodelay` takes no value [nodelay = 3] this option / write `nodelay` alone",
    );
    mentions("1 rr 1*1 over tcp(window)", "the option `window` needs a value");
    mentions("1 rr 1*1 over tcp(window = 5 ms)", "write a size, as in `window = 64 KiB`");
    mentions("1 rr 1*1 over tcp(streams = 65)", "the option `streams` may be at most 64");
    mentions("1 rr 1*1 over tcp(streams = N); N = 1, 65", "the option `streams` may be at most 64 with N = 65");
    mentions("1 rr 1*1 over quic(zero_rtt = onn)", "did you mean `on`?");
    mentions("1 rr 1*1 over tcp(nodelay, NO-DELAY)", "has no option `NO-DELAY`");
    mentions("1 rr 1*1 over tcp(nodelay, NODELAY)", "is written twice");
    mentions("1 rr 1*1 over unix(x)", "write `unix` alone; it has no options");
}

#[test]
fn data_that_is_missing_or_too_much() {
    says(
        "10 bulk_get 1024",
        "error: this part would never end [bulk_get 1024] no number of data units and no time limit / write `TIMELIMIT 5` behind the number of runs, or a number of units such as `*1000`",
    );
    assert!(checked("10 background: rr 1*1 | bulk_get 1024").plan.is_some());
    says(
        "10 connect_disconnect",
        "error: `connect_disconnect` needs the size and number of its data units [connect_disconnect] expected a size behind this / write `connect_disconnect 0*1000`",
    );
    says("10 rr 32*10 constant(1) constant(2) constant(3)", "error: `request_response` has two timings, and 3 are given [constant(3)] one too many / its timings are, in this order: arrival, service".replace("two timings", "2 timings").as_str());
    says(
        "10 bulk_get 32, 64*10",
        "error: `bulk_get` has one size of data unit, not two [32, 64] expected one size / leave the second size out",
    );
    says(
        "10 rr 32, 64;",
        "error: two sizes need a number of data units [64] expected `*` and a number behind this / write `, 64*1000`",
    );
    says(
        "10 conn_disc 0 1000",
        "error: units of no size never make up an amount [1000] an amount in bytes / write a number of units, as in `0*1000`",
    );
    says("10 rr 32 ms*10", "error: `ms` is a unit of time, but this is a size [ms] expected a unit such as `KiB` / -");
    says(
        "10 timelimit 5 KiB rr 32*10",
        "error: `KiB` is a unit of size, but this is a time [KiB] expected a unit such as `ms` / -",
    );
    mentions("1 rr empirical(file \"bad.txt\")*1", "line 2 of `bad.txt` is not a number");
    mentions("1 rr empirical(file \"empty.txt\")*1", "`empty.txt` holds no value");
    mentions("1 rr empirical(file \"none.txt\")*1", "`none.txt` cannot be read: no such file");
    mentions("1 rr empirical(3)*1", "`empirical` takes a file");
    mentions("1 rr uniform(file x)*1", "`uniform` takes numbers, not a file");
}

#[test]
fn parts_and_clauses() {
    says(
        "10 rr 1*1 | rr 2*1",
        "error: several parts need a composer [rr 2*1] this is a second part / write `parallel:` before the first part",
    );
    says(
        "10 background: rr 1*1",
        "warning: a background without load measures its part alone [10 background: rr 1*1] only one part / add the load behind `|`, as in `| 5 bulk_get 1024*3000`",
    );
    says(
        "10 priority background: rr 1*1 | <N> rr 1*1; N = 0",
        "warning: a background without load measures its part alone [10 priority background: rr 1*1 | <N> rr 1*1] there is no load with any value / let the number of pairs go above 0",
    );
    mentions("10 parallel: rr 1*1 in live | rr 1*1 in simulated", "have to be in one world");
    mentions("10 parallel: rr 1*1 | rr 1*1 in simulated", "have to be in one world");
    mentions("10 rr 1*1 over tcp over udp", "a clause is written twice");
    mentions("10 warmup 1 warmup 2 rr 1*1", "`warmup` is written twice");
    mentions("10 parallel rr 1*1", "expected `:` and the parts");
    mentions("10 from a from b rr 1*1", "may stand here once");
    mentions("10 rr 1*1 < memory < memory", "may stand here once");
    mentions("10 rr 1*1 < disk", "expected `memory`, `virtual memory` or `file` and a name");
}

#[test]
fn sweeps() {
    says(
        "10 rr N*10",
        "error: the variable `N` has no values [N] expected a number, or a variable of this specification / write its values behind the specification, as in `; N = 1, 8 ... 4096`",
    );
    says(
        "10 rr 1*10; N = 1, 2",
        "warning: the variable `N` is not used [N = 1, 2] every value gives the same measurement / write `N` or `<N>` where it should stand",
    );
    says(
        "10 rr <N>*10; N = 1024, 2048...16348",
        "warning: the series does not reach 16348 [16348] taken as its last value, behind 8192 / did you mean 16384?",
    );
    says(
        "10 rr <N>*10; N = 1, 8, 32...4096",
        "warning: the series does not reach 4096 [4096] taken as its last value, behind 2048 / did you mean 2048?",
    );
    says(
        "10 rr N*10; N = 3, 5 ... 10",
        "error: the series does not reach 10 [10] steps of 2 from 5 miss this / end it with a value of the series",
    );
    says(
        "10 rr N*10; N = 5 ... 1",
        "error: the series does not reach 1 [1] steps of 1 from 5 miss this / end it with a value of the series",
    );
    mentions("10 rr N*10; N = 1; N = 2", "the variable `N` is given twice");
    mentions("10 rr N*10; N = 1 ... 100000", "a sweep has more than 10000 values");
    mentions("10 rr N*M; N = 1 ... 1000; M = 1 ... 1000", "has more than 10000 measurements");
    mentions("N = 1, 2; 10 rr N*10", "belongs to no specification");
    mentions("10 rr over*10; over = 1", "unexpected");
    mentions("10 rr N*10; N = 1, M", "unexpected `M`");
}

#[test]
fn declarations() {
    mentions("host a via local; host a via local; 1 rr 1*1", "the host `a` is declared twice");
    mentions("seed 1; seed 2; 1 rr 1*1", "the seed is given twice");
    mentions("host a via ssh \"-oProxyCommand=x\"; 1 rr 1*1", "is not a destination of ssh");
    mentions("host a via telnet \"x\"; 1 rr 1*1", "expected `local`, or `ssh` and a quoted destination");
    mentions("host a via local via local;", "`via` is written twice");
    mentions("host a via local\n10 rr 1*1", "expected `;`");
    mentions("host a via ssh \"x;\n10 rr 1*1", "a quoted text has no end");
}

fn procedure(initiator: &str, responder: &str) -> String {
    format!("procedure p(t) {{ initiator {{ {initiator} }} responder {{ {responder} }} }} 1 p 1*1;")
}

const PLAIN: (&str, &str) = (
    "ConnectRequest; StartMeasurement; DataRequest; Pace(t); StopMeasurement; DisconnectRequest;",
    "AwaitConnectIndication; AwaitDataIndication; AwaitDisconnectIndication;",
);

#[test]
fn procedures() {
    assert!(checked(&procedure(PLAIN.0, PLAIN.1)).diagnostics.is_empty());
    let initiator = |from: &str, to: &str| procedure(&PLAIN.0.replace(from, to), PLAIN.1);
    let responder = |from: &str, to: &str| procedure(PLAIN.0, &PLAIN.1.replace(from, to));
    mentions(&initiator("StartMeasurement;", ""), "has to measure one stretch");
    mentions(&initiator("StopMeasurement;", "StartMeasurement;"), "has to measure one stretch");
    mentions(&initiator("StartMeasurement;", "repeat 2 { StartMeasurement; }"), "begins or ends within a repeat");
    mentions(&initiator("DataRequest", "DataRequst"), "did you mean `DataRequest`?");
    mentions(&initiator("DataRequest", "RPCReturn"), "`RPCReturn` is not an operation of the initiator");
    mentions(
        &responder("AwaitDataIndication", "StartMeasurement"),
        "`StartMeasurement` is not an operation of the responder",
    );
    mentions(&initiator("ConnectRequest;", ""), "`DataRequest` without a connection");
    mentions(&initiator("DisconnectRequest;", ""), "ends while it is connected");
    mentions(&initiator("DisconnectRequest;", "ConnectRequest;"), "while already connected");
    mentions(&initiator("DataRequest;", "StopBulkGet;"), "outside a bulk transfer");
    mentions(&initiator("DataRequest;", "StartBulkGet; DataRequest; StopBulkGet;"), "within a bulk get");
    mentions(&initiator("DataRequest;", "StartBulkPut; RPCCall; StopBulkPut;"), "within a bulk put");
    mentions(&initiator("DataRequest;", "repeat 2 { DisconnectRequest; }"), "does not end as it began");
    mentions(
        &responder("AwaitDataIndication", "AwaitDataIndication(2)"),
        "the responder has `AwaitDataIndication(2)` here, the initiator needs `AwaitDataIndication(unit)`",
    );
    mentions(
        &responder("AwaitDataIndication;", ""),
        "the responder has `AwaitDisconnectIndication` here, the initiator needs `AwaitDataIndication(unit)`",
    );
    mentions(
        &responder("AwaitDataIndication;", "repeat count { AwaitDataIndication; }"),
        "the responder has `repeat count` here",
    );
    mentions(&responder("AwaitDisconnectIndication;", ""), "the responder has nothing more here");
    mentions(
        &responder("AwaitDisconnectIndication;", "AwaitDisconnectIndication; DataRequest;"),
        "the initiator needs nothing more",
    );
    mentions(&initiator("Pace(t)", "Pace(u)"), "there is no timing `u`");
    mentions(&initiator("Pace(t)", "Pace(5 ms)"), "write `Pace(constant(0.005))`");
    mentions(&initiator("Pace(t)", "Pace"), "`Pace` takes a timing or a distribution");
    mentions(&initiator("Pace(t)", "Mark"), "`Mark` takes a name");
    mentions(&initiator("DataRequest", "DataRequest(unt)"), "did you mean `unit`?");
    mentions(&initiator("DataRequest", "DataRequest(0)"), "at least 1");
    mentions(&initiator("DataRequest", "DataRequest(1, 2)"), "`DataRequest` takes one argument");
    mentions(&initiator("ConnectRequest", "ConnectRequest(1)"), "`ConnectRequest` takes no argument");
    mentions("procedure p { initiator { StartMeasurement; StopMeasurement; } } 1 p 0*1;", "has no responder");
    mentions("procedure p { initiator { } initiator { } }", "stands once");
    mentions("procedure p(t, t) { initiator { } responder { } }", "is named twice");
    mentions("procedure over { initiator { } responder { } }", "is a word of the language");
    mentions(
        "procedure p { initiator { StartMeasurement; StopMeasurement; } responder { } } procedure P { initiator { StartMeasurement; StopMeasurement; } responder { } } 1 p 0*1",
        "declared twice",
    );
    mentions(
        &procedure(&PLAIN.0.replace("DataRequest;", "DataRequest; ReadFile;"), PLAIN.1),
        "does ReadFile, but no FILE is given",
    );
    let deep =
        format!("procedure p {{ initiator {{ {} {} }} responder {{ }} }}", "repeat 1 {".repeat(40), "}".repeat(40));
    mentions(&deep, "more than 32 repeats within each other");
}

#[test]
fn programs_that_would_not_end() {
    let idle = PLAIN.0.replace("Pace(t);", "repeat count { Pace(t); }");
    let text = |initiator: &str, responder: &str, data: &str| {
        procedure(initiator, responder).replace("1 p 1*1;", &format!("1 timelimit 1 p {data};"))
    };
    assert!(checked(&text(&idle, PLAIN.1, "1*1")).plan.is_some());
    mentions(&text(&idle, PLAIN.1, "1"), "a repeat of `p` would never end");
    let replies = PLAIN.0.replace("DataRequest;", "repeat count { DataRequest(reply); }");
    let awaits = PLAIN.1.replace("AwaitDataIndication;", "repeat count { AwaitDataIndication(reply); }");
    assert!(checked(&text(&replies, &awaits, "uniform(1, 2)")).plan.is_some());
    mentions(&text(&replies, &awaits, "uniform(1, 2) 50"), "would never make up the amount");
    let reads = PLAIN.0.replace("DataRequest;", "ReadFile; DataRequest;");
    assert!(checked(&text(&reads, PLAIN.1, "5*1 < file x")).plan.is_some());
    mentions(&text(&reads, PLAIN.1, "uniform(1, 2)*1 < file x"), "by sizes that are drawn");
}

#[test]
fn unused_timings_are_doubted() {
    let text = procedure(&PLAIN.0.replace("Pace(t);", ""), PLAIN.1);
    let result = checked(&text);
    assert!(result.plan.is_some());
    assert!(shown(&text, &result.diagnostics).contains("the timing `t` is never used"));
}

#[test]
fn several_mistakes_come_out_together() {
    let text = "
host khons via local;
10 form khons bulk_get 1024*10;
10 bulk_gte 1024*10;
procedure ping {
  initiator { ConnectRequst; StartMeasurement; Wait(3); }
  responder { AwaitConnectIndication; AwaitDisconnect Indication; }
}
10 rr 32*;
network wan { host a, b; lnk a - b 1 Mbit/s 1 ms; link a - b 1 Mbit/s 1 KiB; }
0 rr 32*10 over tpc; N = 1, x;
10 ping 32*10;
10 from khons to udjat rr 32*10;
";
    let result = checked(text);
    let list: Vec<String> = result.diagnostics.iter().map(|d| d.message.clone()).collect();
    assert_eq!(
        list,
        [
            "unexpected `form`",
            "there is no application type `bulk_gte`",
            "there is no operation `ConnectRequst`",
            "there is no operation `Wait`",
            "there is no operation `AwaitDisconnect`",
            "unexpected `;`",
            "unexpected `lnk`",
            "`KiB` is a unit of size, but this is a time",
            "the number of runs has to be at least 1",
            "there is no stack `tpc`",
            "the variable `N` is not used",
            "unexpected `x`",
            "unknown host `udjat`",
        ]
    );
    assert_eq!(result.diagnostics.iter().filter(|d| d.severity == Severity::Warning).count(), 1);
}

/// The messages of all errors, in the order of the text.
#[track_caller]
fn reports(text: &str, expected: &[&str]) {
    let result = checked(text);
    let list: Vec<&str> = result.diagnostics.iter().map(|d| d.message.as_str()).collect();
    assert_eq!(list, expected, "{text}");
    assert!(result.plan.is_none());
}

#[test]
fn a_mistake_of_grammar_hides_no_other_in_its_specification() {
    says(
        "10 bulkget 32*1",
        "error: there is no application type `bulkget` [bulkget] expected an application type / did you mean `bulk_get`?",
    );
    let text = "10 bulkget 32*1 ovr tcp";
    reports(text, &["there is no application type `bulkget`", "unexpected `ovr`"]);
    let list = shown(text, &checked(text).diagnostics);
    assert!(list.contains("did you mean `bulk_get`?") && list.contains("did you mean `over`?"), "{list}");
    reports(
        "10 parallel: rr 32* | bulkget 1*1 | rr 1*1 over tpc in simulted | stram 1*1",
        &[
            "unexpected `|`",
            "there is no application type `bulkget`",
            "there is no stack `tpc`",
            "unexpected `simulted`",
            "there is no application type `stram`",
        ],
    );
    reports(
        "0 from a rr 0*0 ovr tcp",
        &[
            "the number of runs has to be at least 1",
            "unknown host `a`",
            "the size of a data unit has to be at least 1",
            "the number of data units has to be at least 1",
            "unexpected `ovr`",
        ],
    );
    reports("10 paralel: bulkget 1*1", &["there is no composer `paralel`", "there is no application type `bulkget`"]);
    reports("10 parallel bulk_get 1*1 over tpc", &["unexpected `bulk_get`", "there is no stack `tpc`"]);
    reports("10 parallel ovr tcp: rr 1*1 over tpc", &["unexpected `ovr`", "there is no stack `tpc`"]);
    reports(
        "10 rr 32*1\n10 rr 1*1 over tpc; 1 bulkget 1*1",
        &["unexpected `10`", "there is no stack `tpc`", "there is no application type `bulkget`"],
    );
    reports(
        "10 bulkget N*1 ovr tcp; N = 1, M; 1 rr 1*1 over tpc",
        &["there is no application type `bulkget`", "unexpected `ovr`", "unexpected `M`", "there is no stack `tpc`"],
    );
}

#[test]
fn what_could_not_be_read_is_not_guessed_at() {
    let network = "network w { host a, b; link a - b 1 Mbit/s 1 ms; }";
    // The network, the world, the count and the values may stand in what was not read.
    reports(&format!("{network} 1 from a to b rr 1*1 ovr tcp across w in simulated"), &["unexpected `ovr`"]);
    reports(&format!("{network} 1 from a to b rr 1*1 across w ovr tcp in simulated"), &["unexpected `ovr`"]);
    reports("1 rr 32 kib*5", &["unexpected `kib`"]);
    reports("1 rr 32*, 5", &["unexpected `,`"]);
    reports("1 rr N*1 ovr tcp, N = 1, 2", &["unexpected `ovr`"]);
    reports("1 rr N*1; N = 1, x 2;", &["unexpected `x`"]);
    reports("1 background: rr 1*1 ovr tcp | rr 1", &["unexpected `ovr`"]);
    reports("1 background: rr 1*1 ovr tcp", &["unexpected `ovr`"]);
}

#[test]
fn a_mistake_in_the_header_of_a_procedure_stays_there() {
    let sides = "initiator { ConnectRequest; StartMeasurement; Pace(t); StopMeasurement; DisconnectRequest; } \
                 responder { AwaitConnectIndication; AwaitDisconnectIndication; } }\n10 twice 1*1 over tpc;";
    let header = |header: &str, mistake: &str| {
        reports(&format!("procedure {header} {sides}"), &[mistake, "there is no stack `tpc`"]);
    };
    header("twice(2) {", "unexpected `2`");
    header("twice(t {", "unexpected `{`");
    header("twice(t,) {", "unexpected `)`");
    header("twice(t; u) {", "unexpected `;`");
    header("twice t {", "unexpected `t`");
    header("twice(t)", "unexpected `initiator`");
    header("twice(t)\n", "unexpected `initiator`");
    header("twice = 3 {", "unexpected `=`");
    let sides = sides.replace("twice", "rr");
    reports(&format!("procedure 2 {{ {sides}"), &["unexpected `2`", "there is no stack `tpc`"]);
    reports(&format!("procedure {{ {sides}"), &["unexpected `{`", "there is no stack `tpc`"]);
    // What is in the sides comes out too.
    reports(
        "procedure twice(2) { initiator { ConnectRequst; } responder { Wait; } }",
        &["unexpected `2`", "there is no operation `ConnectRequst`", "there is no operation `Wait`"],
    );
    // Braces of something else are left alone.
    reports("procedure twice;\n10 rr 1*1 over tpc;", &["unexpected `;`", "there is no stack `tpc`"]);
    reports(
        "procedure twice(\nnetwork w { host a, a; }",
        &["unexpected `network`", "`a` is declared twice in this network"],
    );
}

#[test]
fn mistakes_on_the_command_line_say_so() {
    let over =
        |text: &str| check("10 rr 32*10", &context(), &Overrides { over: Some(text.into()), ..Overrides::default() });
    for (text, message) in [
        ("tpc", "there is no stack `tpc`"),
        ("", "unexpected end of the text"),
        ("tcp;", "unexpected `;`"),
        ("tcp udp", "unexpected `udp`"),
        ("udp, tcp(x)", "the stack `tcp` has no option `x`"),
    ] {
        let result = over(text);
        let [only] = result.diagnostics.as_slice() else { panic!("{:?}", result.diagnostics) };
        assert_eq!((only.origin, only.message.as_str()), (Origin::Over, message));
        assert!(result.plan.is_none());
    }
}

#[test]
fn a_host_of_the_command_line_that_the_text_does_not_name() {
    let hosts = |text: &str, hosts: &[&str]| {
        let hosts = hosts.iter().map(|host| stackline_spec::host_argument(host).unwrap()).collect();
        check(text, &context(), &Overrides { hosts, ..Overrides::default() })
    };
    let network = "network w { host khons, b; link khons - b 1 Mbit/s 1 ms; }";
    for text in ["1 from khons rr 1*1", "1 to khons rr 1*1", "host khons via local; 1 rr 1*1", network] {
        assert!(hosts(text, &["khons=local"]).plan.is_some(), "{text}");
    }
    for (text, hint) in [
        ("1 from khons rr 1*1; host khons via local;", "did you mean `khons`?"),
        ("1 from a to b rr 1*1; host a, b;", "its hosts are a, b"),
        ("1 rr 1*1", "leave it out; without FROM and TO both ends are on this machine"),
    ] {
        let result = hosts(text, &["khon=local"]);
        let [only] = result.diagnostics.as_slice() else { panic!("{:?}", result.diagnostics) };
        assert_eq!((only.origin, only.message.as_str()), (Origin::Host(0), "the specification names no host `khon`"));
        assert_eq!((only.hint.as_deref(), only.span.clone()), (Some(hint), 0..4));
        assert!(result.plan.is_none());
    }
    assert_eq!(hosts("1 from a rr 1*1", &["a=local", "b=local"]).diagnostics[0].origin, Origin::Host(1));
    // It may be meant where the text cannot be read.
    assert_eq!(hosts("1 form khons rr 1*1", &["khons=local"]).diagnostics.len(), 1);
    assert_eq!(hosts("1 form khons rr 1*1", &["khon=local"]).diagnostics.len(), 2);
}

#[test]
fn hostile_texts_are_refused_quickly() {
    let start = std::time::Instant::now();
    let many = "10 rr 1*1, ".repeat(20_000);
    mentions(&many, "has more than 10000 measurements");
    for piece in [
        "{",
        "(",
        "repeat ",
        "1 rr 1, a(",
        "host a",
        "network w {",
        "network w { host a { ",
        "network w { link a - b 1 bit/s 0 queue red(min = ",
        "network w { host a; link a - b 1 bit/s 0 loss packets 1, ",
        "<",
        "1 ",
        "N = ",
        "procedure p {",
        "procedure p; ",
        "procedure p( ",
        "10 x:",
        "10 rr 1*1 x | ",
        "10 parallel x ",
        "a b ",
        "\"",
        "10 parallel over a, ",
    ] {
        let begin = std::time::Instant::now();
        let result = checked(&piece.repeat(20_000));
        println!("{piece}: {:?}", begin.elapsed());
        assert!(result.plan.is_none() && result.diagnostics.len() <= 100, "{piece}");
    }
    let hosts: String = (0..20_000).map(|n| format!("host h{n} via local; 1 from g{n} rr 1*1;\n")).collect();
    assert!(checked(&hosts).plan.is_none());
    let star: String = (0..4000).map(|n| format!("host h{n}; link h{n} - s 1 Mbit/s 1 ms;\n")).collect();
    assert!(checked(&format!("network w {{ switch s;\n{star} }} 1 rr 1*1")).plan.is_some());
    mentions(&"x".repeat(2 << 20), "the text is longer than 1 MiB");
    let parts = vec!["rr 1*1"; 10_000].join(" | ");
    mentions(&format!("10 parallel: {parts} | N rr 1*1; N = 1 ... 9000"), "take too much room");
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
}
