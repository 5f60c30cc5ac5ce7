//! One look of a monitor: what was, what is, and how long lies between.

use crate::file::Reader;
use crate::watch::Seen;
use stackline_events::{Keyword, Tape, Value, clock};

/// Where a look's events go.
pub(crate) struct Round<'t> {
    pub(crate) tape: &'t mut Tape,
}

/// Tells what happened between its looks.
pub(crate) trait Monitor: Send {
    /// What it watches, for people.
    fn name(&self) -> &'static str;

    /// Looks, and tells what happened since the last look; the first one only remembers. An error says why it cannot
    /// look any more.
    fn look(&mut self, round: &mut Round<'_>) -> Result<(), String>;

    /// Takes what cannot wait for the next look of a long interval.
    fn between(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// What its CPU time is counted under.
    fn costs(&self) -> &'static str {
        "monitors"
    }

    /// Tells what it kept back, after its last look.
    fn finish(&mut self, _: &mut Round<'_>, _: &mut Seen) {}
}

/// A monitor's name, and it or why there is none.
pub(crate) type Started = (&'static str, Result<Box<dyn Monitor>, String>);

/// A moment between two looks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    /// When the later look was, ns.
    pub(crate) at_ns: u64,
    /// How long after the earlier one, ns.
    pub(crate) interval_ns: u64,
}

impl Step {
    /// Tells an event whose first field is the interval.
    pub(crate) fn tell(self, tape: &mut Tape, keyword: &Keyword, rest: &[Value<'_>]) {
        let mut data = [Value::Absent; stackline_events::tape::MOST_VALUES];
        let count = rest.len().min(data.len() - 1);
        data[0] = self.interval_ns.into();
        data[1..=count].copy_from_slice(&rest[..count]);
        tape.push(keyword.id(), self.at_ns, &data[..=count]);
    }
}

/// How much a counter grew; unknown when it went back, which it does when what it counts is made anew.
pub(crate) fn grown(before: u64, now: u64) -> Value<'static> {
    now.checked_sub(before).into()
}

/// A monitor that reads files, makes plain data of their text and compares it with that of the look before.
pub(crate) struct Sampled<S, const N: usize> {
    pub(crate) name: &'static str,
    pub(crate) files: [Reader; N],
    /// Text to data; `None` when it is not as expected.
    pub(crate) read: fn([&str; N]) -> Option<S>,
    /// Tells the difference. It may put what it did not tell back into what the next look compares with.
    pub(crate) tell: fn(Step, &S, &mut S, &mut Tape),
    pub(crate) last: Option<(u64, S)>,
}

impl<S: Send + 'static, const N: usize> Sampled<S, N> {
    /// Over the files of these paths.
    pub(crate) fn start(
        name: &'static str,
        paths: [&str; N],
        read: fn([&str; N]) -> Option<S>,
        tell: fn(Step, &S, &mut S, &mut Tape),
    ) -> Started {
        let files: Result<Vec<Reader>, String> = paths.into_iter().map(Reader::open).collect();
        let files = files.map(|files| <[Reader; N]>::try_from(files).ok());
        let monitor = match files {
            Ok(Some(files)) => Ok(Box::new(Self { name, files, read, tell, last: None }) as Box<dyn Monitor>),
            Ok(None) => Err("a file is missing".to_owned()),
            Err(reason) => Err(reason),
        };
        (name, monitor)
    }
}

impl<S: Send, const N: usize> Monitor for Sampled<S, N> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn look(&mut self, round: &mut Round<'_>) -> Result<(), String> {
        let first = self.files.first().map_or_else(String::new, |file| file.path().to_owned());
        let at_ns = clock::now_ns();
        let mut texts = [""; N];
        for (text, file) in texts.iter_mut().zip(&mut self.files) {
            *text = file.text()?;
        }
        let mut now = (self.read)(texts).ok_or_else(|| format!("{first} is not as expected"))?;
        if let Some((before_ns, before)) = &self.last {
            let step = Step { at_ns, interval_ns: at_ns.saturating_sub(*before_ns) };
            (self.tell)(step, before, &mut now, round.tape);
        }
        self.last = Some((at_ns, now));
        Ok(())
    }
}

/// What a monitor tells of two texts of its files, one second apart, as lines of the text form.
#[cfg(test)]
pub(crate) fn told<S, const N: usize>(
    read: fn([&str; N]) -> Option<S>,
    tell: fn(Step, &S, &mut S, &mut Tape),
    before: [&str; N],
    after: [&str; N],
) -> Vec<String> {
    let (before, mut now) = (read(before).unwrap(), read(after).unwrap());
    let mut tape = Tape::default();
    tell(Step { at_ns: 2_000_000_000, interval_ns: 1_000_000_000 }, &before, &mut now, &mut tape);
    lines(&tape)
}

/// Keyword and data of each record.
#[cfg(test)]
pub(crate) fn lines(tape: &Tape) -> Vec<String> {
    let line = |record: stackline_events::Record<'_>| {
        let data: Vec<String> = record.values.iter().map(ToString::to_string).collect();
        format!("{} {}", record.keyword, data.join(";"))
    };
    tape.records().map(line).collect()
}
