//! Metrics: what `watch --listen` serves, and whether the dashboard and the documentation know it.

use crate::support::{Finished, Place, Process};
use nix::sys::signal::Signal;
use serde_json::Value;
use stackline_exchange::openmetrics::MetricKind;
use stackline_exchange::openmetrics::watch_metrics::{WatchFamily, watch_families};
use stackline_testing::metrics_text::{ReadMetricFamily, read_openmetrics, read_prometheus};
use stackline_testing::wait_until;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Stdio};

/// What `probe` serves: names without `_total`, and labels.
const PROBE: [(&str, MetricKind, &[&str]); 7] = [
    ("stackline_probe_up", MetricKind::Gauge, &[]),
    (
        "stackline_probe_response_seconds",
        MetricKind::Histogram,
        &[],
    ),
    ("stackline_probe_runs", MetricKind::Counter, &[]),
    ("stackline_probe_failures", MetricKind::Counter, &["reason"]),
    (
        "stackline_probe_throughput_bits_per_second",
        MetricKind::Gauge,
        &[],
    ),
    ("stackline_probe_finding", MetricKind::Gauge, &["kind"]),
    (
        "stackline_probe_alert_firing",
        MetricKind::Gauge,
        &["alert"],
    ),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// A watch that serves metrics.
struct ServingWatch {
    child: Child,
    address: SocketAddr,
    errors: BufReader<ChildStderr>,
}

impl ServingWatch {
    fn start(place: &Place, flags: &[&str]) -> Self {
        let mut command = place.command(&["watch", "--listen", "127.0.0.1:0", "--host", "khons"]);
        let mut child = command
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        errors.read_line(&mut line).unwrap();
        let address = line
            .trim()
            .strip_prefix("serving metrics at http://")
            .and_then(|line| line.strip_suffix("/metrics"))
            .unwrap_or_else(|| panic!("{line}"));
        Self {
            child,
            address: address.parse().unwrap(),
            errors,
        }
    }

    /// The head and the body of an answer.
    fn get(&self, accept: &str) -> (String, String) {
        let mut stream = TcpStream::connect(self.address).unwrap();
        let request = format!(
            "GET /metrics HTTP/1.1\r\nHost: {}\r\nAccept: {accept}\r\n\r\n",
            self.address
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.to_owned(), body.to_owned())
    }

    fn scrape(&self) -> Vec<ReadMetricFamily> {
        let (head, body) = self.get("application/openmetrics-text; version=1.0.0");
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        read_openmetrics(&body).unwrap_or_else(|wrong| panic!("{wrong}: {body}"))
    }

    /// Ends it by Ctrl-C.
    fn finish(mut self) -> Finished {
        Process(i32::try_from(self.child.id()).unwrap()).signal(Signal::SIGINT);
        let (mut out, mut err) = (String::new(), String::new());
        self.errors.read_to_string(&mut err).unwrap();
        let mut printed = self.child.stdout.take().unwrap();
        printed.read_to_string(&mut out).unwrap();
        let status = self.child.wait().unwrap();
        Finished { status, out, err }
    }
}

fn family<'f>(families: &'f [ReadMetricFamily], name: &str) -> Option<&'f ReadMetricFamily> {
    families.iter().find(|family| family.name == name)
}

#[test]
fn a_watch_serves_this_machine_until_it_is_ended() {
    let place = Place::new();
    let watch = ServingWatch::start(&place, &["--interval", "20ms"]);
    let mut families = Vec::new();
    wait_until("the first intervals are over", || {
        families = watch.scrape();
        family(&families, "stackline_cpu_seconds").is_some()
            && family(&families, "stackline_interface_bytes").is_some()
    });
    let described: BTreeMap<&str, &WatchFamily> = watch_families()
        .iter()
        .map(|family| (family.name, family))
        .collect();
    for read in families
        .iter()
        .filter(|read| read.name != "stackline_build")
    {
        let family = described[read.name.as_str()];
        let labels: BTreeSet<&str> = family.labels.iter().copied().collect();
        for sample in &read.samples {
            let own: BTreeSet<&str> = sample.labels.keys().map(String::as_str).collect();
            assert_eq!(own, labels, "{}", read.name);
        }
        assert_eq!(read.unit, family.unit.unwrap_or_default());
    }
    for name in [
        "stackline_build",
        "stackline_connections_active",
        "stackline_memory_bytes",
        "stackline_tcp_segments",
        "stackline_events",
    ] {
        assert!(family(&families, name).is_some(), "{name}: {families:?}");
    }
    let (head, body) = watch.get("*/*");
    assert!(head.contains("text/plain; version=0.0.4"), "{head}");
    read_prometheus(&body).unwrap();
    // Sums only grow.
    let later = watch.scrape();
    let events = |families: &[ReadMetricFamily]| {
        family(families, "stackline_events").unwrap().samples[0].value
    };
    assert!(events(&later) >= events(&families));
    let address = watch.address;
    let ended = watch.finish();
    ended.succeeds();
    assert!(
        ended.out.is_empty() && ended.err.contains(" of CPU time, "),
        "{} {}",
        ended.out,
        ended.err
    );
    assert!(TcpStream::connect(address).is_err());
    place.empties();
}

#[test]
fn a_connection_has_its_program_and_process_in_metrics_and_in_events() {
    let place = Place::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let watch = ServingWatch::start(&place, &["--interval", "20ms", "--tcp", &port, "--text"]);
    let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let mut far = listener.accept().unwrap().0;
    let pid = std::process::id().to_string();
    let name = fs::read_to_string("/proc/self/comm").unwrap();
    let mut families = Vec::new();
    wait_until("our own connection is served", || {
        near.write_all(&[7; 1000]).unwrap();
        far.read_exact(&mut [0; 1000]).unwrap();
        families = watch.scrape();
        let acknowledged = family(&families, "stackline_connection_acknowledged_bytes");
        acknowledged.is_some_and(|family| {
            family
                .samples
                .iter()
                .any(|sample| sample.labels["pid"] == pid && sample.value >= 1000.0)
        })
    });
    let active = family(&families, "stackline_connections_active").unwrap();
    let own = active
        .samples
        .iter()
        .find(|sample| sample.labels["pid"] == pid)
        .unwrap();
    assert_eq!(own.labels["program"], name.trim());
    assert!((1.0..=2.0).contains(&own.value), "{own:?}");
    let ended = watch.finish();
    let owners: Vec<&str> = ended
        .succeeds()
        .out
        .lines()
        .filter(|line| line.starts_with("CONNECTION_OWNER; khons; "))
        .collect();
    let is_own = |line: &&&str| line.ends_with(&format!("; {pid}; {}", name.trim()));
    assert_eq!(owners.iter().filter(is_own).count(), 2, "{owners:?}");
}

#[test]
fn an_address_that_cannot_be_is_refused_with_a_hint() {
    let place = Place::new();
    place
        .stackline(&["watch", "--listen", "khons", "--for", "1s"])
        .fails(2, &["expected :PORT"]);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    place
        .stackline(&["watch", "--listen", &address, "--for", "1s"])
        .fails(3, &["cannot listen on", &address])
        .hints("another port");
}

#[test]
fn the_unit_of_the_package_serves_and_keeps() {
    let unit = fs::read_to_string(root().join("packaging/stackline-watch.service")).unwrap();
    let start = unit
        .lines()
        .find_map(|line| line.strip_prefix("ExecStart=/usr/bin/stackline "))
        .unwrap();
    assert!(start.contains("--listen :9464"), "{start}");
    let start = start
        .replace("%H", "khons")
        .replace("--listen :9464", "--listen localhost:0");
    let place = Place::new();
    let mut words: Vec<&str> = start.split(' ').collect();
    words.extend(["--for", "300ms"]);
    let ended = place.stackline(&words);
    assert!(
        ended
            .succeeds()
            .err
            .contains("serving metrics at http://127.0.0.1:"),
        "{}",
        ended.err
    );
    assert_eq!(place.runs().len(), 1);
}

/// A name in a query, and what follows it.
#[derive(Debug, PartialEq)]
enum QueryWord {
    Name(String),
    Sign(char),
}

/// The words of a PromQL query without its texts, ranges and numbers.
fn words(query: &str) -> Vec<QueryWord> {
    let (mut words, mut letters) = (Vec::new(), query.chars().peekable());
    while let Some(letter) = letters.next() {
        match letter {
            '"' => while letters.next().is_some_and(|next| next != '"') {},
            '[' => while letters.next().is_some_and(|next| next != ']') {},
            _ if letter.is_ascii_alphabetic() || letter == '_' => {
                let mut name = letter.to_string();
                while let Some(next) =
                    letters.next_if(|next| next.is_ascii_alphanumeric() || *next == '_')
                {
                    name.push(next);
                }
                words.push(QueryWord::Name(name));
            }
            _ if letter.is_ascii_digit() || letter == '.' || letter.is_whitespace() => {}
            _ => words.push(QueryWord::Sign(letter)),
        }
    }
    words
}

/// Functions and operators that the dashboard may use.
const FUNCTIONS: [&str; 8] = [
    "histogram_quantile",
    "increase",
    "label_values",
    "max",
    "rate",
    "sum",
    "topk",
    "min",
];
/// What is followed by a list of labels.
const GROUPINGS: [&str; 5] = ["by", "ignoring", "on", "without", "group_left"];
/// Labels that Prometheus adds to what it scrapes.
const ADDED: [&str; 2] = ["instance", "job"];

/// The labels of each sample that is served, by its name.
fn served() -> BTreeMap<String, BTreeSet<&'static str>> {
    let mut served = BTreeMap::new();
    let mut add = |name: &str, kind: MetricKind, labels: &[&'static str]| {
        let labels: BTreeSet<&'static str> = labels.iter().copied().chain(ADDED).collect();
        match kind {
            MetricKind::Counter => drop(served.insert(format!("{name}_total"), labels)),
            MetricKind::Info => drop(served.insert(format!("{name}_info"), labels)),
            MetricKind::Gauge => drop(served.insert(name.to_owned(), labels)),
            MetricKind::Histogram => {
                let mut bucket = labels.clone();
                bucket.insert("le");
                served.insert(format!("{name}_bucket"), bucket);
                served.insert(format!("{name}_count"), labels.clone());
                served.insert(format!("{name}_sum"), labels);
            }
        }
    };
    for family in watch_families() {
        add(family.name, family.kind, family.labels);
    }
    for (name, kind, labels) in PROBE {
        let labels: Vec<&'static str> = ["probe", "measurement"]
            .into_iter()
            .chain(labels.iter().copied())
            .collect();
        add(name, kind, &labels);
    }
    add("stackline_build", MetricKind::Info, &["version"]);
    served
}

/// What is wrong in a query; `legend` names labels of its result.
fn mistakes(query: &str, legend: &str) -> Vec<String> {
    let served = served();
    let (words, mut wrong) = (words(query), Vec::new());
    let mut metrics: Vec<&BTreeSet<&str>> = Vec::new();
    let (mut labels, mut grouped): (Vec<&str>, BTreeSet<&str>) = (Vec::new(), BTreeSet::new());
    // Whether the words stand in braces, or in the brackets of a grouping.
    let (mut in_braces, mut in_grouping) = (false, false);
    for (at, word) in words.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| words.get(at));
        let is_named = |name: &str| before == Some(&QueryWord::Name(name.to_owned()));
        match word {
            QueryWord::Sign('{') => in_braces = true,
            QueryWord::Sign('}') => in_braces = false,
            QueryWord::Sign('(') => in_grouping = GROUPINGS.iter().any(|name| is_named(name)),
            QueryWord::Sign(')') => in_grouping = false,
            QueryWord::Sign(_) => {}
            QueryWord::Name(name) if in_braces => labels.push(name),
            QueryWord::Name(name) if in_grouping => {
                labels.push(name);
                grouped.insert(name);
            }
            QueryWord::Name(name) if name.starts_with("stackline_") => {
                match served.get(name.as_str()) {
                    Some(labels) => metrics.push(labels),
                    None => wrong.push(format!("{name} is not served")),
                }
            }
            QueryWord::Name(name)
                if FUNCTIONS.contains(&name.as_str()) || GROUPINGS.contains(&name.as_str()) => {}
            // The label of `label_values(METRIC, LABEL)`.
            QueryWord::Name(name) if before == Some(&QueryWord::Sign(',')) => labels.push(name),
            QueryWord::Name(name) => wrong.push(format!("{name} is not known")),
        }
    }
    let is_served = |label: &str| metrics.iter().any(|metric| metric.contains(label));
    let unknown = labels.iter().filter(|label| !is_served(label));
    wrong.extend(unknown.map(|label| format!("no metric has the label {label}")));
    let shown = legend.split("{{").skip(1);
    for label in shown.filter_map(|rest| rest.split_once("}}").map(|parts| parts.0)) {
        let survives = is_served(label) && (!query.contains(" by (") || grouped.contains(label));
        if !survives {
            wrong.push(format!("the legend's {label} is not in the result"));
        }
    }
    if metrics.is_empty() {
        wrong.push("there is no metric".into());
    }
    wrong
}

#[test]
fn the_check_of_queries_finds_mistakes() {
    for (query, legend, found) in [
        (
            "rate(stackline_tcp_resets_total{instance=~\"$instance\"}[5m])",
            "{{instance}}",
            "",
        ),
        ("rate(stackline_tcp_resets[5m])", "", "not served"),
        (
            "stackline_connections_active{programme=\"a\"}",
            "",
            "programme",
        ),
        (
            "sum by (pid) (stackline_connections_active)",
            "{{program}}",
            "legend's program",
        ),
        (
            "sum by (core) (stackline_connections_active)",
            "",
            "label core",
        ),
        ("raet(stackline_tcp_resets_total[5m])", "", "raet"),
        ("label_values(stackline_probe_up, prob)", "", "label prob"),
        ("1 + 2", "", "no metric"),
    ] {
        let wrong = mistakes(query, legend).join("; ");
        assert_eq!(wrong.is_empty(), found.is_empty(), "{query}: {wrong}");
        assert!(wrong.contains(found), "{query}: {wrong}");
    }
}

#[test]
fn the_dashboard_asks_for_what_is_served() {
    let text = fs::read_to_string(root().join("packaging/grafana/stackline.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    assert!(dashboard["schemaVersion"].as_u64().unwrap() >= 39);
    assert!(dashboard["title"].is_string() && dashboard["uid"].is_string());
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    let source = &variables[0];
    assert_eq!(
        (&source["name"], &source["type"], &source["query"]),
        (
            &"datasource".into(),
            &"datasource".into(),
            &"prometheus".into()
        )
    );
    let mut wrong = Vec::new();
    let mut check = |query: &Value, legend: &Value| {
        let query = query.as_str().unwrap();
        let found = mistakes(query, legend.as_str().unwrap_or_default());
        wrong.extend(found.iter().map(|why| format!("{query}: {why}")));
    };
    for variable in &variables[1..] {
        check(&variable["query"]["query"], &Value::Null);
    }
    let names: BTreeSet<&str> = variables
        .iter()
        .map(|variable| variable["name"].as_str().unwrap())
        .collect();
    let panels = dashboard["panels"].as_array().unwrap();
    let (mut ids, mut queries) = (BTreeSet::new(), Vec::new());
    for panel in panels {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{}", panel["id"]);
        assert!(panel["title"].is_string() && panel["gridPos"]["w"].as_u64().unwrap() <= 24);
        if panel["type"] == "row" {
            continue;
        }
        assert!(["timeseries", "stat"].contains(&panel["type"].as_str().unwrap()));
        let mut references = BTreeSet::new();
        for target in panel["targets"].as_array().unwrap() {
            assert_eq!(target["datasource"]["uid"], "${datasource}");
            assert!(references.insert(target["refId"].as_str().unwrap()));
            check(&target["expr"], &target["legendFormat"]);
            queries.push(target["expr"].as_str().unwrap());
        }
        assert!(!references.is_empty(), "{}", panel["title"]);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let variables = queries.iter().flat_map(|query| query.split('$').skip(1));
    for variable in variables {
        let end = variable
            .find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
            .unwrap_or(variable.len());
        let name = &variable[..end];
        assert!(name == "__rate_interval" || names.contains(name), "{name}");
    }
    // Each metric of a probe has a panel.
    for (name, _, _) in PROBE {
        assert!(queries.iter().any(|query| query.contains(name)), "{name}");
    }
}

#[test]
fn the_documentation_has_each_metric_with_its_labels_and_meaning() {
    let page = fs::read_to_string(root().join("docs/howto/METRICS.md")).unwrap();
    let row = |family: &WatchFamily| {
        let suffix = match family.kind {
            MetricKind::Counter => "_total",
            _ => "",
        };
        let labels: Vec<String> = family
            .labels
            .iter()
            .map(|label| format!("`{label}`"))
            .collect();
        let labels = match labels.is_empty() {
            true => " ".to_owned(),
            false => format!(" {} ", labels.join(", ")),
        };
        format!("| `{}{suffix}` |{labels}| {} |", family.name, family.help)
    };
    let missing: Vec<String> = watch_families()
        .iter()
        .map(row)
        .filter(|row| !page.lines().any(|line| line == row))
        .collect();
    assert!(missing.is_empty(), "write\n{}", missing.join("\n"));
    for line in page
        .lines()
        .filter(|line| line.contains("| `") && line.contains("stackline_"))
    {
        let queries: Vec<&str> = line.split('`').skip(1).step_by(2).collect();
        for query in queries.iter().filter(|query| query.contains(['(', '>'])) {
            let wrong = mistakes(query, "");
            assert!(wrong.is_empty(), "{query}: {}", wrong.join("; "));
        }
    }
}
