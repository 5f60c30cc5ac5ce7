//! Event logs of several hosts that are passed on whenever one is long, so that memory does not grow with the number
//! of events.
//!
//! Each log that is passed on defines its names and its host itself, so its receiver may mix it with others.

use crate::event_log::EventLog;
use std::collections::BTreeMap;
use std::fmt;

/// Length in bytes at which an event log is passed on.
const LONG: usize = 1 << 20;

/// Takes the event log of a host, or says why it cannot.
type Put = Box<dyn FnMut(&str, &EventLog) -> Result<(), String> + Send>;

/// Event logs of several hosts.
pub struct EventLogs {
    event_logs: Vec<(String, EventLog)>,
    put: Put,
    /// Why a log could not be passed on; no events are kept after that.
    fault: Option<String>,
    /// Bytes passed on so far.
    handed_on: u64,
}

impl fmt::Debug for EventLogs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventLogs")
            .field("event_logs", &self.event_logs)
            .field("fault", &self.fault)
            .finish_non_exhaustive()
    }
}

impl EventLogs {
    /// The event logs of these hosts. `put` takes a host's log, or says why it cannot; no more events are kept then.
    #[must_use]
    pub fn new(
        hosts: impl IntoIterator<Item = String>,
        put: impl FnMut(&str, &EventLog) -> Result<(), String> + Send + 'static,
    ) -> Self {
        let event_logs = hosts
            .into_iter()
            .map(|host| (host, EventLog::default()))
            .collect();
        Self {
            event_logs,
            put: Box::new(put),
            fault: None,
            handed_on: 0,
        }
    }

    /// Adds the events that `write` writes, of the host with that index; ignored when there is no such host.
    #[inline]
    pub fn write(&mut self, host: usize, write: impl FnOnce(&mut EventLog)) {
        let Some((name, event_log)) = self.event_logs.get_mut(host) else {
            return;
        };
        if self.fault.is_some() {
            return;
        }
        if event_log.bytes().is_empty() {
            event_log.host(name);
        }
        write(event_log);
        if event_log.bytes().len() >= LONG {
            self.hand_on(host);
        }
    }

    /// Bytes of event logs passed on so far.
    #[must_use]
    pub const fn handed_on(&self) -> u64 {
        self.handed_on
    }

    /// Passes on the log of a host, unless it is empty.
    fn hand_on(&mut self, host: usize) {
        let Some((name, event_log)) = self.event_logs.get_mut(host) else {
            return;
        };
        let event_log = std::mem::take(event_log);
        if self.fault.is_none() && !event_log.bytes().is_empty() {
            self.handed_on += event_log.bytes().len() as u64;
            self.fault = (self.put)(name, &event_log).err();
        }
    }

    /// Passes on the rest.
    ///
    /// # Errors
    /// The first reason for which a log was not taken.
    pub fn finish(mut self) -> Result<(), String> {
        (0..self.event_logs.len()).for_each(|host| self.hand_on(host));
        self.fault.map_or(Ok(()), Err)
    }
}

/// Event logs in memory, by host; can be the receiver of [`EventLogs`].
#[derive(Clone, Debug, Default)]
pub struct MemoryEventLogs(std::sync::Arc<std::sync::Mutex<BTreeMap<String, Vec<u8>>>>);

impl MemoryEventLogs {
    /// Appends an event log.
    ///
    /// # Errors
    /// Never; the signature is the one that [`EventLogs::new`] requires.
    pub fn add(&self, host: &str, event_log: &EventLog) -> Result<(), String> {
        let mut kept = self
            .0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        kept.entry(host.to_owned())
            .or_default()
            .extend_from_slice(event_log.bytes());
        Ok(())
    }

    /// The event logs so far, by host.
    #[must_use]
    pub fn event_logs(&self) -> BTreeMap<String, EventLog> {
        let kept = self
            .0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        kept.iter()
            .map(|(host, bytes)| (host.clone(), EventLog::from_bytes(bytes.clone())))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyword::intern;

    #[test]
    fn long_event_logs_are_handed_on_and_lose_nothing() {
        let kept = MemoryEventLogs::default();
        let pieces = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let (into, counted) = (kept.clone(), std::sync::Arc::clone(&pieces));
        let hosts = ["khons", "udjat"].map(str::to_owned);
        let mut event_logs = EventLogs::new(hosts, move |host, event_log| {
            counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            into.add(host, event_log)
        });
        let keyword = intern("APP_SEND");
        for n in 0..60_000_u64 {
            event_logs.write(usize::from(n % 3 == 0), |log| {
                log.push(keyword, n, &[n.into(), "some text".into()]);
            });
        }
        event_logs.write(7, |log| log.push(keyword, 0, &[]));
        event_logs.finish().unwrap();
        assert!(
            pieces.load(std::sync::atomic::Ordering::Relaxed) > 2,
            "more than one a host"
        );
        let kept = kept.event_logs();
        let of = |host: &str| {
            kept[host]
                .records()
                .map(|record| (record.host.to_owned(), record.at_ns))
                .collect::<Vec<_>>()
        };
        let expected = |host: &str, which: &dyn Fn(u64) -> bool| {
            (0..60_000)
                .filter(|n| which(*n))
                .map(|n| (host.to_owned(), n))
                .collect::<Vec<_>>()
        };
        assert_eq!(of("khons"), expected("khons", &|n| n % 3 != 0));
        assert_eq!(of("udjat"), expected("udjat", &|n| n % 3 == 0));
    }

    #[test]
    fn what_is_not_taken_is_reported() {
        let mut event_logs =
            EventLogs::new(["khons".to_owned()], |_, _| Err("the disk is full".into()));
        event_logs.write(0, |log| log.push(intern("APP_SEND"), 1, &[]));
        assert_eq!(event_logs.finish(), Err("the disk is full".into()));
    }
}
