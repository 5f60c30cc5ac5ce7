//! Any bytes as files of a run directory: events, results, index. They are read, or refused with words.
#![no_main]

use std::cell::LazyCell;
use std::fs;

thread_local! {
    static DIRECTORY: LazyCell<tempfile::TempDir> = LazyCell::new(|| tempfile::tempdir().expect("a directory"));
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    DIRECTORY.with(|directory| {
        let events = directory.path().join("events");
        fs::create_dir_all(&events).expect("a directory");
        for (path, read) in [
            (events.join("a.parquet"), 0),
            (directory.path().join("results.parquet"), 1),
            (events.join("index.json"), 2),
        ] {
            fs::write(&path, bytes).expect("a file");
            match read {
                0 => drop(stackline_runs::events::read_table(&path)),
                1 => drop(stackline_runs::results::read(&path)),
                _ => drop(stackline_runs::events::read_index(directory.path())),
            }
            let _ = fs::remove_file(&path);
        }
    });
});
