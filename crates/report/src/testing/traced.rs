//! Small runs with events, for the tests of the page and of pictures.

use crate::page::{Content, MOST_EVENTS};
use serde_json::{Value, json};
use stackline_analyze::findings::{Evidence, Finding, Kind};
use stackline_analyze::lifelines::{Lifelines, Line, Outcome, Passage, Point};
use stackline_core::trace::{Flow, HostTrace, Index, RunSpan};
use stackline_events::{Table, Value as Data, unit};

/// When the runs begin: now, not 1970.
pub(crate) const ORIGIN_NS: u64 = 1_790_000_000_123_456_789;
/// A name that would like to be a script.
pub(crate) const HOSTILE: &str = "</script><img src=x onerror=\"alert(1)\"><script>alert(2)</script>";

/// Everything that a page is made of.
#[derive(Debug, Default)]
pub(crate) struct Traced {
    pub(crate) title: String,
    pub(crate) run: Value,
    pub(crate) environment: Value,
    pub(crate) findings: Vec<Finding>,
    pub(crate) index: Index,
    pub(crate) events: Table,
    pub(crate) lifelines: Lifelines,
}

impl Traced {
    pub(crate) fn content(&self) -> Content<'_> {
        Content {
            title: &self.title,
            run: &self.run,
            printed: "",
            specification: &self.title,
            environment: &self.environment,
            findings: &self.findings,
            index: &self.index,
            events: &self.events,
            lifelines: &self.lifelines,
            most_events: MOST_EVENTS,
        }
    }

    /// Adds a call that meets `met` of the four points, 10 us times `pace` after each other.
    fn call(&mut self, number: u64, at_ns: u64, pace: u64, met: usize) {
        let id = unit::unit(0, number);
        let first = self.lifelines.passages.len() as u32;
        let points: Vec<(String, String)> =
            self.lifelines.points.iter().take(met).map(|p| (p.keyword.clone(), p.host.clone())).collect();
        for (point, (keyword, host)) in points.iter().enumerate() {
            let (at_ns, row) = (at_ns + point as u64 * 10_000 * pace, self.events.len() as u32);
            self.events.push(keyword, host, at_ns, &[id.into(), 0.into(), (number * 48).into(), 32.into()]);
            self.lifelines.passages.push(Passage { at_ns, point: point as u32, row });
        }
        let lost = met < self.lifelines.points.len();
        let first_mark = self.lifelines.marks.len() as u32;
        if lost {
            let (at_ns, row) = (at_ns + met as u64 * 10_000, self.events.len() as u32);
            let absent = Data::Absent;
            let more = [absent, absent, absent, absent, absent, absent, "queue full".into()];
            let data = [[id.into(), 0.into(), (number * 48).into(), 32.into()].as_slice(), &more].concat();
            self.events.push("NET_DROP", "edge", at_ns, &data);
            self.lifelines.marks.push(Passage { at_ns, point: 0, row });
        }
        let outcome = if lost { Outcome::NeverArrived { after: met as u32 - 1 } } else { Outcome::Complete };
        let (count, mark_count) = (met as u32, u32::from(lost));
        let (group, flow, bytes) = (0, Some(0), Some(32));
        self.lifelines.lines.push(Line {
            unit: id.to_string(),
            group,
            flow,
            first,
            count,
            first_mark,
            mark_count,
            bytes,
            outcome,
        });
    }
}

fn empty() -> Traced {
    let point = |keyword: &str, host: &str| Point { keyword: keyword.into(), host: host.into(), place: String::new() };
    let points =
        [("APP_CALL", "khons"), ("APP_INDICATION", "udjat"), ("APP_REPLY", "udjat"), ("APP_RESPONSE", "khons")];
    let mut traced =
        Traced { title: "rr".into(), run: json!({"complete": true, "measurements": []}), ..Traced::default() };
    traced.lifelines.points = points.iter().map(|(keyword, host)| point(keyword, host)).collect();
    traced.lifelines.marked = vec![point("NET_DROP", "edge")];
    traced.lifelines.groups = vec!["tcp".into()];
    let hosts = ("khons".into(), "udjat".into());
    traced.index.flows.push(Flow { hosts, stack: "tcp".into(), ..Flow::default() });
    for host in ["khons", "udjat"] {
        traced.index.hosts.insert(host.into(), HostTrace::default());
    }
    traced.index.reference = "khons".into();
    traced
}

/// Two calls that are answered, one that is dropped on its way, one monitor.
pub(crate) fn few() -> Traced {
    let mut traced = empty();
    traced.call(0, ORIGIN_NS, 1, 4);
    traced.call(1, ORIGIN_NS + 100_000, 3, 4);
    traced.call(2, ORIGIN_NS + 400_000, 1, 2);
    let data: Vec<Data<'_>> = [100_000, 0, 300_000, 100_000, 0, 0, 0, 600_000].map(Data::from).to_vec();
    traced.events.push("CPU_USE", "khons", ORIGIN_NS + 200_000, &data);
    let span = RunSpan { to_ns: ORIGIN_NS + 500_000, from_ns: ORIGIN_NS, ..RunSpan::default() };
    traced.index.runs.push(span);
    traced.findings.push(Finding {
        kind: Kind::QueueDrop,
        sentence: "Unit 3 was dropped at edge.".into(),
        confidence: 0.99,
        share: 0.3,
        evidence: vec![Evidence {
            what: "a drop at edge".into(),
            from_ns: ORIGIN_NS + 400_000,
            to_ns: ORIGIN_NS + 430_000,
            units: vec![unit::unit(0, 2).to_string()],
            events: vec![],
        }],
        tries: vec!["a longer queue".into()],
        measurement: Some(0),
    });
    traced
}

/// So many calls that are answered.
pub(crate) fn many(count: u64) -> Traced {
    let mut traced = empty();
    (0..count).for_each(|number| traced.call(number, ORIGIN_NS + number * 50_000, 1 + number % 3, 4));
    traced
}

/// Names that would like to be scripts, wherever a name can stand.
pub(crate) fn hostile() -> Traced {
    let mut traced = empty();
    traced.title = HOSTILE.into();
    traced.environment = json!({HOSTILE: {HOSTILE: [HOSTILE]}});
    let point = Point { keyword: HOSTILE.into(), host: HOSTILE.into(), place: HOSTILE.into() };
    traced.lifelines.points = vec![point; 2];
    traced.lifelines.groups = vec![HOSTILE.into()];
    for (row, at_ns) in [(0, ORIGIN_NS), (1, ORIGIN_NS + 1000)] {
        traced.events.push(HOSTILE, HOSTILE, at_ns, &vec![HOSTILE.into(); 20]);
        traced.lifelines.passages.push(Passage { at_ns, point: row, row });
    }
    traced.lifelines.lines.push(Line { unit: HOSTILE.into(), count: 2, ..Line::default() });
    traced.findings.push(Finding {
        kind: Kind::Healthy,
        sentence: HOSTILE.into(),
        confidence: 1.0,
        share: 1.0,
        evidence: vec![Evidence { what: HOSTILE.into(), units: vec![HOSTILE.into()], ..Evidence::default() }],
        tries: vec![HOSTILE.into()],
        measurement: None,
    });
    traced
}
