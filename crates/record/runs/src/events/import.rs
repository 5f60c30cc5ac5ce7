//! Imports logs of stackline's own formats into a run's files, in bounded memory: NetLogger's text form and the binary
//! form.

mod chunks;
mod event_log;
mod parser;
mod source_log;
mod text;

pub use event_log::{begins_event_log, import_event_log};
pub use source_log::{ImportLog, rename_hosts};
pub use text::import_text;
