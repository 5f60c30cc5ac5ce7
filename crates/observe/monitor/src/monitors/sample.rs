//! What all monitors share: the trait, the interval between two samples, and a monitor that is made of two functions.

use crate::kernel_file::SampledFile;
use crate::watch_config::{Config, Observed, WatchedPorts};
use stackline_events::{EventLog, EventValue, clock};
use std::sync::{Arc, Mutex};

/// Samples one thing of this machine and records what happened between samples.
pub(crate) trait Monitor: Send {
    /// Takes a sample and records what happened since the one before; the first records nothing. An error says why no
    /// further sample can be taken.
    fn sample(&mut self, log: &mut EventLog) -> Result<(), String>;

    /// Called between samples if the interval is long: reads what the kernel's buffers could lose before the next sample.
    fn drain(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// The entry of [`Observed::cost_s`] that its CPU time is added to.
    fn cost_entry(&self) -> &'static str {
        "monitors"
    }

    /// Records the events that it held back, after its last sample.
    fn finish(&mut self, _: &mut EventLog, _: &mut Observed) {}
}

/// What a monitor is started with.
pub(crate) struct MonitorSetup<'c> {
    pub(crate) config: &'c Config,
    /// Ports of further connections to watch; the monitor of TCP takes them out.
    pub(crate) more_ports: Arc<Mutex<WatchedPorts>>,
}

/// A monitor, or why it cannot be started.
pub(crate) type Started = Result<Box<dyn Monitor>, String>;

/// The time between two samples.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SampleInterval {
    /// The moment of the later sample, ns.
    pub(crate) end_ns: u64,
    pub(crate) length_ns: u64,
}

impl SampleInterval {
    pub(crate) fn between(before_ns: u64, end_ns: u64) -> Self {
        Self {
            end_ns,
            length_ns: end_ns.saturating_sub(before_ns),
        }
    }
}

/// How much a counter grew; absent if it went back, as it does when the thing it counts was replaced.
pub(crate) fn growth(before: u64, now: u64) -> EventValue<'static> {
    now.checked_sub(before).into()
}

/// How much each counter grew that both samples have.
pub(crate) fn growths<const N: usize>(
    before: &[Option<u64>; N],
    now: &[Option<u64>; N],
) -> [EventValue<'static>; N] {
    std::array::from_fn(|at| {
        before[at]
            .zip(now[at])
            .map(|(before, now)| growth(before, now))
            .into()
    })
}

/// A monitor made of two functions: `read` takes a reading, `record` records the difference of two. It may put back into
/// the later reading what it did not record yet.
struct Sampled<S, R, D> {
    read: R,
    record: D,
    last: Option<(u64, S)>,
}

/// Creates a monitor of two functions; see [`Sampled`].
pub(crate) fn create_sampled<S: Send + 'static>(
    read: impl FnMut() -> Result<S, String> + Send + 'static,
    record: impl FnMut(SampleInterval, &S, &mut S, &mut EventLog) + Send + 'static,
) -> Started {
    Ok(Box::new(Sampled {
        read,
        record,
        last: None,
    }))
}

impl<S, R, D> Monitor for Sampled<S, R, D>
where
    S: Send,
    R: FnMut() -> Result<S, String> + Send,
    D: FnMut(SampleInterval, &S, &mut S, &mut EventLog) + Send,
{
    fn sample(&mut self, log: &mut EventLog) -> Result<(), String> {
        let at_ns = clock::now_ns();
        let mut now = (self.read)()?;
        if let Some((before_ns, before)) = &self.last {
            (self.record)(
                SampleInterval::between(*before_ns, at_ns),
                before,
                &mut now,
                log,
            );
        }
        self.last = Some((at_ns, now));
        Ok(())
    }
}

/// A `read` for [`create_sampled`] over files: `parse` turns their texts into a reading, or `None` when they are not as expected.
pub(crate) fn file_reader<S, const N: usize>(
    paths: [&'static str; N],
    mut parse: impl FnMut([&str; N]) -> Option<S>,
) -> Result<impl FnMut() -> Result<S, String>, String> {
    let mut files: Vec<SampledFile> = paths
        .into_iter()
        .map(SampledFile::open)
        .collect::<Result<_, _>>()?;
    Ok(move || {
        let mut texts = [""; N];
        for (text, file) in texts.iter_mut().zip(&mut files) {
            *text = file.text()?;
        }
        parse(texts).ok_or_else(|| format!("{} has an unexpected format", paths[0]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackline_events::catalogue::rows::VmstatSysCalls;

    #[test]
    fn the_first_sample_records_nothing() {
        let (mut count, mut log) = (0, EventLog::default());
        let read = move || {
            count += 1;
            Ok(count)
        };
        let record = |interval: SampleInterval, before: &u64, now: &mut u64, log: &mut EventLog| {
            VmstatSysCalls {
                interval_ns: interval.length_ns.into(),
                calls: growth(*before, *now),
            }
            .write(log, interval.end_ns);
        };
        let mut monitor = create_sampled(read, record).unwrap();
        for records in 0..3 {
            monitor.sample(&mut log).unwrap();
            assert_eq!(log.records().count(), records);
        }
        assert!(
            log.records()
                .all(|record| record.values[1] == EventValue::Number(1))
        );
    }
}

#[cfg(test)]
pub(crate) mod testing {
    //! Events as text, for tests of monitors.

    use super::*;

    /// What a monitor records between two texts of its files, one second apart.
    pub(crate) fn recorded<S, const N: usize>(
        parse: impl Fn([&str; N]) -> Option<S>,
        record: impl Fn(SampleInterval, &S, &mut S, &mut EventLog),
        before: [&str; N],
        after: [&str; N],
    ) -> Vec<String> {
        let (before, mut now) = (parse(before).unwrap(), parse(after).unwrap());
        let mut log = EventLog::default();
        record(
            SampleInterval {
                end_ns: 2_000_000_000,
                length_ns: 1_000_000_000,
            },
            &before,
            &mut now,
            &mut log,
        );
        lines(&log)
    }

    /// Keyword and data of each event.
    pub(crate) fn lines(log: &EventLog) -> Vec<String> {
        let line = |record: stackline_events::EventRecord<'_>| {
            let data: Vec<String> = record.values.iter().map(ToString::to_string).collect();
            format!("{} {}", record.keyword, data.join(";"))
        };
        log.records().map(line).collect()
    }
}
