//! Small runs with events, for the tests of the page and of pictures.
#![cfg(test)]

use crate::page::{Content, MOST_EVENTS};
use serde_json::{Value, json};
use stackline_analyze::findings::{
    AccountedCause, AccountedRequest, Evidence, Finding, NamedRequests,
};
use stackline_analyze::lifelines::{
    Id, Lifeline, LifelineOutcome, LifelinePassage, LifelinePoint, Lifelines,
};
use stackline_core::trace_index::{HostTrace, Index, RunFlow, RunSpan};
use stackline_events::{EventTable, EventValue as Data, unit_ids};

/// When the runs begin: now, not 1970.
pub(crate) const ORIGIN_NS: u64 = 1_790_000_000_123_456_789;
/// A name that would like to be a script.
pub(crate) const HOSTILE: &str =
    "</script><img src=x onerror=\"alert(1)\"><script>alert(2)</script>";

/// What the time of the first two calls of [`few`] went into.
pub(crate) fn accounted() -> Vec<AccountedRequest> {
    let cause = |order, cause, place: &str, layer| AccountedCause {
        order,
        cause,
        place: place.to_owned(),
        layer,
    };
    let lost = cause(3, "wait for retransmission", "khons > udjat", "protocol");
    let works = cause(9, "server", "nginx on udjat", "application");
    let request = |number, parts: Vec<(AccountedCause, i64)>| AccountedRequest {
        unit: unit_ids::unit(0, number),
        parent: (number > 0).then(|| unit_ids::unit(0, 0)),
        is_root: true,
        begin_ns: ORIGIN_NS + number * 10_000,
        total_ns: parts.iter().map(|(_, ns)| *ns).sum(),
        parts,
    };
    vec![
        request(0, vec![(lost, 30_000), (works.clone(), 20_000)]),
        request(1, vec![(works, 40_000)]),
    ]
}

/// Everything that a page is made of.
#[derive(Debug, Default)]
pub(crate) struct TracedFixture {
    pub(crate) title: String,
    pub(crate) run: Value,
    pub(crate) environment: Value,
    pub(crate) findings: Vec<Finding>,
    pub(crate) index: Index,
    pub(crate) events: EventTable,
    pub(crate) lifelines: Lifelines,
    pub(crate) requests: Vec<AccountedRequest>,
    pub(crate) named: Vec<NamedRequests>,
}

impl TracedFixture {
    pub(crate) fn content(&self) -> Content<'_> {
        Content {
            title: &self.title,
            started: "2026-11-22 18:54:16 UTC",
            run: &self.run,
            printed: "",
            specification: &self.title,
            environment: &self.environment,
            findings: &self.findings,
            index: &self.index,
            events: &self.events,
            lifelines: &self.lifelines,
            requests: &self.requests,
            named: &self.named,
            most_events: MOST_EVENTS,
        }
    }

    /// Adds a call that meets `met` of the four points, 10 us times `pace` after each other.
    fn call(&mut self, number: u64, at_ns: u64, pace: u64, met: usize) {
        let id = unit_ids::unit(0, number);
        let first = self.lifelines.passages.len() as u32;
        let points: Vec<(String, String)> = self
            .lifelines
            .points
            .iter()
            .take(met)
            .map(|p| (p.keyword.clone(), p.host.clone()))
            .collect();
        for (point, (keyword, host)) in points.iter().enumerate() {
            let (at_ns, row) = (
                at_ns + point as u64 * 10_000 * pace,
                self.events.len() as u32,
            );
            self.events.push(
                keyword,
                host,
                at_ns,
                &[id.into(), 0.into(), (number * 48).into(), 32.into()],
            );
            self.lifelines.passages.push(LifelinePassage {
                at_ns,
                point: point as u32,
                row,
            });
        }
        let lost = met < self.lifelines.points.len();
        let first_mark = self.lifelines.marks.len() as u32;
        if lost {
            let (at_ns, row) = (at_ns + met as u64 * 10_000, self.events.len() as u32);
            let absent = Data::Absent;
            let more = [
                absent,
                absent,
                absent,
                absent,
                absent,
                absent,
                "queue full".into(),
            ];
            let data = [
                [id.into(), 0.into(), (number * 48).into(), 32.into()].as_slice(),
                &more,
            ]
            .concat();
            self.events.push("NET_DROP", "edge", at_ns, &data);
            self.lifelines.marks.push(LifelinePassage {
                at_ns,
                point: 0,
                row,
            });
        }
        let outcome = if lost {
            LifelineOutcome::NeverArrived {
                after: met as u32 - 1,
            }
        } else {
            LifelineOutcome::Complete
        };
        let (count, mark_count) = (met as u32, u32::from(lost));
        let (group, flow, bytes) = (0, Some(0), Some(32));
        self.lifelines.lines.push(Lifeline {
            unit: id.into(),
            group,
            flow,
            first,
            count,
            first_mark,
            mark_count,
            bytes,
            outcome,
            ..Lifeline::default()
        });
    }
}

fn empty() -> TracedFixture {
    let point = |keyword: &str, host: &str| LifelinePoint {
        keyword: keyword.into(),
        host: host.into(),
        place: String::new(),
        service: String::new(),
    };
    let points = [
        ("APP_CALL", "khons"),
        ("APP_INDICATION", "udjat"),
        ("APP_REPLY", "udjat"),
        ("APP_RESPONSE", "khons"),
    ];
    let mut traced = TracedFixture {
        title: "rr".into(),
        run: json!({"complete": true, "measurements": []}),
        ..TracedFixture::default()
    };
    traced.lifelines.points = points
        .iter()
        .map(|(keyword, host)| point(keyword, host))
        .collect();
    traced.lifelines.marked = vec![point("NET_DROP", "edge")];
    traced.lifelines.groups = vec!["tcp".into()];
    let hosts = ("khons".into(), "udjat".into());
    traced.index.flows.push(RunFlow {
        hosts,
        stack: "tcp".into(),
        ..RunFlow::default()
    });
    for host in ["khons", "udjat"] {
        traced.index.hosts.insert(host.into(), HostTrace::default());
    }
    traced.index.reference = "khons".into();
    traced
}

/// Two calls that are answered, one that is dropped on its way, one monitor.
pub(crate) fn few() -> TracedFixture {
    let mut traced = empty();
    traced.call(0, ORIGIN_NS, 1, 4);
    traced.call(1, ORIGIN_NS + 100_000, 3, 4);
    traced.call(2, ORIGIN_NS + 400_000, 1, 2);
    let data: Vec<Data<'_>> = [100_000, 0, 300_000, 100_000, 0, 0, 0, 600_000]
        .map(Data::from)
        .to_vec();
    traced
        .events
        .push("CPU_USE", "khons", ORIGIN_NS + 200_000, &data);
    let span = RunSpan {
        to_ns: ORIGIN_NS + 500_000,
        from_ns: ORIGIN_NS,
        ..RunSpan::default()
    };
    traced.index.runs.push(span);
    traced.findings.push(Finding {
        takes: None,
        whole: None,
        saves: None,
        is_of_units: false,
        kind: "queue_drop",
        sentence: "Unit 3 was dropped at edge.".into(),
        confidence: 0.99,
        share: 0.3,
        evidence: vec![Evidence {
            what: "a drop at edge".into(),
            from_ns: ORIGIN_NS + 400_000,
            to_ns: ORIGIN_NS + 430_000,
            units: vec![unit_ids::unit(0, 2).to_string()],
            events: vec![],
        }],
        tries: vec!["a longer queue".into()],
        measurement: Some(0),
    });
    traced
}

/// So many calls that are answered.
pub(crate) fn many(count: u64) -> TracedFixture {
    let mut traced = empty();
    (0..count)
        .for_each(|number| traced.call(number, ORIGIN_NS + number * 50_000, 1 + number % 3, 4));
    traced
}

/// Monitor points of a request's way, and whether the wait before them is long.
const PATH: [(&str, &str, &str, u64); 10] = [
    ("APP_CALL", "khons", "", 0),
    ("SOCK_SEND", "khons", "", 2_000),
    ("TCP_SEGMENT", "khons", "", 4_000),
    ("NET_ENQUEUE", "khons", "khons>edge", 3_000),
    ("NET_DEQUEUE", "khons", "khons>edge", 12_000),
    ("NET_ENQUEUE", "edge", "edge>udjat", 50_000),
    ("NET_DEQUEUE", "edge", "edge>udjat", 400_000),
    ("NET_DELIVER", "udjat", "", 300_000),
    ("SOCK_RECEIVED", "udjat", "", 25_000),
    ("APP_RECEIVED", "udjat", "", 8_000),
];

/// So many data units of three flows through a queue that fills and empties, with losses, retransmissions and monitors: as
/// large as requested, always the same.
pub(crate) fn large(count: u64) -> TracedFixture {
    let mut traced = empty();
    traced.title = format!("{count} lines");
    traced.run = json!({
        "stackline": "0", "world": "simulated", "complete": true, "run": "large", "measurements": [{
            "measurement": 0, "text": "3 from khons to udjat bulk_put 32*1000 over tcp across wan", "part": "all", "stack": "tcp", "runs": 3,
            "main": "throughput", "flags": [],
            "throughput_bit_s": {"n": 3, "mean": 18.2e6, "median": 18.1e6, "p99": 18.9e6, "min": 17.9e6, "max": 18.9e6, "ci95": [17.5e6, 18.9e6]}
        }]
    });
    traced.lifelines.points = PATH
        .map(|(keyword, host, place, _)| LifelinePoint {
            keyword: keyword.into(),
            host: host.into(),
            place: place.into(),
            service: String::new(),
        })
        .to_vec();
    traced.lifelines.marked = ["NET_DROP", "TCP_RETRANSMIT"]
        .map(|keyword| LifelinePoint {
            keyword: keyword.into(),
            host: "edge".into(),
            place: String::new(),
            service: String::new(),
        })
        .to_vec();
    traced.lifelines.groups = ["tcp", "quic", "blast(selective)"]
        .map(str::to_owned)
        .to_vec();
    traced.index.flows = (0..3).map(flow).collect();
    let mut dice = FixtureDice(1);
    for number in 0..count {
        unit_of(&mut traced, number, &mut dice);
    }
    let end = ORIGIN_NS + count * 60_000;
    for (run, from) in (0..3).map(|run| (run, ORIGIN_NS + u64::from(run) * (count * 20_000))) {
        let span = RunSpan {
            measurement: 0,
            run,
            warmup: false,
            from_ns: from,
            to_ns: from + count * 20_000,
            network_ns: None,
        };
        traced.index.runs.push(span);
    }
    for tick in 1..=(end - ORIGIN_NS) / 20_000_000 {
        let at_ns = ORIGIN_NS + tick * 20_000_000;
        let busy = (300_000 + dice.below(500_000)) as i64;
        let cpu = [20_000_000, 0, busy / 2, busy / 2, 0, 0, 0, 1_000_000 - busy].map(Data::from);
        traced.events.push("CPU_USE", "khons", at_ns, &cpu);
        let bytes = dice.below(50_000) as i64;
        let interface = [
            20_000_000.into(),
            "eth0".into(),
            0.into(),
            0.into(),
            0.into(),
            0.into(),
            bytes.into(),
        ];
        traced.events.push("NETIF", "khons", at_ns, &interface);
    }
    let (from_ns, to_ns) = (
        ORIGIN_NS + count * 7_000,
        ORIGIN_NS + count * 7_000 + 20_000_000,
    );
    traced.findings.push(Finding {
        takes: None,
        whole: None,
            saves: None,
            is_of_units: false,
        kind: "queue_drop",
        sentence:
            "The queue of edge>udjat is full: it holds each data unit for 400 us of its 800 us, and drops 1 in 60."
                .into(),
        confidence: 0.99,
        share: 0.52,
        evidence: vec![Evidence {
            what: "16 data units wait longest in edge>udjat".into(),
            from_ns,
            to_ns,
            units: (count / 9..count / 9 + 16)
                .map(|number| unit_ids::unit((number % 3) as u32, number).to_string())
                .collect(),
            events: vec![],
        }],
        tries: vec!["a queue of 60 packets or more".into(), "a faster link behind edge".into()],
        measurement: Some(0),
    });
    traced
}

fn flow(id: u32) -> RunFlow {
    let stack = ["tcp", "quic", "blast(selective)"][id as usize % 3].into();
    RunFlow {
        id,
        hosts: ("khons".into(), "udjat".into()),
        stack,
        replica: id,
        ..RunFlow::default()
    }
}

fn unit_of(traced: &mut TracedFixture, number: u64, dice: &mut FixtureDice) {
    let (flow, id) = (
        (number % 3) as u32,
        unit_ids::unit((number % 3) as u32, number),
    );
    let (first, first_mark) = (
        traced.lifelines.passages.len() as u32,
        traced.lifelines.marks.len() as u32,
    );
    let fate = dice.below(120);
    let met = if fate == 0 { 6 } else { PATH.len() };
    let mut at_ns = ORIGIN_NS + number * 60_000;
    // The queue fills and empties.
    let full = 1 + (number / 500) % 4;
    let path: [Data<'_>; 4] = [
        id.into(),
        (flow * 2).into(),
        (number * 1448).into(),
        1448.into(),
    ];
    for (point, (keyword, host, place, usual)) in PATH.iter().enumerate().take(met) {
        at_ns += usual / 2 + dice.below(usual + 1) * if *usual == 400_000 { full } else { 1 };
        let row = traced.events.len() as u32;
        if place.is_empty() {
            traced.events.push(keyword, host, at_ns, &path);
        } else {
            let net = [
                (*place).into(),
                "khons>udjat".into(),
                flow.into(),
                number.into(),
                1.into(),
                1500.into(),
            ];
            traced
                .events
                .push(keyword, host, at_ns, &[path.as_slice(), &net].concat());
        }
        traced.lifelines.passages.push(LifelinePassage {
            at_ns,
            point: point as u32,
            row,
        });
    }
    let mut mark = |point: u32, keyword: &str, at_ns: u64| {
        let row = traced.events.len() as u32;
        traced.events.push(keyword, "edge", at_ns, &path);
        traced
            .lifelines
            .marks
            .push(LifelinePassage { at_ns, point, row });
    };
    let outcome = match fate {
        0 => {
            mark(0, "NET_DROP", at_ns + 1_000);
            LifelineOutcome::NeverArrived { after: 5 }
        }
        1 => {
            mark(1, "TCP_RETRANSMIT", at_ns - 100_000);
            LifelineOutcome::Retried { times: 1 }
        }
        _ => LifelineOutcome::Complete,
    };
    let mark_count = traced.lifelines.marks.len() as u32 - first_mark;
    let (count, bytes) = (met as u32, Some(1448));
    let unit = id.into();
    traced.lifelines.lines.push(Lifeline {
        unit,
        group: flow,
        flow: Some(flow),
        first,
        count,
        first_mark,
        mark_count,
        bytes,
        outcome,
        ..Lifeline::default()
    });
}

/// Numbers that look random and are always the same.
struct FixtureDice(u64);

impl FixtureDice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound.max(1)
    }
}

/// Names that would like to be scripts, wherever a name can stand.
pub(crate) fn hostile() -> TracedFixture {
    let mut traced = empty();
    traced.title = HOSTILE.into();
    traced.environment = json!({HOSTILE: {HOSTILE: [HOSTILE]}});
    let point = LifelinePoint {
        keyword: HOSTILE.into(),
        host: HOSTILE.into(),
        place: HOSTILE.into(),
        service: HOSTILE.into(),
    };
    traced.lifelines.points = vec![point; 2];
    traced.lifelines.groups = vec![HOSTILE.into()];
    for (row, at_ns) in [(0, ORIGIN_NS), (1, ORIGIN_NS + 1000)] {
        traced
            .events
            .push(HOSTILE, HOSTILE, at_ns, &vec![HOSTILE.into(); 20]);
        traced.lifelines.passages.push(LifelinePassage {
            at_ns,
            point: row,
            row,
        });
    }
    traced.lifelines.lines.push(Lifeline {
        unit: Id::parse(HOSTILE),
        count: 2,
        ..Lifeline::default()
    });
    traced.findings.push(Finding {
        takes: None,
        whole: None,
        saves: None,
        is_of_units: false,
        kind: "healthy",
        sentence: HOSTILE.into(),
        confidence: 1.0,
        share: 1.0,
        evidence: vec![Evidence {
            what: HOSTILE.into(),
            units: vec![HOSTILE.into()],
            ..Evidence::default()
        }],
        tries: vec![HOSTILE.into()],
        measurement: None,
    });
    traced
}

/// Blocks of two servers that a client asks for every 50 ms, each read in 4 ms and written in 2. Both servers stop from 400 to 480 ms,
/// and send something again; every fifth block is given up.
pub(crate) fn session() -> TracedFixture {
    let mut traced = TracedFixture {
        title: "session".into(),
        run: json!({"complete": true}),
        ..TracedFixture::default()
    };
    let ms = 1_000_000;
    for block in 0..200_u64 {
        let server = if block.is_multiple_of(2) { "s1" } else { "s2" };
        let asked = ORIGIN_NS + block / 10 * 50 * ms;
        let begun = asked + ms + block % 10 / 2 * 6 * ms;
        let mut event = |keyword: &str, host: &str, at_ns: u64| {
            traced.events.push(keyword, host, at_ns, &[block.into()]);
        };
        event("ASK", "app", asked);
        event("IN", server, asked + ms);
        event("START_READ", server, begun + 1);
        event("END_READ", server, begun + 4 * ms);
        if block % 5 == 4 {
            event("FLUSH", server, begun + 5 * ms);
            continue;
        }
        let stopped = (400..480).contains(&((begun + 6 * ms - ORIGIN_NS) / ms));
        let there = if stopped {
            ORIGIN_NS + 480 * ms + block * 1000
        } else {
            begun + 7 * ms
        };
        event("START_WRITE", server, begun + 4 * ms + 1);
        event("END_WRITE", server, begun + 6 * ms);
        event("GOT", "app", there);
    }
    for server in ["s1", "s2"] {
        traced
            .events
            .push("TCP_RETRANSMIT", server, ORIGIN_NS + 470 * ms, &[]);
    }
    traced.lifelines =
        stackline_analyze::assemble::lifelines(&traced.events, None, &Default::default());
    traced
}

/// One unit that waits for a window, for its host, for what a link loses and for its reader, and two that never come.
pub(crate) fn waiting() -> TracedFixture {
    let mut traced = TracedFixture {
        title: "waiting".into(),
        run: json!({"complete": true}),
        ..TracedFixture::default()
    };
    let ms = 1_000_000;
    let mut event = |unit: u64, keyword: &str, host: &str, at_ms: u64| {
        let at_ns = ORIGIN_NS + at_ms * ms;
        traced.events.push(keyword, host, at_ns, &[unit.into()]);
    };
    for (keyword, host, at_ms) in [
        ("APP_SEND", "khons", 0),
        ("TCP_SEGMENT", "khons", 120),
        ("NET_ENQUEUE", "khons", 127),
        ("NET_DEQUEUE", "khons", 128),
        ("NET_DROP", "khons", 128),
        ("TCP_RETRANSMIT", "khons", 328),
        ("NET_DELIVER", "udjat", 348),
        ("APP_RECEIVED", "udjat", 350),
    ] {
        event(1, keyword, host, at_ms);
    }
    for unit in [2, 3] {
        event(unit, "APP_SEND", "khons", 400);
        event(unit, "TCP_SEGMENT", "khons", 401);
        event(unit, "NET_DROP", "khons", 401);
    }
    traced.lifelines =
        stackline_analyze::assemble::lifelines(&traced.events, None, &Default::default());
    traced
}
