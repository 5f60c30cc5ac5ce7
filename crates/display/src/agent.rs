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

use crate::machine::{ClientId, Display, Ends};
use crate::protocol::{self, Answer, HEAD_BYTES, Malformed, Request, put};
use crate::symbols::Limits;
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
    /// Of what is owed, what was asked of a display that is gone; while the picture is being given again.
    before: Option<usize>,
    /// Bytes taken of the client that no display has told it it may send again.
    taken: u32,
}

impl Agent {
    /// Of a client that may take so much.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        let mut picture = Display::new(limits, Vec::new());
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
            before: None,
            taken: 0,
        }
    }

    /// What the client sent, as it goes on to the display.
    ///
    /// # Errors
    /// Why its connection has to end.
    pub fn from_client(&mut self, bytes: &[u8]) -> Result<Vec<u8>, Ends> {
        self.rest.extend_from_slice(bytes);
        let mut used = 0;
        while let Some((request, wants, length)) = protocol::take(&self.rest[used..]).map_err(Ends::Malformed)? {
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
                self.requests = self.requests.wrapping_add(1);
                let token = if let Request::Sync(token) = request { Some(token) } else { None };
                if wants || token.is_some() {
                    self.owed.push_back(Owed { request: self.requests, token });
                }
                self.keep(own, token.is_some())?;
            }
            used += length;
        }
        let mut whole = std::mem::take(&mut self.rest);
        self.rest = whole.split_off(used);
        Ok(whole)
    }

    /// The secret is the display's business.
    fn keep_hello(&mut self) -> Result<(), Ends> {
        let mut hello = Vec::new();
        put(&mut hello, &Request::Hello { version: protocol::VERSION, token: b"" }, false);
        self.picture.receive(self.id, &hello, &mut || 0)
    }

    /// A request changes the picture here as it does there; nothing is drawn or answered.
    fn keep(&mut self, mut request: Vec<u8>, is_sync: bool) -> Result<(), Ends> {
        if is_sync {
            return Ok(());
        }
        request[0] &= !ANSWER;
        self.picture.receive(self.id, &request, &mut || 0)?;
        self.picture.output(self.id);
        Ok(())
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

    fn answered(&mut self, answer: &Answer, out: &mut Vec<u8>) {
        match answer {
            Answer::Welcome { .. } if self.is_known => {}
            Answer::Welcome { .. } => {
                self.is_known = true;
                answer.put(out);
            }
            Answer::Synced { token: AGAIN, stamps } if self.before.is_some() => {
                for Owed { token, .. } in self.owed.drain(..self.before.take().unwrap_or(0)) {
                    match token {
                        Some(token) => Answer::Synced { token, stamps: *stamps }.put(out),
                        None => Answer::Done.put(out),
                    }
                }
                if self.taken > 0 {
                    Answer::Credit(std::mem::take(&mut self.taken)).put(out);
                }
            }
            // What a picture that was accepted once is told now is the agent's business.
            _ if self.before.is_some() && !matches!(answer, Answer::Input { .. }) => {}
            Answer::Done | Answer::Synced { .. } => {
                self.owed.pop_front();
                answer.put(out);
            }
            Answer::Refused { request, why } => {
                let request = (i64::from(*request) + self.offset) as u32;
                if self.owed.front().is_some_and(|owed| owed.request == request) {
                    self.owed.pop_front();
                }
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
        let (picture, requests) = self.picture.picture(self.id);
        out.extend(picture);
        put(&mut out, &Request::Sync(AGAIN), false);
        self.offset = i64::from(self.requests) - i64::from(requests) - 1;
        self.before = Some(self.owed.len());
        debug_assert!(out.len() >= HEAD_BYTES, "it ends with a request");
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::{Item, Kind};
    use crate::machine::FULL_SIZE;
    use crate::symbols::Refusal;

    fn requests(all: &[(Request<'_>, bool)]) -> Vec<u8> {
        let mut out = Vec::new();
        all.iter().for_each(|(request, wants)| put(&mut out, request, *wants));
        out
    }

    fn hello() -> Vec<u8> {
        requests(&[(Request::Hello { version: protocol::VERSION, token: b"" }, false)])
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
        let mut agent = Agent::new(Limits::default());
        let (mut first, one) = display();
        let drawn = requests(&[
            (Request::DefineSymbol(7), false),
            (Request::AddItem(line(1), b""), false),
            (Request::AddItem(Item::drawn(Kind::Text, 2, (0, 0), (0, 0)), b"held"), false),
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
        assert!(matches!(answers(&back)[..], [Answer::Welcome { .. }, Answer::Done, Answer::Synced { token: 5, .. }]));
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
        assert!(matches!(told[..], [Answer::Done, Answer::Synced { token: 6, .. }, Answer::Credit(_)]), "{told:?}");
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
        let refused = Answer::Refused { request: 18, why: Refusal::NoSymbol as u8 };
        assert_eq!(answers(&back), [Answer::Done, refused]);
        assert!(agent.owed.is_empty());
    }

    #[test]
    fn who_does_not_say_hello_is_no_client() {
        let mut agent = Agent::new(Limits::default());
        assert_eq!(agent.from_client(&requests(&[(Request::EndSymbol, false)])), Err(Ends::NotHello));
        assert!(agent.again().is_empty());
    }
}
