//! `session`: requests and answers as JSON lines, cancelled and ended as they should be.

use crate::support::{Place, Started, until};
use serde_json::{Value, json};
use std::fs;

/// Two hosts 5 ms apart: a call of 32 bytes takes 10.1 ms.
const PAIR: &str = "network n { host a, b; link a - b 10 Mbit/s 5 ms; }";

fn started(place: &Place, requests: &[Value]) -> Started {
    let mut session = place.start(&mut place.command(&["session"]));
    for request in requests {
        session.say(format!("{request}\n").as_bytes());
    }
    session
}

/// All lines of a session that answers these requests.
fn lines(place: &Place, requests: &[Value]) -> Vec<Value> {
    let mut session = started(place, requests);
    session.say(b"{\"quit\": true}\n");
    let finished = session.finish();
    let lines = finished.succeeds().out.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The answers among them, by id.
fn answer(lines: &[Value], id: u64) -> &Value {
    let is_it = |line: &&Value| {
        line["id"] == id && (line.get("result").is_some() || line.get("error").is_some())
    };
    let mut found = lines.iter().filter(is_it);
    let answer = found.next().unwrap_or_else(|| panic!("{lines:#?}"));
    assert!(found.next().is_none(), "two answers: {lines:#?}");
    answer
}

fn calls(n: u32) -> String {
    format!("{PAIR} 2 from a to b rr 32*{n} across n in simulated;")
}

#[test]
fn a_run_is_what_show_prints_and_one_that_is_not_kept_leaves_nothing() {
    let place = Place::new();
    let text = calls(10);
    let made = lines(
        &place,
        &[json!({"id": 1, "run": {"specification": text, "keep": false, "percentiles": ["75"]}})],
    );
    assert_eq!(made[0]["session"], 1);
    assert_eq!(made[0]["stackline"], env!("CARGO_PKG_VERSION"));
    let unkept = answer(&made, 1)["result"].clone();
    assert_eq!(unkept["run"], Value::Null);
    let percentiles = &unkept["measurements"][0]["response_s"]["percentiles"];
    assert_eq!(
        percentiles["p75"],
        unkept["measurements"][0]["response_s"]["median"]
    );
    assert!(!place.path("runs").exists());

    let made = lines(
        &place,
        &[json!({"id": 7, "run": {"specification": text, "name": "kept"}})],
    );
    let kept = &answer(&made, 7)["result"];
    let shown = place.stackline(&["show", "kept", "--json"]).json();
    assert_eq!(kept["measurements"], shown["measurements"]);
    assert_eq!(kept["complete"], true);
    let mut same = unkept["measurements"].clone();
    same[0]["response_s"]
        .as_object_mut()
        .unwrap()
        .remove("percentiles");
    assert_eq!(
        same, shown["measurements"],
        "kept or not, the results are equal"
    );
    let text_kept = fs::read_to_string(place.kept().0.join("specification.stackline"));
    assert_eq!(text_kept.unwrap(), text);
}

#[test]
fn a_traced_run_is_diagnosed_and_its_wish_not_to_be_kept_is_refused() {
    let place = Place::new();
    let made = lines(
        &place,
        &[
            json!({"id": 1, "run": {"specification": calls(5), "trace": true, "name": "t"}}),
            json!({"id": 2, "run": {"specification": calls(5), "trace": true, "keep": false}}),
            json!({"id": 3, "compare": {"before": "t", "after": "last"}}),
            json!({"id": 4, "predict": {"specification": calls(5), "run": "t"}}),
        ],
    );
    assert_eq!(answer(&made, 1)["result"]["complete"], true);
    assert!(place.kept().0.join("findings.json").exists());
    assert_eq!(answer(&made, 2)["error"]["kind"], "input");
    assert_eq!(answer(&made, 2)["error"]["exit_code"], 2);
    let compared = place.stackline(&["compare", "t", "last", "--json"]).json();
    assert_eq!(answer(&made, 3)["result"], compared);
    place.write("calls", calls(5));
    let predicted = place.stackline(&["predict", "calls", "--run", "t", "--json"]);
    assert_eq!(answer(&made, 4)["result"], predicted.json());
}

#[test]
fn a_check_prints_all_mistakes_and_a_wrong_run_names_the_first() {
    let place = Place::new();
    let made = lines(
        &place,
        &[
            json!({"id": 1, "check": {"specification": "2 rr 32*5; 1 rr 8*5"}}),
            json!({"id": 2, "check": {"specification": "1 rr 32*5 over tcpp"}}),
            json!({"id": 3, "run": {"specification": "1 rr 32*5 over tcpp"}}),
            json!({"id": 4, "predict": {"specification": "1 rr 32*5"}}),
            json!({"id": 5, "run": {"file": "nothing.stackline"}}),
        ],
    );
    let right = &answer(&made, 1)["result"];
    assert_eq!((&right["ok"], &right["runs"]), (&json!(true), &json!(3)));
    let wrong = &answer(&made, 2)["result"];
    let said = place.stackline(&["check", "--json", "-e", "1 rr 32*5 over tcpp"]);
    let said: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(wrong["right"], said["right"]);
    let message = said["diagnostics"][0]["message"].as_str().unwrap();
    assert_eq!(wrong["diagnostics"][0]["message"], message);
    let error = &answer(&made, 3)["error"];
    assert_eq!(
        error["message"],
        format!("specification, line 1: {message}")
    );
    assert_eq!(error["diagnostics"], wrong["diagnostics"]);
    for id in [4, 5] {
        let error = &answer(&made, id)["error"];
        assert_eq!(error["kind"], "input");
        assert!(error["hint"].is_string(), "{error}");
    }
    assert!(!place.path("runs").exists());
}

#[test]
fn a_study_answers_each_of_its_texts_and_the_wrong_ones_stop_no_other() {
    let place = Place::new();
    let swept = format!("{PAIR} 1 from a to b rr N*10 across n; N = 8;");
    let made = lines(
        &place,
        &[json!({"id": 1, "simulate": {"specifications": [
            calls(3),
            "1 rr 32*5 over tcpp",
            {"specification": swept, "variables": {"N": [1000, 2000]}},
            {"specification": calls(3), "world": "live"},
            calls(3),
        ]}})],
    );
    let items = |index: u64| {
        let mut found = made.iter().filter(|line| line["item"]["index"] == index);
        let item = found.next().unwrap()["item"].clone();
        assert!(found.next().is_none());
        item
    };
    assert_eq!(items(0)["result"], items(4)["result"]);
    assert_eq!(items(1)["error"]["kind"], "input");
    assert_eq!(items(3)["error"]["kind"], "input");
    let sizes = &items(2)["result"]["measurements"];
    let size = |at: usize| sizes[at]["variables"]["N"].as_f64().unwrap();
    assert_eq!((size(0), size(1)), (1000.0, 2000.0));
    assert_eq!(
        answer(&made, 1)["result"],
        json!({"specifications": 5, "failed": 2})
    );
    assert!(!place.path("runs").exists());
}

/// More than any test waits for.
fn endless() -> Value {
    json!({"specification": format!("{PAIR} 1000000 from a to b rr 32*1000 across n in simulated;")})
}

#[test]
fn a_cancelled_request_is_answered_once_and_keeps_no_directory_without_runs() {
    let place = Place::new();
    let made = lines(
        &place,
        &[
            json!({"id": 1, "run": {"specification": endless()["specification"], "keep": false}}),
            json!({"id": 2, "simulate": {"specifications": [endless(), endless()]}}),
            json!({"id": 3, "check": {"specification": "1 rr 32*5"}}),
            json!({"cancel": 2}),
            json!({"cancel": 1}),
            json!({"cancel": 9}),
        ],
    );
    for id in [1, 2] {
        assert_eq!(answer(&made, id)["error"]["kind"], "interrupted");
        assert_eq!(answer(&made, id)["error"]["exit_code"], 130);
    }
    assert_eq!(answer(&made, 3)["result"]["ok"], true);
    let found = |id: u64| {
        let line = made.iter().find(|line| line["cancel"] == id);
        line.unwrap()["found"].as_bool().unwrap()
    };
    assert!(found(1) && found(2) && !found(9));
    assert!(!place.path("runs").exists());
}

#[test]
fn the_end_of_stdin_ends_a_run_with_its_agents_and_keeps_what_was_finished() {
    let place = Place::new();
    let text = "1000000 request_response 32*100 over tcp";
    let session = started(&place, &[json!({"id": 1, "run": {"specification": text}})]);
    session.has_kept(2);
    // The input ends here; what is left behind is noticed there.
    session.finish();
    place.empties();
    let shown = place.stackline(&["show", "last", "--json"]).json();
    assert_eq!(shown["complete"], false);
    assert!(shown["measurements"][0]["runs"].as_u64().unwrap() >= 2);
}

#[test]
fn lines_that_are_not_requests_are_answered_and_the_next_ones_are_read() {
    let place = Place::new();
    let mut session = started(&place, &[]);
    session.say(b"\n  \nnonsense\n\xff\xfe\n[1]\n");
    session.say(b"{\"id\": 1, \"think\": {}}\n{\"id\": 2, \"run\": {\"kep\": true}}\n");
    let long = "x".repeat(49 << 20);
    session.say(long.as_bytes());
    session.say(b"\n{\"id\": 3, \"check\": {\"specification\": \"1 rr 32*5\"}}\n");
    session.say(b"{\"quit\": true}\n{\"id\": 4, \"check\": {\"specification\": \"\"}}\n");
    let finished = session.finish();
    let answers: Vec<Value> = finished
        .succeeds()
        .out
        .lines()
        .skip(1)
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let ids: Vec<Value> = answers.iter().map(|line| line["id"].clone()).collect();
    let null = Value::Null;
    let expected = [&null, &null, &null, &json!(1), &json!(2), &null, &json!(3)];
    assert_eq!(ids.iter().collect::<Vec<_>>(), expected);
    assert_eq!(answers[6]["result"]["ok"], true);
    let too_long = answers[5]["error"]["message"].as_str().unwrap();
    assert!(too_long.contains("at most"), "{too_long}");
}

#[test]
fn a_signal_ends_the_session() {
    let place = Place::new();
    let text = "1000000 request_response 32*100 over tcp";
    let mut session = started(&place, &[json!({"id": 1, "run": {"specification": text}})]);
    session.has_kept(1);
    session.process().signal(nix::sys::signal::Signal::SIGTERM);
    // Its input stays open: that ends a session, too.
    until("the session ends", || session.has_ended().then_some(()));
    let status = session.finish().status;
    assert_eq!(status.code(), Some(130));
}
