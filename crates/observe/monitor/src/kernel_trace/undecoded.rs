//! Records of all cores as the kernel wrote them, page by page: they can be kept and decoded later, by another thread.

use super::pages::{Layout, TracePageRecords};
use std::io;

/// What one reading of the rings of all cores gave.
#[derive(Debug, Default)]
pub struct UndecodedTrace {
    bytes: Vec<u8>,
    pages: Vec<UndecodedPage>,
    layout: Option<Layout>,
    /// When the reading began, on the monotonic clock.
    read_ns: u64,
    /// From the monotonic clock to that of events.
    offset_ns: i128,
    /// Cores whose rings were not read to their end.
    unfinished: Vec<u32>,
    /// Records the kernel lost since the reading before.
    pub lost: u64,
}

#[derive(Clone, Copy, Debug)]
struct UndecodedPage {
    core: u32,
    /// Where in the bytes it ends.
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

    /// Reads one more page: how long it is.
    pub(super) fn read_page(
        &mut self,
        core: u32,
        read: impl FnOnce(&mut [u8]) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let begin = self.bytes.len();
        let page = self.layout.map_or(0, |layout| layout.page);
        self.bytes.resize(begin + page, 0);
        let got = read(&mut self.bytes[begin..]);
        // The kernel gives whole pages, of which little may be used.
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

    /// No more pages of a core are read now; whether there were no more.
    pub(super) fn end_core(&mut self, core: u32, all: bool) {
        self.unfinished.extend((!all).then_some(core));
    }

    /// How many bytes of memory that is.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Gives each record, core by core: its time on the clock of events, ns, the core, and its bytes. All records before the
    /// returned time have been read, on every core.
    pub(crate) fn each(&self, mut take: impl FnMut(u64, u32, &[u8])) -> u64 {
        let on_events = |at_ns: u64| u64::try_from(i128::from(at_ns) + self.offset_ns).unwrap_or(0);
        let Some(layout) = &self.layout else { return 0 };
        let (mut until_ns, mut begin) = (self.read_ns, 0);
        let mut last_ns = 0;
        for (at, page) in self.pages.iter().enumerate() {
            for (at_ns, record) in TracePageRecords::of(&self.bytes[begin..page.end], layout) {
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
