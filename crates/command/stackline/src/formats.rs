//! The formats events come in and go out in: each is one file with a table row or two.
//!
//! To add one: a file under `formats/` with an [`Importer`] or an [`Exporter`], a line in [`FROM`] or [`TO`], and for what goes out
//! a flag of its own in `flags::Export` that [`Exporter::flag`] finds.

mod capture;
mod event_log;
mod format;
mod jaeger;
mod netlogger;
mod otlp;
mod perfetto;
mod qlog;
mod selection;
mod text;
mod unsupported;

pub(crate) use capture::{CaptureImport, read_captures};
pub(crate) use format::{Exported, Exporter, ImportContext, Importer, LOOKED_AT};
pub(crate) use selection::ExportSelection;
pub(crate) use unsupported::find_unsupported;

/// Every format that is read; the first that recognises a log reads it.
pub(crate) const FROM: &[Importer] = &[
    event_log::FROM,
    capture::FROM,
    qlog::FROM,
    otlp::FROM,
    jaeger::FROM,
    netlogger::ULM,
    netlogger::BP,
    text::FROM,
];

/// Every format that is written.
pub(crate) const TO: &[Exporter] = &[
    text::TO,
    event_log::TO,
    otlp::PROTOBUF,
    otlp::JSON,
    perfetto::TO,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::StacklineFlags;
    use clap::CommandFactory as _;

    #[test]
    fn help_names_every_format_that_is_read() {
        let command = StacklineFlags::command();
        let import = command.find_subcommand("import").unwrap();
        let help = import
            .get_arguments()
            .find(|flag| flag.get_long() == Some("as"))
            .unwrap()
            .get_help()
            .unwrap()
            .to_string();
        let named: Vec<&str> = help.rsplit(": ").next().unwrap().split(", ").collect();
        let mut names: Vec<&str> = FROM.iter().map(|format| format.name).collect();
        names.sort_by_key(|name| named.iter().position(|other| other == name));
        assert_eq!(named, names);
    }
}
