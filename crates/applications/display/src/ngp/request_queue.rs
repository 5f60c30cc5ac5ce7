//! Requests that wait to be sent by a client that prefers the newest picture to every single one: a change of an item replaces an earlier
//! change of the same item that still waits. The display ends in the same state, but states in between may not be seen, and batches may be
//! seen in part.
//!
//! The numbers of requests and their total bytes stay the same, so credit and the numbers of other requests remain right: the replacing
//! change is sent once more for each that it replaced, which changes nothing. A change that is refused may be refused under a later number.

use crate::protocol::{self, DisplayRequest};
use std::collections::{BTreeMap, VecDeque};

/// A request, and how many times it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NgpWaitingRequest {
    pub(super) request: Vec<u8>,
    pub(super) times: u16,
}

/// Requests that wait to be sent; a newer change of an item replaces an older one.
#[derive(Debug, Default)]
pub struct NgpRequestQueue {
    requests: VecDeque<NgpWaitingRequest>,
    /// The number of queue entries that have been taken.
    left: u64,
    /// The position of the waiting change of each item, counted from the first entry ever, since the last request that changes may not
    /// overtake.
    places: BTreeMap<u32, u64>,
    /// The beginning of a request whose rest has not come.
    rest: Vec<u8>,
    /// Bytes of the waiting requests.
    bytes: usize,
}

impl NgpRequestQueue {
    /// Bytes of the waiting requests.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether no request waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Appends requests.
    pub fn push(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
        let rest = std::mem::take(&mut self.rest);
        let mut at = 0;
        while let Ok(Some((request, wants, length))) = protocol::parse_request(&rest[at..]) {
            self.one(&request, wants, &rest[at..at + length]);
            at += length;
        }
        if protocol::parse_request(&rest[at..]).is_err() {
            // Bytes that are not a request go on, so that the display refuses them.
            self.wait(&rest[at..]);
            at = rest.len();
        }
        self.rest = rest[at..].to_vec();
    }

    fn one(&mut self, request: &DisplayRequest<'_>, wants: bool, bytes: &[u8]) {
        match request {
            DisplayRequest::ChangeItem(item, _) if !wants => {
                if !self.supersede(item.id, bytes) {
                    self.places
                        .insert(item.id, self.left + self.requests.len() as u64);
                    self.wait(bytes);
                }
            }
            DisplayRequest::BeginBatch | DisplayRequest::EndBatch if !wants => self.wait(bytes),
            _ => {
                self.places.clear();
                self.wait(bytes);
            }
        }
    }

    fn wait(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len();
        self.requests.push_back(NgpWaitingRequest {
            request: bytes.to_vec(),
            times: 1,
        });
    }

    /// Replaces a waiting change of the same item and length. Returns false if there is none.
    fn supersede(&mut self, item: u32, bytes: &[u8]) -> bool {
        let place = self
            .places
            .get(&item)
            .and_then(|place| place.checked_sub(self.left));
        let waits = place.and_then(|place| self.requests.get_mut(place as usize));
        let Some(waits) =
            waits.filter(|waits| waits.request.len() == bytes.len() && waits.times < u16::MAX)
        else {
            return false;
        };
        waits.request.copy_from_slice(bytes);
        waits.times += 1;
        true
    }

    /// Takes the next request to send.
    pub(super) fn take(&mut self) -> Option<NgpWaitingRequest> {
        let next = self.requests.pop_front()?;
        self.left += 1;
        self.bytes -= next.request.len();
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::{DisplayItem, DisplayItemKind};
    use crate::protocol::write_request;

    fn change(id: u32, at: i16) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_request(
            &mut bytes,
            &DisplayRequest::ChangeItem(
                DisplayItem::drawn(DisplayItemKind::Vector, id, (at, 0), (at, 9)),
                b"",
            ),
            false,
        );
        bytes
    }

    fn other(request: &DisplayRequest<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_request(&mut bytes, request, false);
        bytes
    }

    fn all(waiting: &mut NgpRequestQueue) -> Vec<(Vec<u8>, u16)> {
        std::iter::from_fn(|| waiting.take())
            .map(|waits| (waits.request, waits.times))
            .collect()
    }

    #[test]
    fn the_newest_change_takes_the_place_of_one_that_waits_and_passes_batches_alone() {
        let [begin, end] =
            [DisplayRequest::BeginBatch, DisplayRequest::EndBatch].map(|request| other(&request));
        let edit = other(&DisplayRequest::EditSymbol(2));
        let mut waiting = NgpRequestQueue::default();
        let pieces = [
            &begin,
            &change(1, 0),
            &change(2, 0),
            &end,
            &begin,
            &change(1, 5),
            &end,
            &edit,
            &change(1, 9),
        ];
        // In whatever pieces it comes.
        pieces
            .iter()
            .flat_map(|piece| piece.chunks(7))
            .for_each(|piece| waiting.push(piece));
        let once = |bytes: &[u8]| (bytes.to_vec(), 1);
        let expected = vec![
            once(&begin),
            (change(1, 5), 2),
            once(&change(2, 0)),
            once(&end),
            once(&begin),
            once(&end),
            once(&edit),
            once(&change(1, 9)),
        ];
        assert_eq!(all(&mut waiting), expected);
        // What has left is not changed any more.
        waiting.push(&change(1, 9));
        waiting.push(&change(1, 10));
        assert_eq!(all(&mut waiting), [(change(1, 10), 2)]);
        waiting.push(&change(1, 11));
        assert_eq!(all(&mut waiting), [(change(1, 11), 1)]);
    }
}
