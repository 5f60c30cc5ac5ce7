//! Files of events written, read back, and damaged.

use super::schema::PAGE;
use super::*;
use proptest::prelude::*;
use stackline_events::{EventValue, TextEvent};

fn table(events: impl IntoIterator<Item = (String, u64, Vec<String>)>) -> EventTable {
    let mut table = EventTable::default();
    for (keyword, at_ns, data) in events {
        table.push_event(&TextEvent {
            keyword,
            host: "khons".into(),
            at_ns,
            data,
        });
    }
    table
}

fn events(table: &EventTable) -> Vec<TextEvent> {
    (0..table.len()).map(|row| table.event(row)).collect()
}

#[test]
fn pages_and_groups_are_cut_where_they_are_full() {
    let mut long = EventTable::default();
    let rows = PAGE as u64 * 2 + 7;
    for row in 0..rows {
        let text = format!("{}", row % 70_000);
        let odd = if row % 3 == 0 {
            EventValue::Absent
        } else {
            EventValue::Number(row as i64 * 7)
        };
        long.push(
            ["A", "B"][row as usize % 2],
            "khons",
            row,
            &[
                odd,
                EventValue::Text(&format!("u{row}")),
                EventValue::Text(&format!("x{text}")),
            ],
        );
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("khons.parquet");
    assert_eq!(write_table(&path, &long).unwrap(), rows);
    let again = read_table(&path).unwrap();
    assert_eq!(again.len() as u64, rows);
    assert!((0..long.len()).all(|row| again.event(row) == long.event(row)));
}

#[test]
fn only_what_is_wanted_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("khons.parquet");
    let data = ["7", "x", "8"].map(str::to_owned).to_vec();
    write_table(&path, &table([("A".to_owned(), 5, data)])).unwrap();
    let mut reader = EventFileReader::open(&path, &EventColumnSelection::fields(&[2])).unwrap();
    assert_eq!(reader.rows(), 1);
    let batch = reader.next_batch().unwrap().unwrap();
    assert_eq!(batch.event(0).to_string(), "A; khons; 0; 5; ; ; 8");
    assert!(reader.next_batch().unwrap().is_none());
}

#[test]
fn a_damaged_file_is_an_error_with_a_hint() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("khons.parquet");
    write_table(
        &path,
        &table((0..99).map(|n| ("A".to_owned(), n, vec![n.to_string(), format!("t{n}")]))),
    )
    .unwrap();
    let whole = fs::read(&path).unwrap();
    for cut in [0, 3, whole.len() / 2, whole.len() - 1] {
        fs::write(&path, &whole[..cut]).unwrap();
        let error = read_table(&path).unwrap_err();
        assert!(
            error.message.starts_with("cannot read") && error.hint.contains("damaged"),
            "{error:?}"
        );
    }
}

/// Written by stackline 0.1.0, which encoded pages itself.
const EARLIER: &[u8] = include_bytes!("../../../tests/data/events-0.1.0.parquet");

fn read_bytes(bytes: &[u8]) -> Result<EventTable, Error> {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), bytes).unwrap();
    read_table(file.path())
}

#[test]
fn a_file_of_an_earlier_version_reads_back() {
    let table = read_bytes(EARLIER).unwrap();
    assert_eq!(table.len(), 1100);
    for row in 0..1100 {
        let first = if row % 3 == 0 {
            String::new()
        } else {
            (row * 7).to_string()
        };
        let line = format!(
            "{}; khons; 0; {row}; {first}; u{row}; x{}",
            ["A", "B"][row % 2],
            row % 5
        );
        assert_eq!(table.event(row).to_string(), line);
    }
}

#[test]
fn a_number_without_an_end_is_an_error() {
    // The length of the first stretch of a page: the Parquet library panics at it.
    let mut bytes = EARLIER.to_vec();
    bytes[119] = 0x80;
    assert!(
        read_bytes(&bytes)
            .unwrap_err()
            .to_string()
            .contains("cannot read a page")
    );
}

#[test]
fn no_changed_bit_gives_other_events() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("khons.parquet");
    let event = |n| {
        (
            ["A", "B"][n as usize % 2].to_owned(),
            n,
            vec![format!("{}", n * n), format!("t{}", n % 5)],
        )
    };
    let written = table((0..40).map(event));
    write_table(&path, &written).unwrap();
    let right: Vec<TextEvent> = events(&read_table(&path).unwrap());
    let whole = fs::read(&path).unwrap();
    let mut noticed = 0;
    for at in (0..whole.len()).step_by(7) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        match read_bytes(&bytes) {
            Ok(table) => assert_eq!(events(&table), right, "byte {at} of {}", whole.len()),
            Err(_) => noticed += 1,
        }
    }
    assert!(
        noticed > whole.len() / 7 / 2,
        "{noticed} of {}",
        whole.len()
    );
}

proptest! {
    #[test]
    fn a_file_reads_back_sorted(events_of in proptest::collection::vec(("[A-C]", 0_u64..50, proptest::collection::vec("[-0-9a-c;% ]{0,4}", 0..20)), 0..40)) {
        let table = table(events_of);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("khons.parquet");
        prop_assert_eq!(write_table(&path, &table).unwrap(), table.len() as u64);
        let again = read_table(&path).unwrap();
        let expected: Vec<TextEvent> = table.by_time().iter().map(|row| table.event(*row as usize)).collect();
        prop_assert_eq!(events(&again), expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn bytes_that_changed_are_never_a_panic(
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..6),
        earlier: bool,
    ) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("khons.parquet");
        let table = table((0..40).map(|n| ("A".to_owned(), n, vec![format!("{}", n * n), format!("t{}", n % 5)])));
        write_table(&path, &table).unwrap();
        let mut bytes = if earlier { EARLIER.to_vec() } else { fs::read(&path).unwrap() };
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let _ = read_bytes(&bytes);
    }
}
