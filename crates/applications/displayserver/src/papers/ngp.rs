//! A stream with the network graphics protocol (`display::ngp`) on it: requests and answers are the same bytes as without it. At both ends,
//! the stored definitions outlive a connection.

mod newest_writer;
pub(crate) mod scheme;

use crate::stream::DisplayStream;
use crate::transport::DisplayTransport;
use newest_writer::NgpNewestWriter;
use stackline_display::ngp::{Broken, Far, Near, NgpDefinitionKey, SharedStore};
use stackline_guard::deadline::Deadline;
use std::cell::Cell;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes that are read at a time.
const PIECE: usize = 64 << 10;
/// How long the other end may take to announce its definitions.
const GREETS: Duration = Duration::from_secs(10);
/// The limit on keys with stored definitions, each of at most [`stackline_display::ngp::KEPT`] bytes.
const KEYS: usize = 16;

/// A client's random key, and the definitions that were sent with it.
#[derive(Clone, Debug)]
pub struct NgpSentDefinitions(NgpDefinitionKey, SharedStore);

impl NgpSentDefinitions {
    /// A new key without definitions.
    pub(crate) fn new() -> Self {
        let mut key = NgpDefinitionKey::default();
        // If there are no random bytes, all such keys are equal, and displays may have to ask for definitions.
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

/// A display's stored definitions by key; the oldest keys are dropped.
#[derive(Clone, Debug, Default)]
pub struct NgpDefinitionStores(Arc<Mutex<Vec<(NgpDefinitionKey, SharedStore)>>>);

impl NgpDefinitionStores {
    /// The definitions of a key, which becomes the newest.
    fn store_of(&self, key: &NgpDefinitionKey) -> SharedStore {
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
            Self::Far(far, kept) => far.receive(bytes, |key| kept.store_of(key)),
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

/// A handle of a connection; reading and writing may go on at the same time.
#[derive(Debug)]
pub struct Ngp {
    /// The stream that is read; only one handle may read.
    reads: Box<DisplayStream>,
    rest: Vec<u8>,
    shared: Arc<NgpStreamShared>,
    /// How long a read may take as a whole, including frames without answers.
    patience: Cell<Option<Duration>>,
    /// Where written requests wait, so that newer changes can replace older ones.
    newest: Option<Arc<NgpNewestWriter>>,
}

/// Which changes of an item are delivered to the display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NgpChangeDelivery {
    /// Every change.
    Every,
    /// The newest: older ones may be left out if the connection is slower than the client.
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

    /// Encodes or decodes something with the protocol state, and sends the resulting frames in order.
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
            reads: Box::new(stream),
            rest: Vec::new(),
            shared: Arc::new(shared),
            patience: Cell::new(None),
            newest: None,
        })
    }

    /// A client's end. It waits until the display has announced its definitions.
    ///
    /// # Errors
    /// If the connection is lost, or the other end does not speak the protocol.
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
            new.newest = Some(Arc::new(NgpNewestWriter::start(move |puts| {
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
    /// The kernel's error.
    pub fn accept(stream: DisplayStream, kept: &NgpDefinitionStores) -> io::Result<Self> {
        Self::over(stream, NgpStreamEnd::Far(Far::default(), kept.clone()))
    }

    /// Reads once. Returns how many bytes came, including those of frames.
    fn fill(&mut self) -> io::Result<usize> {
        let mut piece = vec![0; PIECE];
        let count = self.reads.read(&mut piece)?;
        // A writer may be blocked by the other end; reading must not wait for it.
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
    /// Bytes that were decoded and not read stay with the first handle.
    fn second_handle(&self) -> io::Result<Self> {
        let (shared, newest) = (Arc::clone(&self.shared), self.newest.clone());
        Ok(Self {
            reads: Box::new(self.reads.again()?),
            rest: Vec::new(),
            shared,
            patience: self.patience.clone(),
            newest,
        })
    }

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
