//! One beyond each bound of what is kept of captures: it is counted, and has words; what just fills it is not.

use super::connection_accounts::Accounts;
use super::reading::testing;
use super::*;
use crate::otlp;
use stackline_dissect::connections::Location;
use stackline_dissect::left_out::{Bound, LeftOut};
use stackline_dissect::segment::DissectedSegment;
use stackline_events::EventTable;
use std::collections::BTreeMap;
use std::net::SocketAddr;

fn syn(client: usize) -> DissectedSegment {
    let [_, high, middle, low] = (client as u32).to_be_bytes();
    DissectedSegment {
        ends: (
            SocketAddr::from(([11, high, middle, low], 5000)),
            "10.0.0.2:80".parse().unwrap(),
        ),
        sequence: 7,
        bytes: 0,
        syn: true,
        fin: false,
        reset: false,
        acknowledged: None,
        window: 0,
        selectively_acknowledged: None,
        window_scale: None,
        largest_segment: None,
        ttl: 64,
        length: 40,
    }
}

#[test]
fn what_the_index_and_logs_get() {
    Bound::Asked.assert_reported(|count| testing::remembered(count).left_out);
    Bound::Accounts.assert_reported(|count| {
        let (mut accounts, mut left_out) = (Accounts::default(), LeftOut::default());
        for flow in 0..count {
            let at = Location {
                stream: (flow as i64) << 1,
                offset: 0,
                repeated: false,
                fresh: 0,
                is_probe: false,
            };
            let _ = accounts.take("a", 0, &syn(flow), &at);
        }
        accounts.finish(&mut EventTable::default(), &mut left_out);
        left_out
    });
}

#[test]
fn connections_beyond_those_that_have_numbers() {
    // As many as there are numbers take too long: those of a run from before are taken.
    let read = |taken: u32| {
        let mut capture = 0xa1b2_c3d4_u32.to_le_bytes().to_vec();
        capture.extend([2, 0, 4, 0]);
        [0, 0, 65535, 101]
            .into_iter()
            .for_each(|word| capture.extend(u32::to_le_bytes(word)));
        [1, 0, 40, 40]
            .into_iter()
            .for_each(|word| capture.extend(u32::to_le_bytes(word)));
        let mut packet = vec![
            0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0x13, 0x88, 0, 80,
        ];
        packet.extend([0, 0, 0, 7, 0, 0, 0, 0, 0x50, 2, 1, 0, 0, 0, 0, 0]);
        capture.extend(packet);
        let plan = CapturePlan::from_surveys(
            &[Survey::read(&capture[..], "a", None).unwrap()],
            &BTreeMap::new(),
        );
        let known = StreamRegistry::new(BTreeMap::new(), taken);
        let mut reader = CaptureEventReader::open(
            vec![Box::new(&capture[..])],
            &plan,
            known,
            CaptureReadOptions::default(),
        )
        .unwrap();
        while reader.next_batch().is_some() {}
        reader.finish().unknown.left_out
    };
    assert_eq!(Bound::Numbers.most(), FIRST_LOOKUP as usize);
    assert_eq!(read(FIRST_LOOKUP - 1).count_of(Bound::Numbers), 0);
    let beyond = read(FIRST_LOOKUP);
    assert_eq!(beyond.count_of(Bound::Numbers), 1);
    assert!(beyond.lines()[0].contains("more than 8,388,607 connections"));
}

#[test]
fn what_a_survey_looks_at() {
    Bound::Handshakes.assert_reported(|count| {
        let mut survey = Survey::default();
        (0..count).for_each(|client| survey.seen("a", 0, None, Some(&syn(client))));
        CapturePlan::from_surveys(&[survey], &BTreeMap::new()).left_out
    });
    Bound::SurveyedInterfaces.assert_reported(|count| {
        let mut survey = Survey::default();
        (0..count).for_each(|at| survey.seen(&at.to_string(), 0, None, Some(&syn(0))));
        survey.left_out
    });
}

#[test]
fn files_of_other_tools() {
    Bound::Keyword.assert_reported(|letters| {
        let name = "x".repeat(letters - 1);
        let span = format!(
            r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{{"traceId":"{:032}","spanId":"{:016}","name":"{name}","startTimeUnixNano":"1","endTimeUnixNano":"2"}}]}}]}}]}}"#,
            1, 1
        );
        otlp::read(span.as_bytes(), true).unwrap().left_out
    });
    Bound::Data.assert_reported(|bytes| {
        let text = "x".repeat(bytes - r#"{"a":""}"#.len());
        let log = format!(
            r#"{{"traces":[{{"events":[{{"time":1,"name":"a","data":{{"a":"{text}"}}}}]}}]}}"#
        );
        crate::qlog::read(log.as_bytes(), None, true)
            .unwrap()
            .imported
            .left_out
    });
    Bound::Within.assert_reported(|deep| {
        let line = format!("{}1{}", r#"{"a":"#.repeat(deep), "}".repeat(deep));
        crate::access::read(line.as_bytes()).left_out
    });
    Bound::Near.assert_reported(|count| {
        let asked = CapturedRequest {
            name: "GET /".into(),
            status: "200".into(),
            at_ns: (5, 5),
            ..CapturedRequest::default()
        };
        let entry = crate::access::AccessLogEntry {
            at_ns: 5,
            is_end: true,
            method: "GET".into(),
            path: "/".into(),
            status: "200".into(),
            ..Default::default()
        };
        crate::access::join(&[entry], &vec![asked; count], None).left_out
    });
}
