//! Relays a display's page: each browser that connects gets a connection to the page, and bytes pass unchanged both ways. The number of
//! connections is bounded, and one on which nothing passes ends.

use crate::address::DisplayAddress;
use crate::listener::{DisplayListener, serve_streams_until};
use crate::server::is_slow;
use crate::stream::DisplayStream;
use crate::view::refuse;
use stackline_guard::connection_slots::ConnectionSlotPool;
use stackline_guard::stop::StopSwitch;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// The limits of a relay.
#[derive(Clone, Copy)]
struct PageRelayLimits {
    /// The most connections that are relayed, and the most that wait for the page or for their refusal.
    most: usize,
    /// After this time without a byte in either direction a connection ends, after twice this time at the latest.
    idle: Duration,
}

/// A browser that shows a picture which does not change sends and receives nothing.
const LIMITS: PageRelayLimits = PageRelayLimits {
    most: 64,
    idle: Duration::from_secs(60 * 60),
};
/// How long the other direction of a connection may go on after one has ended: what its end still writes would be lost otherwise.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// Bytes that are passed at a time.
const PIECE: usize = 64 << 10;

/// Relays browsers of that listener to the page at `from` until the switch is thrown, which the next connection notices. Connections that
/// exist go on.
pub fn relay_page(listener: &DisplayListener, from: DisplayAddress, stop: &StopSwitch) {
    relay_within(LIMITS, listener, from, stop);
}

fn relay_within(
    limits: PageRelayLimits,
    listener: &DisplayListener,
    from: DisplayAddress,
    stop: &StopSwitch,
) {
    let strangers = ConnectionSlotPool::new(limits.most);
    let relayed = ConnectionSlotPool::new(limits.most);
    serve_streams_until(stop, listener, strangers, move |browser, stranger| {
        let Some(_place) = relayed.enter() else {
            let most = limits.most;
            let why = format!("{most} connections are open, which is the maximum");
            return refuse(browser, &why);
        };
        let Ok(page) = from.connect() else {
            return refuse(browser, &format!("no page responds at {from}"));
        };
        drop(stranger);
        relay(browser, page, limits.idle);
    });
}

/// Passes bytes both ways until both have ended.
fn relay(browser: DisplayStream, page: DisplayStream, idle: Duration) {
    let (Ok(browser_again), Ok(page_again)) = (browser.again(), page.again()) else {
        return;
    };
    let passed = AtomicU64::new(0);
    thread::scope(|scope| {
        let back = || pass(page_again, browser_again, &passed, idle);
        // If no thread can be started, both connections are dropped.
        if thread::Builder::new().spawn_scoped(scope, back).is_ok() {
            pass(browser, page, &passed, idle);
        }
    });
}

/// Passes bytes in one direction until they end, or nothing passes in either. `passed` counts the pieces of both.
fn pass(mut from: DisplayStream, mut to: DisplayStream, passed: &AtomicU64, idle: Duration) {
    let mut piece = vec![0; PIECE];
    let mut seen = passed.load(Ordering::Relaxed);
    if from.read_within(Some(idle)).is_ok() && to.write_within(idle).is_ok() {
        loop {
            match from.read(&mut piece) {
                Ok(count @ 1..) if to.write_all(&piece[..count]).is_ok() => {
                    passed.fetch_add(1, Ordering::Relaxed);
                }
                Err(error) if is_slow(&error) && passed.load(Ordering::Relaxed) != seen => {
                    seen = passed.load(Ordering::Relaxed);
                }
                _ => break,
            }
        }
    }
    to.ends_writing();
    thread::sleep(LAST_WORDS);
    from.end();
    to.end();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Shutdown, TcpListener, TcpStream};
    use std::sync::mpsc::{Receiver, channel};

    /// Connections of a page that answers nothing by itself.
    fn page() -> (DisplayAddress, Receiver<TcpStream>) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = DisplayAddress::Tcp(listener.local_addr().unwrap().to_string());
        let (to, came) = channel();
        thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                if to.send(stream).is_err() {
                    return;
                }
            }
        });
        (address, came)
    }

    fn relayed(limits: PageRelayLimits, from: DisplayAddress) -> String {
        let at = DisplayAddress::Tcp("127.0.0.1:0".into());
        let listener = DisplayListener::at(&at).unwrap();
        let local = listener.address().to_string();
        thread::spawn(move || relay_within(limits, &listener, from, &StopSwitch::never()));
        local
    }

    fn limits(most: usize, idle: Duration) -> PageRelayLimits {
        PageRelayLimits { most, idle }
    }

    fn rest(mut stream: &TcpStream) -> String {
        let mut rest = String::new();
        stream.read_to_string(&mut rest).unwrap();
        rest
    }

    #[test]
    fn bytes_pass_both_ways_and_each_end_is_passed_on() {
        let (from, came) = page();
        let at = relayed(LIMITS, from);
        let mut browser = TcpStream::connect(&at).unwrap();
        browser.write_all(b"may I see it?").unwrap();
        browser.shutdown(Shutdown::Write).unwrap();
        let mut page = came.recv().unwrap();
        assert_eq!(rest(&page), "may I see it?");
        page.write_all(b"here it is").unwrap();
        drop(page);
        assert_eq!(rest(&browser), "here it is");
    }

    #[test]
    fn one_connection_too_many_is_refused_and_so_is_one_without_a_page() {
        let asks = |at: &str| {
            let mut browser = TcpStream::connect(at).unwrap();
            browser
                .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                .unwrap();
            rest(&browser)
        };
        let (from, came) = page();
        let at = relayed(limits(1, LIMITS.idle), from);
        let mut first = TcpStream::connect(&at).unwrap();
        let page = came.recv().unwrap();
        // Until bytes pass, the first one waits for its page, and the next connection may take its place.
        (&page).write_all(b".").unwrap();
        first.read_exact(&mut [0]).unwrap();
        let refused = asks(&at);
        assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
        assert!(
            refused.contains("1 connections are open, which is the maximum: try again later"),
            "{refused}"
        );
        // Those that exist go on.
        (&page).write_all(b"goes on").unwrap();
        drop(page);
        assert_eq!(rest(&first), "goes on");
        let nowhere = DisplayAddress::Tcp("127.0.0.1:1".into());
        let absent = asks(&relayed(LIMITS, nowhere));
        assert!(
            absent.contains("no page responds at 127.0.0.1:1: try again later"),
            "{absent}"
        );
    }

    #[test]
    fn a_connection_on_which_nothing_passes_ends_but_not_one_with_one_silent_end() {
        let (from, came) = page();
        let idle = Duration::from_millis(400);
        let at = relayed(limits(1, idle), from);
        let browser = TcpStream::connect(&at).unwrap();
        let mut page = came.recv().unwrap();
        // Only the page says something, and for longer than the limit.
        for _ in 0..16 {
            page.write_all(b".").unwrap();
            thread::sleep(idle / 4);
        }
        assert_eq!(rest(&browser).len(), 16);
        assert_eq!(rest(&page), "");
    }
}
