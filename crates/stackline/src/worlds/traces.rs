//! Which runs are recorded event by event or packet by packet, and in which files of the run directory.

use crate::tap::{MOST_EVENTS, Recorder};
use stackline_core::course::Turn;
use stackline_core::network::Network;
use stackline_events::events_path;
use stackline_events::pcapng::Settings;
use stackline_live::fault::Fault;
use stackline_net::Port;
use stackline_report::topology::port_name;
use std::path::PathBuf;

/// What the command line asked to be recorded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Traces {
    /// The run directory.
    pub(crate) directory: PathBuf,
    /// Events of what happens in the network.
    pub(crate) events: bool,
    /// Ports whose packets are captured, as `khons>edge`, or `all`.
    pub(crate) capture: Vec<String>,
}

/// Where one run's recording goes.
#[derive(Debug)]
pub(crate) struct Files {
    events: PathBuf,
}

impl Traces {
    /// A recorder for one run, when one is asked for.
    ///
    /// # Errors
    /// A [`Fault`] when a port is unknown or a file cannot be made.
    pub(crate) fn recorder(&self, network: &Network, turn: &Turn<'_>) -> Result<Option<(Recorder, Files)>, Fault> {
        if (!self.events && self.capture.is_empty()) || !turn.counted {
            return Ok(None);
        }
        let name = format!("{}.{}.{}", plain(&network.name), turn.index + 1, turn.run + 1);
        let mut recorder = Recorder::new(network);
        if self.events {
            recorder = recorder.events(MOST_EVENTS);
        }
        if !self.capture.is_empty() {
            let ports = self.ports(network)?;
            let directory = self.directory.join("captures");
            let path = directory.join(format!("{name}.pcapng"));
            let made = std::fs::create_dir_all(&directory).and_then(|()| std::fs::File::create(&path));
            let cannot = |e: std::io::Error| Fault::environment(format!("{} cannot be written: {e}", path.display()));
            // Time in the file is the model's, from 0: the same run writes the same bytes.
            recorder = recorder
                .capture(network, ports.as_deref(), made.map_err(cannot)?, Settings::default())
                .map_err(cannot)?;
        }
        let events = events_path(&self.directory, &name).map_err(|e| Fault::environment(e.to_string()))?;
        Ok(Some((recorder, Files { events })))
    }

    /// The chosen ports; `None` is all of them.
    fn ports(&self, network: &Network) -> Result<Option<Vec<Port>>, Fault> {
        if self.capture.iter().any(|name| name == "all") {
            return Ok(None);
        }
        let known: Vec<(Port, String)> =
            (0..).map_while(|port| Some((Port(port), port_name(network, port)?))).collect();
        let chosen = self.capture.iter().map(|name| {
            let found = known.iter().find(|(_, port)| port == name).map(|(port, _)| *port);
            let names: Vec<&str> = known.iter().take(12).map(|(_, name)| name.as_str()).collect();
            found.ok_or_else(|| {
                Fault::input(format!("network {} has no port `{name}`", network.name))
                    .hint(format!("its ports are {}; `all` is every one", names.join(", ")))
            })
        });
        chosen.collect::<Result<_, _>>().map(Some)
    }
}

impl Files {
    /// Writes what was recorded.
    pub(crate) fn finish(self, recorder: Recorder) -> Result<(), Fault> {
        recorder.finish(&self.events).map(drop).map_err(|e| Fault::environment(e.to_string()).hint(e.hint))
    }
}

/// A name that a file may have.
fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_ascii_alphanumeric() || "._-".contains(*c)).collect()
}
