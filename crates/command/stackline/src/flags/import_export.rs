//! Flags of `import` and `export`.

use clap::Args;
use stackline_core::quantity::{parse_duration, parse_moment};
use std::path::PathBuf;

/// Logs and where they go.
#[derive(Clone, Debug, Args)]
pub(crate) struct ImportFlags {
    /// Event logs or captures; requests in captures are reported too. Give captures from both ends together; - is standard input
    #[arg(value_name = "LOG", required = true)]
    pub(crate) logs: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) sharing: super::Sharing,
    /// Name for the run's directory, instead of the first log's
    #[arg(long, value_name = "NAME", conflicts_with = "into")]
    pub(crate) name: Option<String>,
    /// Add to this run: a directory, or its name under the runs directory
    #[arg(long, value_name = "RUN")]
    pub(crate) into: Option<PathBuf>,
    /// Names for the hosts in a log, where * stands for the host's name in the log; may be repeated. For captures, also a name for the host that has these
    /// addresses: web=10.0.0.2,fd00::2
    #[arg(long, value_name = "NAME=LOG|ADDRESS,...")]
    pub(crate) host: Vec<String>,
    /// How far a host's clock is ahead (+) or behind (-), to be subtracted from its times; may be repeated
    #[arg(long, value_name = "HOST=+TIME", allow_hyphen_values = true, value_parser = clock)]
    pub(crate) clock: Vec<(String, i64)>,
    /// Format of all logs, if stackline does not recognise it: text, tape, capture, qlog, otlp, jaeger, ulm, bp
    #[arg(long = "as", value_name = "FORM")]
    pub(crate) form: Option<String>,
    /// An access log of a server whose requests are in the captures: nginx, Apache, JSON lines or OTLP/JSON; may be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Vec<PathBuf>,
    /// File of TLS session secrets as written by programs (SSLKEYLOGFILE), used to decrypt and report requests
    #[arg(long, value_name = "FILE")]
    pub(crate) keys: Option<PathBuf>,
    /// Keep request names whole, up to 256 bytes each, rather than without their values (URL queries, SQL literals and passwords, Redis keys,
    /// user names); also keep access log lines, and all span attributes and qlog data, including headers, statements and error texts.
    /// Headers, bodies, rows and bound values in captures are never kept
    #[arg(long)]
    pub(crate) keep_contents: bool,
    /// Print JSON on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

/// A run and the format for its exported events.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("form").required(true).multiple(true).args(["text", "tape", "otlp", "otlp_json", "perfetto", "qlog"]))]
pub(crate) struct Export {
    /// A kept run: its directory, directory name or given name, or `last`
    #[arg(value_name = "RUN")]
    pub(crate) run: PathBuf,
    /// NetLogger's text lines, to a file or to stdout
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    pub(crate) text: Option<Option<PathBuf>>,
    /// The binary format, to a file or to stdout
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    pub(crate) tape: Option<Option<PathBuf>>,
    /// Lifelines as OpenTelemetry spans, OTLP/protobuf
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    pub(crate) otlp: Option<Option<PathBuf>>,
    /// The same spans, OTLP/JSON
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    pub(crate) otlp_json: Option<Option<PathBuf>>,
    /// A trace for Perfetto's viewer: a tar file with one file per host and a manifest
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    pub(crate) perfetto: Option<Option<PathBuf>>,
    /// Connections of QUIC as qlog, one JSON document with a trace for each end
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    pub(crate) qlog: Option<Option<PathBuf>>,
    /// Write times by the reference host's clock, not by each host's own; only text and tape need this flag
    #[arg(long)]
    pub(crate) reference: bool,
    /// Start at this time, counted from the first event as on the report page, such as 1.5s or 200ms; overlapping lifelines are kept whole
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    pub(crate) from: Option<f64>,
    /// End at this time
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    pub(crate) to: Option<f64>,
    /// Only lifelines of these units, by id; in text and tape, only events that name one of them
    #[arg(long, value_name = "ID,...", value_delimiter = ',')]
    pub(crate) units: Vec<String>,
    #[command(flatten)]
    pub(crate) took: super::Took,
}

impl Export {
    /// Where a form goes: not at all, to standard output, or into a file.
    pub(crate) fn destination(&self, form: &str) -> Option<&Option<PathBuf>> {
        match form {
            "text" => self.text.as_ref(),
            "tape" => self.tape.as_ref(),
            "otlp" => self.otlp.as_ref(),
            "otlp_json" => self.otlp_json.as_ref(),
            "perfetto" => self.perfetto.as_ref(),
            "qlog" => self.qlog.as_ref(),
            _ => None,
        }
    }
}

/// `server=+1s`, `server=-30ms`: a host and how far its clock is ahead, ns.
fn clock(text: &str) -> Result<(String, i64), String> {
    let form = "expected a host, =, and a signed time with a unit (us, ms, s, min, h), such as server=+1s or server=-30ms";
    let (host, time) = text
        .rsplit_once('=')
        .filter(|(host, _)| !host.is_empty())
        .ok_or(form)?;
    let behind = time.starts_with('-');
    let time = parse_duration(time.strip_prefix(['+', '-']).unwrap_or(time)).map_err(|_| form)?;
    let ahead = i64::try_from(time.as_nanos()).map_err(|_| form)?;
    Ok((host.to_owned(), if behind { -ahead } else { ahead }))
}

#[cfg(test)]
mod tests {
    use super::super::StacklineFlags;
    use clap::CommandFactory as _;
    use stackline_exchange::formats::{FROM, TO};

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

    #[test]
    fn every_format_that_is_written_has_a_flag() {
        for format in TO {
            let flag = format!("--{}", format.name.replace('_', "-"));
            let words = ["stackline", "export", "RUN", &flag];
            let matches = StacklineFlags::command()
                .try_get_matches_from(words)
                .unwrap();
            let export = matches.subcommand_matches("export").unwrap();
            let export = <super::Export as clap::FromArgMatches>::from_arg_matches(export);
            assert!(export.unwrap().destination(format.name).is_some(), "{flag}");
        }
    }
}
