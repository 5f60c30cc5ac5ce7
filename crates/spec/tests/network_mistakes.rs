//! What is wrong with a network, said exactly.

mod common;

use common::{checked, clean, mistake, shown};

#[track_caller]
fn says(text: &str, expected: &str) {
    assert_eq!(mistake(text), expected);
}

/// Among the mistakes of a text.
#[track_caller]
fn mentions(text: &str, words: &str) {
    let result = checked(text);
    let list = shown(text, &result.diagnostics);
    assert!(list.contains(words) && result.plan.is_none(), "{text}\n{list}");
}

#[test]
fn networks() {
    let network = |body: &str| format!("network w {{ {body} }} 1 rr 1*1;");
    mentions(
        &network("host a, b; link a - c 1 Mbit/s 1 ms; link a - b 1 Mbit/s 1 ms;"),
        "the network has no host or switch `c`",
    );
    mentions(&network("host a, a;"), "declared twice in this network");
    mentions(&network("host a, b; link a - b 0 bit/s 1 ms;"), "the rate of a link has to be above zero");
    mentions(&network("host a, b; link a - b 1 Mbit/s 1 ms loss 101%;"), "cannot lose more than all");
    mentions(&network("host a, b, c; link a - b 1 Mbit/s 1 ms;"), "no path leads from `a` to `c`");
    mentions(&network("host a; link a - a 1 Mbit/s 1 ms;"), "joins `a` to itself");
    mentions(&network("host a, b; link a-b 1 Mbit/s 1 ms;"), "with spaces around the `-`");
    mentions(&network("host a, b; link a - b 1 MBit/s 1 ms;"), "did you mean `Mbit`?");
    mentions(&network("switch e { buffer 0; }"), "a buffer has to be at least 1");
    mentions(&network("switch e;"), "the network `w` has no host");
    mentions(
        "network w { host a, b; link a - b 1 Mbit/s 1 ms; } 1 from a to c rr 1*1 across w in simulated",
        "`c` is not a host of the network `w`",
    );
    mentions(
        "network w { host a, b; link a - b 1 Mbit/s 1 ms; } 1 rr 1*1 across w in simulated",
        "write `from a to b rr`",
    );
    mentions("network w { host a", "unexpected end of the text");
}

/// The only mistake of a network with two hosts `a` and `b` and a link between them.
#[track_caller]
fn link_says(rest: &str, expected: &str) {
    says(&format!("network w {{ host a, b; link a - b {rest}; }} 1 rr 1*1"), &format!("error: {expected}"));
}

/// The only mistake of a network with one host.
#[track_caller]
fn host_says(statements: &str, expected: &str) {
    says(&format!("network w {{ host a {{ {statements} }} }} 1 rr 1*1"), &format!("error: {expected}"));
}

#[test]
fn hosts_out_of_each_others_reach() {
    let says = |body: &str, expected: &str| {
        says(&format!("network w {{ {body} }} 1 rr 1*1"), &format!("error: no path leads from {expected}"));
    };
    let hint = |from: &str, to: &str| {
        format!(
            "out of reach / add a link, as in `link {from} - {to} 100 Mbit/s 1 ms;` (`->` leads one way only, and hosts do \
             not forward)"
        )
    };
    says("host a, b;", &format!("`a` to `b` [b] {}", hint("a", "b")));
    says("host a, b; link a -> b 1 Mbit/s 1 ms;", &format!("`b` to `a` [a] {}", hint("b", "a")));
    says("host a, b; link b -> a 1 Mbit/s 1 ms;", &format!("`a` to `b` [b] {}", hint("a", "b")));
    says(
        "host a, b, c; link a - b 1 Mbit/s 1 ms; link b - c 1 Mbit/s 1 ms;",
        &format!("`a` to `c` [c] {}", hint("a", "c")),
    );
    says(
        "host a, b; switch s; link a - s 1 Mbit/s 1 ms; link s - b 1 Mbit/s 1 ms; router r;",
        &format!("`a` to `r` [r] {}", hint("a", "r")),
    );
    let many: String = (0..32_768).map(|n| format!("switch s{n}; ")).collect();
    mentions(&format!("network w {{ host a; {many} }} 1 rr 1*1"), "at most 32768 hosts and switches");
}

#[test]
fn properties_of_a_host() {
    host_says("buffer 0 frames", "a buffer of frames has to be at least 1 [0] this is 0 / -");
    host_says("buffer 2 frmes", "unexpected `frmes` [frmes] expected `frames` / did you mean `frames`?");
    host_says(
        "bufer 2 frames",
        "unexpected `bufer` [bufer] expected `buffer`, `single_buffered`, `busy_waiting`, `copy`, `cpu`, `pace` or `clock` / did you mean `buffer`?",
    );
    host_says("copy 1 ms", "unexpected `}` [}] expected `per packet` or `per byte` / -");
    host_says(
        "copy 1 ms per pocket",
        "unexpected `pocket` [pocket] expected `per packet` or `per byte` / did you mean `packet`?",
    );
    host_says("copy 1 ms per byte, 1 us per byte", "`byte` is written twice [byte] already given for this host / -");
    host_says(
        "copy 2 h per packet",
        "the time to copy a packet may be at most 1 hour [2 h] too long / a number without a unit is in seconds",
    );
    host_says(
        "single_buffered; single_buffered",
        "`single_buffered` is written twice [single_buffered] already given for this host / -",
    );
    host_says(
        "copy 1 s per packet; cpu 0",
        "the speed of a processor is a factor from 1e-6 to 1e6 [0] this is 0 / `cpu 2` is twice as fast",
    );
    host_says(
        "pace 0 bit/s",
        "the pace of a host has to be above zero [0 bit/s] nothing would ever leave / leave `pace` out when it may send as fast as its link",
    );
    host_says("clock late 1 s", "unexpected `late` [late] expected `ahead`, `behind`, `fast` or `slow` / -");
    host_says(
        "clock ahed 1 s",
        "unexpected `ahed` [ahed] expected `ahead`, `behind`, `fast` or `slow` / did you mean `ahead`?",
    );
    host_says("clock fast 20", "unexpected `}` [}] expected `ppm` / -");
    host_says(
        "clock fast 1e6 ppm",
        "a clock may drift by at most 100000 ppm [1e6] too much / a bad quartz drifts by 100 ppm",
    );
    host_says("clock ahead 1e7", "a clock may be wrong by at most 1000000 seconds [1e7] too much / -");
    host_says("clock ahead 1 at 1e7", "a clock may be set within the first 1000000 seconds [1e7] too late / -");
    for twice in [
        "clock ahead 1; clock behind 2",
        "clock fast 1 ppm; clock slow 1 ppm",
        "clock ahead 1 at 5; clock ahead 2 at 5 s",
    ] {
        let second = twice.split_once("; ").unwrap().1;
        host_says(
            twice,
            &format!(
                "this is said of the clock twice [{second}] already given / a clock may be set more than once: `clock ahead 1 s at 10 s`"
            ),
        );
    }
}

#[test]
fn properties_of_a_switch() {
    let switch_says = |statements: &str, expected: &str| {
        let text = "host a, b; link a - s 1 Mbit/s 1 ms; link s - b 1 Mbit/s 1 ms;";
        says(&format!("network w {{ switch s {{ {statements} }} {text} }} 1 rr 1*1"), &format!("error: {expected}"));
    };
    switch_says(
        "cells 5",
        "a cell of 5 bytes has no room for data [5] 5 bytes of every cell are its header / write `cells 53`, as in ATM",
    );
    switch_says("cells 53; cells 53", "`cells` is written twice [cells] already given for this switch / -");
    switch_says("early_packet_discard no", "unexpected `no` [no] expected `on` or `off` / did you mean `on`?");
    switch_says(
        "early_packet_discard on; early_packet_discard on",
        "`early_packet_discard` is written twice [early_packet_discard] already given for this switch / -",
    );
    switch_says(
        "queue",
        "unexpected `}` [}] expected a size, a number of packets, or a discipline such as `codel` / -",
    );
    switch_says(
        "quue 64 KiB",
        "unexpected `quue` [quue] expected `buffer`, `cells`, `early_packet_discard` or `queue` / did you mean `queue`?",
    );
    says(
        "network w { host a; swich s; }",
        "error: unexpected `swich` [swich] expected `host`, `switch`, `router` or `link` / did you mean `switch`?",
    );
}

#[test]
fn rates_of_a_link() {
    link_says(
        "0 bit/s 1 ms",
        "the rate of a link has to be above zero [0 bit/s] nothing would ever arrive / write `unlimited` for a link that takes no time to send",
    );
    link_says(
        "ulimited 1 ms",
        "unexpected `ulimited` [ulimited] expected a rate such as `100 Mbit/s`, or `unlimited`, `schedule`, `trace` / did you mean `unlimited`?",
    );
    link_says(
        "schedule(1 s 1 Mbit/s) 1 ms",
        "a schedule begins at 0 s [1 s] expected `0 s` / say how fast the link is at the beginning, as in `schedule(0 s 1 Mbit/s, ...)`",
    );
    for second in ["0 s", "0.0"] {
        link_says(
            &format!("schedule(0 s 1 Mbit/s, {second} 2 Mbit/s) 1 ms"),
            &format!(
                "the times of a schedule have to ascend [{second}] not later than the one before / order the steps by their times"
            ),
        );
    }
    link_says(
        "schedule(0 s 0 bit/s, 1 s 0 bit/s) 1 ms",
        "every rate of the schedule is zero [schedule(0 s 0 bit/s, 1 s 0 bit/s)] nothing would ever arrive / give it at least one rate above zero",
    );
    link_says(
        "schedule(0 s 1 bit/s, 5 s 2 bit/s) every 5 s 1 ms",
        "a schedule cannot begin again before its last step [5 s] expected more than 5 s / -",
    );
    link_says(
        "schedule(0 s 1 bit/s) every 0 1 ms",
        "a schedule cannot begin again before its last step [0] expected more than 0 s / -",
    );
    link_says("schedule(0 s 1 bit/s, 1e7 2 bit/s) 1 ms", "a time may be at most 1000000 seconds [1e7] too long / -");
    link_says("schedule(0 s 1) 1 ms", "unexpected `)` [)] expected a rate such as `100 Mbit/s` / -");
    link_says(
        "trace up.trace 1 ms",
        "unexpected `up.trace` [up.trace] expected the quoted name of a Mahimahi trace / -",
    );
}

#[test]
fn traces_are_refused_with_their_line() {
    let hint = "a Mahimahi trace has on each line a whole number of milliseconds, not less than the one before";
    for (file, what) in [
        ("words", "line 3 of `words.trace` is not a whole number of milliseconds"),
        ("gap", "line 2 of `gap.trace` is not a whole number of milliseconds"),
        ("back", "line 3 of `back.trace` says 6 behind 7"),
        ("long", "line 1000001 of `long.trace` is one too many; a trace may have 1000000"),
    ] {
        link_says(&format!("trace \"{file}.trace\" 1 ms"), &format!("{what} [\"{file}.trace\"] this trace / {hint}"));
    }
    for file in ["zero", "none"] {
        let expected = format!(
            "the trace `{file}.trace` has no moment after 0 ms [\"{file}.trace\"] nothing would ever arrive / its last line is \
             the time after which it begins again"
        );
        link_says(&format!("trace \"{file}.trace\" 1 ms"), &expected);
    }
    link_says("trace \"other\" 1 ms", "`other` cannot be read: no such file [\"other\"] this file / -");
    let links = "link a - b trace \"large.trace\" 1 ms; ".repeat(5);
    mentions(&format!("network w {{ host a, b; {links} }} 1 rr 1*1"), "hold more than 4000000 values");
}

#[test]
fn clauses_of_a_link() {
    link_says(
        "1 Mbit/s 2 h",
        "the delay of a link may be at most 1 hour [2 h] too long / a number without a unit is in seconds",
    );
    link_says(
        "1 Mbit/s 0 mtu 67",
        "an mtu has to be at least 68 [67] this is 67 / IP needs links for 68 bytes, and has packets of at most 65535",
    );
    link_says(
        "1 Mbit/s 0 mtu 64 KiB",
        "an mtu may be at most 65535 [64 KiB] this is 65536 / IP needs links for 68 bytes, and has packets of at most 65535",
    );
    link_says("1 Mbit/s 0 loss 101%", "a link cannot lose more than all [101%] expected 0 to 100 per cent / -");
    link_says(
        "1 Mbit/s 0 loss bit errors 1.5",
        "a share of bit errors is between 0 and 1 [1.5] expected a probability such as `1e-6` / -",
    );
    link_says(
        "1 Mbit/s 0 loss evry 10",
        "unexpected `evry` [evry] expected a percentage, `bit errors`, `every`, `packets` or `gilbert_elliott` / did you mean `every`?",
    );
    link_says("1 Mbit/s 0 loss every 0", "which packets are lost has to be at least 1 [0] this is 0 / -");
    link_says(
        "1 Mbit/s 0 loss packets 3, 3",
        "packet 3 stands behind packet 3 [3] expected a larger number / write the numbers in ascending order, each once",
    );
    link_says("1 Mbit/s 0 loss packets 0", "the number of a packet has to be at least 1 [0] this is 0 / -");
    link_says(
        "1 Mbit/s 0 loss gilbert_elliott(1%, 101%)",
        "a probability of `gilbert_elliott` is above 100 per cent [101%] expected 0 to 100 per cent / -",
    );
    link_says(
        "1 Mbit/s 0 loss gilbert_elliott(1%, 1%, 1%)",
        "unexpected `)` [)] expected `,` and the loss in the bad state / -",
    );
    link_says("1 Mbit/s 0 loss 1% loss 2%", "`loss` is written twice [loss] already given for this link / -");
    link_says("1 Mbit/s 0 jitter 2 ms", "unexpected `2` [2] expected a distribution, such as `uniform(0, 2 ms)` / -");
    link_says(
        "1 Mbit/s 0 jitter uniform(0, N)",
        "`N` has no value here [N] expected a number / variables belong to specifications; nothing varies in a network",
    );
    link_says(
        "1 Mbit/s 0 jitter unform(0, 1)",
        "there is no distribution `unform` [unform] expected a distribution / did you mean `uniform`?",
    );
    link_says(
        "1 Mbit/s 0 jitter constant(0) jitter constant(1)",
        "`jitter` is written twice [jitter] already given for this link / -",
    );
    link_says(
        "1 Mbit/s 0 duplicate 150%",
        "a link cannot duplicate more than all [150%] expected 0 to 100 per cent / -",
    );
    link_says(
        "1 Mbit/s 0 duplicate 1% duplicate 1%",
        "`duplicate` is written twice [duplicate] already given for this link / -",
    );
    link_says(
        "1 Mbit/s 0 charge frame",
        "unexpected `frame` [frame] expected `packets`, `frames` or `wire` / did you mean `frames`?",
    );
    link_says(
        "1 Mbit/s 0 charge wire charge wire",
        "`charge` is written twice [charge] already given for this link / -",
    );
    link_says("1 Mbit/s 0 mtu 1500 mtu 1500", "`mtu` is written twice [mtu] already given for this link / -");
    link_says("1 Mbit/s 0 queue 9 kB queue 9 kB", "`queue` is written twice [queue] already given for this link / -");
    link_says(
        "1 Mbit/s 0 lss 1%",
        "unexpected `lss` [lss] expected `;` or `loss`, `jitter`, `duplicate`, `mtu`, `charge`, `queue` / did you mean `loss`?",
    );
    mentions("network w { host a, b; link a > b 1 Mbit/s 1 ms; }", "expected `-` or `->`");
    mentions("network w { host a, b; link a - > b 1 Mbit/s 1 ms; }", "unexpected `>`");
}

#[test]
fn queues_that_cannot_be() {
    let queue_says = |queue: &str, expected: &str| link_says(&format!("1 Mbit/s 0 queue {queue}"), expected);
    queue_says("0", "a queue has to be at least 1 [0] this is 0 / -");
    queue_says("0 packets", "a queue has to be at least 1 [0] this is 0 / -");
    queue_says(
        "coddel",
        "unexpected `coddel` [coddel] expected a size, a number of packets, or a discipline such as `codel` / did you mean `codel`?",
    );
    queue_says(
        "9 kB coddel",
        "unexpected `coddel` [coddel] expected `;` or `loss`, `jitter`, `duplicate`, `mtu`, `charge`, `queue` / did you mean `codel`?",
    );
    let marks = "it drops only when it is full / choose a discipline that acts early: `codel ecn`, `red(...) ecn`";
    queue_says("ecn", &format!("a `drop_tail` queue marks nothing [ecn] {marks}"));
    queue_says("64 KiB ecn", &format!("a `drop_tail` queue marks nothing [ecn] {marks}"));
    queue_says("64 KiB drop_head ecn", &format!("a `drop_head` queue marks nothing [ecn] {marks}"));
    for name in ["min", "max"] {
        let other = if name == "min" { "max = 9 kB" } else { "min = 9 kB" };
        queue_says(
            &format!("100 packets red({other})"),
            &format!(
                "`red` has no `{name}` [red] expected its thresholds, or a limit in bytes to take them from / write `red(min = 10 KiB, max = 30 KiB)` or `queue 64 KiB red`"
            ),
        );
    }
    queue_says(
        "red(min = 9 kB, max = 9 kB)",
        "the `min` of `red` has to be below its `max` [9 kB] from 9000 to 9000 bytes / `max` is often three times `min`",
    );
    queue_says(
        "60 kB red(max = 9 kB)",
        "the `min` of `red` has to be below its `max` [9 kB] from 10000 to 9000 bytes / `max` is often three times `min`",
    );
    queue_says(
        "60 kB red(probability = 0%)",
        "the probability of `red` is above 0 and at most 100 per cent [0%] out of range / -",
    );
    queue_says(
        "60 kB red(probability = 0.1)",
        "`probability` is a percentage [0.1] expected a percentage such as `10%` / -",
    );
    queue_says("60 kB red(weight = 1.5)", "the weight of `red` is above 0 and at most 1 [1.5] out of range / -");
    let target = "a target is about 5 % of the interval";
    queue_says(
        "codel(target = 100 ms)",
        &format!(
            "the target of `codel` has to be below its interval [100 ms] a target of 100 ms and an interval of 100 ms / {target}"
        ),
    );
    queue_says(
        "fq_codel(interval = 1 ms)",
        &format!(
            "the target of `fq_codel` has to be below its interval [1 ms] a target of 5.00 ms and an interval of 1.00 ms / {target}"
        ),
    );
    queue_says("pie(update = 0)", "`update` has to be above zero and at most 1 hour [0] this is 0 s / -");
    queue_says("pie(target = 5 KiB)", "`target` is a time [5 KiB] expected a time such as `5 ms` / -");
    queue_says("fq_codel(flows = 0)", "`flows` has to be at least 1 [0] this is 0 / -");
    queue_says("fq_codel(quantum = 5 ms)", "`quantum` is a size [5 ms] expected a size such as `10 KiB` / -");
    queue_says(
        "codel(traget = 5 ms)",
        "`codel` has no setting `traget` [traget] expected a setting of this discipline / did you mean `target`?",
    );
    queue_says(
        "pie(flows = 5)",
        "`pie` has no setting `flows` [flows] expected a setting of this discipline / its settings are target, update",
    );
    queue_says(
        "9 kB drop_tail(min = 5)",
        "`drop_tail` has no setting `min` [min] expected a setting of this discipline / leave it out",
    );
    queue_says(
        "codel(target = 5 ms, target = 6 ms)",
        "`target` is written twice [target] already given for this queue / -",
    );
    queue_says("codel()", "unexpected `)` [)] expected a setting, as in `target = 5 ms` / -");
}

#[test]
fn cells_are_queued_in_one_way_only() {
    let network = |switch: &str, link: &str| {
        format!(
            "network w {{ host a, b; switch s {{ cells 53; {switch} }} {link} link s -> a 1 Mbit/s 1 ms; link a -> s 1 Mbit/s 1 ms queue 9 kB codel; }} 1 from a to b rr 1*1 across w in simulated"
        )
    };
    let own = network("queue 30 kB codel;", "link b - s 1 Mbit/s 1 ms;");
    assert_eq!(
        mistake(&own),
        "error: the cells of `s` cannot be queued by `codel` [codel] a switch with `cells` drops what finds no room / leave the discipline out, or the switch's `cells`; `early_packet_discard on` refuses whole frames"
    );
    mentions(&network("", "link b - s 1 Mbit/s 1 ms queue 30 kB fq_codel;"), "cannot be queued by `fq_codel`");
    clean(&network("queue 30 kB drop_tail;", "link b - s 1 Mbit/s 1 ms queue 9 kB;"));
}

#[test]
fn a_network_without_hosts_has_none_to_name() {
    mentions("network w { switch s; } 1 from a to b rr 1*1 across w in simulated", "declare it there: `host a;`");
}
