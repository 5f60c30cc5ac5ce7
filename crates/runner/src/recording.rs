//! Which runs are recorded event by event or packet by packet, and in which files of the run directory.

use crate::tap::{Recorder, Stamp, Streams};
use crate::tracing::Tracing;
use serde::{Deserialize, Serialize};
use stackline_core::error::Error;
use stackline_core::network::Network;
use stackline_core::schedule::ScheduledRun;
use stackline_dissect::frames::FlowAt;
use stackline_dissect::pcapng::Settings;
use stackline_events::EventLog;
use stackline_net::Port;
use stackline_runs::events::Spool;
use std::path::{Path, PathBuf};

/// What is to be recorded.
#[derive(Clone, Debug, Default)]
pub struct Traces {
    /// The run directory.
    pub directory: PathBuf,
    /// Events of everything, everywhere.
    pub trace: bool,
    /// Ports whose packets are captured, as `khons>edge`, or `all`.
    pub capture: Vec<String>,
}

/// What is recorded of one run, and where. Plain data: an emulator's process is sent it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Recording {
    /// The run directory.
    directory: PathBuf,
    events: bool,
    /// The file and the ports of a capture; without ports all of them.
    capture: Option<(PathBuf, Option<Vec<u32>>)>,
    /// What real programs' packets are known by, and how far events' time is ahead of the monotonic clock, ns.
    pub(crate) real: Option<(Vec<FlowAt>, i64)>,
}

impl Recording {
    /// The recorder; events, where they are wanted, are stamped and joined to streams as those two say.
    ///
    /// # Errors
    /// An [`Error`] when a file cannot be made.
    pub(crate) fn recorder(&self, network: &Network, stamp: Stamp, streams: Streams) -> Result<Recorder, Error> {
        let mut recorder = Recorder::new(network);
        if self.events {
            recorder = recorder.events(spooled(&self.directory), stamp, streams);
        }
        if let Some((path, ports)) = &self.capture {
            let cannot = |e: std::io::Error| Error::environment(format!("{} cannot be written: {e}", path.display()));
            let made = path.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| std::fs::File::create(path));
            let ports: Option<Vec<Port>> = ports.as_ref().map(|ports| ports.iter().copied().map(Port).collect());
            // Time in the file is the model's, from 0: the same run writes the same bytes.
            let file = made.map_err(cannot)?;
            recorder = recorder.capture(network, ports.as_deref(), file, Settings::default()).map_err(cannot)?;
        }
        Ok(recorder)
    }
}

/// Puts tapes into a run directory.
pub(crate) fn spooled(directory: &Path) -> impl FnMut(&str, &EventLog) -> Result<(), String> + Send + 'static {
    let spool = Spool::of(directory);
    move |host, tape| spool.append(host, tape).map_err(|error| error.to_string())
}

/// Events or packets that cannot be kept.
pub(crate) fn unkept(cause: String) -> Error {
    Error::environment(cause).hint("check that the run directory can be written and the disk is not full")
}

impl Traces {
    /// What is to be recorded of one run, when something is.
    ///
    /// # Errors
    /// An [`Error`] when a port is unknown.
    pub(crate) fn of(
        &self,
        network: &Network,
        scheduled: &ScheduledRun<'_>,
        tracing: Option<&Tracing>,
    ) -> Result<Option<Recording>, Error> {
        let capture = !self.capture.is_empty() && scheduled.counted;
        if tracing.is_none() && !capture {
            return Ok(None);
        }
        let name = format!("{}.{}.{}", plain(&network.name), scheduled.index + 1, scheduled.run + 1);
        // Another process may write there.
        let directory = std::path::absolute(&self.directory)
            .map_err(|e| Error::environment(format!("the run directory has no path: {e}")))?;
        let path = directory.join("captures").join(format!("{name}.pcapng"));
        let ports = if capture { Some(self.ports(network)?) } else { None };
        let capture = ports.map(|ports| (path, ports.map(|ports| ports.iter().map(|port| port.0).collect())));
        Ok(Some(Recording { directory, events: tracing.is_some(), capture, real: None }))
    }

    /// The chosen ports; `None` is all of them.
    fn ports(&self, network: &Network) -> Result<Option<Vec<Port>>, Error> {
        if self.capture.iter().any(|name| name == "all") {
            return Ok(None);
        }
        let known: Vec<(Port, String)> = (0..).map_while(|port| Some((Port(port), network.port_name(port)?))).collect();
        let chosen = self.capture.iter().map(|name| {
            let found = known.iter().find(|(_, port)| port == name).map(|(port, _)| *port);
            let names: Vec<&str> = known.iter().take(12).map(|(_, name)| name.as_str()).collect();
            found.ok_or_else(|| {
                Error::input(format!("network {} has no port `{name}`", network.name))
                    .hint(format!("its ports are {}; `all` is every one", names.join(", ")))
            })
        });
        chosen.collect::<Result<_, _>>().map(Some)
    }
}

/// A name that a file may have.
fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_ascii_alphanumeric() || "._-".contains(*c)).collect()
}
