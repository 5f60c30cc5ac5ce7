//! What the language means: texts to plans.

mod common;

use common::{clean, context, plan, texts};
use stackline_core::distribution::Distribution;
use stackline_core::network::{LinkRate, LossModel};
use stackline_core::plan::{
    Composer, DataAccess, HostPlan, Size, StoppingCriterion, UnitCount, Via, Warmup, World,
    describe_swept_values,
};
use stackline_core::procedure::{OperationCall, PairSide};
use stackline_core::time::Duration;
use stackline_spec::{Overrides, check, host_argument};

const WAN: &str = "
network wan {
  host khons, udjat;
  switch edge { buffer 1500 bytes per port; cells 53; early_packet_discard off }
  link khons - edge  100 Mbit/s  1 ms;
  link edge  - udjat 100 Mbit/s  6 ms  loss 0.01%  mtu 9180;
}
";

#[test]
fn the_worked_example_of_spims() {
    let plan = clean(
        "host khons via local; host udjat via local; 100 from khons to udjat bulk_get bytes 1024*1000 < memory > memory;",
    );
    let measurement = &plan.measurements[0];
    assert_eq!(
        (measurement.runs, measurement.composer, measurement.world),
        (100, Composer::Basic, World::Live)
    );
    let part = &measurement.parts[0];
    assert_eq!(
        (part.from.as_deref(), part.to.as_deref(), part.replicas),
        (Some("khons"), Some("udjat"), 1)
    );
    assert_eq!(
        (&part.data.unit, part.data.count),
        (&Size::Bytes(1024), UnitCount::Units(1000))
    );
    assert_eq!(
        (&part.source, &part.destination, part.stack.name.as_str()),
        (&DataAccess::Memory, &DataAccess::Memory, "tcp")
    );
    assert_eq!(
        measurement.text,
        "100 from khons to udjat bulk_get bytes 1024*1000 < memory > memory"
    );
}

#[test]
fn every_printed_specification_parses() {
    let example = include_str!("../../../../examples/spims.stackline");
    let measurements = plan(example).measurements;
    assert_eq!(measurements.len(), 4 + 6 + 6 + 10 + 5 + 7);
    // With commas as terminators, as Appendix B prints them, and in any case.
    let specifications: String = example
        .lines()
        .filter(|l| !l.starts_with('#') && !l.starts_with("host"))
        .collect::<Vec<_>>()
        .join("\n");
    let hosts = "host khons, udjat via local;";
    let commas = format!("{hosts}{}", specifications.replace(';', ","));
    assert_eq!(plan(&commas).measurements.len(), measurements.len());
    let upper = format!(
        "{hosts}{}",
        specifications
            .to_uppercase()
            .replace("KHONS", "khons")
            .replace("UDJAT", "udjat")
    );
    let capitals = plan(&upper).measurements;
    assert!(
        capitals
            .iter()
            .zip(&measurements)
            .all(|(a, b)| a.text == b.text)
    );
}

#[test]
fn the_examples_of_the_manual_page() {
    let text = "
        10 background: request_response 32*1000 | 5 bulk_get 1024*3000;
        10 timelimit 5 parallel: 4 bulk_get 1024*1000;
        10 request_response N*1000; N = 1, 8, 64 ... 4096
    ";
    let plan = clean(text);
    assert_eq!(plan.measurements.len(), 7);
    assert!(!plan.measurements[0].parts[0].background && plan.measurements[0].parts[1].background);
    assert_eq!(
        plan.measurements[1].time_limit,
        Some(Duration::from_seconds(5.0))
    );
    assert_eq!(plan.measurements[1].parts[0].replicas, 4);
    assert_eq!(plan.measurements[6].variables, [("N".to_string(), 4096.0)]);
    assert_eq!(plan.measurements[6].text, "10 request_response 4096*1000");
    assert_eq!(plan.measurements[6].line, 4);
}

#[test]
fn what_swept_values_are_about_is_known_from_their_unit_or_their_place() {
    let swept = |text: &str| {
        let plan = clean(text);
        let last = plan.measurements.last().unwrap();
        describe_swept_values(&last.variables, &last.variable_units)
    };
    assert_eq!(swept("1 rr N*1000; N = 1, 4096"), "N = 4 KiB");
    assert_eq!(swept("1 rr 1*N; N = 1, 4096"), "N = 4096");
    assert_eq!(
        swept("1 rr 32*10 over tcp(receive_buffer = <W>); W = 64 KiB, 1 MiB"),
        "W = 1 MiB"
    );
    let network =
        "network way { host a, b; link a - b <R> Mbit/s <D> loss <L> queue <Q> packets; }";
    let across = "1 from a to b bulk_put 1 KiB 1 MB across way in simulated";
    assert_eq!(
        swept(&format!(
            "{network} {across}; R = 10, 50; D = 40 ms; L = 1%; Q = 20, 30"
        )),
        "R = 50 Mbit/s, D = 40 ms, L = 1 %, Q = 30"
    );
    // Plain numbers take no room in a plan.
    assert_eq!(
        clean("1 rr 1*N; N = 1, 2").measurements[0].variable_units,
        []
    );
}

#[test]
fn the_first_example_is_clean() {
    assert_eq!(
        clean(include_str!("../../../../examples/first.stackline"))
            .measurements
            .len(),
        3
    );
}

#[test]
fn a_network_and_a_measurement_across_it() {
    let text = format!(
        "{WAN}10 parallel over tcp across wan in simulated: 3 from khons to udjat bulk_put 49152*200 | from udjat to khons rr 32*1000;"
    );
    let plan = plan(&text);
    let network = &plan.networks[0];
    assert_eq!(
        network
            .hosts
            .iter()
            .map(|host| host.name.as_str())
            .collect::<Vec<_>>(),
        ["khons", "udjat"]
    );
    assert_eq!(network.switches[0].buffer_bytes, Some(1500));
    assert!(network.switches[0].buffer_per_port && !network.switches[0].early_packet_discard);
    assert_eq!(network.switches[0].cell_bytes, Some(53));
    assert_eq!(network.links[1].delay, Duration::from_seconds(0.006));
    assert_eq!(network.links[1].loss, LossModel::Independent(0.0001));
    assert_eq!(network.links[0].rate, LinkRate::Constant(1e8));
    assert_eq!(network.links[1].mtu_bytes, Some(9180));
    let measurement = &plan.measurements[0];
    assert_eq!(
        (measurement.across.as_deref(), measurement.world),
        (Some("wan"), World::Simulated)
    );
    assert_eq!(plan.hosts["khons"], HostPlan::default());
    assert_eq!(
        measurement.parts[1].text,
        "from udjat to khons rr 32*1000 over tcp"
    );
}

#[test]
fn what_crosses_a_network_is_simulated_unless_the_text_says_otherwise() {
    let text = format!("{WAN}10 across_ 1;").replace(
        "10 across_ 1;",
        "10 from khons to udjat rr 32*10 across wan;",
    );
    let checked = common::checked(&text);
    assert!(!common::shown(&text, &checked.diagnostics).contains("live"));
    assert_eq!(
        checked.plan.unwrap().measurements[0].world,
        World::Simulated
    );
    let live = check(
        &text,
        &context(),
        &Overrides {
            world: Some(World::Live),
            ..Overrides::default()
        },
    );
    assert!(live.plan.is_none());
    assert!(
        common::shown(&text, &live.diagnostics)
            .contains("the live world cannot model the network `wan`")
    );
    let simulated = Overrides {
        world: Some(World::Simulated),
        ..Overrides::default()
    };
    let checked = check(&text, &context(), &simulated);
    assert!(!common::shown(&text, &checked.diagnostics).contains("live"));
    assert_eq!(
        checked.plan.unwrap().measurements[0].text,
        "10 from khons to udjat rr 32*10 across wan in simulated"
    );
}

#[test]
fn the_only_network_that_has_the_hosts_is_the_one() {
    let modelled = [World::Simulated, World::Emulated];
    let text = format!("{WAN}10 from khons to udjat rr 32*10;");
    for world in modelled {
        let checked = check(
            &text,
            &context(),
            &Overrides {
                world: Some(world),
                ..Overrides::default()
            },
        );
        assert_eq!(
            checked.plan.unwrap().measurements[0].across.as_deref(),
            Some("wan")
        );
    }
    assert_eq!(
        plan(&format!(
            "{WAN}10 from khons to udjat rr 32*10 in simulated;"
        ))
        .measurements[0]
            .world,
        World::Simulated
    );
    for wrong in [
        text,
        format!("{WAN}10 from khons to nowhere rr 32*10 in simulated;"),
    ] {
        let checked = common::checked(&wrong);
        assert!(
            common::shown(&wrong, &checked.diagnostics).contains("unknown host"),
            "{wrong}"
        );
    }
}

#[test]
fn stacks_of_the_command_line_come_in_place_of_wrong_ones() {
    let text = "1 rr 1*10 over tpc(nodelya) | rr 1*10 over udp(nodelay);"
        .replace("1 rr", "1 parallel: rr");
    assert!(common::checked(&text).plan.is_none());
    let checked = check(
        &text,
        &context(),
        &Overrides {
            over: Some("quic".into()),
            ..Overrides::default()
        },
    );
    let plan = checked
        .plan
        .unwrap_or_else(|| panic!("{}", common::shown(&text, &checked.diagnostics)));
    assert!(
        plan.measurements[0]
            .parts
            .iter()
            .all(|part| part.stack.name == "quic")
    );
}

#[test]
fn drawn_sizes_are_no_smaller_than_their_stack_carries() {
    let drawn = |text: &str| {
        plan(text)
            .measurements
            .remove(0)
            .parts
            .remove(0)
            .data
            .least_drawn
    };
    assert_eq!(drawn("1 stream exponential(100)*10 over udp"), 16);
    assert_eq!(drawn("1 rr exponential(100)*10 over udp"), 1);
    assert!(
        common::checked("1 stream uniform(1, 100)*10 over udp")
            .plan
            .is_none()
    );
}

#[test]
fn sizes_counts_and_ends() {
    let part = |text: &str| plan(text).measurements.remove(0).parts.remove(0);
    assert_eq!(part("1 bulk_get 64 KiB*10").data.unit, Size::Bytes(65_536));
    assert_eq!(
        part("1 bulk_get 64KiB 10MB").data.count,
        UnitCount::Amount(10_000_000)
    );
    assert_eq!(
        part("1 bulk_get uniform(1 KiB, 2 KiB)*10").data.unit,
        Size::Drawn(Distribution::Uniform(1024.0, 2048.0))
    );
    assert_eq!(
        part("1 bulk_get constant(1 KiB)*10").data.unit,
        Size::Bytes(1024)
    );
    assert_eq!(
        part("1 bulk_get empirical(FILE \"sizes.txt\")*10")
            .data
            .unit,
        Size::Drawn(Distribution::Empirical(vec![64.0, 1500.0]))
    );
    assert_eq!(
        part("1 bulk_get 1024*10 < FILE data.bin > VIRTUAL MEMORY").source,
        DataAccess::File("data.bin".into())
    );
    assert_eq!(
        part("1 bulk_get 1024*10 < FILE \"data.bin\" > virtual-memory").destination,
        DataAccess::VirtualMemory
    );
    assert_eq!(part("1 conn_disc 0*1000").data.unit, Size::Bytes(0));
    assert_eq!(
        part("1 timelimit 2 conn-disc 0").data.count,
        UnitCount::Unlimited
    );
    let timed = part("1 rr 32*10 exponential(20 ms) constant(0.5)");
    assert_eq!(
        timed.data.timings,
        [Distribution::Exponential(0.02), Distribution::Constant(0.5)]
    );
    assert_eq!(
        part("1 rr 32*10 exponential(1) on cpu 2").cpu,
        (Some(2), Some(2))
    );
    assert_eq!(
        part("1 rr 32*10 on cpu 2 to 3 exponential(1)").cpu,
        (Some(2), Some(3))
    );
    assert_eq!(
        part("1 parallel on cpu 1: rr 32*10 on cpu 2 to 3 | rr 1*1").cpu,
        (Some(2), Some(3))
    );
}

#[test]
fn heads_in_any_order() {
    let plan = plan(
        "10 warmup 2 until 2% at most 50 timelimit 500 ms rr 32*10; 3 warmup 2 s until 5% rr 1*1; 3 rr 1*1",
    );
    let m = &plan.measurements[0];
    assert_eq!(
        m.until,
        Some(StoppingCriterion {
            share: 0.02,
            at_most: 50
        })
    );
    assert_eq!(
        (m.warmup, m.time_limit),
        (Warmup::Runs(2), Some(Duration::from_seconds(0.5)))
    );
    let m = &plan.measurements[1];
    assert_eq!(m.warmup, Warmup::Time(Duration::from_seconds(2.0)));
    assert_eq!(
        m.until,
        Some(StoppingCriterion {
            share: 0.05,
            at_most: 100
        })
    );
    assert_eq!(
        (plan.measurements[2].until, plan.measurements[2].warmup),
        (None, Warmup::Runs(0))
    );
}

#[test]
fn stacks_multiply() {
    let plan = clean(
        "10 rr 32*10 over tcp(no-delay_ = 1)"
            .replace(
                "no-delay_ = 1",
                "NODELAY, window = 64 KiB, congestion=bbr, linger = 5 ms",
            )
            .as_str(),
    );
    let part = &plan.measurements[0].parts[0];
    assert!(part.stack.flag("nodelay"));
    assert_eq!(
        (part.stack.number("window"), part.stack.seconds("linger")),
        (Some(65_536), Some(0.005))
    );
    assert_eq!(part.stack.word("congestion"), Some("bbr"));
    assert_eq!(
        part.text,
        "rr 32*10 over tcp(NODELAY, window = 64 KiB, congestion = bbr, linger = 5 ms)"
    );
    assert_eq!(
        texts("1 rr 1*1 over tcp(window = <W>); W = 1 KiB, 2 KiB")[1],
        "1 rr 1*1 over tcp(window = 2048)"
    );
    assert!(
        clean("1 rr 1*1 over blast(selective)").measurements[0].parts[0]
            .stack
            .flag("selective")
    );
}

#[test]
fn series() {
    let values = |series: &str| -> Vec<f64> {
        plan(&format!("1 rr 1*1 over tcp(linger = N); N = {series}"))
            .measurements
            .iter()
            .map(|m| m.variables[0].1)
            .collect()
    };
    assert_eq!(values("0...5"), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    assert_eq!(values("1 ... 3, 10"), [1.0, 2.0, 3.0, 10.0]);
    assert_eq!(
        values("1024, 2048...16384"),
        [1024.0, 2048.0, 4096.0, 8192.0, 16384.0]
    );
    assert_eq!(
        values("1024, 2048...16348"),
        [1024.0, 2048.0, 4096.0, 8192.0, 16348.0]
    );
    assert_eq!(values("1, 2 ... 8"), [1.0, 2.0, 4.0, 8.0]);
    assert_eq!(values("2, 4 ... 10"), [2.0, 4.0, 6.0, 8.0, 10.0]);
    assert_eq!(
        values("1, 8, 32 ... 4096"),
        [1.0, 8.0, 32.0, 128.0, 512.0, 2048.0, 4096.0]
    );
    assert_eq!(values("10, 8 ... 2"), [10.0, 8.0, 6.0, 4.0, 2.0]);
    assert_eq!(values("0.1, 0.2 ... 0.5").len(), 5);
    assert_eq!(values("10 ms, 20 ms ... 40 ms"), [0.01, 0.02, 0.04]);
}

#[test]
fn the_prelude_is_what_spims_prints() {
    let plan = clean(
        "1 bulk_get 1*1; 1 rr 1*1; 1 conn_disc 0*1; 1 bulk_put 1*1; 1 stream 1*1 constant(20 ms)",
    );
    let names = |at: usize, side: PairSide| -> Vec<&'static str> {
        plan.measurements[at].parts[0]
            .procedure
            .calls(side)
            .iter()
            .map(|call| call.name())
            .collect()
    };
    assert_eq!(
        names(0, PairSide::Initiator),
        [
            "ConnectRequest",
            "StartMeasurement",
            "StartBulkGet",
            "AwaitDataIndication",
            "StopBulkGet",
            "StopMeasurement",
            "DisconnectRequest"
        ]
    );
    assert_eq!(
        names(1, PairSide::Responder),
        [
            "AwaitConnectIndication",
            "RPCAwaitCallInd",
            "Delay",
            "RPCReturn",
            "AwaitDisconnectIndication"
        ]
    );
    assert_eq!(
        names(2, PairSide::Initiator),
        [
            "StartMeasurement",
            "Pace",
            "ConnectRequest",
            "DisconnectRequest",
            "StopMeasurement"
        ]
    );
    assert!(!plan.measurements[2].parts[0].procedure.carries_data());
    assert_eq!(
        plan.measurements[4].parts[0].procedure.timings,
        ["interval"]
    );
}

#[test]
fn a_procedure_of_ones_own() {
    let text = "
        procedure Ping-Pong(gap) {
          responder {
            await_connect_ind;
            repeat 3 { AwaitDataIndication(100 B); DataRequest(reply) }
            AwaitDisconnectInd;
          }
          initiator {
            ConnectRequest; startMeasurements;
            repeat 3 { Delay(gap); Delay(uniform(1 ms, 2 ms)); DataRequest(100 B); AwaitDataIndication(reply); Mark(pong); }
            StopMeasurement; DisconnectRequest;
          }
        }
        1 ping_pong 1, 5*1 constant(1);
        1 PING-PONG 5;
    ";
    let plan = clean(text);
    assert_eq!(plan.measurements[0].parts[0].procedure.name, "Ping_Pong");
    assert!(
        plan.measurements[0].parts[0]
            .procedure
            .calls(PairSide::Initiator)
            .contains(&&OperationCall::Mark("pong".into()))
    );
    assert_eq!(
        plan.measurements[1].parts[0].data.count,
        UnitCount::Units(1)
    );
}

#[test]
fn empty_parentheses_are_no_timings() {
    let text = "procedure twice() { initiator { StartMeasurement(); StopMeasurement; } responder { } } 1 twice 0*1;";
    assert!(
        clean(text).measurements[0].parts[0]
            .procedure
            .timings
            .is_empty()
    );
}

#[test]
fn hosts_and_overrides() {
    let text = "host a via ssh \"me@10.0.0.5\" at \"10.1.0.5\" on cpu 3 files \"/tmp/x\"; seed 7; 1 from a to b rr 1*1 over tcp, quic in live;";
    let over = Overrides {
        over: Some("unix, blast(selective)".into()),
        world: Some(World::Emulated),
        hosts: vec![
            host_argument("a=local").unwrap(),
            host_argument("b=ssh:you@there").unwrap(),
        ],
        seed: Some(9),
        ..Overrides::default()
    };
    let checked = check(text, &context(), &over);
    // `unix` works only within one host.
    assert!(
        common::shown(text, &checked.diagnostics).contains("`unix` works only within one host [b]"),
        "{:?}",
        checked.diagnostics
    );
    let over = Overrides {
        over: Some("udp, blast(selective)".into()),
        ..over
    };
    let plan = check(text, &context(), &over).plan.unwrap();
    assert_eq!(plan.seed, 9);
    assert_eq!(
        plan.hosts["a"],
        HostPlan {
            via: Via::Local,
            address: None,
            cpu: Some(3),
            files: Some("/tmp/x".into()),
            share: None
        }
    );
    assert_eq!(plan.hosts["b"].via, Via::Ssh("you@there".into()));
    let texts: Vec<&str> = plan.measurements.iter().map(|m| m.text.as_str()).collect();
    assert_eq!(
        texts,
        [
            "1 from a to b rr 1*1 over udp in emulated",
            "1 from a to b rr 1*1 over blast(selective) in emulated"
        ]
    );
    assert_eq!(
        plan.measurements[0].parts[0].text,
        "1 from a to b rr 1*1 over udp"[2..].to_string()
    );
    let plan = common::plan("seed 7; 1 rr 1*1");
    assert_eq!(plan.seed, 7);
}

#[test]
fn host_arguments() {
    assert_eq!(host_argument("khons=local").unwrap().1.via, Via::Local);
    assert_eq!(
        host_argument("khons=ssh:user@10.0.0.5").unwrap().1.via,
        Via::Ssh("user@10.0.0.5".into())
    );
    assert_eq!(
        host_argument("khons=tcp:[fd00::5]:7777").unwrap().1.via,
        Via::Tcp("[fd00::5]:7777".into())
    );
    assert_eq!(
        host_argument("khons=exec:kubectl exec -i pod -- stackline agent")
            .unwrap()
            .1
            .via,
        Via::Exec("kubectl exec -i pod -- stackline agent".into())
    );
    for bad in [
        "khons",
        "=local",
        "khons=",
        "khons=ssh:",
        "khons=tcp:10.0.0.5",
        "khons=tcp:fd00::5:7777",
        "khons=tcp:10.0.0.5:0",
        "khons=tcp::7777",
        "khons=tcp:http://b:7777",
        "khons=exec:",
        "khons=exec:a\nb",
        "khons=ssh:-oProxyCommand=x",
        "a b=local",
        "khons=tcp:x",
    ] {
        assert!(host_argument(bad).is_err(), "{bad}");
    }
}

#[test]
fn the_examples_of_the_manual_hold() {
    let manual = include_str!("../../../../docs/LANGUAGE.md");
    let blocks: Vec<&str> = manual
        .split("```")
        .skip(1)
        .step_by(2)
        .filter(|block| block.contains(';'))
        .collect();
    let texts: Vec<&&str> = blocks
        .iter()
        // Servers outside the run need the tables of the live world: the command's tests have that block.
        .filter(|block| !block.contains("specification = ") && !block.contains("://"))
        // One shows how a block stands in Markdown.
        .filter(|block| !block.starts_with("stackline name="))
        .collect();
    assert_eq!(texts.len(), 13);
    for text in texts {
        let hosts = if text.contains("host khons") {
            ""
        } else {
            "host khons, udjat via local;"
        };
        assert!(!plan(&format!("{hosts}{text}")).measurements.is_empty());
    }
    let rows = manual
        .lines()
        .skip_while(|line| !line.starts_with("| clause | meaning |"))
        .skip(2);
    let cells = rows
        .take_while(|line| line.starts_with('|'))
        .filter_map(|row| row.split('|').nth(1));
    let clauses: Vec<&str> = cells
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .collect();
    assert!(clauses.len() > 9, "{clauses:?}");
    for clause in clauses {
        plan(&format!(
            "network w {{ host a, b; link a - b 1 Mbit/s 1 ms {clause}; }} 1 rr 1*1"
        ));
    }
    for (name, ..) in stackline_core::procedure::OPERATIONS {
        assert!(manual.contains(&format!("`{name}`")), "{name}");
    }
    for (name, ..) in stackline_core::distribution::TABLE {
        assert!(manual.contains(&format!("`{name}(")), "{name}");
    }
}
