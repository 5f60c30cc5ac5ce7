//! An agent between a client and its display (Lantz, Nowicki and Theimer 1985, section 2.4, class E). It keeps the client's picture, and
//! sends it again to a display that was restarted. The caller moves the bytes.
//!
//! ```text
//! from_client(bytes)    bytes from the client; returns those to send to the display
//! from_display(bytes)   bytes from the display; returns those to send to the client
//! again()               the display is a new one; returns what it has to receive first
//! ```
//! The client always sees one display: its requests keep their numbers, and answers that it still waited for when the display was lost come
//! once the picture is restored. Input in the meantime is lost.

use crate::machine::{CREDIT, ClientId, DisplayEndReason, DisplayMachine, DisplayPictureRequests};
use crate::protocol::{
    self, DisplayAnswer, DisplayRequest, HEAD_BYTES, MalformedDisplayMessage, Stamps, write_request,
};
use crate::symbols::{DisplayClientLimits, DisplayRefusal};
use std::collections::VecDeque;

/// The token of the `Sync` that the agent itself sends after the picture.
const AGAIN: u32 = u32::MAX;
/// The bit of the operation that asks for an answer.
const ANSWER: u8 = 0x80;

/// An answer that the client waits for: the number of the request, and the token if it is a `Sync`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Owed {
    request: u32,
    token: Option<u32>,
}

/// An agent of one client.
#[derive(Debug)]
pub struct DisplayClientAgent {
    /// The client's symbols and windows. They are never drawn here.
    picture: DisplayMachine,
    id: ClientId,
    /// The client's `Hello`, as it was received; empty until then.
    hello: Vec<u8>,
    /// Whether a display has accepted the client.
    is_known: bool,
    /// The beginning of a request whose rest has not come.
    rest: Vec<u8>,
    /// The beginning of an answer whose rest has not come.
    answers: Vec<u8>,
    /// The number of requests that the client has sent.
    requests: u32,
    /// What has to be added to this display's number of a request to get the client's.
    offset: i64,
    /// The answers that the client waits for, in their order.
    owed: VecDeque<Owed>,
    /// The requests of an unfinished batch that this display was sent again: the first one's number here, and the client's numbers of all.
    kept: (u32, Vec<u32>),
    /// Refusals by the agent's own copy (request, reason) that no display has reported yet.
    refused: VecDeque<(u32, u8)>,
    /// While the picture is being restored: how many entries of `owed` were asked of the lost display.
    before: Option<usize>,
    /// The number of requests when restoring began.
    at_again: u32,
    /// Bytes received from the client for which no display has granted credit yet.
    taken: u32,
}

impl DisplayClientAgent {
    /// An agent of a client with these limits, which has to send this secret, if it is not empty.
    #[must_use]
    pub fn new(limits: DisplayClientLimits, secret: Vec<u8>) -> Self {
        let mut picture = DisplayMachine::new(limits, secret);
        let id = picture.connect();
        Self {
            picture,
            id,
            hello: Vec::new(),
            is_known: false,
            rest: Vec::new(),
            answers: Vec::new(),
            requests: 0,
            offset: 0,
            owed: VecDeque::new(),
            kept: (0, Vec::new()),
            refused: VecDeque::new(),
            before: None,
            at_again: 0,
            taken: 0,
        }
    }

    /// Whether the client has sent its `Hello`, and whether a display has accepted it.
    #[must_use]
    pub const fn is_known(&self) -> (bool, bool) {
        (!self.hello.is_empty(), self.is_known)
    }

    /// Bytes that the client may still send before the display grants more.
    #[must_use]
    pub const fn room(&self) -> usize {
        (CREDIT as usize).saturating_sub(self.taken as usize + self.rest.len())
    }

    /// Handles bytes from the client, and returns those to send to the display.
    ///
    /// # Errors
    /// Why its connection has to end.
    pub fn from_client(&mut self, bytes: &[u8]) -> Result<Vec<u8>, DisplayEndReason> {
        self.rest.extend_from_slice(bytes);
        // A wrong beginning is refused at once, before a whole message has come; so is a `Hello` that is too long.
        let is_other = |first: &u8| {
            !protocol::begins_hello(*first)
                || protocol::message_length(&self.rest) > protocol::LONGEST_HELLO
        };
        if self.hello.is_empty() && self.rest.first().is_some_and(is_other) {
            return Err(DisplayEndReason::NotHello);
        }
        let mut used = 0;
        while let Some((request, wants, length)) =
            protocol::parse_request(&self.rest[used..]).map_err(DisplayEndReason::Malformed)?
        {
            let own = self.rest[used..used + length].to_vec();
            if let DisplayRequest::Hello { .. } = request
                && self.hello.is_empty()
            {
                self.hello.clone_from(&own);
                self.keep_hello()?;
            } else if self.hello.is_empty() {
                return Err(DisplayEndReason::NotHello);
            } else {
                self.taken = self.taken.saturating_add(length as u32);
                if self.taken > CREDIT {
                    return Err(DisplayEndReason::Beyond);
                }
                self.requests = self.requests.wrapping_add(1);
                let token = if let DisplayRequest::Sync(token) = request {
                    Some(token)
                } else {
                    None
                };
                if wants || token.is_some() {
                    self.owed.push_back(Owed {
                        request: self.requests,
                        token,
                    });
                }
                self.keep(own, token.is_some())?;
            }
            used += length;
        }
        let mut whole = std::mem::take(&mut self.rest);
        self.rest = whole.split_off(used);
        Ok(whole)
    }

    /// The agent's own copy has to accept the client too. Whether the display's secret is right, the display decides.
    fn keep_hello(&mut self) -> Result<(), DisplayEndReason> {
        self.picture.receive(self.id, &self.hello, &mut || 0)
    }

    /// Carries out a request on the agent's own copy, where nothing is drawn or answered.
    fn keep(&mut self, mut request: Vec<u8>, is_sync: bool) -> Result<(), DisplayEndReason> {
        if is_sync {
            self.picture.passes(self.id);
            return Ok(());
        }
        request[0] &= !ANSWER;
        self.picture.receive(self.id, &request, &mut || 0)?;
        let output = self.picture.output(self.id);
        let mut rest = output.as_slice();
        while let Ok(Some((answer, length))) = DisplayAnswer::take(rest) {
            if let DisplayAnswer::Refused { request, why } = answer {
                self.refused.push_back((request, why));
            }
            rest = &rest[length..];
        }
        Ok(())
    }

    /// Takes the oldest refusal of the agent's own copy, if it is of a request up to this one.
    fn refused_until(&mut self, request: u32) -> Option<(u32, u8)> {
        self.refused
            .front()
            .filter(|(refused, _)| *refused <= request)?;
        self.refused.pop_front()
    }

    /// Drops refusals up to this request: the display has handled it, and has reported them itself.
    fn has_come_to(&mut self, request: u32) {
        while self.refused_until(request).is_some() {}
    }

    /// Handles bytes from the display, and returns those to send to the client.
    ///
    /// # Errors
    /// If the bytes are not answers of a display.
    pub fn from_display(&mut self, bytes: &[u8]) -> Result<Vec<u8>, MalformedDisplayMessage> {
        self.answers.extend_from_slice(bytes);
        let (mut out, mut used) = (Vec::new(), 0);
        while let Some((answer, length)) = DisplayAnswer::take(&self.answers[used..])? {
            self.answered(&answer, &mut out);
            used += length;
        }
        self.answers.drain(..used);
        Ok(out)
    }

    /// The client's number of the request that has this number at the display.
    fn number(&self, request: u32) -> u32 {
        let again = request
            .checked_sub(self.kept.0)
            .and_then(|at| self.kept.1.get(at as usize));
        again
            .copied()
            .unwrap_or((i64::from(request) + self.offset) as u32)
    }

    fn answered(&mut self, answer: &DisplayAnswer, out: &mut Vec<u8>) {
        match answer {
            DisplayAnswer::Welcome { .. } if self.is_known => {}
            DisplayAnswer::Welcome { .. } => {
                self.is_known = true;
                answer.put(out);
            }
            DisplayAnswer::Synced {
                token: AGAIN,
                stamps,
            } if self.before.is_some() => self.catch_up(*stamps, out),
            // Answers to the requests that restore the picture are not for the client.
            _ if self.before.is_some() && !matches!(answer, DisplayAnswer::Input { .. }) => {}
            DisplayAnswer::Done | DisplayAnswer::Synced { .. } => {
                if let Some(owed) = self.owed.pop_front() {
                    self.has_come_to(owed.request);
                }
                answer.put(out);
            }
            DisplayAnswer::Refused { request, why } => {
                let request = self.number(*request);
                // A notice that drawing was cut short comes in addition to the answer to the request.
                let is_answer = *why != DisplayRefusal::TooMuch as u8;
                if is_answer
                    && self
                        .owed
                        .front()
                        .is_some_and(|owed| owed.request == request)
                {
                    self.owed.pop_front();
                }
                self.has_come_to(request);
                DisplayAnswer::Refused { request, why: *why }.put(out);
            }
            DisplayAnswer::Credit(bytes) => {
                let due = (*bytes).min(self.taken);
                self.taken -= due;
                if due > 0 {
                    DisplayAnswer::Credit(due).put(out);
                }
            }
            DisplayAnswer::Input { .. } => answer.put(out),
        }
    }

    /// Handles that the picture is restored: answers everything that the client waited for.
    fn catch_up(&mut self, stamps: Stamps, out: &mut Vec<u8>) {
        let before: Vec<Owed> = self.owed.drain(..self.before.take().unwrap_or(0)).collect();
        for Owed { request, token } in before {
            let mut is_refused = false;
            while let Some((refused, why)) = self.refused_until(request) {
                is_refused |= refused == request;
                DisplayAnswer::Refused {
                    request: refused,
                    why,
                }
                .put(out);
            }
            match token {
                Some(token) => DisplayAnswer::Synced { token, stamps }.put(out),
                None if is_refused => {}
                None => DisplayAnswer::Done.put(out),
            }
        }
        while let Some((request, why)) = self.refused_until(self.at_again) {
            DisplayAnswer::Refused { request, why }.put(out);
        }
        if self.taken > 0 {
            DisplayAnswer::Credit(std::mem::take(&mut self.taken)).put(out);
        }
    }

    /// Handles that the display is a new one, which knows nothing: returns what it has to receive first. Empty if the client has not sent
    /// its `Hello`.
    pub fn again(&mut self) -> Vec<u8> {
        self.answers.clear();
        let mut out = self.hello.clone();
        if self.requests == 0 {
            return out;
        }
        let DisplayPictureRequests {
            bytes,
            requests,
            kept,
        } = self.picture.picture(self.id);
        out.extend(bytes);
        self.kept = (requests + 1 - kept.len() as u32, kept);
        write_request(&mut out, &DisplayRequest::Sync(AGAIN), false);
        self.offset = i64::from(self.requests) - i64::from(requests) - 1;
        self.before = Some(self.owed.len());
        self.at_again = self.requests;
        debug_assert!(out.len() >= HEAD_BYTES, "it ends with a request");
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::{DisplayItem, DisplayItemKind};
    use crate::machine::FULL_SIZE;

    fn requests(all: &[(DisplayRequest<'_>, bool)]) -> Vec<u8> {
        let mut out = Vec::new();
        all.iter()
            .for_each(|(request, wants)| write_request(&mut out, request, *wants));
        out
    }

    fn hello() -> Vec<u8> {
        requests(&[(
            DisplayRequest::Hello {
                version: protocol::VERSION,
                token: b"",
            },
            false,
        )])
    }

    fn answers(mut bytes: &[u8]) -> Vec<DisplayAnswer> {
        let mut all = Vec::new();
        while let Some((answer, length)) = DisplayAnswer::take(bytes).unwrap() {
            all.push(answer);
            bytes = &bytes[length..];
        }
        all
    }

    /// A display and its only client.
    fn display() -> (DisplayMachine, ClientId) {
        let mut display = DisplayMachine::new(DisplayClientLimits::default(), Vec::new());
        let id = display.connect();
        (display, id)
    }

    fn line(id: u32) -> DisplayItem {
        DisplayItem::drawn(DisplayItemKind::Vector, id, (0, 0), (20 + id as i16, 30))
    }

    #[test]
    fn a_display_that_was_lost_has_the_picture_again_and_what_was_waited_for_is_answered() {
        let mut agent = DisplayClientAgent::new(DisplayClientLimits::default(), Vec::new());
        let (mut first, one) = display();
        let drawn = requests(&[
            (DisplayRequest::DefineSymbol(7), false),
            (DisplayRequest::AddItem(line(1), b""), false),
            (
                DisplayRequest::AddItem(
                    DisplayItem::drawn(DisplayItemKind::Text, 2, (0, 0), (0, 0)),
                    b"held",
                ),
                false,
            ),
            (DisplayRequest::EndSymbol, false),
            (DisplayRequest::DefineSymbol(8), false),
            (
                DisplayRequest::AddItem(DisplayItem::call(1, 7, 5, 5), b""),
                false,
            ),
            (DisplayRequest::EndSymbol, true),
            (DisplayRequest::CreateWindow(3, (100, 80), b"title"), false),
            (DisplayRequest::DisplayView(3, 8, (4, 4), FULL_SIZE), false),
            (DisplayRequest::Sync(5), false),
        ]);
        let there = agent.from_client(&[hello(), drawn].concat()).unwrap();
        first.receive(one, &there, &mut || 0).unwrap();
        let back = agent.from_display(&first.output(one)).unwrap();
        assert!(matches!(
            answers(&back)[..],
            [
                DisplayAnswer::Welcome { .. },
                DisplayAnswer::Done,
                DisplayAnswer::Synced { token: 5, .. }
            ]
        ));
        let shown = first.draw(one, 3).unwrap().pixels().clone();

        // Two requests are on their way when the display is lost, and a symbol is being defined.
        let lost = requests(&[
            (DisplayRequest::EditSymbol(7), true),
            (DisplayRequest::EndSymbol, false),
            (DisplayRequest::Sync(6), false),
            (DisplayRequest::DefineSymbol(9), false),
            (DisplayRequest::AddItem(line(1), b""), false),
        ]);
        agent.from_client(&lost).unwrap();
        let (mut second, two) = display();
        second.receive(two, &agent.again(), &mut || 0).unwrap();
        let back = agent.from_display(&second.output(two)).unwrap();
        let received = answers(&back);
        assert!(
            matches!(
                received[..],
                [
                    DisplayAnswer::Done,
                    DisplayAnswer::Synced { token: 6, .. },
                    DisplayAnswer::Credit(_)
                ]
            ),
            "{received:?}"
        );
        assert_eq!(*second.draw(two, 3).unwrap().pixels(), shown);

        // It goes on where it was: request 18 is refused by the client's own count.
        let more = requests(&[
            (DisplayRequest::AddItem(line(2), b""), false),
            (DisplayRequest::EndSymbol, true),
            (DisplayRequest::DeleteSymbol(99), true),
        ]);
        let there = agent.from_client(&more).unwrap();
        second.receive(two, &there, &mut || 0).unwrap();
        let back = agent.from_display(&second.output(two)).unwrap();
        let refused = DisplayAnswer::Refused {
            request: 18,
            why: DisplayRefusal::NoSymbol as u8,
        };
        assert_eq!(answers(&back), [DisplayAnswer::Done, refused]);
        assert!(agent.owed.is_empty());
    }

    #[test]
    fn who_does_not_say_hello_is_no_client() {
        let mut agent = DisplayClientAgent::new(DisplayClientLimits::default(), Vec::new());
        assert_eq!(
            agent.from_client(&requests(&[(DisplayRequest::EndSymbol, false)])),
            Err(DisplayEndReason::NotHello)
        );
        assert!(agent.again().is_empty());
    }

    #[test]
    fn refusals_without_a_display_are_reported_in_order() {
        let mut agent = DisplayClientAgent::new(DisplayClientLimits::default(), Vec::new());
        let (mut first, one) = display();
        first
            .receive(one, &agent.from_client(&hello()).unwrap(), &mut || 0)
            .unwrap();
        agent.from_display(&first.output(one)).unwrap();
        let lost = requests(&[
            (DisplayRequest::DeleteSymbol(99), false),
            (DisplayRequest::DefineSymbol(1), true),
            (DisplayRequest::DeleteSymbol(98), true),
            (DisplayRequest::EndSymbol, true),
            (DisplayRequest::DeleteItem(5), false),
        ]);
        agent.from_client(&lost).unwrap();
        let (mut second, two) = display();
        second.receive(two, &agent.again(), &mut || 0).unwrap();
        let received = answers(&agent.from_display(&second.output(two)).unwrap());
        let refused = |request| DisplayAnswer::Refused {
            request,
            why: DisplayRefusal::NoSymbol as u8,
        };
        assert_eq!(
            received[..5],
            [
                refused(1),
                DisplayAnswer::Done,
                refused(3),
                DisplayAnswer::Done,
                refused(5)
            ],
            "{received:?}"
        );
        assert!(agent.refused.is_empty() && agent.owed.is_empty());
    }

    #[test]
    fn what_a_batch_has_wrong_has_the_clients_numbers_after_the_display_was_lost_too() {
        let mut agent = DisplayClientAgent::new(DisplayClientLimits::default(), Vec::new());
        let (mut first, one) = display();
        let all = requests(&[
            (DisplayRequest::Sync(1), false),
            (DisplayRequest::BeginBatch, false),
            (DisplayRequest::DeleteSymbol(99), false),
            (DisplayRequest::EndBatch, true),
        ]);
        let there = agent.from_client(&[hello(), all.clone()].concat()).unwrap();
        first.receive(one, &there, &mut || 0).unwrap();
        let received = answers(&agent.from_display(&first.output(one)).unwrap());
        let refused = |request| DisplayAnswer::Refused {
            request,
            why: DisplayRefusal::NoSymbol as u8,
        };
        assert_eq!(
            received[2..],
            [refused(3), DisplayAnswer::Done],
            "{received:?}"
        );
        // The same once more, of which no display has said anything.
        agent.from_client(&all).unwrap();
        let (mut second, two) = display();
        second.receive(two, &agent.again(), &mut || 0).unwrap();
        let received = answers(&agent.from_display(&second.output(two)).unwrap());
        assert!(
            matches!(received[0], DisplayAnswer::Synced { token: 1, .. }),
            "{received:?}"
        );
        assert_eq!(
            received[1..3],
            [refused(7), DisplayAnswer::Done],
            "{received:?}"
        );
        assert!(agent.refused.is_empty() && agent.owed.is_empty());
    }

    #[test]
    fn half_a_batch_that_is_given_again_keeps_its_numbers() {
        let mut agent = DisplayClientAgent::new(DisplayClientLimits::default(), Vec::new());
        let wrong = [
            (DisplayRequest::DeleteSymbol(99), false),
            (DisplayRequest::Sync(1), false),
            (DisplayRequest::DeleteSymbol(98), true),
        ];
        agent
            .from_client(
                &[
                    hello(),
                    requests(&[(DisplayRequest::BeginBatch, false)]),
                    requests(&wrong),
                ]
                .concat(),
            )
            .unwrap();
        let refused = |request| DisplayAnswer::Refused {
            request,
            why: DisplayRefusal::NoSymbol as u8,
        };
        // However often the display goes.
        for _ in 0..2 {
            let (mut display, one) = display();
            display.receive(one, &agent.again(), &mut || 0).unwrap();
            agent.from_display(&display.output(one)).unwrap();
        }
        let (mut last, one) = display();
        last.receive(one, &agent.again(), &mut || 0).unwrap();
        agent.from_display(&last.output(one)).unwrap();
        let end = requests(&[
            (DisplayRequest::EndBatch, true),
            (DisplayRequest::DeleteSymbol(97), true),
        ]);
        let there = agent.from_client(&end).unwrap();
        last.receive(one, &there, &mut || 0).unwrap();
        let received = answers(&agent.from_display(&last.output(one)).unwrap());
        assert_eq!(
            received,
            [refused(2), refused(4), DisplayAnswer::Done, refused(6)]
        );
    }

    #[test]
    fn who_sends_more_than_it_may_is_ended() {
        let mut agent = DisplayClientAgent::new(DisplayClientLimits::default(), Vec::new());
        agent.from_client(&hello()).unwrap();
        let many =
            requests(&[(DisplayRequest::DeleteSymbol(1), false)]).repeat(CREDIT as usize / 8);
        assert!(agent.from_client(&many).is_ok());
        assert_eq!(
            agent.from_client(&requests(&[(DisplayRequest::EndSymbol, false)])),
            Err(DisplayEndReason::Beyond)
        );
    }
}
