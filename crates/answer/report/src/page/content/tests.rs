//! What a page's data say of a small run.

use super::super::markup_safe_data::tests::unpack;
use super::*;
use crate::testing::traced;
use stackline_analyze::findings::NamedRequests;
use stackline_events::unit_ids;

/// Numbers of a column as they are written.
fn column(head: &Value, bytes: &[u8], name: &str) -> Vec<u64> {
    let place: Vec<usize> = head["columns"][name]
        .as_array()
        .unwrap()
        .iter()
        .map(|n| n.as_u64().unwrap() as usize)
        .collect();
    let (mut numbers, mut number, mut shift) = (Vec::new(), 0, 0);
    for byte in &bytes[place[0]..place[0] + place[1]] {
        number |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            numbers.push(number);
            (number, shift) = (0, 0);
        }
    }
    numbers
}

#[test]
fn lines_come_with_their_events_and_the_others_behind() {
    let traced = traced::few();
    let (head, bytes) = unpack(&pack_content(&traced.content()));
    assert_eq!(column(&head, &bytes, "line.count"), [4, 4, 2]);
    assert_eq!(column(&head, &bytes, "line.marks"), [0, 0, 1]);
    assert_eq!(column(&head, &bytes, "line.outcome"), [0, 0, 4]);
    assert_eq!(head["kinds"][0], json!(["APP_CALL", "khons", ""]));
    assert_eq!(head["kinds"][4], json!(["NET_DROP", "edge", ""]));
    assert_eq!(head["kinds"][5], json!(["CPU_USE", "khons", ""]));
    assert_eq!(
        head["fates"],
        json!([null, null, null, null, "dropped", null])
    );
    assert_eq!((&head["points"], &head["marked"]), (&json!(4), &json!(1)));
    assert_eq!(
        head["kept"],
        json!({"lines": 3, "of_lines": 3, "loose": 1, "of_loose": 1})
    );
    assert_eq!(
        column(&head, &bytes, "event.kind"),
        [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 4, 5]
    );
    assert_eq!(head["catalogue"]["CPU_USE"]["layer"], "monitor");
}

#[test]
fn times_count_from_the_first_event_however_late_it_is() {
    let traced = traced::few();
    let (head, bytes) = unpack(&pack_content(&traced.content()));
    assert_eq!(head["origin_ns"], traced::ORIGIN_NS.to_string());
    let at = column(&head, &bytes, "event.at");
    assert_eq!(at[..5], [0, 20_000, 20_000, 20_000, 140_000]);
}

#[test]
fn beyond_the_most_events_a_page_says_how_many_it_holds() {
    let traced = traced::many(1000);
    let content = Content {
        most_events: 400,
        ..traced.content()
    };
    let (head, _) = unpack(&pack_content(&content));
    let kept = head["kept"]["lines"].as_u64().unwrap();
    assert!((50..=100).contains(&kept), "{kept}");
    assert_eq!(head["kept"]["of_lines"], 1000);
}

#[test]
fn beyond_the_most_events_those_on_no_line_are_thinned_evenly_too() {
    let mut traced = traced::few();
    for host in ["khons", "udjat"] {
        (0..5_000).for_each(|at| {
            traced
                .events
                .push("TCP_RETRANSMIT", host, traced::ORIGIN_NS + at * 100, &[])
        });
    }
    let content = Content {
        most_events: 100,
        ..traced.content()
    };
    let (head, bytes) = unpack(&pack_content(&content));
    assert_eq!(head["kept"]["of_loose"], 10_001);
    assert_eq!(head["kept"]["loose"], 100);
    let of_host = |host: &str| {
        let kinds = head["kinds"].as_array().unwrap();
        let kind = kinds
            .iter()
            .position(|kind| kind[0] == "TCP_RETRANSMIT" && kind[1] == host)
            .unwrap();
        column(&head, &bytes, "event.kind")
            .into_iter()
            .filter(|one| *one == kind as u64)
            .count()
    };
    assert!(
        of_host("khons").abs_diff(of_host("udjat")) <= 1,
        "{} {}",
        of_host("khons"),
        of_host("udjat")
    );
}

#[test]
fn of_events_on_no_line_only_those_are_kept_that_something_shows() {
    let mut traced = traced::few();
    for keyword in [
        "NET_ENQUEUE",
        "SOCK_SEND",
        "TCP_RETRANSMIT",
        "IKP_RETRANSMIT",
        "NET_DROP",
        "TCP_INFO",
        "FOREIGN",
    ] {
        traced
            .events
            .push(keyword, "khons", traced::ORIGIN_NS + 1, &[]);
    }
    let (head, _) = unpack(&pack_content(&traced.content()));
    let kinds: Vec<&str> = head["kinds"].as_array().unwrap()[5..]
        .iter()
        .map(|kind| kind[0].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        [
            "TCP_RETRANSMIT",
            "IKP_RETRANSMIT",
            "NET_DROP",
            "TCP_INFO",
            "FOREIGN",
            "CPU_USE"
        ]
    );
    let again = json!("retransmitted");
    assert_eq!(
        head["fates"].as_array().unwrap()[5..],
        [
            again.clone(),
            again,
            json!("dropped"),
            json!(null),
            json!(null),
            json!(null)
        ]
    );
}

#[test]
fn lines_of_requests_have_the_name_of_what_was_asked() {
    let log = "REQUEST; client; 0; 10; 7; call; HTTP/1.1; 1; GET /slow/1; 200; client; web\n\
               REQUEST; client; 0; 20; 8; call; RESP; 1; GET; ; client; web\n\
               APP_CALL; client; 0; 30; 9\n";
    let mut events = stackline_events::EventTable::default();
    stackline_events::text::EventTextReader::new(log.as_bytes(), "log")
        .for_each(|event| events.push_event(&event.unwrap()));
    let names = request_names(&events);
    assert_eq!(names[&7], "GET /slow/1 200");
    assert_eq!((names[&8].as_str(), names.len()), ("GET", 2));
}

#[test]
fn each_line_knows_its_row_among_requests_by_name() {
    let mut traced = traced::few();
    let named = |traced: &traced::TracedFixture| {
        unpack(&pack_content(&traced.content())).0["named"].clone()
    };
    assert_eq!(named(&traced), Value::Null);
    let row = |name: &str, units: &[u64]| NamedRequests {
        name: name.to_owned(),
        count: units.len() as u64,
        units: units.iter().map(|unit| unit_ids::unit(0, *unit)).collect(),
        ..NamedRequests::default()
    };
    traced.named = vec![row("GET /slow/:id", &[1]), row("GET /fast", &[0, 77])];
    let named = named(&traced);
    assert_eq!(named["of_line"], json!([1, 0, null]));
    assert_eq!(
        (&named["of"], &named["rows"][1]["count"]),
        (&json!(2), &json!(2))
    );
    assert_eq!(named["rows"][0]["name"], "GET /slow/:id");
}

#[test]
fn requests_have_the_account_that_findings_have() {
    let mut traced = traced::few();
    assert_eq!(
        unpack(&pack_content(&traced.content())).0["accounts"],
        Value::Null
    );
    traced.requests = traced::accounted();
    let (head, _) = unpack(&pack_content(&traced.content()));
    assert_eq!(
        head["accounts"]["causes"],
        json!([
            ["wait for retransmission", "khons > udjat", "protocol"],
            ["server", "nginx on udjat", "application"]
        ])
    );
    // The second line is of a request too; the third is of none.
    assert_eq!(
        head["accounts"]["lines"],
        json!([[50_000, 0, 30_000, 1, 20_000], [40_000, 1, 40_000], null])
    );
    // The second is made for the first.
    assert_eq!(head["requests"]["of_line"], json!([0, 1, null]));
    let rows = head["requests"]["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    assert_eq!((&rows[0][0], &rows[1][0]), (&Value::Null, &json!(0)));
    assert_eq!(
        (&rows[1][2], &rows[1][4], &rows[1][5]),
        (&json!(40_000), &json!(1), &json!(40_000))
    );
}
