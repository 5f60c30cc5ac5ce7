//! What commands print with `--json` against `docs/reference/schema.json`: every output is as it says, and nothing that it says is
//! never printed.

mod outputs;

use crate::captures::{end, pipelined};
use crate::kept::Kept;
use crate::support::blocks::Site;
use crate::support::{Place, skip};
use outputs::Outputs;

/// Values that none of these outputs have.
const NOT_HERE: [(&str, &str); 10] = [
    ("host_usage.absent", "this kernel counts everything"),
    ("line.times", "nothing was asked for again"),
    ("factor_response.why_none", "every response has an answer"),
    ("loaded_phase.absent", "every phase is measured"),
    ("load_step.lost_share", "tcp loses no call"),
    ("highest_rate.failed.offered_per_s", "no run fails"),
    ("highest_rate.failed.reason", "no run fails"),
    ("loaded_path.http", "no web server is asked"),
    ("loaded_phase.self_latency_s", "no web server is asked"),
    ("round_trip_rates.self", "no web server is asked"),
];

#[test]
fn outputs_are_as_the_schema_says() {
    let mut outputs = Outputs::new();
    let groups: [fn(&mut Outputs); 16] = [
        live_results,
        simulated_results,
        pairs_and_changes,
        mistakes_and_failures,
        plans_and_networks,
        findings_and_predictions,
        bufferbloat,
        probes,
        load,
        factors,
        catalogues,
        requests,
        logs_and_monitors,
        blocks,
        displays,
        papers,
    ];
    groups.iter().for_each(|group| group(&mut outputs));
    let all = emulated(&mut outputs) & traced(&mut outputs);
    assert!(outputs.wrong.is_empty(), "{}", outputs.wrong.join("\n"));
    let never = outputs.never_printed();
    let expected = |path: &String| NOT_HERE.iter().any(|(known, _)| known == path);
    let never: Vec<&String> = never.iter().filter(|path| !expected(path)).collect();
    assert!(!all || never.is_empty(), "never printed: {never:#?}");
}

fn probes(outputs: &mut Outputs) {
    let place = Place::new();
    let once = ["probe", "--json", "--count", "1", "--name", "p", "-e"];
    // One that is traced, loses packets and fires an alert; one that moves data without a response; one that fails.
    let lossy = "network n { host a, b; link a - b 10 Mbit/s 5 ms queue 5 packets; } \
                 1 from a to b bulk_put 1000*500 over udp across n in simulated; 1 from a to b rr 32*20 across n in simulated";
    let traced = ["--trace", "--alert", "mean > 1 us"];
    outputs.collect("probe", &place, &[&once[..], &[lossy], &traced].concat());
    let failing = "1 to \"http://127.0.0.1:1/\" rr 0*1";
    outputs.collect("probe", &place, &[&once[..], &[failing]].concat());
    outputs.collect("probe_list", &place, &["probe", "list", "--json"]);
    outputs.collect("probe_show", &place, &["probe", "show", "p", "--json"]);
}

fn live_results(outputs: &mut Outputs) {
    let place = Place::new();
    let text = "3 rr 32*50; 2 bulk_put 1 KiB*100 over unix; 2 connect_disconnect 0*20; 2 timelimit 0.3 bulk_put 64 KiB over unix; \
                2 timelimit 0.3 rr 32 over unix";
    outputs.collect("run", &place, &["run", "--json", "-e", text]);
    let words = ["show", "--json", "--percentiles", "50,99.99", "last"];
    outputs.collect("run", &place, &words);
    let failing = "1 rr 32*10; 1 bulk_get 1000*10 < file in";
    outputs.collect("run", &place, &["run", "--json", "-e", failing]);
    place
        .stackline(&["runs", "note", "last", "fails"])
        .succeeds();
    place
        .stackline(&["runs", "tag", "last", "nightly"])
        .succeeds();
    place.write("runs/20260101-000000-half/plan.json", "{}");
    let hosts = "host a, b; 1 from a to b rr 32*5;";
    outputs.collect("run", &place, &["run", "--json", "-e", hosts]);
    outputs.collect("runs", &place, &["runs", "--json"]);
    outputs.collect("archive", &place, &["archive", "--json"]);
}

fn simulated_results(outputs: &mut Outputs) {
    let place = Place::new();
    let text = "network n { host a, b; link a - b 10 Mbit/s 5 ms loss every 50; }
        procedure connects {
          initiator { StartMeasurement; repeat count { ConnectRequest; RpcCall(unit, reply); DisconnectRequest; } StopMeasurement; }
          responder { repeat count { AwaitConnectIndication; RpcAwaitCallInd(unit); RpcReturn(reply); AwaitDisconnectIndication; } }
        }
        2 from a to b connects 32*20 across n in simulated;
        2 from a to b rr 32*50 constant(1 ms) across n in simulated;
        2 parallel across n in simulated: from a to b bulk_put 1000*50 | from b to a bulk_put 1000*50;
        1 from a to b bulk_put N*50 over udp across n in simulated; N = 100, 1000;";
    let paced = "network n { host a, b; link a - b 10 Mbit/s 5 ms loss every 50; }
        1 from a to b stream 1000*500 2 Mbit/s over udp across n in simulated;
        1 2 from a to b rr 32*50 over tcp across n in simulated;";
    outputs.collect("run", &place, &["run", "--json", "-i", "0.5", "-e", paced]);
    place.write("runs.stackline", text);
    for name in ["before", "after"] {
        let words = ["run", "--trace", "--json", "--name", name, "runs.stackline"];
        outputs.collect("run", &place, &words);
    }
    outputs.collect("compare", &place, &["compare", "--json", "before", "after"]);
    slower(outputs, &place);
    let words = ["lifelines", "--json", "--lines", "before"];
    outputs.collect("lifelines", &place, &words);
}

/// A gate that something does not pass.
fn slower(outputs: &mut Outputs, place: &Place) {
    let network =
        |rate: &str| format!("network n {{ host a, b; link a - b {rate} 5 ms loss 1%; }}");
    for (name, rate) in [("fast", "10 Mbit/s"), ("slow", "5 Mbit/s")] {
        let text = format!(
            "{} 3 from a to b bulk_put 1000*300 over tcp across n in simulated;",
            network(rate)
        );
        let words = ["run", "--json", "--name", name, "-e", &text];
        outputs.collect("run", place, &words);
    }
    let gate = ["compare", "--json", "fast", "slow", "--fail-above", "5%"];
    outputs.collect("compare", place, &gate);
    let save = ["gate", "--json", "--save", "fast.json", "fast"];
    outputs.collect("saved_baseline", place, &save);
    let gate = ["gate", "--json", "fast.json", "slow"];
    outputs.collect("regression_gate", place, &gate);
    // Few runs with a large spread leave it undecided, and say how many would decide.
    for (name, seed) in [("one", "1"), ("other", "2")] {
        let text = "network n { host a, b; link a - b 10 Mbit/s 5 ms loss 5%; }
            3 from a to b rr 32*30 across n in simulated expect p99 < 1 ms;";
        let words = ["run", "--json", "--name", name, "--seed", seed, "-e", text];
        outputs.collect("run", place, &words);
        let plan = ["plan", "--json", "-e", text];
        outputs.collect("plan", place, &plan);
    }
    let gate = ["gate", "--json", "one", "other", "--worse", "0.1%"];
    outputs.collect("regression_gate", place, &gate);
    let text = format!(
        "{} 3 from a to b bulk_put 1000*300 over tcp across n in simulated expect throughput > 1 kbit/s;",
        network("10 Mbit/s")
    );
    let words = ["run", "--json", "--against", "fast.json", "-e", &text];
    outputs.collect("run", place, &words);
}

/// Pairs, segments and change points of calls whose network changes.
fn pairs_and_changes(outputs: &mut Outputs) {
    let place = Place::new();
    let calls = |delay: &str| {
        format!(
            "network n {{ host a, b; link a - b 10 Mbit/s {delay}; }} 3 from a to b rr 32*20 over tcp across n in simulated;"
        )
    };
    let (before, after) = (calls("5 ms"), calls("6 ms"));
    for text in [&before, &before, &after, &after] {
        let words = ["run", "--trace", "--name", "kept", "-e", text];
        place.stackline(&words).succeeds();
    }
    place
        .stackline(&["runs", "tag", "last~1", "kernel"])
        .succeeds();
    let changes = ["runs", "changes", "--json"];
    outputs.collect("change_points", &place, &changes);
    let segments = ["gate", "--json", "last~2", "last", "--segments"];
    outputs.collect("regression_gate", &place, &segments);
    let pairs = ["ab", "--json", "-e", &before, "-e", &after];
    outputs.collect("paired_gate", &place, &pairs);
}

fn mistakes_and_failures(outputs: &mut Outputs) {
    let place = Place::new();
    for wrong in ["1 rr 32", "1 rr 32*5 over tcpp"] {
        outputs.collect("mistakes", &place, &["check", "--json", "-e", wrong]);
    }
    outputs.collect("failure", &place, &["show", "--json", "nothing"]);
    for right in ["1 rr 32*5", "2 timelimit 5 rr 32*5"] {
        outputs.collect("check", &place, &["check", "--json", "-e", right]);
    }
    place.write("right.md", "```stackline\n1 rr 32*5;\n```\n");
    outputs.collect("check", &place, &["check", "--json", "right.md"]);
    place.write("wrong.md", "```stackline\n1 rr 32\n```\n");
    outputs.collect("mistakes", &place, &["check", "--json", "wrong.md"]);
}

/// What can be declared of networks.
const NETWORKS: &str = "network odd {
  host a { buffer 2 frames; single_buffered; copy 1.35 ms per packet, 0.47 us per byte; cpu 2; share 50%; }
  host b { pace 5 Mbit/s; clock behind 20 ms; clock fast 12.5 ppm; clock ahead 1 s at 10 s; work 1 ms per message; polls 200 ms; priority messages; }
  host c, d; switch x { buffer 256 KiB per port; cells 53; } switch y { queue 256 KiB fq_codel ecn; }
  link a - x 10 Mbit/s 5 us charge wire mtu 9180;
  link x -> y schedule(0 s 8 Mbit/s, 5 s 0 bit/s, 5.2 s 8 Mbit/s) every 10 s 270 ms loss gilbert_elliott(0.5%, 20%);
  link y -> x 512 kbit/s 270 ms jitter exponential(2 ms) reordering duplicate 0.1% queue 50 packets red(min = 10 kB, max = 30 kB);
  link y - b trace \"up\" schedule(0 s 1 ms, 2 s 3 ms) every 4 s loss schedule(0 s 0%, 3 s 2%);
  link y - c unlimited 1 ms loss packets 3, 7;
  host e; link y - e unlimited 1 ms loss every 100;
  link y - d 1 Gbit/s 1 ms loss bit errors 1e-6 queue 64 KiB codel(target = 5 ms);
  host f; link y - f 1 Gbit/s 1 ms loss state(1%, 50%) shape 10 Mbit/s burst 9 kB police 20 Mbit/s burst 9 kB remark af12
    dscp 8 reorder 1% correlation 25% gap 5 queue classes(ef strict 20 packets, af41 weight 3 64 KiB codel, default weight 1);
}
network routed {
  host p { route default via r; } host q; link p - r 1 Gbit/s 1 ms; link r - s 1 Gbit/s 1 ms; link s - q 1 Gbit/s 1 ms;
  router r { icmp off; route q via s; nat on s; firewall on s reject; } router s;
}
network imps {
  imp P 316 { reassembly 10; window 4; channels 8; buffers 30; } imp Q tip { routing september; }
  host v { down from 5 s to 20 s; } host w { fake word; }
  link v - P 100 kbit/s 0 us; link w - Q unlimited 0 us; link P - Q 50 kbit/s 5 ms;
}";

fn plans_and_networks(outputs: &mut Outputs) {
    let place = Place::new();
    place.write("up", "100\n150\n2150\n");
    place.write("odd.stackline", NETWORKS);
    let words = ["net", "show", "--json", "odd.stackline"];
    outputs.collect("net_show", &place, &words);
    let text = "host h via ssh \"h.example\" at \"10.1.2.3\" on cpu 1 files \"/tmp\"; host l share 50%;
        network wan { host a, b; link a - b 10 Mbit/s 5 ms loss 1%; }
        3 timelimit 5 from h to h rr 32, 64;
        1 from h to h rr N*10; N = 32, 64;
        1 2 from h to h rr 32*10 rate 9/s total;
        3 until 5% at most 20 warmup 1 s from a to b bulk_put uniform(10, 5000)*50 over tcp(nodelay, receive_buffer = 64 KiB) across wan in simulated;
        1 from h to h bulk_get 1000*10 < file in;";
    outputs.collect("plan", &place, &["plan", "--json", "-e", text]);
}

/// Nine hosts whose data crosses a link with a short queue.
fn crowded() -> String {
    let hosts = (1..=9).map(|n| format!("host h{n}; link h{n} - x 10 Mbit/s 1 ms; "));
    let parts: Vec<String> = (1..=9)
        .map(|n| format!("from h{n} to b bulk_put 1000*20 over tcp"))
        .collect();
    format!(
        "network n {{ {} host b; switch x; link x - b 10 Mbit/s 1 ms queue 3000 B; }} 1 parallel across n in simulated: {};",
        hosts.collect::<String>(),
        parts.join(" | ")
    )
}

fn findings_and_predictions(outputs: &mut Outputs) {
    let place = Place::new();
    place.write("crowded.stackline", crowded());
    for name in ["first", "second"] {
        let words = ["run", "--trace", "--name", name, "crowded.stackline"];
        place.stackline(&words).succeeds();
    }
    outputs.collect("compare", &place, &["compare", "--json", "first", "second"]);
    let words = ["lifelines", "--json", "--by", "host", "first"];
    outputs.collect("lifelines", &place, &words);
    let text = "network n { host a, b; switch x; link a - x 10 Mbit/s 5 ms; link x - b 1 Mbit/s 5 ms queue 3000 B; }
        1 from a to b bulk_put 1000*500 over tcp across n in simulated;
        1 from a to b rr 32*50 over tcp across n in simulated;
        1 from a to b bulk_put 1000*500 over discard across n in simulated;";
    place.write("queue.stackline", text);
    let words = ["run", "--trace", "--name", "queue", "queue.stackline"];
    place.stackline(&words).succeeds();
    outputs.collect("diagnose", &place, &["diagnose", "--json", "queue"]);
    outputs.collect("predict", &place, &["predict", "--json", "queue.stackline"]);
    let words = ["predict", "--json", "--run", "queue", "queue.stackline"];
    outputs.collect("predict", &place, &words);
    let text = "network wan { host a, b; link a - b 10 Mbit/s 1 ms loss 100%; } 1 from a to b rr 32*10 across wan in simulated";
    outputs.collect("predict", &place, &["predict", "--json", "-e", text]);
}

fn bufferbloat(outputs: &mut Outputs) {
    let place = Place::new();
    let line = ["--down", "10 Mbit/s", "--up", "1 Mbit/s", "--seconds", "1"];
    let words = [&["bufferbloat", "--json"][..], &line].concat();
    outputs.collect("bufferbloat", &place, &words);
}

fn load(outputs: &mut Outputs) {
    let place = Place::new();
    let text = "2 timelimit 0.5 rr 64 poisson 9/s service 1 ms in simulated;";
    let words = ["load", "--json", "-e", text];
    outputs.collect("load", &place, &[&words[..], &["--steps", "5"]].concat());
    let meet = ["--meet", "p99 < 5 ms", "--precision", "50%"];
    outputs.collect("load", &place, &[&words[..], &meet].concat());
}

fn factors(outputs: &mut Outputs) {
    let place = Place::new();
    let text =
        "network n { host a, b; switch s; link a - s 1 Mbit/s 2 ms; link s - b 10 Mbit/s 20 ms; }
        2 from a to b rr 1000, 200*30 over tcp(nodelay) across n;";
    place.write("calls.stackline", text);
    let varied = [
        "-f",
        "bandwidth of a - s x 10",
        "-f",
        "delay of s - b x 0.5",
        "-f",
        "bandwidth of s - b x 2",
    ];
    let words = ["factors", "--json", "calls.stackline", "--centre", "2"];
    let priced = [
        "--design",
        "fraction=4",
        "--cost",
        "bandwidth of a - s x 10 = 300",
    ];
    outputs.collect("factors", &place, &[&words[..], &priced, &varied].concat());
    place.write("lan.stackline", LAN);
    let words = [
        "display",
        "factors",
        "--json",
        "--across",
        "lan.stackline",
        "-f",
        "bandwidth x 4",
        "-f",
        "cpu of vax x 2",
        "--trials",
        "2",
    ];
    outputs.collect("factors", &place, &words);
}

fn catalogues(outputs: &mut Outputs) {
    let place = Place::new();
    for world in ["live", "emulated", "simulated"] {
        outputs.collect("stacks", &place, &["stacks", "--json", "--in", world]);
    }
    outputs.collect("keywords", &place, &["keywords", "--json"]);
    outputs.collect("clean", &place, &["clean", "--json"]);
}

/// Requests of programs that are not ours, in captures of both ends.
fn requests(outputs: &mut Outputs) {
    let place = Place::new();
    place.write("client.pcap", end(false));
    place.write("server.pcap", end(true));
    for name in ["one", "other"] {
        let words = [
            "import",
            "--json",
            "client.pcap",
            "server.pcap",
            "--name",
            name,
        ];
        outputs.collect("import", &place, &words);
    }
    outputs.collect("diagnose", &place, &["diagnose", "--json", "one"]);
    let words = ["lifelines", "--json", "--lines", "one"];
    outputs.collect("lifelines", &place, &words);
    outputs.collect("compare", &place, &["compare", "--json", "one", "other"]);
    place.write("many.pcap", pipelined(5000));
    outputs.collect("import", &place, &["import", "--json", "many.pcap"]);
}

fn logs_and_monitors(outputs: &mut Outputs) {
    let place = Place::new();
    let log = "DPSS_START_WRITE; dpss1; 9; 1\nAPP_SEND; khons; 10; 0; 7; 1; 0; 49152\nnonsense\n";
    place.write("server.log", log);
    let words = ["import", "--json", "server.log", "--clock", "dpss1=1s"];
    outputs.collect("import", &place, &words);
    let transfer = "TCP_CONNECTION; khons; 9; 1; 2; 10.0.0.1:9; 10.0.0.2:80; 2000000000; 1000000; ; ; 1000000; 0; 0; 0; 0; 0; 600000000; initiator; closed\n\
        TCP_TRANSFER; khons; 9; 1; 2; backup; curl; 9; 1800000000; 0; 0\n\
        TCP_GOODPUT; khons; 9; 1; 2; 200000000; 1000000\n\
        TCP_INFO; khons; 10; 1; 1000000000; 2; 10.0.0.1:9; 10.0.0.2:80; 64000; 64000; 1000000; 0; 900000000; 0; 500000000; ; 0; ; 1448; 1000000\n";
    place.write("transfer.log", transfer);
    place
        .stackline(&["import", "transfer.log", "--name", "transfer"])
        .succeeds();
    outputs.collect("diagnose", &place, &["diagnose", "--json", "transfer"]);
    let lines = place.stackline(&["watch", "--json", "--for", "300ms"]);
    for line in lines.succeeds().out.lines() {
        outputs.take("watch", &serde_json::from_str(line).unwrap());
    }
}

fn blocks(outputs: &mut Outputs) {
    let site = Site::new(1);
    let mut bytes = Vec::new();
    let mut picture = png::Encoder::new(&mut bytes, 200, 150);
    picture.set_color(png::ColorType::Rgb);
    let pixels = vec![7; 200 * 150 * 3];
    let mut writer = picture.write_header().unwrap();
    writer.write_image_data(&pixels).unwrap();
    writer.finish().unwrap();
    site.place.write("map.png", &bytes);
    site.blocks(&["load", "map", "map.png"]).succeeds();
    outputs.take("blocks_list", &site.blocks(&["list", "--json"]).json());
    let place = Place::new();
    let network = "network atm { host s1, s2, s3, master, app; switch x { buffer 1500 bytes per port; cells 53; }
        link s1 - x 155.52 Mbit/s 100 us mtu 9180; link s2 - x 155.52 Mbit/s 100 us mtu 9180; link s3 - x 155.52 Mbit/s 100 us mtu 9180;
        link master - x 155.52 Mbit/s 100 us mtu 9180; link app - x 155.52 Mbit/s 100 us mtu 9180; }";
    place.write("atm.stackline", network);
    let session = [
        "blocks",
        "replay",
        "--json",
        "--across",
        "atm.stackline",
        "--in",
        "simulated",
        "--interval",
        "200ms",
        "--for",
        "2s",
        "--disk",
        "exponential(12 ms)",
        "--blocks",
        "60",
    ];
    outputs.collect("blocks_replay", &place, &session);
    outputs.collect("diagnose", &place, &["diagnose", "--json", "last"]);
    outputs.collect("lifelines", &place, &["lifelines", "--json", "last"]);
}

/// A display and its client, between them a host for an internet server.
const LAN: &str = "network lan { host sun, gateway; host vax { work 1 ms per message, 4 ms per operation; } switch x;
    link sun - x 10 Mbit/s 1 ms; link gateway - x 10 Mbit/s 1 ms; link vax - x 10 Mbit/s 1 ms; }\n";

fn displays(outputs: &mut Outputs) {
    let place = Place::new();
    place.write("lan.stackline", LAN);
    let words = [
        "display",
        "bench",
        "--json",
        "--across",
        "lan.stackline",
        "--picture",
        "vectors",
        "--trials",
        "2",
        "--level",
        "batched",
    ];
    let kept = [&words[..], &["--keep", "kept"]].concat();
    outputs.collect("display_bench", &place, &kept);
    let two = ["--internet", "sun", "--beside", "gateway"];
    outputs.collect("display_bench", &place, &[&words[..], &two].concat());
}

fn papers(outputs: &mut Outputs) {
    let place = Place::new();
    outputs.collect("reproduce_list", &place, &["reproduce", "--json"]);
    let few = ["--transfers", "10", "--precision", "50", "--runs", "2"];
    let words = [&["reproduce", "blast", "--json"][..], &few].concat();
    outputs.collect("reproduce", &place, &words);
    let words = ["reproduce", "vsystem", "--json", "--only", "Table 3-1"];
    outputs.collect(
        "reproduce",
        &place,
        &[&words[..], &["--runs", "0"]].concat(),
    );
    let text = "network pair { imp A, B 516; host x, y; link x - A 100 kbit/s 0 us; link y - B 100 kbit/s 0 us; link A - B 50 kbit/s 5 ms; }
        1 from x to y bulk_put 1003 40 kB over ncp across pair;";
    place.stackline(&["run", "--trace", "-e", text]).succeeds();
    outputs.collect("ncc", &place, &["ncc", "--json", "last"]);
    let words = ["ncc", "--json", "--each", "2s", "last"];
    outputs.collect("ncc_each", &place, &words);
}

/// Whether this machine has emulated networks.
fn emulated(outputs: &mut Outputs) -> bool {
    let Some(network) = Kept::up("schema", "100 Mbit/s") else {
        return false;
    };
    let set = ["net", "set", &network.name, "khons-s", "--delay", "7 ms"];
    network.stackline(&set).succeeds();
    let list = network.stackline(&["net", "list", "--json"]);
    outputs.take("net_list", &list.json());
    let text = "network measured { host a, b; link a - b 10 Mbit/s 5 ms; } 2 from a to b rr 32*20 across measured in emulated";
    let words = ["run", "--json", "-e", text];
    outputs.collect("run", &Place::new(), &words);
    true
}

/// Whether this machine can trace programs.
fn traced(outputs: &mut Outputs) -> bool {
    let place = Place::new();
    let output = place.stackline(&["trace", "--json", "--", "true"]);
    if output.status.code() == Some(3) {
        skip(&output.err);
        return false;
    }
    outputs.take("trace", &output.json());
    true
}
