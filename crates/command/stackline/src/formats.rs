//! The formats events come in and go out in: each is one file with a table row or two.
//!
//! To add one: a file under `formats/` with an [`Importer`] or an [`Exporter`], a line in [`FROM`] or [`TO`], and for what goes out
//! a flag of its own in `flags::Export` that [`Exporter::flag`] finds.

mod capture;
mod chosen;
mod foreign;
mod format;
mod jaeger;
mod netlogger;
mod otlp;
mod perfetto;
mod qlog;
mod tape;
mod text;

pub(crate) use capture::{Told, tell};
pub(crate) use chosen::Chosen;
pub(crate) use foreign::foreign;
pub(crate) use format::{Exported, Exporter, Importer, LOOKED_AT, Shared};

/// Every format that is read; the first that recognises a log reads it.
pub(crate) const FROM: &[Importer] = &[
    tape::FROM,
    capture::FROM,
    qlog::FROM,
    otlp::FROM,
    jaeger::FROM,
    netlogger::ULM,
    netlogger::BP,
    text::FROM,
];

/// Every format that is written.
pub(crate) const TO: &[Exporter] = &[text::TO, tape::TO, otlp::PROTOBUF, otlp::JSON, perfetto::TO];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::Flags;
    use clap::CommandFactory as _;

    #[test]
    fn help_names_every_format_that_is_read() {
        let command = Flags::command();
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
