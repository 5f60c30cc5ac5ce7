//! Series over restarts, torn ends, damage, age, size.

use super::*;
use stackline_core::run_record::Histogram;
use std::io::Write as _;

const RETENTION: ProbeRetention = ProbeRetention {
    keep: Duration::from_secs(86_400),
    most_bytes: 100 << 20,
};

fn record(at_s: u64) -> ProbeRecord {
    ProbeRecord {
        at_ms: at_s * 1000,
        took_ms: 3,
        skipped: 0,
        measurements: vec![ProbedMeasurement {
            text: "rr 32*10".to_owned(),
            runs: 1,
            timed: Some(ProbedWork::Calls),
            times_ns: Histogram {
                counts: vec![(20, 10)],
                sum: 200,
                squares: 4000.0,
                min_max: Some((20, 20)),
            },
            ..ProbedMeasurement::default()
        }],
    }
}

fn open(root: &Path, retention: ProbeRetention) -> ProbeSeriesWriter {
    ProbeSeriesWriter::open(root, "web", retention, RunFileAccess::Private).unwrap()
}

fn times(root: &Path) -> Vec<u64> {
    let read = read_probes(root, "web", None).unwrap();
    read.records.iter().map(|one| one.at_ms / 1000).collect()
}

#[test]
fn records_come_back_also_after_another_process_went_on() {
    let root = tempfile::tempdir().unwrap();
    for half in [0, 5] {
        let mut series = open(root.path(), RETENTION);
        for at in half..half + 5 {
            series.append(&record(at)).unwrap();
        }
    }
    assert_eq!(times(root.path()), (0..10).collect::<Vec<u64>>());
    let since = SystemTime::UNIX_EPOCH + Duration::from_secs(7);
    let read = read_probes(root.path(), "web", Some(since)).unwrap();
    assert_eq!(read.records, [record(7), record(8), record(9)]);
}

#[test]
fn one_process_writes_a_series() {
    let root = tempfile::tempdir().unwrap();
    let series = open(root.path(), RETENTION);
    let again = ProbeSeriesWriter::open(root.path(), "web", RETENTION, RunFileAccess::Private);
    let error = again.unwrap_err();
    assert_eq!(error.message, "another process writes the series web");
    let kept = kept_series(root.path(), "web").unwrap();
    assert!(kept.is_written);
    assert!(
        kept.remove()
            .unwrap_err()
            .message
            .contains("a process writes")
    );
    drop(series);
    assert!(!kept_series(root.path(), "web").unwrap().is_written);
    kept.remove().unwrap();
    assert_eq!(kept_series_list(root.path()), Ok(Vec::new()));
    let error = kept_series(root.path(), "web").unwrap_err();
    assert_eq!(error.message, "no series is named web");
}

#[test]
fn a_torn_end_is_cut_off_and_a_damaged_line_is_counted() {
    let root = tempfile::tempdir().unwrap();
    let mut series = open(root.path(), RETENTION);
    (0..3).for_each(|at| series.append(&record(at)).unwrap());
    let path = series.path().join("00000001.probes");
    drop(series);
    let whole = fs::read(&path).unwrap();
    let line = whole.len() / 3;
    // At every byte of the last line.
    for end in 2 * line..whole.len() {
        fs::write(&path, &whole[..end]).unwrap();
        let mut series = open(root.path(), RETENTION);
        series.append(&record(9)).unwrap();
        drop(series);
        assert_eq!(times(root.path()), [0, 1, 9], "{end}");
    }
    let mut damaged = whole;
    damaged[line + 20] ^= 1;
    fs::write(&path, &damaged).unwrap();
    let read = read_probes(root.path(), "web", None).unwrap();
    assert_eq!((read.records.len(), read.damaged), (2, 1));
    // A reader finds the line of a writer that has not completed it.
    let mut file = File::options().append(true).open(&path).unwrap();
    file.write_all(b"0123").unwrap();
    let read = read_probes(root.path(), "web", None).unwrap();
    assert_eq!((read.records.len(), read.damaged), (2, 2));
}

#[test]
fn old_records_go_by_age_and_by_size() {
    let root = tempfile::tempdir().unwrap();
    let line = record(0).line().unwrap().len() as u64;
    let by_age = ProbeRetention {
        keep: Duration::from_secs(800),
        ..RETENTION
    };
    let mut series = open(root.path(), by_age);
    (0..3000)
        .step_by(10)
        .for_each(|at| series.append(&record(at)).unwrap());
    let kept = times(root.path());
    assert_eq!(kept.last(), Some(&2990));
    // Up to a segment more than is asked for, never less.
    assert!((2080..=2190).contains(&kept[0]), "{}", kept[0]);
    drop(series);
    fs::remove_dir_all(root.path().join("probes")).unwrap();
    let by_size = ProbeRetention {
        most_bytes: 64 << 10,
        ..RETENTION
    };
    let mut series = open(root.path(), by_size);
    for at in 0..2000 {
        series.append(&record(at)).unwrap();
        let bytes = kept_series(root.path(), "web").unwrap().bytes;
        assert!(bytes <= by_size.most_bytes, "{bytes}");
    }
    let kept = times(root.path());
    assert_eq!(kept.last(), Some(&1999));
    let least = (by_size.most_bytes - 2 * (by_size.most_bytes / SEGMENTS)) / line;
    assert!(kept.len() as u64 >= least, "{} of {least}", kept.len());
    assert!(kept.is_sorted());
}

#[test]
fn a_name_is_no_path() {
    let root = tempfile::tempdir().unwrap();
    for name in ["", "..", "a/b", ".x", "-x", "ü", &"x".repeat(61)] {
        let opened = ProbeSeriesWriter::open(root.path(), name, RETENTION, RunFileAccess::Private);
        assert!(
            opened.unwrap_err().message.contains("cannot be the name"),
            "{name}"
        );
    }
}

#[test]
fn a_day_of_a_probe_a_minute_takes_less_than_5_mb() {
    // 100,000 calls, all different, from 50 us to so many times that.
    let day = |factor: f64| {
        let values = (0..100_000).map(|n| 50e3 * factor.powf(f64::from(n) / 1e5));
        let counts: Vec<(u64, u64)> = values.map(|value| (value as u64, 1)).collect();
        let mut probe = record(1_800_000_000);
        let one = &mut probe.measurements[0];
        one.text = "from khons to udjat rr 32*100000 over tcp(nodelay)".to_owned();
        one.times_ns = Histogram {
            sum: counts.iter().map(|(value, _)| value).sum(),
            squares: 1.234_567_890_123_456_7e22,
            min_max: Some((counts[0].0, counts[counts.len() - 1].0)),
            counts,
        };
        probe.line().unwrap().len() * 24 * 60
    };
    let [narrow, wide, widest] = [20.0, 1e3, 1e5].map(day);
    assert!(narrow < 2_500_000, "{narrow} bytes");
    assert!(wide < 5_000_000, "{wide} bytes");
    assert!(widest < 7_500_000, "{widest} bytes");
}
