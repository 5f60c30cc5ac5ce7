//! Logs of stackline's own forms into a run's files: NetLogger's text form and the binary form, in bounded memory.

mod chunks;
mod event_log;
mod parser;
mod source_log;
mod text;

pub use event_log::{begins_event_log, import_event_log};
pub use source_log::{ImportLog, rename_hosts};
pub use text::import_text;
