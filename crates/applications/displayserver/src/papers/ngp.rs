//! A stream with the network graphics protocol (`display::ngp`) on it: whoever writes requests or reads answers sees the same bytes as
//! without it. What was sent and kept outlives connections, at both ends.

mod newest_writer;

use crate::stream::DisplayStream;
use crate::transport::DisplayTransport;
use newest_writer::NgpNewestWriter;
use stackline_display::ngp::{Broken, Far, Near, NgpDefinitionKey, SharedStore};
use stackline_guard::deadline::Deadline;
use std::cell::Cell;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes that are read at once.
const PIECE: usize = 64 << 10;
/// How long the other end may take to say what it has.
const GREETS: Duration = Duration::from_secs(10);
/// Keys of which something is kept, of [`stackline_display::ngp::KEPT`] bytes each at most.
const KEYS: usize = 16;

/// What a client has sent, under a key of its own.
#[derive(Clone, Debug)]
pub struct NgpSentDefinitions(NgpDefinitionKey, SharedStore);

impl NgpSentDefinitions {
    /// Nothing yet.
    pub(crate) fn new() -> Self {
        let mut key = NgpDefinitionKey::default();
        // Without random bytes keys are one, and displays may have to ask for definitions.
        let _ = getrandom::fill(&mut key);
        Self(key, SharedStore::default())
    }
}

impl PartialEq for NgpSentDefinitions {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for NgpSentDefinitions {}

/// What a display keeps, by key; the oldest keys go.
#[derive(Clone, Debug, Default)]
pub struct NgpDefinitionStores(Arc<Mutex<Vec<(NgpDefinitionKey, SharedStore)>>>);

impl NgpDefinitionStores {
    /// What is kept of a key, from now on the newest one.
    fn of(&self, key: &NgpDefinitionKey) -> SharedStore {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|(own, _)| own == key);
        let store = at.map(|at| kept.remove(at).1).unwrap_or_default();
        kept.push((*key, Arc::clone(&store)));
        let over = kept.len().saturating_sub(KEYS);
        kept.drain(..over);
        store
    }
}

#[derive(Debug)]
enum NgpStreamEnd {
    Near(Near),
    Far(Far, NgpDefinitionStores),
}

impl NgpStreamEnd {
    fn send(&mut self, bytes: &[u8]) {
        match self {
            Self::Near(near) => near.send(bytes),
            Self::Far(far, _) => far.send(bytes),
        }
    }

    fn receive(&mut self, bytes: &[u8]) -> Result<Vec<u8>, Broken> {
        match self {
            Self::Near(near) => near.receive(bytes),
            Self::Far(far, kept) => far.receive(bytes, |key| kept.of(key)),
        }
    }

    fn has_output(&self) -> bool {
        match self {
            Self::Near(near) => near.has_output(),
            Self::Far(far, _) => far.has_output(),
        }
    }

    fn output(&mut self) -> Vec<u8> {
        match self {
            Self::Near(near) => near.output(),
            Self::Far(far, _) => far.output(),
        }
    }
}

/// A connection; who has it may read and write at once.
#[derive(Debug)]
pub struct Ngp {
    /// What is read; only the first that has it reads.
    reads: DisplayStream,
    rest: Vec<u8>,
    shared: Arc<NgpStreamShared>,
    /// How long reading may take as a whole, frames that bring nothing included.
    patience: Cell<Option<Duration>>,
    /// Where what is written waits, so that newer changes can take the place of older ones.
    newest: Option<Arc<NgpNewestWriter>>,
}

/// Which changes of an item the display is to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NgpChangeDelivery {
    /// Each of them.
    Every,
    /// The newest: others may be left out where the connection is slower than the client.
    Newest,
}

#[derive(Debug)]
struct NgpStreamShared {
    end: Mutex<NgpStreamEnd>,
    writes: Mutex<DisplayStream>,
}

impl NgpStreamShared {
    fn writes(&self) -> MutexGuard<'_, DisplayStream> {
        self.writes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self) -> MutexGuard<'_, NgpStreamEnd> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts something into frames, or takes what came out of them; what is to be sent goes in its order.
    fn step<T>(&self, step: impl FnOnce(&mut NgpStreamEnd) -> T) -> io::Result<T> {
        let mut writes = self.writes();
        let (done, out) = {
            let mut end = self.end();
            (step(&mut end), end.output())
        };
        if !out.is_empty() {
            writes.write_all(&out)?;
        }
        Ok(done)
    }
}

impl Ngp {
    fn over(stream: DisplayStream, end: NgpStreamEnd) -> io::Result<Self> {
        let shared = NgpStreamShared {
            end: Mutex::new(end),
            writes: Mutex::new(stream.again()?),
        };
        Ok(Self {
            reads: stream,
            rest: Vec::new(),
            shared: Arc::new(shared),
            patience: Cell::new(None),
            newest: None,
        })
    }

    /// A client's end: what the display has of what was sent before is known then.
    ///
    /// # Errors
    /// That the connection is lost, or the other end speaks something else.
    pub fn connect(
        stream: DisplayStream,
        sent: &NgpSentDefinitions,
        changes: NgpChangeDelivery,
    ) -> io::Result<Self> {
        let mut new = Self::over(
            stream,
            NgpStreamEnd::Near(Near::new(&sent.0, Arc::clone(&sent.1))),
        )?;
        new.shared.step(|_| ())?;
        let deadline = Deadline::within(GREETS);
        while !new
            .shared
            .step(|end| matches!(end, NgpStreamEnd::Near(near) if near.is_greeted()))?
        {
            new.reads.read_within(Some(deadline.timeout()?))?;
            if new.fill()? == 0 {
                return Err(io::Error::new(
                    ErrorKind::Unsupported,
                    "the server there does not speak the network graphics protocol",
                ));
            }
        }
        new.reads.read_within(None)?;
        if changes == NgpChangeDelivery::Newest {
            new.reads.keeps(newest_writer::KERNEL);
            let shared = Arc::clone(&new.shared);
            new.newest = Some(Arc::new(NgpNewestWriter::of(move |puts| {
                shared.step(|end| {
                    if let NgpStreamEnd::Near(near) = end {
                        puts(near)
                    }
                })
            })));
        }
        Ok(new)
    }

    /// A display's end.
    ///
    /// # Errors
    /// The kernel's.
    pub fn accept(stream: DisplayStream, kept: &NgpDefinitionStores) -> io::Result<Self> {
        Self::over(stream, NgpStreamEnd::Far(Far::default(), kept.clone()))
    }

    /// The same connection once more. What was taken out of frames and not read stays with the first.
    ///
    /// # Errors
    /// The kernel's.
    pub fn again(&self) -> io::Result<Self> {
        let (shared, newest) = (Arc::clone(&self.shared), self.newest.clone());
        Ok(Self {
            reads: self.reads.again()?,
            rest: Vec::new(),
            shared,
            patience: self.patience.clone(),
            newest,
        })
    }

    /// Reads once: how many bytes came, frames and all.
    fn fill(&mut self) -> io::Result<usize> {
        let mut piece = vec![0; PIECE];
        let count = self.reads.read(&mut piece)?;
        // Who writes may wait for the other end: what comes does not wait for that.
        let came = self.shared.end().receive(&piece[..count]);
        if self.shared.end().has_output() {
            self.shared.step(|_| ())?;
        }
        let came = came.map_err(|broken| io::Error::new(ErrorKind::InvalidData, broken.words()))?;
        self.rest.extend(came);
        Ok(count)
    }
}

impl DisplayTransport for Ngp {
    fn read_within(&self, patience: Option<Duration>) -> io::Result<()> {
        self.patience.set(patience);
        self.reads.read_within(patience)
    }

    fn is_same_user(&self) -> bool {
        self.reads.is_same_user()
    }

    fn write_within(&self, patience: Duration) -> io::Result<()> {
        self.shared.writes().write_within(patience)
    }

    fn is_gone(&self) -> bool {
        self.reads.is_gone()
    }

    fn end(&self) {
        if let Some(newest) = &self.newest {
            newest.finish();
        }
        self.reads.end();
    }
}

impl Read for Ngp {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let deadline = self.patience.get().map(Deadline::within);
        while self.rest.is_empty() {
            if let Some(deadline) = deadline {
                self.reads.read_within(Some(deadline.timeout()?))?;
            }
            if self.fill()? == 0 {
                return Ok(0);
            }
        }
        let count = into.len().min(self.rest.len());
        into[..count].copy_from_slice(&self.rest[..count]);
        self.rest.drain(..count);
        Ok(count)
    }
}

impl Write for Ngp {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &self.newest {
            Some(newest) => newest.write(bytes)?,
            None => self.shared.step(|end| end.send(bytes))?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
