//! Which runs are recorded event by event or packet by packet, and in which files of the run directory.

use crate::network_tap::{
    CapturePoint, CaptureSite, CapturedPorts, PacketStreams, RunTapRecorder, TraceClockStamp,
};
use crate::tracing::Tracing;
use serde::{Deserialize, Serialize};
use stackline_core::error::Error;
use stackline_core::network::Network;
use stackline_core::run_schedule::ScheduledRun;
use stackline_dissect::frame_locator::FlowAt;
use stackline_events::EventLog;
use stackline_live::clock::ahead_of_monotonic_ns;
use stackline_runs::events::Spool;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What the user wants recorded, and where.
#[derive(Clone, Debug, Default)]
pub struct Traces {
    /// The run directory.
    pub directory: PathBuf,
    /// Whether the events of everything are recorded (`--trace`).
    pub trace: bool,
    /// Where packets are captured: ports, as `khons>edge`, hosts, or `all`, which is every port; behind `after:`, as they leave the
    /// queues.
    pub capture: Vec<String>,
}

/// What is recorded of one run, and where. Plain data: it is sent to the emulator process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RunRecording {
    /// The run directory.
    directory: PathBuf,
    /// Whether events are recorded.
    events: bool,
    /// The sites where packets are captured, and the file of each.
    capture: Vec<(PathBuf, CaptureSite)>,
    /// Only for real programs: the flows by which their packets are recognized, and the ns by which the time of events
    /// is ahead of the monotonic clock.
    pub(crate) real: Option<(Vec<FlowAt>, i64)>,
    /// The flows of real programs are not known beforehand and have to be found in the packets.
    #[serde(default)]
    pub(crate) learns: bool,
    /// The most bytes that events may take on disk; of more a sample is kept.
    #[serde(default)]
    most_bytes: Option<u64>,
}

impl RunRecording {
    /// Records the events of all packets, of any program, into the event logs of `directory`, in at most `most_bytes`.
    pub(crate) fn of_all(directory: &Path, most_bytes: u64) -> Self {
        let real = Some((Vec::new(), ahead_of_monotonic_ns()));
        Self {
            directory: directory.to_owned(),
            events: true,
            capture: Vec::new(),
            real,
            learns: true,
            most_bytes: Some(most_bytes),
        }
    }

    /// Makes the recorder. Events, if they are wanted, are stamped as `stamp` says and joined to flows as `streams`
    /// says.
    ///
    /// # Errors
    /// An [`Error`] when a file cannot be made.
    pub(crate) fn recorder(
        &self,
        network: &Network,
        stamp: TraceClockStamp,
        streams: PacketStreams,
    ) -> Result<RunTapRecorder, Error> {
        let mut recorder = RunTapRecorder::new(network);
        if self.events {
            recorder = recorder.events(spool_event_logs(&self.directory), stamp, streams);
            recorder = match self.most_bytes {
                Some(most_bytes) => recorder.within(most_bytes),
                None => recorder,
            };
        }
        if !self.capture.is_empty() {
            let cannot = |e: std::io::Error| {
                Error::environment(format!("cannot write the captured packets: {e}"))
            };
            let made = |(path, site): &(PathBuf, CaptureSite)| {
                Ok((site.clone(), stackline_runs::create_within(path)?))
            };
            let sites: std::io::Result<Vec<(CaptureSite, std::fs::File)>> =
                self.capture.iter().map(made).collect();
            recorder = recorder
                .capture(network, sites.map_err(cannot)?)
                .map_err(cannot)?;
        }
        Ok(recorder)
    }
}

/// A function that appends event logs of a host to a run directory.
pub(crate) fn spool_event_logs(
    directory: &Path,
) -> impl FnMut(&str, &EventLog) -> Result<(), String> + Send + 'static {
    let spool = Spool::new(directory);
    move |host, event_log| {
        spool
            .append(host, event_log)
            .map_err(|error| error.to_string())
    }
}

/// The error when events or packets cannot be kept.
pub(crate) fn unkept(cause: String) -> Error {
    Error::environment(cause)
        .hint("check that the run directory is writable and that the disk is not full")
}

impl Traces {
    /// What is recorded of one run; `None` when nothing is.
    ///
    /// # Errors
    /// An [`Error`] when a port is unknown.
    pub(crate) fn recording_of(
        &self,
        network: &Network,
        scheduled: &ScheduledRun<'_>,
        tracing: Option<&Tracing>,
    ) -> Result<Option<RunRecording>, Error> {
        let capture = !self.capture.is_empty() && scheduled.counted;
        if tracing.is_none() && !capture {
            return Ok(None);
        }
        let name = format!(
            "{}.{}.{}",
            plain(&network.name),
            scheduled.index + 1,
            scheduled.run + 1
        );
        // The emulator process may write there, from another working directory.
        let directory = std::path::absolute(&self.directory)
            .map_err(|e| Error::environment(format!("cannot resolve the run directory: {e}")))?;
        let sites = if capture {
            self.sites(network)?
        } else {
            Vec::new()
        };
        let several = sites.len() > 1;
        let mut names: BTreeSet<String> = BTreeSet::new();
        let mut file = |site: &CaptureSite| {
            let point = match site.point {
                CapturePoint::BeforeQueue => "",
                CapturePoint::AfterQueue => ".after",
            };
            let own = if several {
                format!(".{}{point}", plain(&site.name.replace('>', "-")))
            } else {
                String::new()
            };
            // File names that would be equal get a number.
            let all = (1..).map(|n| {
                if n == 1 {
                    own.clone()
                } else {
                    format!("{own}.{n}")
                }
            });
            let own = all
                .into_iter()
                .find(|own| names.insert(own.clone()))
                .unwrap_or_default();
            directory
                .join("captures")
                .join(format!("{name}{own}.pcapng"))
        };
        let capture = sites.into_iter().map(|site| (file(&site), site)).collect();
        Ok(Some(RunRecording {
            directory,
            events: tracing.is_some(),
            capture,
            real: None,
            learns: false,
            most_bytes: None,
        }))
    }

    /// The capture sites that the user named, each once.
    fn sites(&self, network: &Network) -> Result<Vec<CaptureSite>, Error> {
        let ports: Vec<CapturedPorts> = network
            .ports()
            .map(|(port, name)| CapturedPorts {
                name,
                ports: vec![port],
            })
            .collect();
        let sites = self
            .capture
            .iter()
            .map(|place| site(network, &ports, place));
        let mut chosen = sites.collect::<Result<Vec<CaptureSite>, Error>>()?;
        let mut known = BTreeSet::new();
        chosen.retain(|site| known.insert((site.host, site.point, site.interfaces.clone())));
        if chosen.len() > MOST_FILES {
            let what = format!(
                "--capture of {} places would need that many open files",
                chosen.len()
            );
            return Err(Error::input(what).hint(format!(
                "specify at most {MOST_FILES} ports or hosts, each with its own --capture, or `all` for one file"
            )));
        }
        Ok(chosen)
    }
}

/// The capture site that a user named.
fn site(network: &Network, ports: &[CapturedPorts], place: &str) -> Result<CaptureSite, Error> {
    let (name, point) = match place.strip_prefix(AFTER) {
        Some(name) => (name, CapturePoint::AfterQueue),
        None => (place, CapturePoint::BeforeQueue),
    };
    let host = network.hosts.iter().position(|host| host.name == *name);
    let interfaces = if name == "all" {
        ports.to_vec()
    } else if let Some(port) = ports.iter().find(|port| port.name == *name) {
        vec![port.clone()]
    } else if host.is_some() {
        let sends = |port: &&CapturedPorts| {
            let ends = port.name.split_once('>');
            ends.is_some_and(|(from, _)| from == name)
        };
        vec![CapturedPorts {
            name: name.to_owned(),
            ports: (ports.iter().filter(sends))
                .flat_map(|port| port.ports.clone())
                .collect(),
        }]
    } else {
        return Err(unknown_place(network, ports, name));
    };
    let is_host = interfaces.iter().any(|one| one.name == name) && !name.contains('>');
    Ok(CaptureSite {
        name: name.to_owned(),
        interfaces,
        host: host
            .filter(|_| is_host)
            .and_then(|host| u32::try_from(host).ok()),
        point,
    })
}

/// The error for a place that the network does not have.
fn unknown_place(network: &Network, ports: &[CapturedPorts], name: &str) -> Error {
    let first = ports.iter().take(12);
    let mut names: Vec<String> = first.map(|port| port.name.clone()).collect();
    if let more @ 1.. = ports.len() - names.len() {
        names.push(format!("{more} more"));
    }
    let what = format!(
        "network {} has no port `{name}` and no host of that name",
        network.name
    );
    Error::input(what).hint(format!(
        "its ports are {}; `all` means every port, and a host name means that host's interface",
        names.join(", ")
    ))
}

/// What stands before a place whose packets are captured as they leave the queue.
const AFTER: &str = "after:";
/// The most capture files of a run, which are all open at once.
const MOST_FILES: usize = 256;

/// The part of a name that is safe in a file name.
fn plain(name: &str) -> String {
    name.chars()
        .filter(|c| c.is_ascii_alphanumeric() || "._-".contains(*c))
        .collect()
}
