//! Events of a run: `RUN/events/HOST.parquet`, one file for each host, sorted by the time of that host's own clock,
//! and `RUN/events/index.json` with what is known about them.
//!
//! The columns: `at_ns`, `keyword`, `host`, and for each data field `n1`, `t1`, `n2`, `t2`, ...: a whole number is in
//! `n`, any other text in `t`, and a missing field in neither. Fields of an imported log beyond 16 are in `more`.

mod adopted_logs;
pub mod disk_sample;
mod event_run;
mod excerpt;
mod export;
mod host_buckets;
mod import;
mod index;
mod intake;
mod lock;
mod merge;
mod merged;
mod parquet;
mod paths;
mod run_events;
mod sort;
mod spool;
mod stop;

pub use self::parquet::{
    EventColumnSelection, EventFileReader, EventFileWriter, read_table, write_table,
};
pub use adopted_logs::read_event_logs;
pub use event_run::{emit_event, keep_run};
pub use excerpt::{EventExcerpt, ExcerptRows};
pub use export::{ExportedEventLog, export_event_log, export_text};
pub use import::{ImportLog, begins_event_log, import_event_log, import_text, rename_hosts};
pub use index::{read_index, write_index};
pub use intake::{Intake, IntakeResult};
pub use merged::Merged;
pub(crate) use paths::EVENT_LOG_EXTENSION;
pub use paths::{event_files, events_path};
pub use run_events::{read_batches, read_run};
pub use spool::{Settled, Spool, Spooling};
pub use stop::SortStopSignal;
