//! Records one traced run at an agent: the events of its endpoints' threads and of the machine's monitors, kept until the coordinator
//! takes them.
//!
//! Nothing is sent while clocks run. Events stay in memory up to a limit; further ones go to an unnamed temporary file.

use crate::clock;
use crate::control::{AgentRecordingSummary, MAX_EVENT_LOG_BYTES};
use stackline_events::catalogue::rows::AppSend;
use stackline_events::event_log::EventLogNames;
use stackline_events::file_sinks::append;
use stackline_events::{EventLog, EventRecorder, EventSink, EventValue, MemoryEventSink};
use stackline_guard::scratch;
use stackline_monitor::clock::{synchronisation, thread_cpu_s};
use stackline_monitor::{Config, MonitorSession, Observed, WatchedPorts};
use std::collections::{BTreeSet, VecDeque};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::{Arc, Mutex, PoisonError};

/// Most bytes of events that stay in memory.
const IN_MEMORY: u64 = 64 << 20;
/// Size of a piece that is handed over, bytes: as many whole logs as fit, at least one.
const PIECE: u64 = 4 << 20;

/// A recording under way.
pub(crate) struct AgentRecording {
    /// Records the events that this process's threads emit.
    recorder: EventRecorder,
    /// The monitors of the machine, if they are wanted.
    watch: Option<MonitorSession>,
    /// Where both put their events.
    store: EventLogStore,
}

impl AgentRecording {
    /// Starts to record events under the name `host`, with the machine's monitors if `monitors`.
    ///
    /// # Errors
    /// When events cannot be recorded, for example because this process records already.
    pub(crate) fn start(host: &str, monitors: bool) -> io::Result<Self> {
        let store = EventLogStore::default();
        let recorder = EventRecorder::start(host, store.clone())?;
        let watch = monitors.then(|| {
            MonitorSession::start_into(Config::new(host), EventLogStoreSink(store.clone()))
        });
        Ok(Self {
            recorder,
            watch,
            store,
        })
    }

    /// Names the monitors the addresses that responders listen on here and that initiators here connect to. Without this, a run might be
    /// over before the monitors look for its sockets a second time.
    pub(crate) fn follow(&self, listening: &[String], connecting: &[String]) {
        if let Some(watch) = &self.watch {
            watch.follow(&WatchedPorts {
                local: ports(listening),
                remote: ports(connecting),
            });
        }
    }

    /// Ends the recording. Returns a summary and the events. `emission_ns` is the CPU time of emitting one event, from which the
    /// endpoints' cost is computed.
    pub(crate) fn stop(self, emission_ns: f64) -> (AgentRecordingSummary, RecordedPieces) {
        let observed = self.watch.map(MonitorSession::stop).unwrap_or_default();
        let totals = self.recorder.stop();
        let Observed {
            event_log: log,
            handed_over,
            lost,
            sink_error,
            mut cost_s,
            absent,
            mut notes,
        } = observed;
        let mut kept = std::mem::take(&mut *self.store.lock());
        let watched = kept.add(&log).map(|()| log.records().count() as u64);
        cost_s.insert("drain".into(), kept.drain_s);
        #[expect(clippy::cast_precision_loss, reason = "events of one run")]
        cost_s.insert(
            "endpoints".into(),
            totals.recorded as f64 * emission_ns / 1e9,
        );
        let failure = totals
            .fault
            .or(sink_error)
            .or_else(|| watched.as_ref().err().map(ToString::to_string));
        if let Some(failure) = failure {
            notes.push(format!("events could not be stored: {failure}"));
        }
        let recorded = AgentRecordingSummary {
            recorded: totals.recorded + handed_over + watched.unwrap_or(0),
            lost: totals.lost + lost,
            stamp_error_ns: totals.clock_error_ns,
            cost_s,
            absent,
            notes,
            kernel: synchronisation().ok(),
        };
        (
            recorded,
            RecordedPieces {
                kept,
                names: EventLogNames::default(),
            },
        )
    }
}

/// The ports in addresses such as `5001`, `10.0.0.1:7` or `5001/FINGERPRINT`; names of Unix sockets have none.
fn ports(addresses: &[String]) -> BTreeSet<u16> {
    addresses
        .iter()
        .map(|address| {
            address
                .split_once('/')
                .map_or(address.as_str(), |(socket, _)| socket)
        })
        .filter_map(|socket| socket.rsplit(':').next()?.parse().ok())
        .collect()
}

/// The stored events, shared with the thread that drains the recorder's rings.
#[derive(Clone, Default)]
struct EventLogStore(Arc<Mutex<StoredEventLogs>>);

/// The bytes of event logs one after the other: first those in memory, then those in the file.
struct StoredEventLogs {
    /// Most bytes in memory.
    in_memory: u64,
    memory: Vec<u8>,
    /// The temporary file, once memory is full.
    file: Option<File>,
    /// Lengths, in bytes, of the pieces of whole records that were not taken yet.
    log_lengths: VecDeque<u64>,
    /// Bytes stored in all, taken or not.
    bytes: u64,
    /// Offset of the next byte to take.
    at: u64,
    /// CPU time of the thread that drains the recorder, s.
    drain_s: f64,
}

impl EventLogStore {
    fn lock(&self) -> std::sync::MutexGuard<'_, StoredEventLogs> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EventSink for EventLogStore {
    fn take(&mut self, event_log: &EventLog) -> io::Result<()> {
        let mut kept = self.lock();
        let added = kept.add(event_log);
        // The recorder calls this on its draining thread, whose CPU time is read here.
        kept.drain_s = thread_cpu_s();
        added
    }
}

/// The store as the monitors use it: their thread's CPU time is not the draining thread's.
struct EventLogStoreSink(EventLogStore);

impl EventSink for EventLogStoreSink {
    fn take(&mut self, event_log: &EventLog) -> io::Result<()> {
        self.0.lock().add(event_log)
    }
}

impl Default for StoredEventLogs {
    fn default() -> Self {
        let (memory, log_lengths) = (Vec::new(), VecDeque::new());
        Self {
            in_memory: IN_MEMORY,
            memory,
            file: None,
            log_lengths,
            bytes: 0,
            at: 0,
            drain_s: 0.0,
        }
    }
}

impl StoredEventLogs {
    fn add(&mut self, event_log: &EventLog) -> io::Result<()> {
        let bytes = event_log.bytes();
        let length = bytes.len() as u64;
        if length == 0 {
            return Ok(());
        }
        if self.bytes + length > MAX_EVENT_LOG_BYTES {
            return Err(io::Error::new(
                io::ErrorKind::StorageFull,
                "the run has more than 32 GiB of events",
            ));
        }
        if self.file.is_none() && self.bytes + length <= self.in_memory {
            self.memory.extend_from_slice(bytes);
        } else {
            let file = match &mut self.file {
                Some(file) => file,
                none => none.insert(scratch::create_log()?),
            };
            append(file, self.bytes - self.memory.len() as u64, bytes)?;
        }
        // A log longer than a piece is handed over in several pieces of whole records.
        self.log_lengths.extend(
            event_log
                .pieces(PIECE as usize)
                .map(|piece| piece.len() as u64),
        );
        self.bytes += length;
        Ok(())
    }
}

/// Hands over the recorded events piece by piece. Each piece begins with definitions of the names (hosts, keywords) that were defined in
/// earlier pieces, so that it can be read by itself.
#[derive(Default)]
pub(crate) struct RecordedPieces {
    kept: StoredEventLogs,
    names: EventLogNames,
}

impl RecordedPieces {
    /// The next piece, of whole records; empty if all were taken.
    ///
    /// # Errors
    /// When the temporary file cannot be read.
    pub(crate) fn next(&mut self) -> io::Result<Vec<u8>> {
        let kept = &mut self.kept;
        let mut length = 0;
        while let Some(log_length) = kept.log_lengths.front().copied() {
            if length > 0 && length + log_length > PIECE {
                break;
            }
            length += log_length;
            kept.log_lengths.pop_front();
        }
        let mut piece = vec![0; usize::try_from(length).map_err(io::Error::other)?];
        let from =
            usize::try_from(kept.at.min(kept.memory.len() as u64)).map_err(io::Error::other)?;
        let in_memory = piece.len().min(kept.memory.len() - from);
        piece[..in_memory].copy_from_slice(&kept.memory[from..from + in_memory]);
        if let (Some(file), true) = (&mut kept.file, in_memory < piece.len()) {
            let beyond = kept.at + in_memory as u64 - kept.memory.len() as u64;
            file.seek(SeekFrom::Start(beyond))?;
            file.read_exact(&mut piece[in_memory..])?;
        }
        kept.at += length;
        if piece.is_empty() {
            return Ok(piece);
        }
        let mut whole = self.names.to_event_log().bytes().to_vec();
        whole.extend_from_slice(&piece);
        EventLog::from_bytes(piece).each(&mut self.names, |_, _, _, _| {});
        Ok(whole)
    }
}

/// Measures the time of emitting one event on this host, ns. It uses a recorder of its own, so no other recording may be under way.
///
/// # Errors
/// When events cannot be recorded.
pub(crate) fn emission_ns() -> io::Result<f64> {
    const EVENTS: u32 = 5000;
    let recorder = EventRecorder::start("tried", MemoryEventSink::default())?;
    let emit = || {
        let tried = AppSend {
            unit: EventValue::Number(1),
            stream: EventValue::Number(2),
            offset: EventValue::Number(3),
            bytes: EventValue::Number(4),
        };
        (0..EVENTS).for_each(|_| tried.emit());
    };
    emit();
    let begun = clock::now();
    emit();
    let took = clock::now() - begun;
    drop(recorder);
    #[expect(clippy::cast_precision_loss, reason = "a millisecond at most")]
    Ok(took.0 as f64 / f64::from(EVENTS))
}

/// Held by tests that record events of the process, and by those whose many calls would be recorded.
#[cfg(test)]
pub(crate) static ONE_RECORDS: Mutex<()> = Mutex::new(());

#[cfg(test)]
mod tests {
    use super::*;
    use stackline_events::catalogue::rows::ClockStep;

    fn event_log_of(bytes: usize, with: u64) -> EventLog {
        let mut log = EventLog::default();
        while log.bytes().len() < bytes {
            TESTED.write(&mut log, with);
        }
        log
    }

    const TESTED: ClockStep<'static> = ClockStep {
        by_ns: EventValue::Absent,
    };

    #[test]
    fn addresses_have_ports_unless_they_are_names() {
        let addresses = [
            "5001".to_owned(),
            "10.0.0.1:7".to_owned(),
            "stackline-unix-name".to_owned(),
        ];
        assert_eq!(ports(&addresses), BTreeSet::from([7, 5_001]));
    }

    #[test]
    fn a_process_that_records_already_says_so_and_what_it_recorded_is_taken() {
        let _alone = ONE_RECORDS.lock();
        let recording = AgentRecording::start("khons", false).unwrap();
        let refused = AgentRecording::start("udjat", false).err().unwrap();
        assert!(
            refused.to_string().contains("is already recording events"),
            "{refused}"
        );
        TESTED.emit();
        let (recorded, mut pieces) = recording.stop(30.0);
        assert_eq!((recorded.recorded, recorded.lost), (1, 0));
        assert!(
            (recorded.cost_s["endpoints"] - 30e-9).abs() < 1e-12 && recorded.cost_s["drain"] > 0.0
        );
        let event_log = EventLog::from_bytes(pieces.next().unwrap());
        let recorded: Vec<_> = event_log
            .records()
            .map(|record| (record.host, record.keyword))
            .collect();
        assert_eq!(recorded, [("khons", ClockStep::KEYWORD)]);
        assert!(pieces.next().unwrap().is_empty());
    }

    #[test]
    fn what_was_kept_is_taken_whole_from_memory_and_from_the_file() {
        let mut kept = StoredEventLogs {
            in_memory: 1 << 20,
            ..StoredEventLogs::default()
        };
        let mut all = Vec::new();
        for round in 0..20 {
            // One of them is longer than a piece.
            let event_log = event_log_of(if round == 7 { 9 << 20 } else { 300 << 10 }, round);
            all.extend_from_slice(event_log.bytes());
            kept.add(&event_log).unwrap();
        }
        assert!(kept.file.is_some() && kept.memory.len() <= 1 << 20);
        let (mut pieces, mut taken) = (
            RecordedPieces {
                kept,
                names: EventLogNames::default(),
            },
            Vec::new(),
        );
        let times = |bytes: Vec<u8>| -> Vec<u64> {
            let event_log = EventLog::from_bytes(bytes);
            event_log
                .records()
                .filter(|record| record.keyword == ClockStep::KEYWORD)
                .map(|record| record.at_ns)
                .collect()
        };
        loop {
            let piece = pieces.next().unwrap();
            if piece.is_empty() {
                break;
            }
            assert!(piece.len() as u64 <= PIECE + 1_000);
            let stamps = times(piece);
            assert!(!stamps.is_empty(), "each defines its names itself");
            taken.extend(stamps);
        }
        assert!(taken == times(all));
    }
}
