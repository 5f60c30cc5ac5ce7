//! Event logs of several hosts, handed on whenever one is long: as many events as there are take no more memory than so many
//! event logs.
//!
//! Each event log that is handed on defines its names and its host itself, so whoever takes them may mix them with others.

use crate::event_log::EventLog;
use crate::value::EventValue;
use std::collections::BTreeMap;
use std::fmt;

/// An event log this long is handed on, bytes.
const LONG: usize = 1 << 20;

type Put = Box<dyn FnMut(&str, &EventLog) -> Result<(), String> + Send>;

/// Event logs of several hosts.
pub struct EventLogs {
    event_logs: Vec<(String, EventLog)>,
    put: Put,
    fault: Option<String>,
    /// Bytes that were handed on.
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
    /// Of those hosts; `put` takes what there is of one, and says why it cannot: nothing more is kept then.
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

    /// Adds an event of the host with that number; of a host that is not there nothing is kept.
    pub fn push(&mut self, host: usize, keyword: u32, at_ns: u64, values: &[EventValue<'_>]) {
        let Some((name, event_log)) = self.event_logs.get_mut(host) else {
            return;
        };
        if self.fault.is_some() {
            return;
        }
        if event_log.bytes().is_empty() {
            event_log.host(name);
        }
        event_log.push(keyword, at_ns, values);
        if event_log.bytes().len() >= LONG {
            self.hand_on(host);
        }
    }

    /// Bytes of event logs that were handed on.
    #[must_use]
    pub const fn handed_on(&self) -> u64 {
        self.handed_on
    }

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

    /// Hands on what is left.
    ///
    /// # Errors
    /// The first reason why something was not taken.
    pub fn finish(mut self) -> Result<(), String> {
        (0..self.event_logs.len()).for_each(|host| self.hand_on(host));
        self.fault.map_or(Ok(()), Err)
    }
}

/// Event logs in memory, by host; what [`EventLogs::new`] hands on is added to them.
#[derive(Clone, Debug, Default)]
pub struct MemoryEventLogs(std::sync::Arc<std::sync::Mutex<BTreeMap<String, Vec<u8>>>>);

impl MemoryEventLogs {
    /// Adds an event log.
    ///
    /// # Errors
    /// Never; what [`EventLogs::new`] wants.
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

    /// What was added so far.
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
            event_logs.push(
                usize::from(n % 3 == 0),
                keyword,
                n,
                &[n.into(), "some text".into()],
            );
        }
        event_logs.push(7, keyword, 0, &[]);
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
        event_logs.push(0, intern("APP_SEND"), 1, &[]);
        assert_eq!(event_logs.finish(), Err("the disk is full".into()));
    }
}
