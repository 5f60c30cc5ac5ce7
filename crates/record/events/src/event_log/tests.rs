//! Event logs come back as they were written, and hostile ones do no harm.

use super::reader::PIECE;
use super::*;
use crate::value::canonical;
use proptest::prelude::*;
use std::io::{self, Read};

#[test]
fn an_event_log_reads_back() {
    let (send, drop) = (keyword::intern("APP_SEND"), keyword::intern("NET_DROP"));
    let mut event_log = EventLog::default();
    event_log.host("khons");
    event_log.push(
        send,
        5,
        &[
            EventValue::Number(-7),
            EventValue::Absent,
            EventValue::Text("queue full, really"),
        ],
    );
    event_log.host("udjat");
    event_log.push(drop, 6, &[]);
    event_log.push(send, 7, &[EventValue::Text("")]);
    let again = EventLog::from_bytes(event_log.bytes().to_vec());
    let records: Vec<EventRecord<'_>> = again.records().collect();
    let expected = |keyword, host, at_ns, values: &[EventValue<'static>]| EventRecord {
        keyword,
        host,
        at_ns,
        values: values.to_vec(),
    };
    assert_eq!(
        records,
        [
            expected(
                "APP_SEND",
                "khons",
                5,
                &[
                    EventValue::Number(-7),
                    EventValue::Absent,
                    EventValue::Text("queue full, really")
                ]
            ),
            expected("NET_DROP", "udjat", 6, &[]),
            expected("APP_SEND", "udjat", 7, &[EventValue::Text("")]),
        ]
    );
}

#[test]
fn pieces_are_whole_records_and_together_the_event_log() {
    let mut event_log = EventLog::default();
    event_log.host("khons");
    for n in 0..100 {
        event_log.push(
            keyword::intern("APP_SEND"),
            n,
            &[
                EventValue::from(n),
                EventValue::Text(&"x".repeat(n as usize * 8)),
            ],
        );
    }
    for most in [1, 100, 500, 10_000, usize::MAX] {
        let pieces: Vec<&[u8]> = event_log.pieces(most).collect();
        assert_eq!(pieces.concat(), event_log.bytes());
        for piece in pieces {
            let (mut rest, mut values, mut records) = (piece, Vec::new(), 0);
            while !rest.is_empty() {
                whole_record(&mut rest, &mut values).unwrap();
                records += 1;
            }
            assert!(
                piece.len() <= most || records == 1,
                "{records} records, {} bytes, {most}",
                piece.len()
            );
        }
    }
    let hostile = EventLog::from_bytes(vec![0xff; 100]);
    assert_eq!(hostile.pieces(8).collect::<Vec<_>>(), [[0xff; 100]]);
}

#[test]
fn an_event_log_ends_where_it_was_cut_off() {
    let mut event_log = EventLog::default();
    event_log.host("khons");
    event_log.push(
        keyword::intern("APP_SEND"),
        5,
        &[
            EventValue::Number(1),
            EventValue::Text("nine more"),
            EventValue::Absent,
        ],
    );
    let (bytes, mut ends) = (event_log.bytes(), Vec::new());
    for length in 0..=bytes.len() {
        let records = EventLog::from_bytes(bytes[..length].to_vec())
            .records()
            .count();
        assert_eq!(records, usize::from(length == bytes.len()));
        ends.push(measure_whole_records(&bytes[..length]).unwrap());
    }
    ends.dedup();
    assert_eq!(
        ends,
        [None, Some(32), Some(72), Some(bytes.len() as u64)],
        "host, name, event"
    );
    assert_eq!(
        measure_whole_records(&bytes[32..]).unwrap(),
        None,
        "nobody's records are no file"
    );
}

#[test]
fn what_the_form_does_not_know_yet_is_passed_over_or_ends_it() {
    let send = keyword::intern("APP_SEND");
    let mut event_log = EventLog::default();
    event_log.host("khons");
    event_log.write(7, 0, &[EventValue::Number(1)]);
    event_log.push(send, 5, &[]);
    assert_eq!(
        event_log.records().count(),
        1,
        "a control record of tomorrow"
    );
    event_log.copy(&[u64::from(send) | 1 << 24 | 3 << 32, 6]);
    assert_eq!(
        event_log.records().count(),
        1,
        "a kind of value of tomorrow"
    );
}

#[test]
fn an_event_log_with_too_many_names_ends_at_the_last_allowed() {
    let first = keyword::FIRST as usize;
    for most in [MOST_NAMES, MOST_NAMES + 1] {
        let mut event_log = EventLog::default();
        event_log.host("khons");
        for id in (first..first + most).rev() {
            event_log.write(
                DEFINE,
                0,
                &[EventValue::Number(id as i64), EventValue::Text("A_NAME")],
            );
        }
        event_log.write(keyword::FIRST, 5, &[]);
        let expected = usize::from(most == MOST_NAMES);
        assert_eq!(event_log.records().count(), expected);
        let (lines, damaged) = in_pieces(event_log.bytes());
        assert_eq!((lines.len(), damaged > 0), (expected, expected == 0));
        assert!(lines.iter().all(|line| line.starts_with("A_NAME; khons")));
    }
}

fn value() -> impl Strategy<Value = Option<Result<i64, String>>> {
    proptest::option::of(proptest::result::maybe_err(any::<i64>(), "\\PC{0,20}"))
}

/// Gives so many bytes at a time.
struct Slow<'b>(&'b [u8], usize);

impl Read for Slow<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let length = self.1.min(to.len()).min(self.0.len());
        to[..length].copy_from_slice(&self.0[..length]);
        self.0 = &self.0[length..];
        Ok(length)
    }
}

fn in_pieces(bytes: &[u8]) -> (Vec<String>, u64) {
    let (mut pieces, mut lines) = (EventLogPieces::new(Slow(bytes, 1 << 16)), Vec::new());
    while let Some(table) = pieces.next_table().unwrap() {
        lines.extend((0..table.len()).map(|row| table.event(row).to_string()));
    }
    (lines, pieces.damaged())
}

#[test]
fn a_long_event_log_is_read_in_pieces() {
    let (send, drop) = (keyword::intern("APP_SEND"), keyword::intern("NET_DROP"));
    let mut event_log = EventLog::default();
    event_log.host("khons");
    for n in 0..60_000 {
        if n == 30_000 {
            event_log.host("udjat");
        }
        event_log.push(
            if n % 3 == 0 { drop } else { send },
            n,
            &[EventValue::from(n), EventValue::Text("words")],
        );
    }
    assert!(event_log.bytes().len() > 2 * PIECE);
    let (lines, damaged) = in_pieces(event_log.bytes());
    assert_eq!((lines.len(), damaged), (60_000, 0));
    assert_eq!(lines[29_999], "APP_SEND; khons; 0; 29999; 29999; words");
    assert_eq!(lines[59_999], "APP_SEND; udjat; 0; 59999; 59999; words");
    let cut = &event_log.bytes()[..event_log.bytes().len() - 3];
    assert_eq!(in_pieces(cut).0.len(), 59_999);
    assert!(in_pieces(cut).1 > 0);
}

proptest! {
    #[test]
    fn hostile_bytes_in_pieces_are_the_same_records(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let records = EventLog::from_bytes(bytes.clone());
        let mut table = crate::EventTable::default();
        table.push_event_log(&records);
        let expected: Vec<String> = (0..table.len()).map(|row| table.event(row).to_string()).collect();
        prop_assert_eq!(in_pieces(&bytes).0, expected);
    }

    #[test]
    fn hostile_bytes_are_harmless(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(EventLog::from_bytes(bytes.clone()).records().count() < 300);
        prop_assert!(measure_whole_records(&bytes[..]).unwrap().unwrap_or(0) <= bytes.len() as u64);
    }

    #[test]
    fn what_was_written_is_read(
        at_ns: u64,
        owned in proptest::collection::vec(value(), 0..=MOST_VALUES),
    ) {
        let values: Vec<EventValue<'_>> = owned.iter().map(|value| match value {
            None => EventValue::Absent,
            Some(Ok(number)) => EventValue::Number(*number),
            Some(Err(text)) => canonical(text.as_bytes()).map_or(EventValue::Text(text), EventValue::Number),
        }).collect();
        let mut event_log = EventLog::default();
        event_log.host("khons");
        let id = keyword::intern("APP_SEND");
        event_log.push(id, at_ns, &values);
        let mut ring = Vec::new();
        write_record_words(id, at_ns, &values, |word| ring.push(word));
        prop_assert_eq!(words_of(&values), ring.len());
        ring[0] |= TICKS;
        event_log.extend(&mut ring, |ticks| ticks ^ 1);
        let expected = [at_ns, at_ns ^ 1]
            .map(|at_ns| EventRecord { keyword: "APP_SEND", host: "khons", at_ns, values: values.clone() });
        prop_assert_eq!(event_log.records().collect::<Vec<_>>(), expected);
        let mut shown = 0;
        event_log.each(&mut EventLogNames::default(), |keyword, host, _, read| {
            shown += usize::from((keyword, host, read) == ("APP_SEND", "khons", &values[..]));
        });
        prop_assert_eq!((shown, measure_whole_records(event_log.bytes()).unwrap()), (2, Some(event_log.bytes().len() as u64)));
    }
}

#[test]
fn a_log_that_holds_no_event_for_long_is_damaged() {
    let mut pieces = EventLogPieces::new(io::repeat(0));
    assert!(pieces.next_table().unwrap().is_none());
    assert!(pieces.damaged() > 1 << 20);
}
