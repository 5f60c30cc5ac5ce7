//! Logs of stackline's own forms into a run's files: NetLogger's text form and the binary form, in bounded memory.

mod chunks;
mod log;
mod parser;
mod tape;
mod text;

pub use log::{Log, rename_hosts};
pub use tape::{begins_tape, import_tape};
pub use text::import_text;
