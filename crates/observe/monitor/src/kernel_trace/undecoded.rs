//! Trace records of all cores as the kernel wrote them, page by page. They can be kept and decoded later, by another thread.

use super::pages::{Layout, TracePageRecords};
use std::io;

/// What was read in one pass over the rings of all cores.
#[derive(Debug, Default)]
pub struct UndecodedTrace {
    bytes: Vec<u8>,
    pages: Vec<UndecodedPage>,
    layout: Option<Layout>,
    /// When the pass began, on the monotonic clock, ns.
    read_ns: u64,
    /// What has to be added to the monotonic clock to get the clock of events, ns.
    offset_ns: i128,
    /// Cores whose rings were not read to their end.
    unfinished: Vec<u32>,
    /// How many records the kernel lost since the pass before.
    pub lost: u64,
}

#[derive(Clone, Copy, Debug)]
struct UndecodedPage {
    core: u32,
    /// The offset in the buffer at which it ends.
    end: usize,
}

impl UndecodedTrace {
    /// Forgets what was read before, but keeps its memory.
    pub(super) fn begin(&mut self, layout: Layout, read_ns: u64, offset_ns: i128) {
        self.clear();
        self.layout = Some(layout);
        (self.read_ns, self.offset_ns) = (read_ns, offset_ns);
    }

    /// Forgets what was read, but keeps its memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.pages.clear();
        self.unfinished.clear();
        self.lost = 0;
    }

    /// Reads one more page; returns its length in bytes.
    pub(super) fn read_page(
        &mut self,
        core: u32,
        read: impl FnOnce(&mut [u8]) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let begin = self.bytes.len();
        let page = self.layout.map_or(0, |layout| layout.page);
        self.bytes.resize(begin + page, 0);
        let got = read(&mut self.bytes[begin..]);
        // The kernel returns whole pages, of which only a part may be used.
        let given = begin + got.as_ref().copied().unwrap_or(0);
        self.bytes.truncate(given);
        let used = self
            .layout
            .and_then(|layout| layout.used(&self.bytes[begin..]));
        let end = begin + used.unwrap_or(0);
        self.bytes.truncate(end);
        if end > begin {
            self.pages.push(UndecodedPage { core, end });
        }
        got
    }

    /// No more pages of a core are read in this pass; `all`: its ring was read to its end.
    pub(super) fn end_core(&mut self, core: u32, all: bool) {
        self.unfinished.extend((!all).then_some(core));
    }

    /// How many bytes it holds.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Gives each record to `take`, core by core: its time on the clock of events, ns, the core, and its bytes. Returns a time
    /// before which all records of every core have been read.
    pub(crate) fn each(&self, mut take: impl FnMut(u64, u32, &[u8])) -> u64 {
        let on_events = |at_ns: u64| u64::try_from(i128::from(at_ns) + self.offset_ns).unwrap_or(0);
        let Some(layout) = &self.layout else { return 0 };
        let (mut until_ns, mut begin) = (self.read_ns, 0);
        let mut last_ns = 0;
        for (at, page) in self.pages.iter().enumerate() {
            for (at_ns, record) in TracePageRecords::from_page(&self.bytes[begin..page.end], layout)
            {
                last_ns = at_ns;
                take(on_events(at_ns), page.core, record);
            }
            begin = page.end;
            let is_last = self
                .pages
                .get(at + 1)
                .is_none_or(|next| next.core != page.core);
            if is_last && self.unfinished.contains(&page.core) {
                until_ns = until_ns.min(last_ns);
            }
        }
        on_events(until_ns)
    }
}
