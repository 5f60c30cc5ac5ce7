//! How what is sent waited for flow-control windows of HTTP/2: from when to when, and how long in all.

use stackline_core::time::{Duration, Instant};
use stackline_proto::http::HttpWait;

/// The waits of one data unit, or of units that are sent together.
#[derive(Debug, Default)]
pub(crate) struct HttpWindowWaits {
    stream: Option<SimWindowWait>,
    connection: Option<SimWindowWait>,
}

/// The waits for one window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SimWindowWait {
    /// When the first began.
    pub(crate) first: Instant,
    /// When the last ended.
    pub(crate) last: Instant,
    /// How long they took together.
    pub(crate) waited: Duration,
}

impl HttpWindowWaits {
    /// Adds a wait.
    pub(crate) fn add(&mut self, window: HttpWait, [began, ended]: [Instant; 2]) {
        let waits = match window {
            HttpWait::StreamWindow => &mut self.stream,
            HttpWait::ConnectionWindow => &mut self.connection,
        };
        let before = waits.unwrap_or(SimWindowWait {
            first: began,
            last: ended,
            waited: Duration::ZERO,
        });
        *waits = Some(SimWindowWait {
            last: ended,
            waited: Duration(before.waited.0 + ended.since(began).0),
            ..before
        });
    }

    /// Calls that for each window that was waited for.
    pub(crate) fn each(&self, mut each: impl FnMut(HttpWait, SimWindowWait)) {
        let waits = [
            (HttpWait::StreamWindow, self.stream),
            (HttpWait::ConnectionWindow, self.connection),
        ];
        for (window, wait) in waits {
            if let Some(wait) = wait {
                each(window, wait);
            }
        }
    }
}
