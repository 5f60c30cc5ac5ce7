//! `stackline session`: stays resident for a program that measures in a loop. It reads requests as JSON lines on stdin and
//! answers as JSON lines on stdout, as docs/JSON.md says. When its stdin ends, what it does is cancelled, and it ends.
//!
//! One thread reads lines, one carries out requests in their order, and this one passes requests on and cancels them.

mod answers;
mod carry_out;
mod input_lines;
mod made_runs;
mod prepared;
mod progress_lines;
mod requests;
mod study;
mod waiting;

use crate::exit::{Error, Exit, Result};
use crate::flags;
use crate::interrupt::act_on_ctrl_c;
use answers::{answer, error_json};
use carry_out::carried_out;
use input_lines::{InputLine, next_line};
use requests::{SessionRequest, SessionWork};
use serde_json::{Value, json};
use std::io::stdin;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread;
use waiting::{CancelFlags, Cancelled, RequestQueue};

/// Version of the protocol, raised when an older client would misunderstand.
const PROTOCOL: u32 = 1;
/// The longest request, bytes: a specification of the greatest length, escaped.
const LONGEST_REQUEST: usize = 48 << 20;

/// What the session waits for.
enum SessionHappening {
    Line(InputLine),
    /// Stdin has ended: nobody waits for answers.
    InputEnd,
    Signal,
    /// All requests are answered, and no other one comes.
    Answered,
}

/// What follows a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AfterLine {
    GoOn,
    /// The last requests were sent.
    Finish,
}

/// Answers requests until stdin ends, a request says so, or a signal comes.
pub(crate) fn session(_: &flags::SessionFlags) -> Result {
    let (send, happenings) = sync_channel(1);
    let at_signal = send.clone();
    act_on_ctrl_c(move || {
        // Without a receiver the session is ending already.
        let _ = at_signal.send(SessionHappening::Signal);
    })?;
    let at_end = send.clone();
    thread::spawn(move || {
        let mut input = stdin().lock();
        while let Ok(Some(line)) = next_line(&mut input, LONGEST_REQUEST) {
            if send.send(SessionHappening::Line(line)).is_err() {
                return;
            }
        }
        let _ = send.send(SessionHappening::InputEnd);
    });
    answer(&json!({"stackline": env!("CARGO_PKG_VERSION"), "session": PROTOCOL}));
    let queue = Arc::new(RequestQueue::default());
    let of_worker = Arc::clone(&queue);
    let worker = thread::spawn(move || {
        work(&of_worker);
        let _ = at_end.send(SessionHappening::Answered);
    });
    let (mut exit, mut after) = (Exit::Done, AfterLine::GoOn);
    for happening in happenings {
        match happening {
            SessionHappening::Line(_) if after == AfterLine::Finish => {}
            SessionHappening::Line(line) => after = take(&line, &queue),
            SessionHappening::InputEnd if after == AfterLine::Finish => {}
            SessionHappening::InputEnd | SessionHappening::Answered => break,
            SessionHappening::Signal => {
                exit = Exit::Interrupted;
                break;
            }
        }
    }
    queue.end();
    // It catches its panics.
    let _ = worker.join();
    Ok(exit)
}

/// Passes a line on.
fn take(line: &InputLine, queue: &RequestQueue) -> AfterLine {
    let request = match line {
        InputLine::Whole(bytes) if bytes.trim_ascii().is_empty() => return AfterLine::GoOn,
        InputLine::Whole(bytes) => SessionRequest::parse(bytes),
        InputLine::TooLong => Err(requests::Unread {
            id: None,
            error: Error::input(format!("a request has at most {LONGEST_REQUEST} bytes")),
        }),
    };
    match request {
        Err(unread) => answer(&json!({"id": unread.id, "error": error_json(&unread.error)})),
        Ok(SessionRequest::Quit) => {
            queue.finish();
            return AfterLine::Finish;
        }
        Ok(SessionRequest::Cancel(id)) => cancel(id, queue),
        Ok(SessionRequest::Work { id, work }) => {
            if let Err(error) = queue.push(id, *work) {
                answer(&json!({"id": id, "error": error_json(&error)}));
            }
        }
    }
    AfterLine::GoOn
}

/// Cancels a request. The first answer says whether another one, of the request itself, follows.
fn cancel(id: u64, queue: &RequestQueue) {
    let interrupted = json!({"id": id, "error": error_json(&Error::interrupted())});
    // The lock is held until the answer stands, so that the request's own answer comes after it.
    queue.cancel(id, |how| {
        answer(&json!({"cancel": id, "found": how != Cancelled::Unknown}));
        if how == Cancelled::Waiting {
            answer(&interrupted);
        }
    });
}

/// Carries out one request after the other until the queue has ended.
fn work(queue: &RequestQueue) {
    while let Some((id, work, cancel)) = queue.next() {
        let line = guarded(id, &work, &cancel);
        // The request is over before its answer stands: who cancels it afterwards learns that it is unknown.
        queue.done(|| answer(&line));
    }
}

/// The answer to a request, also where carrying it out panics.
fn guarded(id: u64, work: &SessionWork, cancel: &CancelFlags) -> Value {
    let made = catch_unwind(AssertUnwindSafe(|| carried_out(id, work, cancel)));
    made.unwrap_or_else(|_| {
        let error = Error::measurement("the request failed because of a bug in stackline")
            .hint("stderr of the session has the place; please report it with the specification");
        json!({"id": id, "error": error_json(&error)})
    })
}
