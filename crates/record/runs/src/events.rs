//! Events of a run: `RUN/events/HOST.parquet`, one file a host, sorted by time of that host's own clock; and
//! `RUN/events/index.json`, what is known about them.
//!
//! The columns: `at_ns`, `keyword`, `host`, and for each data field `n1`, `t1`, `n2`, `t2`, ...: a whole number is in `n`, any
//! other text in `t`, a field that is not there in neither. What a foreign log has beyond 16 fields is in `more`.

mod adopt;
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
mod sort;
mod spool;
mod stop;
mod whole;

pub use self::parquet::{Reader, Wanted, Writer, read_table, write_table};
pub use adopt::read_tapes;
pub use excerpt::{Excerpt, Rows};
pub use export::{TapeWritten, export_tape, export_text};
pub use import::{Log, begins_tape, import_tape, import_text, rename_hosts};
pub use index::{read_index, write_index};
pub use intake::{Intake, Taken};
pub use merged::Merged;
pub use paths::{event_files, events_path};
pub use spool::{Settled, Spool, Spooling};
pub use stop::Stop;
pub use whole::{read_batches, read_run};
