//! Tells what a connection does as events while somebody records: what leaves and why, what is missing, timers. It never
//! touches what it tells of; while nobody records it costs one load.

use stackline_events::{Keyword, Value, recorder, scope};
use stackline_proto::blast::told::{Deed, Teller};
use stackline_proto::blast::{Header, Output};
use std::fmt;

static SEND: Keyword = Keyword::new(Deed::Sends.keyword());
static RETRANSMIT: Keyword = Keyword::new(Deed::Repeats.keyword());
static TIMER: Keyword = Keyword::new(Deed::Timer.keyword());
static NAK: Keyword = Keyword::new(Deed::Misses.keyword());
static ACK: Keyword = Keyword::new(Deed::Has.keyword());

/// What is remembered of a connection to tell of it.
#[derive(Default)]
pub(crate) struct Told(Option<Teller>);

impl fmt::Debug for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "told" } else { "untold" })
    }
}

impl Told {
    /// A packet has arrived, or the first of a row.
    #[inline]
    pub(crate) fn arrived(&mut self, header: &Header) {
        if recorder::on() {
            self.0.get_or_insert_default().arrived(header);
        }
    }

    /// Something leaves; `packet` is the size of a full packet's data.
    #[inline]
    pub(crate) fn leaves(&mut self, output: &Output, packet: u32) {
        if recorder::on() {
            self.0.get_or_insert_default().leaves(output, packet, tell);
        }
    }
}

fn tell(told: stackline_proto::blast::told::Told) {
    let keyword = match told.deed {
        Deed::Sends => &SEND,
        Deed::Repeats => &RETRANSMIT,
        Deed::Timer => &TIMER,
        Deed::Misses => &NAK,
        Deed::Has => &ACK,
    };
    let (own, peer) = scope::streams();
    let stream = if told.deed.is_own() { own } else { peer };
    let values = [Value::Absent, stream.into(), told.offset.into(), told.bytes.into(), Value::Text(told.cause)];
    recorder::emit(keyword, &values);
}
