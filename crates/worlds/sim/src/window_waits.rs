//! How what is sent waited for flow-control windows of HTTP/2: from when to when, how long in all, and what had been written by then.

use stackline_core::time::{Duration, Instant};
use stackline_proto::http::HttpWait;

/// The waits of units that are sent together, in the order of time.
#[derive(Debug, Default)]
pub(crate) struct HttpWindowWaits(Vec<OneWindowWait>);

/// One wait.
#[derive(Clone, Copy, Debug)]
struct OneWindowWait {
    window: HttpWait,
    began: Instant,
    ended: Instant,
    /// Bytes that had been written to the connection: what lies behind them waited.
    written: u64,
}

/// The waits of a unit for one window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SimWindowWait {
    /// When the first began.
    pub(crate) first: Instant,
    /// When the last ended.
    pub(crate) last: Instant,
    /// How long they took together.
    pub(crate) waited: Duration,
}

impl HttpWindowWaits {
    /// Adds a wait, with the bytes that had been written to the connection.
    pub(crate) fn add(&mut self, window: HttpWait, [began, ended]: [Instant; 2], written: u64) {
        self.0.push(OneWindowWait {
            window,
            began,
            ended,
            written,
        });
    }

    /// Calls that for each window that a unit waited for whose last byte is written at `ends`.
    pub(crate) fn each(&self, ends: u64, mut each: impl FnMut(HttpWait, SimWindowWait)) {
        for window in [HttpWait::StreamWindow, HttpWait::ConnectionWindow] {
            let waits = self.0.iter();
            let own = waits.filter(|wait| wait.window == window && wait.written < ends);
            let sum = own.fold(None, |sum: Option<SimWindowWait>, wait| {
                Some(SimWindowWait {
                    first: sum.map_or(wait.began, |sum| sum.first),
                    last: wait.ended,
                    waited: Duration(
                        sum.map_or(0, |sum| sum.waited.0) + wait.ended.since(wait.began).0,
                    ),
                })
            });
            if let Some(wait) = sum {
                each(window, wait);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_waits_while_what_is_before_its_end_does() {
        let mut waits = HttpWindowWaits::default();
        let at = |ns: [u64; 2]| ns.map(Instant);
        waits.add(HttpWait::StreamWindow, at([10, 30]), 1000);
        waits.add(HttpWait::ConnectionWindow, at([40, 45]), 1500);
        waits.add(HttpWait::StreamWindow, at([50, 80]), 2000);
        let of_unit = |ends: u64| {
            let mut found = Vec::new();
            waits.each(ends, |window, wait| {
                found.push((window, wait.first.0, wait.last.0, wait.waited.0));
            });
            found
        };
        assert_eq!(of_unit(1000), []);
        assert_eq!(of_unit(1001), [(HttpWait::StreamWindow, 10, 30, 20)]);
        assert_eq!(
            of_unit(9000),
            [
                (HttpWait::StreamWindow, 10, 80, 50),
                (HttpWait::ConnectionWindow, 40, 45, 5)
            ]
        );
    }
}
