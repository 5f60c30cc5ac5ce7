//! The display's benchmark in virtual time: what comes out is what the costs add up to.

use stackline_core::network::{
    LinkRate, LossModel, Network, NetworkHost, NetworkInterface, NetworkLink, ProgramCosts,
    WorkKind,
};
use stackline_core::plan::Stack;
use stackline_core::random::Seed;
use stackline_core::time::Duration;
use stackline_displayserver::bench::{self, DisplayBenchSubject as Measure};
use stackline_displayserver::send_level::{DisplayPicture, DisplaySendLevel};
use stackline_displayserver::simulated::{
    DisplayDrawingCosts, DisplayRequestPaths, DisplaySceneCarrier, DisplaySceneClass,
    SimulatedDisplayScene, SymbolDrawMoment, measure, together, trace,
};

const MS: u64 = 1_000_000;
/// Of each request 0.5 ms, of a line of mean length 2.3 ms, 4 ms beyond that for one by itself, 8 ms for an answer.
const DRAWING: DisplayDrawingCosts = DisplayDrawingCosts {
    request: 5e5,
    pixel: 5.08e3,
    rectangle: 1e6,
    letter: 1e5,
    added: 4e6,
    added_rectangle: 4e6,
    answer: 8e6,
};
/// ms of a line on average: its length is 457.9 pixels.
const LINE: f64 = 2.327;

fn host(name: &str, operation: u64, message: u64) -> NetworkHost {
    let work = ProgramCosts {
        per_operation: Duration(operation),
        per_message: Duration(message),
        ..ProgramCosts::default()
    };
    NetworkHost {
        name: name.into(),
        work,
        ..NetworkHost::default()
    }
}

/// A display, and a client whose requests take 2 ms and messages 1 ms.
fn network(rate: f64) -> Network {
    let link = NetworkLink {
        ends: ("sun".into(), "vax".into()),
        rate: LinkRate::Constant(rate),
        ..NetworkLink::default()
    };
    let hosts = vec![host("sun", 2 * MS, MS), host("vax", 2 * MS, MS)];
    Network {
        name: "lan".into(),
        hosts,
        switches: Vec::new(),
        links: vec![link],
    }
}

fn scene<'n>(
    network: &'n Network,
    class: DisplaySceneClass,
    carrier: DisplaySceneCarrier<'n>,
) -> SimulatedDisplayScene<'n> {
    let from = if class == DisplaySceneClass::Local {
        "sun"
    } else {
        "vax"
    };
    SimulatedDisplayScene {
        network,
        from: from.into(),
        to: "sun".into(),
        internet: None,
        class,
        carrier,
        drawing: DRAWING,
        shown: SymbolDrawMoment::Growing,
        gathers: 200,
        rectangle_bytes: 0,
        call_bytes: 20,
        seed: Seed::root(1),
    }
}

fn picture(name: &str) -> DisplayPicture {
    bench::pictures()
        .into_iter()
        .find(|picture| picture.name == name)
        .expect("a picture of the benchmark")
}

/// ms an item.
fn taken(scene: &SimulatedDisplayScene<'_>, of: &str, rate: Measure) -> f64 {
    let measured = measure(scene, &picture(of), &[rate], 3).expect("it is simulated");
    let trials = &measured[0].trials;
    assert_eq!(trials.len(), 3, "{rate:?}");
    1e3 * trials.len() as f64 / trials.iter().sum::<f64>()
}

fn close(got: f64, expected: f64, share: f64) {
    assert!(
        (got / expected - 1.0).abs() < share,
        "{got:.3} ms, expected {expected:.3}"
    );
}

#[test]
fn on_one_host_everything_adds_up() {
    let network = network(10e6);
    let local = scene(&network, DisplaySceneClass::Local, DisplaySceneCarrier::Ikp);
    // Ten requests a message, which costs both programs.
    let made = 2.0 + 0.5 + 0.2;
    close(taken(&local, "vectors", Measure::Construction), made, 0.01);
    close(taken(&local, "vectors", Measure::Display), LINE, 0.01);
    close(
        taken(&local, "vectors", Measure::At(DisplaySendLevel::Batched)),
        made + LINE,
        0.01,
    );
    close(
        taken(&local, "vectors", Measure::At(DisplaySendLevel::Pipelined)),
        2.5 + 2.0 + LINE + 4.0,
        0.01,
    );
    close(
        taken(
            &local,
            "vectors",
            Measure::At(DisplaySendLevel::StopAndWait),
        ),
        2.5 + 2.0 + LINE + 12.0,
        0.01,
    );
    // 55 items are sent, 780 drawn.
    let structured = taken(
        &local,
        "rectangles",
        Measure::At(DisplaySendLevel::Structured),
    );
    close(structured, 1.0 + (61.0 * 2.7 + 3.0 * 8.0) / 780.0, 0.02);
}

#[test]
fn messages_are_answered_one_by_one_and_an_agent_lets_both_hosts_work() {
    let network = network(10e6);
    let batched = Measure::At(DisplaySendLevel::Batched);
    // 200 bytes and a reply on the wire: 0.3 ms for ten requests.
    let by_messages = scene(
        &network,
        DisplaySceneClass::Messages,
        DisplaySceneCarrier::Ikp,
    );
    close(
        taken(&by_messages, "vectors", batched),
        2.7 + LINE + 0.03,
        0.02,
    );
    // The display's host is the slower one; it begins with the first message.
    let tcp = Stack::plain("tcp");
    let by_agent = scene(
        &network,
        DisplaySceneClass::Agent,
        DisplaySceneCarrier::Tcp([&tcp, &tcp]),
    );
    close(
        taken(&by_agent, "vectors", batched),
        0.5 + LINE + 0.1 + 0.1,
        0.03,
    );
    let whole = SimulatedDisplayScene {
        shown: SymbolDrawMoment::Complete,
        ..by_agent.clone()
    };
    close(taken(&whole, "vectors", batched), 2.1 + LINE, 0.03);
    // An agent that has the picture: a change is sent, all of it is drawn again.
    let cached = scene(
        &network,
        DisplaySceneClass::Distributed,
        DisplaySceneCarrier::Tcp([&tcp, &tcp]),
    );
    close(taken(&cached, "vectors", batched), LINE, 0.03);
}

#[test]
fn an_internet_server_costs_its_host_a_message_each_and_on_another_host_the_network_twice() {
    let mut network = network(10e6);
    network.hosts.push(host("gateway", 0, MS));
    network.hosts.push(host("slow", 0, 20 * MS));
    for name in ["gateway", "slow"] {
        for end in ["sun", "vax"] {
            let (ends, rate) = ((name.into(), end.into()), LinkRate::Constant(10e6));
            network.links.push(NetworkLink {
                ends,
                rate,
                ..NetworkLink::default()
            });
        }
    }
    let tcp = Stack::plain("tcp");
    let at = |internet: Option<&str>, level: DisplaySendLevel| {
        let scene = scene(
            &network,
            DisplaySceneClass::Agent,
            DisplaySceneCarrier::Tcp([&tcp, &tcp]),
        );
        taken(
            &SimulatedDisplayScene {
                internet: internet.map(str::to_owned),
                ..scene
            },
            "vectors",
            Measure::At(level),
        )
    };
    // One request and its answer: on the display's host a message of the server's each way; on another one a question too, on the wire.
    let [without, here, there] =
        [None, Some("sun"), Some("gateway")].map(|host| at(host, DisplaySendLevel::StopAndWait));
    close(here, without + 2.0, 0.01);
    close(there, without + 2.0 + 2.0 * 0.3, 0.03);
    // What the display's host need not do it does not wait for; a server that is slower than all others is waited for: 630 vectors in 64 messages.
    let [without, here, there, slow] = [None, Some("sun"), Some("gateway"), Some("slow")]
        .map(|host| at(host, DisplaySendLevel::Batched));
    close(here, without + 0.1, 0.01);
    assert!(there < here, "{there} {here}");
    assert!(slow > without, "{slow} {without}");
    let pup = DisplaySceneCarrier::Pup(stackline_proto::papers::pup::PupOptions::default());
    let by_pup = SimulatedDisplayScene {
        internet: Some("gateway".into()),
        ..scene(&network, DisplaySceneClass::Terminal, pup)
    };
    assert!(taken(&by_pup, "vectors", Measure::At(DisplaySendLevel::Pipelined)) > 2.0);
}

#[test]
fn two_at_once_share_the_processors_and_the_remote_server_loses_what_the_workstation_takes_for_its_blocks()
 {
    let mut network = network(10e6);
    network.hosts.push(host("gateway", 0, MS));
    for end in ["sun", "vax"] {
        let (ends, rate) = (("gateway".into(), end.into()), LinkRate::Constant(10e6));
        network.links.push(NetworkLink {
            ends,
            rate,
            ..NetworkLink::default()
        });
    }
    let tcp = Stack::plain("tcp");
    let through = |server: &str| SimulatedDisplayScene {
        internet: Some(server.to_owned()),
        ..scene(
            &network,
            DisplaySceneClass::Agent,
            DisplaySceneCarrier::Tcp([&tcp, &tcp]),
        )
    };
    let batched = Measure::At(DisplaySendLevel::Batched);
    let alone = 1e3 / taken(&through("sun"), "vectors", batched);
    let mean = |trials: &[f64]| trials.iter().sum::<f64>() / trials.len() as f64;
    let both = |servers: [&str; 2]| {
        let measured = together(&servers.map(through), &picture("vectors"), batched, 3)
            .expect("both are simulated");
        assert!(
            measured.iter().any(|one| one.trials.len() == 3),
            "{measured:?}"
        );
        [0, 1].map(|at| mean(&measured[at].trials))
    };
    // Two alike have half each of the display's host, which limits both; they do not come to more than one alone.
    let [one, other] = both(["sun", "sun"]);
    assert!((one / other - 1.0).abs() < 0.05, "{one} {other}");
    assert!(
        (0.9..1.05).contains(&((one + other) / alone)),
        "{one} {other} {alone}"
    );
    let [local, remote] = both(["sun", "gateway"]);
    assert!((0.7..1.3).contains(&(remote / local)), "{local} {remote}");
}

#[test]
fn blasts_cross_once_and_come_whole_over_a_line_that_loses() {
    let (blast, saw) = (Stack::plain("blast"), Stack::plain("saw"));
    let mut network = network(10e6);
    let of = |network: &Network, stack: &Stack| {
        taken(
            &scene(
                network,
                DisplaySceneClass::Agent,
                DisplaySceneCarrier::Blast(stack),
            ),
            "vectors",
            Measure::At(DisplaySendLevel::StopAndWait),
        )
    };
    let [by_blast, by_saw] = [&blast, &saw].map(|stack| of(&network, stack));
    close(by_blast, by_saw, 1e-6);
    // What the client takes (2 ms, and a message each way), the agent (the same two), the display (0.5, the line, 4 and 8 ms), and the wire: an
    // item of 20 bytes and its answer of 4, both behind 4 of their length and 60 of headers.
    close(
        by_blast,
        2.0 + 4.0 + 0.5 + LINE + 4.0 + 8.0 + 0.8e-3 * (84.0 + 68.0),
        0.002,
    );
    network.links[0].loss = LossModel::Independent(0.05);
    assert!(of(&network, &saw) > 1.001 * by_saw);
}

#[test]
fn a_serial_line_carries_its_characters() {
    for (bits, a_second) in [(10, 6.0), (8, 7.5)] {
        let network = network(1200.0);
        let line = scene(
            &network,
            DisplaySceneClass::Terminal,
            DisplaySceneCarrier::Line(bits),
        );
        close(
            taken(&line, "vectors", Measure::At(DisplaySendLevel::Batched)),
            1e3 / a_second,
            0.02,
        );
    }
}

#[test]
fn rectangles_may_have_more_bytes_than_lines() {
    let fast = network(9600.0);
    let line = scene(
        &fast,
        DisplaySceneClass::Terminal,
        DisplaySceneCarrier::Line(10),
    );
    let longer = SimulatedDisplayScene {
        rectangle_bytes: 24,
        ..line.clone()
    };
    let [usual, doubled] = [&line, &longer]
        .map(|scene| taken(scene, "rectangles", Measure::At(DisplaySendLevel::Batched)));
    // 24 bytes of ten bits each take 25 ms.
    close(doubled - usual, 25.0, 0.02);
    // Of 55 items 32 are calls: six bytes less of each are 1.6 s less of 780 rectangles.
    let slower = network(1200.0);
    let usual = scene(
        &slower,
        DisplaySceneClass::Terminal,
        DisplaySceneCarrier::Line(10),
    );
    let shorter = SimulatedDisplayScene {
        call_bytes: 14,
        ..usual.clone()
    };
    let [usual, less] = [&usual, &shorter].map(|scene| {
        taken(
            scene,
            "rectangles",
            Measure::At(DisplaySendLevel::Structured),
        )
    });
    close(780.0 * (usual - less), 32.0 * 6.0 * 10.0 / 1.2, 0.02);
    // A line has its 20 bytes.
    close(
        taken(&longer, "vectors", Measure::At(DisplaySendLevel::Batched)),
        20.83,
        0.02,
    );
}

#[test]
fn a_slower_processor_and_a_faster_one() {
    let mut network = network(10e6);
    network.hosts[0].interface = NetworkInterface {
        cpu_speed: Some(0.5),
        ..NetworkInterface::default()
    };
    let local = scene(&network, DisplaySceneClass::Local, DisplaySceneCarrier::Ikp);
    close(
        taken(&local, "vectors", Measure::At(DisplaySendLevel::Batched)),
        2.0 * (2.7 + LINE),
        0.01,
    );
}

#[test]
fn who_goes_first_changes_how_often_programs_change() {
    let tcp = Stack::plain("tcp");
    let of = |first: Option<WorkKind>| {
        let mut network = network(10e6);
        network.hosts[1].work = ProgramCosts {
            per_switch: Duration(5 * MS),
            first,
            ..network.hosts[1].work.clone()
        };
        let terminal = scene(
            &network,
            DisplaySceneClass::Terminal,
            DisplaySceneCarrier::Tcp([&tcp, &tcp]),
        );
        taken(
            &terminal,
            "vectors",
            Measure::At(DisplaySendLevel::Pipelined),
        )
    };
    let [alternating, in_turns] = [None, Some(WorkKind::Operations)].map(of);
    close(alternating, 2.0 + 1.0 + 2.0 * 5.0, 0.05);
    assert!(in_turns < 0.7 * alternating, "{in_turns} {alternating}");
}

#[test]
fn what_does_not_go_together_is_refused() {
    let network = network(10e6);
    let tcp = Stack::plain("tcp");
    let refused = |class, carrier, from: &str| {
        let scene = SimulatedDisplayScene {
            from: from.into(),
            ..scene(&network, class, carrier)
        };
        measure(&scene, &picture("vectors"), &[Measure::Display], 1)
            .unwrap_err()
            .message
    };
    assert!(
        refused(DisplaySceneClass::Local, DisplaySceneCarrier::Ikp, "vax")
            .contains("on the display's host")
    );
    assert!(
        refused(DisplaySceneClass::Agent, DisplaySceneCarrier::Ikp, "sun")
            .contains("on the display's host")
    );
    assert!(
        refused(
            DisplaySceneClass::Messages,
            DisplaySceneCarrier::Tcp([&tcp, &tcp]),
            "vax"
        )
        .contains("ikp")
    );
    assert!(
        refused(DisplaySceneClass::Terminal, DisplaySceneCarrier::Ikp, "vax")
            .contains("no V messages")
    );
    assert!(
        refused(DisplaySceneClass::Agent, DisplaySceneCarrier::Ikp, "pdp").contains("no host pdp")
    );
    for (class, carrier, internet) in [
        (DisplaySceneClass::Messages, DisplaySceneCarrier::Ikp, "sun"),
        (
            DisplaySceneClass::Agent,
            DisplaySceneCarrier::Tcp([&tcp, &tcp]),
            "vax",
        ),
    ] {
        let scene = SimulatedDisplayScene {
            internet: Some(internet.into()),
            ..scene(&network, class, carrier)
        };
        let error = measure(&scene, &picture("vectors"), &[Measure::Display], 1).unwrap_err();
        assert!(error.message.contains("internet server"), "{error}");
    }
}

/// The path of one of the requests at a level: each point with its host, and us since the point before.
fn request_path(
    scene: &SimulatedDisplayScene<'_>,
    level: DisplaySendLevel,
    request: i64,
) -> Vec<String> {
    let mut paths = DisplayRequestPaths::default();
    let rates = [Measure::Construction, Measure::At(level), Measure::Display];
    trace(scene, &picture("vectors"), &rates, 1, &mut paths).expect("it is simulated");
    let mut events: Vec<_> = paths
        .events()
        .iter()
        .filter(|event| event.unit == 1 << 32 | request)
        .collect();
    events.sort_by_key(|event| event.at_ns);
    let mut before = events.first().expect("the request is made").at_ns;
    let mut point = |at_ns: u64| std::mem::replace(&mut before, at_ns).abs_diff(at_ns) as f64 / 1e3;
    let host = |event: u32| &scene.network.hosts[event as usize].name;
    let line = |event: &&stackline_displayserver::simulated::DisplayRequestEvent| {
        format!(
            "{:.0} {} {}",
            point(event.at_ns),
            event.point.name().trim_start_matches("DISPLAY_"),
            host(event.host)
        )
    };
    events.iter().map(line).collect()
}

#[test]
fn an_item_that_is_waited_for_takes_at_each_point_what_the_hosts_say() {
    let mut network = network(10e6);
    network.hosts.push(host("gateway", 0, 3 * MS));
    for end in ["sun", "vax"] {
        let (ends, rate) = (("gateway".into(), end.into()), LinkRate::Constant(10e6));
        network.links.push(NetworkLink {
            ends,
            rate,
            ..NetworkLink::default()
        });
    }
    let tcp = Stack::plain("tcp");
    let by_tcp = scene(
        &network,
        DisplaySceneClass::Agent,
        DisplaySceneCarrier::Tcp([&tcp, &tcp]),
    );
    // A window, a symbol defined and ended, a view, `Sync`, `EditSymbol` with a line: the eighth request goes alone, a line of 121.9 pixels: 0.619 ms
    // and 4 ms by itself. Its 32 bytes have heads of 40 bytes on the wire, an answer of 4 bytes too, V's messages 48.
    let of = |scene: &SimulatedDisplayScene<'_>| {
        request_path(scene, DisplaySendLevel::StopAndWait, 8).join(", ")
    };
    assert_eq!(
        of(&by_tcp),
        "0 CALL vax, 3000 SEND vax, 58 ARRIVE sun, 1000 AGENT sun, 0 PARSE sun, 500 STORE sun, 4619 RENDER sun, 10045 DONE vax"
    );
    // Each message is carried out before the client goes on.
    let local = scene(&network, DisplaySceneClass::Local, DisplaySceneCarrier::Ikp);
    assert_eq!(
        of(&local),
        "0 CALL sun, 3000 SEND sun, 1000 PARSE sun, 500 STORE sun, 4619 RENDER sun, 8000 DONE sun"
    );
    // Into the pipe it costs nothing, out of it a message.
    let piped = scene(&network, DisplaySceneClass::Agent, DisplaySceneCarrier::Ikp);
    assert_eq!(
        of(&piped),
        "0 CALL vax, 2000 SEND vax, 1000 AGENT vax, 64 ARRIVE sun, 1000 AGENT sun, 0 PARSE sun, 500 STORE sun, 4619 RENDER sun, 10051 DONE vax"
    );
    // An answer is typed: four messages at each end.
    let typed = scene(
        &network,
        DisplaySceneClass::Terminal,
        DisplaySceneCarrier::Tcp([&tcp, &tcp]),
    );
    assert_eq!(
        of(&typed),
        "0 CALL vax, 2000 SEND vax, 1000 AGENT vax, 58 ARRIVE sun, 1000 AGENT sun, 0 PARSE sun, 500 STORE sun, 4619 RENDER sun, 52128 DONE vax"
    );
    let internet = |host: &str| SimulatedDisplayScene {
        internet: Some(host.to_owned()),
        ..by_tcp.clone()
    };
    assert_eq!(
        of(&internet("gateway")),
        "0 CALL vax, 3000 SEND vax, 58 ARRIVE gateway, 3000 INTERNET gateway, 64 ARRIVE sun, 1000 AGENT sun, 0 PARSE sun, 500 STORE sun, \
         4619 RENDER sun, 13096 DONE vax"
    );
    assert_eq!(
        of(&internet("sun")),
        "0 CALL vax, 3000 SEND vax, 58 ARRIVE sun, 1000 INTERNET sun, 1000 AGENT sun, 0 PARSE sun, 500 STORE sun, 4619 RENDER sun, 11045 DONE vax"
    );
}

#[test]
fn every_request_of_a_level_is_followed_to_its_answer() {
    let network = network(10e6);
    let tcp = Stack::plain("tcp");
    let by_tcp = scene(
        &network,
        DisplaySceneClass::Agent,
        DisplaySceneCarrier::Tcp([&tcp, &tcp]),
    );
    for shown in [SymbolDrawMoment::Growing, SymbolDrawMoment::Complete] {
        let mut paths = DisplayRequestPaths::default();
        let rates = bench::rates(
            &picture("vectors"),
            &[DisplaySendLevel::Pipelined, DisplaySendLevel::Batched],
        );
        let scene = SimulatedDisplayScene {
            shown,
            ..by_tcp.clone()
        };
        let traced =
            trace(&scene, &picture("vectors"), &rates, 2, &mut paths).expect("it is simulated");
        let measured = measure(&scene, &picture("vectors"), &rates, 2).expect("it is simulated");
        assert_eq!(traced.len(), 4);
        traced
            .iter()
            .zip(&measured)
            .for_each(|(traced, measured)| assert_eq!(traced.trials, measured.trials));
        let count = |keyword: &str| {
            paths
                .events()
                .iter()
                .filter(|event| event.point.name() == keyword)
                .count()
        };
        // Two levels, each with two trials of the picture between two requests; what prepares them is not measured.
        let requests = 2 * 2 * (630 + 2);
        for point in [
            "CALL", "SEND", "ARRIVE", "AGENT", "PARSE", "STORE", "RENDER", "DONE",
        ] {
            assert_eq!(
                count(&format!("DISPLAY_{point}")),
                requests,
                "{point}, {shown:?}"
            );
        }
    }
}
