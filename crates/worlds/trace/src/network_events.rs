//! The events of an emulated network while programs on it are traced. Its emulator records them and numbers connections itself; at
//! the end, its numbers are replaced by those of the trace. A spool is a directory into which events are written before they are
//! sorted into the run.

use crate::recorder::RequestRecorder;
use stackline_core::error::{Error, Result};
use stackline_core::network::Network;
use stackline_core::random::Seed;
use stackline_emu::client::Emulation;
use stackline_events::unit_ids::{stream, stream_parts};
use stackline_events::{EventTable, EventValue, catalogue, clock};
use stackline_requests::exchange_builder::ConnectionOrigin;
use stackline_runs::events::disk_sample::second_of;
use stackline_runs::events::{Spool, Spooling, read_event_logs};
use stackline_sim::port_events::port_setup;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The network on whose hosts programs are traced.
pub(crate) struct TracedNetwork {
    /// The word that names it on the command line.
    pub(crate) word: String,
    pub(crate) emulation: Emulation,
    network: Network,
    /// The seed of its random numbers, kept when it is restarted.
    seed: Seed,
    /// How many other programs use it.
    others: usize,
}

/// The directories of events that become part of the run only at the end: those that the emulator records, and those seen at the
/// doors of hosts, which are needed only where the emulator recorded nothing.
pub(crate) struct NetworkEvents {
    /// Where the emulator records.
    network: PathBuf,
    /// Where events at the doors of hosts wait.
    doors: PathBuf,
}

impl TracedNetwork {
    /// Begins to use the network.
    pub(crate) fn uses(word: String, mut emulation: Emulation) -> Result<Self> {
        emulation.uses()?;
        let now = emulation.describe()?;
        Ok(Self {
            word,
            emulation,
            network: now.network,
            seed: now.seed,
            others: now.leases,
        })
    }

    /// The name of the network.
    pub(crate) fn name(&self) -> &str {
        &self.network.name
    }

    /// Restarts the network so that its emulator records at most `most_bytes` in the run; `None` if other programs use it, as it
    /// cannot be restarted then.
    pub(crate) fn record(&mut self, run: &Path, most_bytes: u64) -> Result<Option<NetworkEvents>> {
        if self.others > 0 {
            return Ok(None);
        }
        self.network = self.emulation.describe()?.network;
        // The emulator has another working directory, so the path must be absolute.
        let run = std::path::absolute(run).map_err(|error| {
            Error::environment(format!("cannot resolve the run directory: {error}"))
        })?;
        let queues = NetworkEvents {
            network: run.join("network"),
            doors: run.join("doors"),
        };
        self.emulation.restart(
            self.seed,
            Some(stackline_runner::record_all(&queues.network, most_bytes)?),
        )?;
        Ok(Some(queues))
    }

    /// The notes about the network at the end of the trace.
    pub(crate) fn notes(&mut self) -> Result<Vec<String>> {
        Ok(self.emulation.report()?.notes(&self.network.name))
    }

    /// The note that its queues are not recorded, and why.
    pub(crate) fn unrecorded(&self) -> String {
        let others = if self.others == 1 {
            "another program uses".into()
        } else {
            format!("{} other programs use", self.others)
        };
        format!("the queues of the network are not recorded: {others} it")
    }

    /// Records the properties of its ports as events.
    pub(crate) fn ports(&self, recorder: &mut RequestRecorder) {
        let at_ns = clock::now_ns();
        for port in (0..).take(2 * self.network.links.len()) {
            port_setup(&self.network, port, at_ns, &mut |event| {
                recorder.emit(event)
            });
        }
    }
}

impl NetworkEvents {
    /// The spool of events at the doors of hosts.
    pub(crate) fn doors(&self) -> Spool {
        Spool::new(&self.doors)
    }

    /// Moves the recorded events into the run; returns how many bytes of them are damaged.
    ///
    /// `flow_of` returns the trace's number of a connection. Connections that the trace does not know are numbered from `free` on.
    pub(crate) fn settle(
        self,
        spool: &Spooling,
        flow_of: impl Fn(&ConnectionOrigin) -> Option<u32>,
        free: u32,
    ) -> Result<u64> {
        let adopted = self.adopt(spool, flow_of, free);
        // What could not be moved, as the disk is full, would not be read.
        for left in [&self.network, &self.doors]
            .into_iter()
            .filter(|left| left.exists())
        {
            fs::remove_dir_all(left).map_err(|error| {
                Error::environment(format!("{} cannot be removed: {error}", left.display()))
            })?;
        }
        adopted
    }

    fn adopt(
        &self,
        spool: &Spooling,
        flow_of: impl Fn(&ConnectionOrigin) -> Option<u32>,
        free: u32,
    ) -> Result<u64> {
        let (known, damaged) = known(&self.network, flow_of)?;
        let mut seconds = BTreeSet::new();
        let mapped = |number: i64| {
            let (flow, direction) = stream_parts(number);
            let flow = known
                .get(&flow)
                .copied()
                .unwrap_or_else(|| free.saturating_add(flow).min(u32::MAX >> 1));
            EventValue::from(stream(flow, direction))
        };
        spool.adopt(&self.network, |keyword, at_ns, values| {
            seconds.extend((keyword != "NET_FLOW").then(|| second_of(at_ns)));
            let field = catalogue::find(keyword).and_then(|entry| entry.field("stream"));
            if let Some(value) = field.and_then(|field| values.get_mut(field))
                && let Some(number) = value.number()
            {
                *value = mapped(number);
            }
            true
        })?;
        // In a second for which the network recorded when packets passed, the events at a host's door add nothing and are dropped;
        // in seconds that it left out they are kept.
        let network_flows: BTreeSet<u32> = known.into_values().collect();
        spool.adopt(&self.doors, |_, at_ns, values| {
            let flow = values[1].number().map(|number| stream_parts(number).0);
            let is_of_network = flow.is_some_and(|flow| network_flows.contains(&flow));
            !is_of_network || !seconds.contains(&second_of(at_ns))
        })?;
        Ok(damaged)
    }
}

/// The trace's number of each connection of the emulator, and how many bytes of the emulator's events are damaged.
fn known(
    network: &Path,
    flow_of: impl Fn(&ConnectionOrigin) -> Option<u32>,
) -> Result<(BTreeMap<u32, u32>, u64)> {
    let mut known = BTreeMap::new();
    let damaged = read_event_logs(network, |piece| {
        for row in (0..piece.len()).filter(|row| piece.keyword(*row) == "NET_FLOW") {
            let own = piece.number(row, 0).map(|number| stream_parts(number).0);
            if let (Some(own), Some(flow)) =
                (own, origin(piece, row).and_then(|origin| flow_of(&origin)))
            {
                known.insert(own, flow);
            }
        }
    })?;
    Ok((known, damaged))
}

/// The ends and the first sequence number of a connection, from a row `NET_FLOW`.
fn origin(piece: &EventTable, row: usize) -> Option<ConnectionOrigin> {
    let end = |field| piece.value(row, field).text()?.parse().ok();
    Some((end(1)?, end(2)?, u32::try_from(piece.number(row, 3)?).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackline_events::text::TextEvent;
    use stackline_events::{EventLog, keyword};
    use stackline_runs::events::read_run;

    fn log(host: &str, events: &[&str]) -> EventLog {
        let mut log = EventLog::default();
        log.host(host);
        for (at, event) in (0..).zip(events) {
            let (name, data) = event.split_once("; ").unwrap();
            let values: Vec<EventValue<'_>> = data
                .split("; ")
                .map(|field| EventValue::parse(field.trim()))
                .collect();
            log.push(keyword::intern(name), at, &values);
        }
        log
    }

    #[test]
    fn the_emulators_flows_become_those_of_the_trace() {
        let run = tempfile::tempdir().unwrap();
        let queues = NetworkEvents {
            network: run.path().join("network"),
            doors: run.path().join("doors"),
        };
        let network = [
            "NET_FLOW; 0; 10.0.0.1:40000; 10.0.0.2:80; 100",
            "NET_ENQUEUE;  ; 1; 0; 10; x>a; b>a; 7; 1; 1; 50; 50",
            "NET_FLOW; 2; 10.0.0.1:40000; 10.0.0.2:80; 900",
            "NET_ENQUEUE;  ; 2;  ; 0; x>a; b>a; 7; 1; 1; 50; 50",
            "NET_DROP;  ;  ;  ;  ; x>a; b>a; 7; 2; 1; 50; queue full",
            "NET_FLOW; 4; 10.0.0.1:40000; 10.0.0.2:80",
            "NET_DELIVER;  ; 5;  ; 3; a; b>a; 7; 3; 1; 50",
        ];
        Spool::new(&queues.network)
            .append("x", &log("x", &network))
            .unwrap();
        let doors = ["NET_SEEN; 8; 6; 0; 10", "NET_SEEN; 8; 8; 0; 10"];
        queues.doors().append("a", &log("a", &doors)).unwrap();
        // Of this second the network has nothing.
        let mut later = EventLog::default();
        later.host("a");
        later.push(
            keyword::intern("NET_SEEN"),
            5_000_000_000,
            &[8, 6, 10, 10].map(EventValue::Number),
        );
        queues.doors().append("a", &later).unwrap();
        let spool = Spooling::start(run.path()).unwrap();
        let ends = (
            "10.0.0.1:40000".parse().unwrap(),
            "10.0.0.2:80".parse().unwrap(),
        );
        let origins = BTreeMap::from([((ends.0, ends.1, 900), 3), ((ends.0, ends.1, 5), 4)]);
        assert_eq!(
            queues
                .settle(&spool, |origin| origins.get(origin).copied(), 10)
                .unwrap(),
            0
        );
        let table = read_run(run.path()).unwrap();
        let mut lines: Vec<String> = (0..table.len())
            .map(|row| TextEvent::to_string(&table.event(row)))
            .collect();
        lines.sort_by_key(|line| line.contains("; x;"));
        let expected = [
            "NET_SEEN; a; 0; 1; 8; 8; 0; 10",
            "NET_SEEN; a; 5; 0; 8; 6; 10; 10",
            "NET_FLOW; x; 0; 0; 20; 10.0.0.1:40000; 10.0.0.2:80; 100",
            "NET_ENQUEUE; x; 0; 1; ; 21; 0; 10; x>a; b>a; 7; 1; 1; 50; 50",
            "NET_FLOW; x; 0; 2; 6; 10.0.0.1:40000; 10.0.0.2:80; 900",
            "NET_ENQUEUE; x; 0; 3; ; 6; ; 0; x>a; b>a; 7; 1; 1; 50; 50",
            "NET_DROP; x; 0; 4; ; ; ; ; x>a; b>a; 7; 2; 1; 50; queue full",
            "NET_FLOW; x; 0; 5; 24; 10.0.0.1:40000; 10.0.0.2:80",
            "NET_DELIVER; x; 0; 6; ; 25; ; 3; a; b>a; 7; 3; 1; 50",
        ];
        assert_eq!(lines, expected);
        assert!(!run.path().join("network").exists() && !run.path().join("doors").exists());
    }
}
