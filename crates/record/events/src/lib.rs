//! Events: what an event is, how a program emits one at a cost of a few nanoseconds, and the text and binary forms of
//! events.
//!
//! This crate does not decide where files are, and does not sort, join or judge events: run directories are in
//! `stackline-runs`, the analysis is in `stackline-analyze`. It depends on nothing, so any program can be instrumented
//! with it.
//!
//! ```
//! use stackline_events::{EventRecorder, MemoryEventSink, event};
//! let kept = MemoryEventSink::default();
//! let recorder = EventRecorder::start("khons", kept.clone()).unwrap();
//! event!("APP_SEND", 17, 4, 0, 1500);
//! let totals = recorder.stop();
//! assert_eq!((totals.recorded, totals.lost), (1, 0));
//! ```
//!
//! | module | one idea |
//! | --- | --- |
//! | [`recorder`] | start here: [`event!`], the threads' rings, the thread that drains them |
//! | [`setting`] | where events go by the environment, `STACKLINE_EVENTS` |
//! | [`sink`] | where drained records go |
//! | [`file_sinks`] | files of the binary form and of the text form |
//! | [`catalogue`] | every keyword of stackline, what its data are |
//! | [`unit_ids`] | ids of data units, streams and flows |
//! | [`traceparent`] | ids that travel with a request |
//! | [`scope`] | what the calling thread works for; events of system calls carry it |
//! | [`value`] | one data field |
//! | [`keyword`] | names as numbers |
//! | [`event_log`] | records one after the other: the binary form |
//! | [`event_logs`] | those of several hosts, in bounded memory |
//! | `ring` | words from one thread to one other |
//! | [`text`] | NetLogger's text form |
//! | [`table`] | many events, column by column |
//! | [`clock`] | the time an event is stamped with |

pub mod catalogue;
pub mod clock;
pub mod event_log;
pub mod event_logs;
pub mod file_sinks;
pub mod keyword;
pub mod recorder;
mod ring;
pub mod scope;
pub mod setting;
pub mod sink;
mod sys;
pub mod table;
pub mod text;
pub mod traceparent;
pub mod unit_ids;
pub mod value;

pub use event_log::{EventLog, EventRecord};
pub use event_logs::EventLogs;
pub use file_sinks::{EventLogFile, EventTextFile};
pub use keyword::Keyword;
pub use recorder::EventRecorder;
pub use sink::{EventSink, MemoryEventSink, Totals};
pub use table::EventTable;
pub use text::TextEvent;
pub use value::{EmittedEvent, EventEmitter, EventValue};
