//! A network graphics protocol (NGP) below the display's protocol (Lantz, Nowicki and Theimer 1985, section 2.3). Requests travel in
//! frames, and a definition that the other end has is named by its digest instead of being sent again. Both ends of the display's protocol
//! see the same bytes as without it.
//!
//! ```text
//! frame       what 1 | length 3 | body
//!   1 hello       to the display: "NGP1", key 16; back: the digests that it has, 16 each
//!   2 bytes       requests or answers as they are
//!   3 definition  DefineSymbol, EndSymbol, items as they are: the display's end keeps them by their digest
//!   4 known       DefineSymbol, EndSymbol, digest 16
//!   5 missing     back: digest 16        6 again: items as they are
//!   7 repeated    times 2, a request as it is
//! ```
//! A digest is the first half of the SHA-256 of the items. Definitions are kept per key, which the client chooses, so nobody can name what
//! others have sent. A client that prefers the newest picture to every single one gives up reliability with [`NgpRequestQueue`]. There are
//! no sockets here; the caller moves the bytes.

mod request_queue;

pub use request_queue::NgpRequestQueue;

use crate::machine::CREDIT;
use crate::protocol::{self, DisplayRequest, HEAD_BYTES};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The limit on the definitions kept per key, bytes.
pub const KEPT: usize = 8 << 20;
/// The limit on a definition that the client's end holds back until it is complete, bytes.
const HELD: usize = 64 << 10;
/// The largest number of digests announced in a hello.
const MOST_ANNOUNCED: usize = 1024;
/// The limit on frames that wait for a missing definition, bytes: more than a client's credit.
const WAITING: usize = 4 << 20;
/// Definitions with fewer bytes of items are always sent as they are.
const SHORT: usize = 64;
/// Bytes of a frame's header.
const FRAME: usize = 4;
/// Bytes of the longest frame body.
const LONGEST: usize = 1 << 20;
const MAGIC: [u8; 4] = *b"NGP1";
/// Bytes of a `DefineSymbol` request.
const DEFINE: usize = HEAD_BYTES + 4;
/// Bytes of an `EndSymbol` request.
const END: usize = HEAD_BYTES;

const HELLO: u8 = 1;
const BYTES: u8 = 2;
const DEFINITION: u8 = 3;
const KNOWN: u8 = 4;
const MISSING: u8 = 5;
const AGAIN: u8 = 6;
const REPEATED: u8 = 7;

/// The key under which a client's definitions are kept.
pub type NgpDefinitionKey = [u8; 16];
type NgpDefinitionDigest = [u8; 16];

fn digest(items: &[u8]) -> NgpDefinitionDigest {
    let mut digest = NgpDefinitionDigest::default();
    digest.copy_from_slice(&Sha256::digest(items)[..16]);
    digest
}

/// Why a connection has to end, in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken(&'static str);

impl Broken {
    /// The reason in words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        self.0
    }
}

/// Definitions by their digests. When [`KEPT`] is exceeded, the oldest are dropped.
#[derive(Clone, Debug, Default)]
pub struct NgpDefinitionStore {
    definitions: BTreeMap<NgpDefinitionDigest, Arc<[u8]>>,
    order: VecDeque<NgpDefinitionDigest>,
    bytes: usize,
}

impl NgpDefinitionStore {
    fn keep(&mut self, items: &[u8]) {
        let digest = digest(items);
        // A definition that is larger would push out all others and then itself.
        if items.len() > KEPT || self.definitions.contains_key(&digest) {
            return;
        }
        self.bytes += items.len();
        self.definitions.insert(digest, items.into());
        self.order.push_back(digest);
        while self.bytes > KEPT
            && let Some(oldest) = self.order.pop_front()
        {
            self.bytes -= self
                .definitions
                .remove(&oldest)
                .map_or(0, |items| items.len());
        }
    }

    fn get(&self, digest: &NgpDefinitionDigest) -> Option<Arc<[u8]>> {
        self.definitions.get(digest).cloned()
    }
}

/// The definitions of a key, shared by all its connections.
pub type SharedStore = Arc<Mutex<NgpDefinitionStore>>;

fn lock(store: &SharedStore) -> MutexGuard<'_, NgpDefinitionStore> {
    store.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Assembles frames from bytes.
#[derive(Debug, Default)]
struct NgpFrameBuffer {
    rest: Vec<u8>,
}

impl NgpFrameBuffer {
    /// Takes bytes, and returns all frames that are complete: their type and body.
    fn take(&mut self, bytes: &[u8]) -> Result<Vec<(u8, Vec<u8>)>, Broken> {
        self.rest.extend_from_slice(bytes);
        let (mut used, mut frames) = (0, Vec::new());
        while let Some([what, a, b, c]) = self
            .rest
            .get(used..)
            .and_then(|rest| rest.first_chunk())
            .copied()
        {
            let length = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
            if length > LONGEST || !(HELLO..=REPEATED).contains(&what) {
                return Err(Broken("the peer sent something other than a frame"));
            }
            let Some(body) = self.rest.get(used + FRAME..used + FRAME + length) else {
                break;
            };
            frames.push((what, body.to_vec()));
            used += FRAME + length;
        }
        self.rest.drain(..used);
        Ok(frames)
    }
}

/// Appends a frame whose body is the concatenation of `parts`.
fn put(out: &mut Vec<u8>, what: u8, parts: &[&[u8]]) {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let [_, a, b, c] = (length as u32).to_be_bytes();
    out.extend([what, a, b, c]);
    parts.iter().for_each(|part| out.extend_from_slice(part));
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    bytes
        .chunks(LONGEST)
        .for_each(|piece| put(out, BYTES, &[piece]));
}

/// The client's end of a connection.
#[derive(Debug, Default)]
pub struct Near {
    frames: NgpFrameBuffer,
    /// Requests that are not in a frame yet.
    rest: Vec<u8>,
    /// If a definition that is not complete begins at the start of `rest`: how many of its bytes have been examined.
    held: Option<usize>,
    /// The definitions that were sent with this key.
    sent: SharedStore,
    /// The digests of definitions that the display's end has.
    there: BTreeSet<NgpDefinitionDigest>,
    out: Vec<u8>,
    /// Whether the display's end has answered the hello.
    is_greeted: bool,
}

impl Near {
    /// A client's end. `sent` is shared with the other connections of the same key.
    #[must_use]
    pub fn new(key: &NgpDefinitionKey, sent: SharedStore) -> Self {
        let mut new = Self {
            sent,
            ..Self::default()
        };
        put(&mut new.out, HELLO, &[&MAGIC, key]);
        new
    }

    /// Whether the display's end has announced what it has.
    #[must_use]
    pub const fn is_greeted(&self) -> bool {
        self.is_greeted
    }

    /// Puts requests into frames. An incomplete definition is held back.
    pub fn send(&mut self, requests: &[u8]) {
        self.rest.extend_from_slice(requests);
        // `plain` is where requests begin that go as they are; complete definitions get frames of their own.
        let (mut plain, mut at) = (0, self.held.take().unwrap_or(0));
        // What was held back begins at 0.
        let mut begins = (at > 0).then_some(0);
        while let Ok(Some((request, wants, length))) = protocol::parse_request(&self.rest[at..]) {
            let next = at + length;
            begins = match (request, begins) {
                (DisplayRequest::DefineSymbol(_), _) if !wants => Some(at),
                (DisplayRequest::AddItem(..), Some(from)) if !wants && next - from <= HELD => {
                    Some(from)
                }
                (DisplayRequest::EndSymbol, Some(from)) if at - from - DEFINE >= SHORT => {
                    put_bytes_if_any(&mut self.out, &self.rest[plain..from]);
                    self.define(from, at, next);
                    plain = next;
                    None
                }
                _ => None,
            };
            at = next;
        }
        // What may become a definition is held back. Bytes that are not a message go on, so that the display refuses them.
        let ends = match begins {
            Some(from) => from,
            None if protocol::parse_request(&self.rest[at..]).is_err() => self.rest.len(),
            None => at,
        };
        put_bytes_if_any(&mut self.out, &self.rest[plain..ends]);
        self.rest.drain(..ends);
        self.held = begins.map(|from| at - from).filter(|held| *held > 0);
    }

    /// Puts waiting requests into frames until about `most` bytes are to be sent.
    pub fn send_waiting(&mut self, waiting: &mut NgpRequestQueue, most: usize) {
        let mut plain = Vec::new();
        while self.out.len() + plain.len() < most
            && let Some(next) = waiting.take()
        {
            if next.times == 1 {
                plain.extend(next.request);
                continue;
            }
            self.send(&std::mem::take(&mut plain));
            if self.held.is_none() && self.rest.is_empty() {
                put(
                    &mut self.out,
                    REPEATED,
                    &[&next.times.to_be_bytes(), &next.request],
                );
            } else {
                // A definition that is held back has to go first.
                (0..next.times).for_each(|_| self.send(&next.request));
            }
        }
        self.send(&plain);
    }

    /// Puts a definition in `rest` into a frame: its `DefineSymbol` is at `from`, its `EndSymbol` at `end..next`.
    fn define(&mut self, from: usize, end: usize, next: usize) {
        let (head, items, tail) = (
            &self.rest[from..from + DEFINE],
            &self.rest[from + DEFINE..end],
            &self.rest[end..next],
        );
        let digest = digest(items);
        // Only what can be sent again may be named: the other end may have dropped it.
        if self.there.contains(&digest) && lock(&self.sent).get(&digest).is_some() {
            put(&mut self.out, KNOWN, &[head, tail, &digest]);
            return;
        }
        put(&mut self.out, DEFINITION, &[head, tail, items]);
        let mut sent = lock(&self.sent);
        sent.keep(items);
        self.there.insert(digest);
        // Digests of definitions that are no longer kept here could not be resent, so they are forgotten.
        if self.there.len() > 2 * (sent.definitions.len() + MOST_ANNOUNCED) {
            self.there
                .retain(|digest| sent.definitions.contains_key(digest));
        }
    }

    /// Handles bytes from the display's end, and returns the answers in them.
    ///
    /// # Errors
    /// Why the connection has to end.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<Vec<u8>, Broken> {
        let mut answers = Vec::new();
        for (what, body) in self.frames.take(bytes)? {
            match what {
                BYTES => answers.extend(body),
                HELLO => {
                    self.is_greeted = true;
                    let announced = body
                        .chunks_exact(16)
                        .filter_map(|digest| NgpDefinitionDigest::try_from(digest).ok());
                    self.there.extend(announced.take(MOST_ANNOUNCED));
                }
                MISSING => {
                    let missing = NgpDefinitionDigest::try_from(body).map_err(|_| {
                        Broken("a definition reported missing has an invalid digest")
                    })?;
                    let items = lock(&self.sent)
                        .get(&missing)
                        .ok_or(Broken("a definition reported missing was never sent"))?;
                    put(&mut self.out, AGAIN, &[&items]);
                }
                _ => return Err(Broken("a display does not send definitions")),
            }
        }
        Ok(answers)
    }

    /// Whether there are bytes to send.
    #[must_use]
    pub const fn has_output(&self) -> bool {
        !self.out.is_empty()
    }

    /// Takes the bytes to send.
    pub fn output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }
}

fn put_bytes_if_any(out: &mut Vec<u8>, bytes: &[u8]) {
    if !bytes.is_empty() {
        put_bytes(out, bytes);
    }
}

/// The display's end of a connection.
#[derive(Debug, Default)]
pub struct Far {
    frames: NgpFrameBuffer,
    store: SharedStore,
    /// Frames that wait because a definition before them is missing.
    waiting: VecDeque<(u8, Vec<u8>)>,
    /// Bytes of the waiting frames' bodies.
    waiting_bytes: usize,
    /// The digest of the missing definition that was asked for.
    asked: Option<NgpDefinitionDigest>,
    is_greeted: bool,
    out: Vec<u8>,
}

impl Far {
    /// Handles bytes from the client's end, and returns the requests in them. `kept` gives the definitions of a key.
    ///
    /// # Errors
    /// Why the connection has to end.
    pub fn receive(
        &mut self,
        bytes: &[u8],
        kept: impl FnOnce(&NgpDefinitionKey) -> SharedStore,
    ) -> Result<Vec<u8>, Broken> {
        let mut requests = Vec::new();
        let mut kept = Some(kept);
        // A peer that speaks another protocol is refused at its first wrong byte.
        let mut begins = self.frames.rest.iter().chain(bytes).skip(FRAME);
        if !self.is_greeted
            && !MAGIC
                .iter()
                .all(|letter| begins.next().is_none_or(|own| own == letter))
        {
            return Err(Broken("it does not speak the network graphics protocol"));
        }
        for (what, body) in self.frames.take(bytes)? {
            match (what, self.is_greeted) {
                (HELLO, false) => {
                    let key = body
                        .strip_prefix(&MAGIC)
                        .and_then(|key| NgpDefinitionKey::try_from(key).ok());
                    let key = key.ok_or(Broken("it speaks a different protocol version"))?;
                    self.is_greeted = true;
                    self.store = kept.take().map(|kept| kept(&key)).unwrap_or_default();
                    let announced: Vec<u8> = lock(&self.store)
                        .order
                        .iter()
                        .rev()
                        .take(MOST_ANNOUNCED)
                        .flatten()
                        .copied()
                        .collect();
                    put(&mut self.out, HELLO, &[&announced]);
                }
                (_, false) => return Err(Broken("it did not authenticate")),
                (AGAIN, _) => lock(&self.store).keep(&body),
                (HELLO | MISSING, _) => {
                    return Err(Broken("a client does not send frames of this kind"));
                }
                _ => {
                    self.waiting_bytes += body.len();
                    if self.waiting_bytes > WAITING {
                        return Err(Broken(
                            "too much data is waiting for a definition that was not resent",
                        ));
                    }
                    self.waiting.push_back((what, body));
                }
            }
            self.go_on(&mut requests)?;
            // A short frame can name a long definition, but no client may send more than its credit.
            if requests.len() > 2 * CREDIT as usize {
                return Err(Broken("the client exceeded its credit"));
            }
        }
        Ok(requests)
    }

    /// Turns waiting frames into requests, up to one whose definition is missing.
    fn go_on(&mut self, requests: &mut Vec<u8>) -> Result<(), Broken> {
        while let Some((what, body)) = self
            .waiting
            .front()
            .filter(|_| requests.len() <= 2 * CREDIT as usize)
        {
            match *what {
                KNOWN => {
                    let whole = body.len() == DEFINE + END + 16;
                    let digest = body
                        .last_chunk::<16>()
                        .filter(|_| whole)
                        .ok_or(Broken("a definition is too short"))?;
                    let kept = lock(&self.store).get(digest);
                    let Some(items) = kept else {
                        if self.asked != Some(*digest) {
                            self.asked = Some(*digest);
                            put(&mut self.out, MISSING, &[digest]);
                        }
                        return Ok(());
                    };
                    requests.extend_from_slice(&body[..DEFINE]);
                    requests.extend_from_slice(&items);
                    requests.extend_from_slice(&body[DEFINE..DEFINE + END]);
                    self.asked = None;
                }
                DEFINITION => {
                    let (head, items) = body
                        .split_at_checked(DEFINE + END)
                        .ok_or(Broken("a definition is too short"))?;
                    requests.extend_from_slice(&head[..DEFINE]);
                    requests.extend_from_slice(items);
                    requests.extend_from_slice(&head[DEFINE..]);
                    lock(&self.store).keep(items);
                }
                REPEATED => {
                    let short = Broken("a repeated request is too short");
                    let (times, request) = body.split_first_chunk().ok_or(short)?;
                    let times = usize::from(u16::from_be_bytes(*times));
                    if requests.len() + times * request.len() > 2 * CREDIT as usize {
                        return Err(Broken("the client exceeded its credit"));
                    }
                    (0..times).for_each(|_| requests.extend_from_slice(request));
                }
                _ => requests.extend_from_slice(body),
            }
            self.waiting_bytes -= body.len();
            self.waiting.pop_front();
        }
        Ok(())
    }

    /// Puts answers into frames.
    pub fn send(&mut self, answers: &[u8]) {
        put_bytes_if_any(&mut self.out, answers);
    }

    /// Whether there are bytes to send.
    #[must_use]
    pub const fn has_output(&self) -> bool {
        !self.out.is_empty()
    }

    /// Takes the bytes to send.
    pub fn output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::{DisplayItem, DisplayItemKind};
    use proptest::prelude::*;

    const KEY: NgpDefinitionKey = [7; 16];

    fn definition(symbol: u32, items: std::ops::Range<i16>, wants: bool) -> Vec<u8> {
        let mut bytes = Vec::new();
        protocol::write_request(&mut bytes, &DisplayRequest::DefineSymbol(symbol), false);
        for (id, at) in items.enumerate() {
            let item = DisplayItem::drawn(DisplayItemKind::Vector, id as u32 + 1, (at, 0), (at, 9));
            protocol::write_request(&mut bytes, &DisplayRequest::AddItem(item, b""), false);
        }
        protocol::write_request(&mut bytes, &DisplayRequest::EndSymbol, wants);
        bytes
    }

    /// What reaches the display, and how many bytes it took on the way.
    fn through(
        near: &mut Near,
        far: &mut Far,
        pieces: &[&[u8]],
        kept: &SharedStore,
    ) -> (Vec<u8>, usize) {
        let (mut came, mut sent) = (Vec::new(), 0);
        for piece in pieces {
            near.send(piece);
            loop {
                let (there, back) = (near.output(), far.output());
                if there.is_empty() && back.is_empty() {
                    break;
                }
                sent += there.len();
                near.receive(&back).expect("frames");
                came.extend(far.receive(&there, |_| Arc::clone(kept)).expect("frames"));
            }
        }
        (came, sent)
    }

    #[test]
    fn a_definition_that_was_sent_is_named_and_one_that_is_forgotten_is_sent_again() {
        let (sent, kept) = (SharedStore::default(), SharedStore::default());
        let (mut near, mut far) = (Near::new(&KEY, Arc::clone(&sent)), Far::default());
        let [one, same] = [1, 2].map(|symbol| definition(symbol, 0..100, true));
        let (came, first) = through(&mut near, &mut far, &[&one], &kept);
        assert!(came == one && first > one.len());
        // The same items under another number.
        let (came, again) = through(&mut near, &mut far, &[&same], &SharedStore::default());
        assert!(came == same && again < 50, "{again}");
        // Another connection, to a display that has kept it, and to one that has forgotten.
        let mut next = Near::new(&KEY, Arc::clone(&sent));
        let (came, again) = through(&mut next, &mut Far::default(), &[b"", &one], &kept);
        assert!(came == one && next.is_greeted() && again < 80, "{again}");
        let mut forgets = Near::new(&KEY, sent);
        forgets.there.insert(digest(&one[DEFINE..one.len() - END]));
        let (came, again) = through(
            &mut forgets,
            &mut Far::default(),
            &[&one, &same],
            &SharedStore::default(),
        );
        assert!(
            came == [one.clone(), same].concat() && again < one.len() + 200,
            "{again}"
        );
    }

    #[test]
    fn what_waits_comes_as_often_as_it_was_said_and_takes_few_bytes() {
        let change = |at: i16| {
            let mut bytes = Vec::new();
            let item = DisplayItem::drawn(DisplayItemKind::Vector, 1, (at, 0), (at, 9));
            protocol::write_request(&mut bytes, &DisplayRequest::ChangeItem(item, b""), false);
            bytes
        };
        let (mut near, mut far) = (Near::new(&KEY, SharedStore::default()), Far::default());
        let mut waiting = NgpRequestQueue::default();
        (0..1000).for_each(|at| waiting.push(&change(at)));
        near.send_waiting(&mut waiting, usize::MAX);
        let sent = near.output();
        let came = far
            .receive(&sent, |_| SharedStore::default())
            .expect("frames");
        assert!(
            came == change(999).repeat(1000) && sent.len() < 60,
            "{} {}",
            came.len(),
            sent.len()
        );
        // A short frame brings no more than a client may send.
        let mut frame = Vec::new();
        put(&mut frame, REPEATED, &[&u16::MAX.to_be_bytes(), &[0; 1000]]);
        assert!(far.receive(&frame, |_| SharedStore::default()).is_err());
    }

    #[test]
    fn what_is_kept_is_bounded_and_strangers_get_nothing_of_others() {
        let mut store = NgpDefinitionStore::default();
        for at in 0..300_u32 {
            let mut items = vec![0; 64 << 10];
            items[..4].copy_from_slice(&at.to_be_bytes());
            store.keep(&items);
        }
        assert!(
            store.bytes <= KEPT
                && store.order.len() == store.definitions.len()
                && store.order.len() <= 128
        );
        let mut far = Far::default();
        assert!(
            far.receive(&[BYTES, 0, 0, 1, 0], |_| SharedStore::default())
                .is_err()
        );
        let mut far = Far::default();
        let mut frames = Vec::new();
        put(&mut frames, HELLO, &[&MAGIC, &KEY]);
        put(&mut frames, KNOWN, &[&[0; DEFINE + END], &[9; 16]]);
        (0..5).for_each(|_| put(&mut frames, BYTES, &[&vec![0; LONGEST]]));
        assert_eq!(
            far.receive(&frames, |_| SharedStore::default())
                .unwrap_err()
                .words(),
            "too much data is waiting for a definition that was not resent"
        );
    }

    proptest! {
        #[test]
        fn the_display_sees_the_same_requests_in_whatever_pieces(
            symbols in prop::collection::vec((0..4_u32, 0..6_i16, any::<bool>(), 0..3_u8), 1..20), size in 1..400_usize,
        ) {
            let mut all = Vec::new();
            for (symbol, items, wants, other) in symbols {
                match other {
                    0 => protocol::write_request(&mut all, &DisplayRequest::Sync(symbol), false),
                    1 => protocol::write_request(&mut all, &DisplayRequest::EditSymbol(symbol), wants),
                    _ => {}
                }
                let mut own = definition(symbol, 0..items, wants);
                if other == 2 {
                    // One that never ends.
                    own.truncate(own.len() - END);
                }
                all.extend(own);
            }
            // Every definition is whole at last.
            protocol::write_request(&mut all, &DisplayRequest::Sync(9), false);
            let pieces: Vec<&[u8]> = all.chunks(size).collect();
            let (came, _) = through(&mut Near::new(&KEY, SharedStore::default()), &mut Far::default(), &pieces, &SharedStore::default());
            prop_assert!(came == all, "{} of {}", came.len(), all.len());
        }

        #[test]
        fn any_bytes_are_frames_or_refused(bytes: Vec<u8>) {
            let _ = Near::default().receive(&bytes);
            let mut far = Far { is_greeted: true, ..Far::default() };
            let _ = far.receive(&bytes, |_| SharedStore::default());
        }
    }
}
