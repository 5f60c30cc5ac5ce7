//! Networks of other tools: which text each form gives, and what is refused.
#![allow(
    clippy::unwrap_used,
    reason = "what helpers of a test cannot do fails the test"
)]

use proptest::prelude::*;
use stackline_exchange::foreign_network::{forms, read};

/// The text without its comments.
fn text(words: &str) -> String {
    let text = read(words, None, "net").unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| format!("{}\n", line.trim())).collect()
}

fn comments(words: &str) -> String {
    let text = read(words, None, "net").unwrap();
    let lines = text.lines().filter_map(|line| line.strip_prefix("# "));
    lines.collect::<Vec<_>>().join(" ")
}

fn refused(words: &str) -> String {
    let error = read(words, None, "net").unwrap_err();
    format!("{}; {}", error.message, error.hint.unwrap_or_default())
}

/// The links of a text.
fn links(words: &str) -> Vec<String> {
    let all = text(words);
    let links = all.lines().filter_map(|line| line.strip_prefix("link "));
    links.map(str::to_owned).collect()
}

#[test]
fn netem_delay_and_jitter() {
    let line = "tc qdisc add dev eth0 root netem delay 50ms 10ms 25% loss 1% rate 10mbit";
    assert_eq!(
        text(line),
        "network net {\nhost a, b;\nlink a -> b 10 Mbit/s 40 ms jitter uniform(0, 20 ms) correlation 25% loss 1% queue 1000 packets;\nlink b -> a unlimited 0 s;\n}\n"
    );
    let said = comments(line);
    for words in [
        "in order where it has a rate",
        "10000000 bit/s",
        "before its queue",
        "1000 packets, its default",
    ] {
        assert!(said.contains(words), "no `{words}` in {said}");
    }
    let reorders = comments("tc qdisc add dev eth0 root netem delay 50ms 10ms");
    assert!(reorders.contains("overtake each other"), "{reorders}");
    assert!(reorders.contains("at most 240 Mbit/s"), "{reorders}");
}

#[test]
fn netem_clauses() {
    let link = |words: &str| links(&format!("tc qdisc add dev eth0 root netem {words}")).remove(0);
    assert_eq!(
        link("loss random 0.3% duplicate 1%"),
        "a -> b unlimited 0 s loss 0.3% duplicate 1%;"
    );
    assert_eq!(
        link("loss state 1% 30%"),
        "a -> b unlimited 0 s loss state(1%, 30%);"
    );
    assert_eq!(
        link("loss gemodel 1% 25%"),
        "a -> b unlimited 0 s loss gemodel(1%, 25%);"
    );
    assert_eq!(
        link("delay 10ms reorder 25% 50% gap 5"),
        "a -> b unlimited 10 ms reorder 25% correlation 50% gap 5;"
    );
    assert_eq!(
        link("delay 100ms 10ms distribution normal"),
        "a -> b unlimited 60 ms jitter normal(40 ms, 10 ms) reordering;"
    );
    assert_eq!(
        link("loss 10% corrupt 10%"),
        "a -> b unlimited 0 s loss 19%;"
    );
    assert_eq!(
        link("delay 500"),
        "a -> b unlimited 500 us;",
        "microseconds without a unit"
    );
    assert_eq!(
        link("rate 1mbps"),
        "a -> b 8 Mbit/s 0 s queue 1000 packets;",
        "bytes a second"
    );
}

#[test]
fn shapers_and_queues() {
    let link = |words: &str| links(&format!("tc qdisc add dev eth0 root {words}")).remove(0);
    assert_eq!(
        link("tbf rate 1mbit burst 32kbit latency 400ms"),
        "a -> b unlimited 0 s shape 1 Mbit/s burst 4 KiB latency 400 ms;"
    );
    assert_eq!(
        link("fq_codel"),
        "a -> b unlimited 0 s queue 10240 packets fq_codel ecn;"
    );
    assert_eq!(
        link("codel limit 100 target 2ms"),
        "a -> b unlimited 0 s queue 100 packets codel(target = 2 ms);"
    );
    assert_eq!(
        link("pfifo limit 50"),
        "a -> b unlimited 0 s queue 50 packets;"
    );
    let both = "tc qdisc add dev eth0 root handle 1: netem delay 20ms\ntc qdisc add dev eth0 parent 1: tbf rate 5mbit burst 3kb limit 30kb";
    assert_eq!(
        links(both)[0],
        "a -> b unlimited 20 ms shape 5 Mbit/s burst 3 KiB limit 30 KiB;"
    );
    let two =
        "tc qdisc add dev eth0 root netem delay 20ms; tc qdisc add dev eth1 root netem delay 30ms";
    assert_eq!(
        links(two),
        ["a -> b unlimited 20 ms;", "b -> a unlimited 30 ms;"]
    );
}

#[test]
fn what_tc_has_and_a_link_has_not() {
    let netem = |words: &str| refused(&format!("tc qdisc add dev eth0 root netem {words}"));
    assert!(netem("loss 1% 25%").contains("correlation of `loss`"));
    assert!(netem("delay 10ms 2ms distribution pareto").contains("table"));
    assert!(netem("slot 1ms").contains("slot"));
    assert!(netem("delay").contains("missing"));
    assert!(netem("delay fast").contains("fast"));
    assert!(netem("reorder 25%").contains("without a delay"));
    assert!(refused("tc qdisc add dev eth0 root htb default 10").contains("classes"));
    assert!(refused("tc qdisc add dev eth0 parent 1:").contains("names no kind"));
}

#[test]
fn shells_of_mahimahi() {
    let line = "mm-delay 20 mm-link up.trace down.trace --uplink-queue=droptail --uplink-queue-args=\"packets=100\" -- mm-loss uplink 0.1 curl x";
    assert_eq!(
        links(line),
        [
            "inside -> outside trace \"up.trace\" 20 ms loss 10% queue 100 packets;",
            "outside -> inside trace \"down.trace\" 20 ms;"
        ]
    );
    let codel =
        "mm-link a b --downlink-queue=codel --downlink-queue-args=packets=50,target=5,interval=100";
    assert!(links(codel)[1].ends_with("queue 50 packets codel(target = 5 ms, interval = 100 ms);"));
    assert!(refused("mm-onoff uplink 1 1").contains("mm-onoff"));
    assert!(refused("mm-link up.trace").contains("two traces"));
    assert!(refused("mm-loss uplink 2").contains("0 to 1"));
    assert!(refused("mm-link a b --uplink-queue=droptail").contains("limit"));
}

/// Counts of a topology: hosts, switches, links.
fn counts(words: &str) -> (usize, usize, usize) {
    let all = text(words);
    let named = |word: &str| -> usize {
        let lines = all.lines().filter_map(|line| line.strip_prefix(word));
        lines.map(|names| names.split(',').count()).sum()
    };
    (named("host "), named("switch "), links(words).len())
}

#[test]
fn topologies_of_mininet() {
    assert_eq!(counts("mn --topo minimal"), (2, 1, 2));
    assert_eq!(counts("single,3"), (3, 1, 3));
    assert_eq!(counts("mn --topo linear,4"), (4, 4, 7));
    assert_eq!(counts("linear,4,2"), (8, 4, 11));
    // fanout^depth hosts, (fanout^depth - 1) / (fanout - 1) switches, a link above each node but the root.
    assert_eq!(counts("tree,depth=2,fanout=3"), (9, 4, 12));
    assert_eq!(counts("tree,3"), (8, 7, 14));
    // Two links a switch and one a host.
    assert_eq!(counts("torus,3,4"), (12, 12, 36));
    let shaped = links("mn --topo single,2 --link tc,bw=10,delay=5ms,loss=1,max_queue_size=100");
    assert_eq!(
        shaped[0],
        "h1 - s1 10 Mbit/s 5 ms loss 1% queue 100 packets;"
    );
    assert!(refused("tree,depth=20,fanout=20").contains("32768"));
    assert!(refused("single,0").contains("argument"));
}

#[test]
fn python_of_mininet() {
    let file = "from mininet.topo import Topo\nclass MyTopo(Topo):\n    def build(self):\n        left = self.addHost('h1', ip='10.0.0.1')\n        self.addSwitch('s1')\n        self.addLink(left, 's1', bw=10, delay='5ms', cls=TCLink,\n                     loss=2, max_queue_size=50)\n        r = self.addHost(\"h2\")\n        self.addLink('s1', r)\n";
    assert_eq!(
        links(file),
        [
            "h1 - s1 10 Mbit/s 5 ms loss 2% queue 50 packets;",
            "s1 - h2 unlimited 0 s;"
        ]
    );
    let looped = "for i in range(3):\n    net.addHost('h%d' % i)\nnet.addLink('a', 'b')\n";
    assert!(refused(looped).contains("line 2") && refused(looped).contains("loop"));
    assert!(refused("net.addLink('a', 'b')\n").contains("`'a'`"));
    assert!(refused("h = net.addHost(f'h{n}')\nnet.addLink(h, h)\n").contains("computed"));
    assert!(
        refused("net.addHost('a')\nnet.addHost('b')\nnet.addLink('a', 'b', **opts)\n")
            .contains("line 3")
    );
    assert!(refused("net.addLink('a', ").contains("`)`"));
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,200}") {
        for (form, _) in forms() {
            let _ = read(&text, Some(form), "net");
        }
    }

    #[test]
    fn any_words_of_tc_are_read_or_refused(words in "[a-z0-9% .:]{0,80}") {
        let _ = read(&format!("tc qdisc add dev eth0 root netem {words}"), Some("tc"), "net");
        let _ = read(&format!("tree,{words}"), Some("mininet"), "net");
        let _ = read(&format!("mm-link {words}"), Some("mahimahi"), "net");
    }
}
