//! The schema that others rely on.

use super::*;
use crate::testing::emulated::emulated;
use crate::testing::{a_plan, connected, golden, summaries};
use stackline_analyze::summarise;

fn header() -> ReportHeader {
    ReportHeader {
        stackline: "0.1.0".into(),
        run: "stackline-runs/20261120-235831-rr".into(),
        seed: 42,
        world: World::Live,
        wake_up: Some(WakeUp {
            same_core_s: Some(1.5e-6),
            other_core_s: None,
        }),
        complete: true,
        running: false,
        reason: None,
    }
}

#[test]
fn a_run_as_json() {
    let value = json(&header(), &summaries()[..2], &[]);
    golden("run.json", &format!("{value:#}\n"));
}

#[test]
fn promised_fields_are_there() {
    let value = json(&header(), &summaries(), &[]);
    for field in [
        "stackline",
        "run",
        "seed",
        "world",
        "complete",
        "measurements",
    ] {
        assert!(value.get(field).is_some(), "{field}");
    }
    let fields = [
        "text",
        "part",
        "application",
        "stack",
        "from",
        "to",
        "runs",
        "units",
        "unit_bytes",
        "throughput_bit_s",
        "response_s",
        "connect_s",
        "cpu",
        "lost",
        "flags",
    ];
    for field in fields {
        assert!(value["measurements"][0].get(field).is_some(), "{field}");
    }
    for field in [
        "n", "mean", "sd", "min", "max", "median", "p90", "p99", "p999", "ci95",
    ] {
        assert!(
            value["measurements"][0]["throughput_bit_s"]
                .get(field)
                .is_some(),
            "{field}"
        );
    }
    assert!(value["measurements"][0]["throughput_bit_s"]["ci95"].is_array());
    assert!(value["measurements"][0]["cpu"]["responder"]["system_s"].is_f64());
    assert_eq!(
        value["measurements"].as_array().unwrap().last().unwrap()["part"],
        "all"
    );
}

#[test]
fn absent_is_null() {
    let value = json(&header(), &summarise(&a_plan(), &[]), &[]);
    for field in [
        "throughput_bit_s",
        "response_s",
        "connect_s",
        "lost",
        "cpu_s_per_gb",
        "main",
    ] {
        assert!(value["measurements"][0][field].is_null(), "{field}");
    }
    assert_eq!(value["measurements"][0]["runs"], 0);
}

#[test]
fn every_field_is_described() {
    let page = include_str!("../../../../../docs/JSON.md");
    let value = json(&header(), &summaries(), &[]);
    let measurement = value["measurements"][0].as_object().unwrap();
    let sides = measurement["initiator"].as_object().unwrap();
    for field in value
        .as_object()
        .unwrap()
        .keys()
        .chain(measurement.keys())
        .chain(sides.keys())
    {
        assert!(
            page.contains(&format!("`{field}`")),
            "docs/JSON.md does not describe {field}"
        );
    }
}

/// The rows of the page's tables below a heading.
fn described_under(heading: &str) -> String {
    let page = include_str!("../../../../../docs/JSON.md");
    let below = page.split_once(heading).unwrap().1;
    let lines = below
        .lines()
        .skip(1)
        .take_while(|line| !line.starts_with('#'));
    lines
        .filter(|line| line.starts_with("| `"))
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn a_modelled_network_is_in_it_and_described() {
    let (plan, records) = emulated();
    let value = json(&header(), &summarise(&plan, &records), &[]);
    let network = &value["measurements"][0]["network"];
    golden("network.json", &format!("{network:#}\n"));
    let page = described_under("### The network");
    for object in [network, &network["ports"][0], &network["emulation"]] {
        for field in object.as_object().unwrap().keys() {
            assert!(
                page.contains(&format!("`{field}`")),
                "docs/JSON.md does not describe {field}"
            );
        }
    }
    assert_eq!(network["ports"][0]["drops"]["queue full"], 12);
    assert_eq!(network["emulation"]["overloaded"], 1);
    assert!(value["measurements"][1]["network"]["emulation"].is_null());
    assert!(
        json(&header(), &summaries(), &[])["measurements"][0]["network"].is_null(),
        "the live world has none"
    );
}

#[test]
fn connections_have_a_rate_and_a_cost() {
    let (plan, records) = connected();
    let value = json(&header(), &summarise(&plan, &records), &[]);
    let connections = &value["measurements"][0];
    assert_eq!(connections["rate_of"], "connection");
    assert!((connections["rate_per_s"]["mean"].as_f64().unwrap() - 12_500.0).abs() < 1e-6);
    assert!((connections["cpu_us_per_call"]["both"].as_f64().unwrap() - 60.0).abs() < 1e-9);
    assert!(
        connections["host_cpu_us_per_call"].is_null()
            && connections["absent"]["host_cpu"].is_string()
    );
}

#[test]
fn hosts_have_costs() {
    let value = json(&header(), &summaries(), &[]);
    let get = &value["measurements"][0];
    assert!(
        get["host_cpu_s_per_gb"]["both"].as_f64().unwrap()
            > get["cpu_s_per_gb"]["both"].as_f64().unwrap()
    );
    assert!(get["initiator"]["host"]["throttled_s"].is_null());
    assert!(get["absent"]["throttled_s"].is_string());
}
