//! An agent between a client and its display (Lantz, Nowicki and Theimer 1985, section 2.4, class E): it has the client's picture, and
//! gives it again to a display that was started again. Whoever calls it moves the bytes.
//!
//! ```text
//! from_client(bytes)    what the client sent: what goes on to the display
//! from_display(bytes)   what the display answered: what goes back to the client
//! again()               the display is another one: what it has to be told first
//! ```
//! The client sees one display all the time: its requests keep their numbers, and what it waited for when the display was lost is answered
//! once the picture is there again. Input that came meanwhile is lost.

use crate::machine::{CREDIT, ClientId, Display, Ends, Picture};
use crate::protocol::{self, Answer, HEAD_BYTES, Malformed, Request, put};
use crate::symbols::{Limits, Refusal};
use std::collections::VecDeque;

/// What the agent itself waits for.
const AGAIN: u32 = u32::MAX;
const ANSWER: u8 = 0x80;

/// An answer that the client waits for: of which request, and the token of a `Sync`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Owed {
    request: u32,
    token: Option<u32>,
}

/// An agent of one client.
#[derive(Debug)]
pub struct Agent {
    /// What the client has on its display; never drawn here.
    picture: Display,
    id: ClientId,
    hello: Vec<u8>,
    is_known: bool,
    rest: Vec<u8>,
    answers: Vec<u8>,
    requests: u32,
    /// What has to be added to the numbers of this display to have the client's.
    offset: i64,
    owed: VecDeque<Owed>,
    /// Requests of a batch that this display was given again: the number of the first here, and the client's numbers of all.
    kept: (u32, Vec<u32>),
    /// What the picture here refused, by request, until a display has said so.
    refused: VecDeque<(u32, u8)>,
    /// Of what is owed, what was asked of a display that is gone; while the picture is being given again.
    before: Option<usize>,
    /// Requests when it began.
    at_again: u32,
    /// Bytes taken of the client that no display has told it it may send again.
    taken: u32,
}

impl Agent {
    /// Of a client that may take so much, and has to know the secret, where there is one.
    #[must_use]
    pub fn new(limits: Limits, secret: Vec<u8>) -> Self {
        let mut picture = Display::new(limits, secret);
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

    /// Whether the client has said who it is, and whether a display has taken it.
    #[must_use]
    pub const fn is_known(&self) -> (bool, bool) {
        (!self.hello.is_empty(), self.is_known)
    }

    /// Bytes that the client may still send: more of them wait, as at the display.
    #[must_use]
    pub const fn room(&self) -> usize {
        (CREDIT as usize).saturating_sub(self.taken as usize + self.rest.len())
    }

    /// What the client sent, as it goes on to the display.
    ///
    /// # Errors
    /// Why its connection has to end.
    pub fn from_client(&mut self, bytes: &[u8]) -> Result<Vec<u8>, Ends> {
        self.rest.extend_from_slice(bytes);
        // What begins otherwise is ended at once, and not once it is a whole message; so is a long one.
        let is_other = |first: &u8| {
            !protocol::begins_hello(*first)
                || protocol::needed(&self.rest) > protocol::LONGEST_HELLO
        };
        if self.hello.is_empty() && self.rest.first().is_some_and(is_other) {
            return Err(Ends::NotHello);
        }
        let mut used = 0;
        while let Some((request, wants, length)) =
            protocol::take(&self.rest[used..]).map_err(Ends::Malformed)?
        {
            let own = self.rest[used..used + length].to_vec();
            if let Request::Hello { .. } = request
                && self.hello.is_empty()
            {
                self.hello.clone_from(&own);
                self.keep_hello()?;
            } else if self.hello.is_empty() {
                return Err(Ends::NotHello);
            } else {
                self.taken = self.taken.saturating_add(length as u32);
                if self.taken > CREDIT {
                    return Err(Ends::Beyond);
                }
                self.requests = self.requests.wrapping_add(1);
                let token = if let Request::Sync(token) = request {
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

    /// Whether the display's secret is right is its own business.
    fn keep_hello(&mut self) -> Result<(), Ends> {
        self.picture.receive(self.id, &self.hello, &mut || 0)
    }

    /// A request changes the picture here as it does there; nothing is drawn or answered.
    fn keep(&mut self, mut request: Vec<u8>, is_sync: bool) -> Result<(), Ends> {
        if is_sync {
            self.picture.passes(self.id);
            return Ok(());
        }
        request[0] &= !ANSWER;
        self.picture.receive(self.id, &request, &mut || 0)?;
        let output = self.picture.output(self.id);
        let mut rest = output.as_slice();
        while let Ok(Some((answer, length))) = Answer::take(rest) {
            if let Answer::Refused { request, why } = answer {
                self.refused.push_back((request, why));
            }
            rest = &rest[length..];
        }
        Ok(())
    }

    /// What was refused first, up to a request.
    fn refused_until(&mut self, request: u32) -> Option<(u32, u8)> {
        self.refused
            .front()
            .filter(|(refused, _)| *refused <= request)?;
        self.refused.pop_front()
    }

    /// A display has come to that request: what was refused up to it was told.
    fn has_come_to(&mut self, request: u32) {
        while self.refused_until(request).is_some() {}
    }

    /// What the display answered, as it goes back to the client.
    ///
    /// # Errors
    /// When it is no display.
    pub fn from_display(&mut self, bytes: &[u8]) -> Result<Vec<u8>, Malformed> {
        self.answers.extend_from_slice(bytes);
        let (mut out, mut used) = (Vec::new(), 0);
        while let Some((answer, length)) = Answer::take(&self.answers[used..])? {
            self.answered(&answer, &mut out);
            used += length;
        }
        self.answers.drain(..used);
        Ok(out)
    }

    /// The client's number of a request that has that number at this display.
    fn number(&self, request: u32) -> u32 {
        let again = request
            .checked_sub(self.kept.0)
            .and_then(|at| self.kept.1.get(at as usize));
        again
            .copied()
            .unwrap_or((i64::from(request) + self.offset) as u32)
    }

    fn answered(&mut self, answer: &Answer, out: &mut Vec<u8>) {
        match answer {
            Answer::Welcome { .. } if self.is_known => {}
            Answer::Welcome { .. } => {
                self.is_known = true;
                answer.put(out);
            }
            Answer::Synced {
                token: AGAIN,
                stamps,
            } if self.before.is_some() => {
                let before: Vec<Owed> =
                    self.owed.drain(..self.before.take().unwrap_or(0)).collect();
                for Owed { request, token } in before {
                    let mut is_refused = false;
                    while let Some((refused, why)) = self.refused_until(request) {
                        is_refused |= refused == request;
                        Answer::Refused {
                            request: refused,
                            why,
                        }
                        .put(out);
                    }
                    match token {
                        Some(token) => Answer::Synced {
                            token,
                            stamps: *stamps,
                        }
                        .put(out),
                        None if is_refused => {}
                        None => Answer::Done.put(out),
                    }
                }
                while let Some((request, why)) = self.refused_until(self.at_again) {
                    Answer::Refused { request, why }.put(out);
                }
                if self.taken > 0 {
                    Answer::Credit(std::mem::take(&mut self.taken)).put(out);
                }
            }
            // What a picture that was accepted once is told now is the agent's business.
            _ if self.before.is_some() && !matches!(answer, Answer::Input { .. }) => {}
            Answer::Done | Answer::Synced { .. } => {
                if let Some(owed) = self.owed.pop_front() {
                    self.has_come_to(owed.request);
                }
                answer.put(out);
            }
            Answer::Refused { request, why } => {
                let request = self.number(*request);
                // A picture that was cut is told beside the answer to its request.
                let is_answer = *why != Refusal::TooMuch as u8;
                if is_answer
                    && self
                        .owed
                        .front()
                        .is_some_and(|owed| owed.request == request)
                {
                    self.owed.pop_front();
                }
                self.has_come_to(request);
                Answer::Refused { request, why: *why }.put(out);
            }
            Answer::Credit(bytes) => {
                let due = (*bytes).min(self.taken);
                self.taken -= due;
                if due > 0 {
                    Answer::Credit(due).put(out);
                }
            }
            Answer::Input { .. } => answer.put(out),
        }
    }

    /// The display is another one, which knows nothing: what it has to be told before all else. Nothing where the client has not said
    /// who it is.
    pub fn again(&mut self) -> Vec<u8> {
        self.answers.clear();
        let mut out = self.hello.clone();
        if self.requests == 0 {
            return out;
        }
        let Picture {
            bytes,
            requests,
            kept,
        } = self.picture.picture(self.id);
        out.extend(bytes);
        self.kept = (requests + 1 - kept.len() as u32, kept);
        put(&mut out, &Request::Sync(AGAIN), false);
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
    use crate::item::{Item, Kind};
    use crate::machine::FULL_SIZE;

    fn requests(all: &[(Request<'_>, bool)]) -> Vec<u8> {
        let mut out = Vec::new();
        all.iter()
            .for_each(|(request, wants)| put(&mut out, request, *wants));
        out
    }

    fn hello() -> Vec<u8> {
        requests(&[(
            Request::Hello {
                version: protocol::VERSION,
                token: b"",
            },
            false,
        )])
    }

    fn answers(mut bytes: &[u8]) -> Vec<Answer> {
        let mut all = Vec::new();
        while let Some((answer, length)) = Answer::take(bytes).unwrap() {
            all.push(answer);
            bytes = &bytes[length..];
        }
        all
    }

    /// A display and its only client.
    fn display() -> (Display, ClientId) {
        let mut display = Display::new(Limits::default(), Vec::new());
        let id = display.connect();
        (display, id)
    }

    fn line(id: u32) -> Item {
        Item::drawn(Kind::Vector, id, (0, 0), (20 + id as i16, 30))
    }

    #[test]
    fn a_display_that_was_lost_has_the_picture_again_and_what_was_waited_for_is_answered() {
        let mut agent = Agent::new(Limits::default(), Vec::new());
        let (mut first, one) = display();
        let drawn = requests(&[
            (Request::DefineSymbol(7), false),
            (Request::AddItem(line(1), b""), false),
            (
                Request::AddItem(Item::drawn(Kind::Text, 2, (0, 0), (0, 0)), b"held"),
                false,
            ),
            (Request::EndSymbol, false),
            (Request::DefineSymbol(8), false),
            (Request::AddItem(Item::call(1, 7, 5, 5), b""), false),
            (Request::EndSymbol, true),
            (Request::CreateWindow(3, (100, 80), b"title"), false),
            (Request::DisplayView(3, 8, (4, 4), FULL_SIZE), false),
            (Request::Sync(5), false),
        ]);
        let there = agent.from_client(&[hello(), drawn].concat()).unwrap();
        first.receive(one, &there, &mut || 0).unwrap();
        let back = agent.from_display(&first.output(one)).unwrap();
        assert!(matches!(
            answers(&back)[..],
            [
                Answer::Welcome { .. },
                Answer::Done,
                Answer::Synced { token: 5, .. }
            ]
        ));
        let shown = first.draw(one, 3).unwrap().pixels().clone();

        // Two requests are on their way when the display is lost, and a symbol is being defined.
        let lost = requests(&[
            (Request::EditSymbol(7), true),
            (Request::EndSymbol, false),
            (Request::Sync(6), false),
            (Request::DefineSymbol(9), false),
            (Request::AddItem(line(1), b""), false),
        ]);
        agent.from_client(&lost).unwrap();
        let (mut second, two) = display();
        second.receive(two, &agent.again(), &mut || 0).unwrap();
        let back = agent.from_display(&second.output(two)).unwrap();
        let told = answers(&back);
        assert!(
            matches!(
                told[..],
                [
                    Answer::Done,
                    Answer::Synced { token: 6, .. },
                    Answer::Credit(_)
                ]
            ),
            "{told:?}"
        );
        assert_eq!(*second.draw(two, 3).unwrap().pixels(), shown);

        // It goes on where it was: request 18 is refused by the client's own count.
        let more = requests(&[
            (Request::AddItem(line(2), b""), false),
            (Request::EndSymbol, true),
            (Request::DeleteSymbol(99), true),
        ]);
        let there = agent.from_client(&more).unwrap();
        second.receive(two, &there, &mut || 0).unwrap();
        let back = agent.from_display(&second.output(two)).unwrap();
        let refused = Answer::Refused {
            request: 18,
            why: Refusal::NoSymbol as u8,
        };
        assert_eq!(answers(&back), [Answer::Done, refused]);
        assert!(agent.owed.is_empty());
    }

    #[test]
    fn who_does_not_say_hello_is_no_client() {
        let mut agent = Agent::new(Limits::default(), Vec::new());
        assert_eq!(
            agent.from_client(&requests(&[(Request::EndSymbol, false)])),
            Err(Ends::NotHello)
        );
        assert!(agent.again().is_empty());
    }

    #[test]
    fn what_was_refused_while_there_was_no_display_is_told_in_its_place() {
        let mut agent = Agent::new(Limits::default(), Vec::new());
        let (mut first, one) = display();
        first
            .receive(one, &agent.from_client(&hello()).unwrap(), &mut || 0)
            .unwrap();
        agent.from_display(&first.output(one)).unwrap();
        let lost = requests(&[
            (Request::DeleteSymbol(99), false),
            (Request::DefineSymbol(1), true),
            (Request::DeleteSymbol(98), true),
            (Request::EndSymbol, true),
            (Request::DeleteItem(5), false),
        ]);
        agent.from_client(&lost).unwrap();
        let (mut second, two) = display();
        second.receive(two, &agent.again(), &mut || 0).unwrap();
        let told = answers(&agent.from_display(&second.output(two)).unwrap());
        let refused = |request| Answer::Refused {
            request,
            why: Refusal::NoSymbol as u8,
        };
        assert_eq!(
            told[..5],
            [
                refused(1),
                Answer::Done,
                refused(3),
                Answer::Done,
                refused(5)
            ],
            "{told:?}"
        );
        assert!(agent.refused.is_empty() && agent.owed.is_empty());
    }

    #[test]
    fn what_a_batch_has_wrong_has_the_clients_numbers_after_the_display_was_lost_too() {
        let mut agent = Agent::new(Limits::default(), Vec::new());
        let (mut first, one) = display();
        let all = requests(&[
            (Request::Sync(1), false),
            (Request::BeginBatch, false),
            (Request::DeleteSymbol(99), false),
            (Request::EndBatch, true),
        ]);
        let there = agent.from_client(&[hello(), all.clone()].concat()).unwrap();
        first.receive(one, &there, &mut || 0).unwrap();
        let told = answers(&agent.from_display(&first.output(one)).unwrap());
        let refused = |request| Answer::Refused {
            request,
            why: Refusal::NoSymbol as u8,
        };
        assert_eq!(told[2..], [refused(3), Answer::Done], "{told:?}");
        // The same once more, of which no display has said anything.
        agent.from_client(&all).unwrap();
        let (mut second, two) = display();
        second.receive(two, &agent.again(), &mut || 0).unwrap();
        let told = answers(&agent.from_display(&second.output(two)).unwrap());
        assert!(
            matches!(told[0], Answer::Synced { token: 1, .. }),
            "{told:?}"
        );
        assert_eq!(told[1..3], [refused(7), Answer::Done], "{told:?}");
        assert!(agent.refused.is_empty() && agent.owed.is_empty());
    }

    #[test]
    fn half_a_batch_that_is_given_again_keeps_its_numbers() {
        let mut agent = Agent::new(Limits::default(), Vec::new());
        let wrong = [
            (Request::DeleteSymbol(99), false),
            (Request::Sync(1), false),
            (Request::DeleteSymbol(98), true),
        ];
        agent
            .from_client(
                &[
                    hello(),
                    requests(&[(Request::BeginBatch, false)]),
                    requests(&wrong),
                ]
                .concat(),
            )
            .unwrap();
        let refused = |request| Answer::Refused {
            request,
            why: Refusal::NoSymbol as u8,
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
        let end = requests(&[(Request::EndBatch, true), (Request::DeleteSymbol(97), true)]);
        let there = agent.from_client(&end).unwrap();
        last.receive(one, &there, &mut || 0).unwrap();
        let told = answers(&agent.from_display(&last.output(one)).unwrap());
        assert_eq!(told, [refused(2), refused(4), Answer::Done, refused(6)]);
    }

    #[test]
    fn who_sends_more_than_it_may_is_ended() {
        let mut agent = Agent::new(Limits::default(), Vec::new());
        agent.from_client(&hello()).unwrap();
        let many = requests(&[(Request::DeleteSymbol(1), false)]).repeat(CREDIT as usize / 8);
        assert!(agent.from_client(&many).is_ok());
        assert_eq!(
            agent.from_client(&requests(&[(Request::EndSymbol, false)])),
            Err(Ends::Beyond)
        );
    }
}
