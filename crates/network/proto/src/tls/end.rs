//! One end of a session. Like all machines here it is `handle` and `poll`; it has no deadline, as TLS has no timer.

use super::flights::{TICKETS, TlsFlight, TlsTerms, flights, tickets};
use super::records::{TlsRecord, TlsRecordContent, close_notify, records_of};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// One end of a session.
#[derive(Clone, Debug)]
pub struct TlsEnd {
    terms: TlsTerms,
    is_client: bool,
    resumed: bool,
    flights: Vec<TlsFlight>,
    /// The flight whose turn it is.
    turn: usize,
    /// Records to be sent.
    outgoing: VecDeque<TlsRecord>,
    /// Tickets that have come and were not taken.
    tickets: u32,
    /// Bytes of data that have come and were not taken.
    readable: u64,
    /// Whether the peer has said that it sends no more.
    is_ended: bool,
    /// Whether this end has.
    is_closed: bool,
}

impl TlsEnd {
    /// An end before the handshake; both ends have to agree on `resumed`.
    #[must_use]
    pub fn new(terms: TlsTerms, is_client: bool, resumed: bool) -> Self {
        let mut end = Self {
            terms,
            is_client,
            resumed,
            flights: flights(&terms, resumed),
            turn: 0,
            outgoing: VecDeque::new(),
            tickets: 0,
            readable: 0,
            is_ended: false,
            is_closed: false,
        };
        end.speak();
        end
    }

    /// Whether the handshake is done.
    #[must_use]
    pub fn is_established(&self) -> bool {
        self.turn == self.flights.len()
    }

    /// Whether the session is that of an earlier connection.
    #[must_use]
    pub const fn is_resumed(&self) -> bool {
        self.resumed
    }

    /// Whether the peer sends no more data.
    #[must_use]
    pub const fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// Whether this end sends no more data.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Takes at most `most` bytes of the data that has come. Returns how many.
    pub fn take(&mut self, most: u64) -> u64 {
        let taken = self.readable.min(most);
        self.readable -= taken;
        taken
    }

    /// Takes the tickets that have come.
    pub const fn take_tickets(&mut self) -> u32 {
        core::mem::replace(&mut self.tickets, 0)
    }

    /// A whole record has come. Data before the end of the handshake and after close_notify is dropped, as an end of TLS refuses it.
    pub fn handle(&mut self, record: TlsRecord) {
        match record.content {
            TlsRecordContent::Handshake { ends_flight } => {
                let awaits = self
                    .flights
                    .get(self.turn)
                    .is_some_and(|flight| flight.is_clients != self.is_client);
                if ends_flight && awaits {
                    self.turn += 1;
                    self.speak();
                }
            }
            TlsRecordContent::Tickets(tickets) => self.tickets += tickets,
            TlsRecordContent::Data(bytes) if self.is_established() && !self.is_ended => {
                self.readable += bytes;
            }
            TlsRecordContent::Data(_) => {}
            TlsRecordContent::CloseNotify => self.is_ended = true,
        }
    }

    /// The next record to send.
    pub fn poll(&mut self) -> Option<TlsRecord> {
        self.outgoing.pop_front()
    }

    /// Data that is written at once.
    pub fn write(&mut self, bytes: u64) {
        if self.is_established() && !self.is_closed {
            self.outgoing.extend(records_of(self.terms.version, bytes));
        }
    }

    /// Nothing more is sent: close_notify, once.
    pub fn close(&mut self) {
        if self.is_established() && !self.is_closed {
            self.outgoing.push_back(close_notify(self.terms.version));
        }
        self.is_closed = true;
    }

    /// Sends the flights whose turn it is, and the server's tickets behind the last.
    fn speak(&mut self) {
        while let Some(flight) = self.flights.get(self.turn)
            && flight.is_clients == self.is_client
        {
            let last = flight.records.len().saturating_sub(1);
            let records = flight.records.iter().enumerate();
            let records = records.map(|(at, wire_bytes)| TlsRecord {
                wire_bytes: *wire_bytes,
                content: TlsRecordContent::Handshake {
                    ends_flight: at == last,
                },
            });
            self.outgoing.extend(records);
            self.turn += 1;
        }
        if self.is_established() && !self.is_client {
            let tickets = tickets(&self.terms).into_iter();
            self.outgoing.extend(tickets.map(|wire_bytes| TlsRecord {
                wire_bytes,
                content: TlsRecordContent::Tickets(TICKETS),
            }));
        }
    }
}
