//! V's message passing over UDP: Send, Receive, Reply, MoveTo, MoveFrom, on the calling thread.
//!
//! A [`Client`] sends a message and is blocked until the reply. With the message it may grant two segments of its memory for
//! that time ([`Segments`]): one the server may read, one it may write. A [`Server`] receives [`Request`]s from many clients,
//! moves data to and from what was granted, and replies. What a server moves to a client lands in the client's memory
//! straight from the kernel.
//!
//! ```
//! use stackline_transfer::ikp::{Client, Options, Segments, Server};
//!
//! let mut server = Server::bind("127.0.0.1:0".parse()?, &Options::default())?;
//! let address = server.local()?;
//! let serving = std::thread::spawn(move || {
//!     let mut request = server.receive()?;
//!     assert_eq!(request.message(), b"a page, please");
//!     request.move_to(0, &[7; 4096])?;
//!     request.reply(b"here")
//! });
//!
//! let mut client = Client::connect(address, &Options::default())?;
//! let (mut page, mut reply) = ([0; 4096], [0; 32]);
//! let bytes = client.send(b"a page, please", Segments::writable(&mut page), &mut reply)?;
//! assert_eq!(&reply[..bytes], b"here");
//! assert_eq!(page, [7; 4096]);
//! serving.join().expect("no panic")?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How much fits where
//!
//! A packet holds 1024 bytes of data as in V ([`Protocol::packet`]) and a message of 32 bytes beside them; a longer message
//! takes from the data's room. What a message leaves of its packet is used: the first bytes of the readable segment travel with the message, and [`Request::reply_with`] puts
//! data into the reply. So a small call is one packet each way, and one system call on each side for each. Segments are up
//! to 4 GiB.
//!
//! # What is promised
//!
//! * A message whose send returned has been received and replied to, and all that the server moved and replied is there. Of
//!   the writable segment, bytes the server did not write are undefined: packets are received into it before it is known
//!   whether they belong there.
//! * With [`Protocol::once`] (the default) a message is delivered once, for as long as the server remembers the client
//!   ([`Protocol::memory`]; longer than the clients' patience). Without, it is delivered at least once, as in V: a reply
//!   that is lost means that the message is delivered again. Either way, data of two deliveries is never mixed.
//! * A message whose send failed may have been received or not.
//! * A server answers whoever repeats a message while it moves, replies or receives. One that does something else for longer
//!   than its clients' patience (10 s by default) loses them; see [`Server::attend`].
//!
//! Nothing is encrypted, and who knows a client's address and number can speak in its name.

mod client;
mod error;
mod options;
mod server;
mod table;

pub use client::{Client, Segments};
pub use error::Error;
pub use options::{Options, Protocol};
pub use server::{Request, Server, Ticket};
pub use table::Refused;

use crate::carrier::{self, Carrier, Head, LOOK_NS, Run};
use crate::options::Interrupt;
use crate::train::{self, PACKETS};
use stackline_core::time::{Duration, Instant};
use stackline_proto::blast::{HEADER, Header};
use stackline_proto::ikp;
use std::io::{self, ErrorKind};
use std::time;

/// Whoever may end the operation is asked so often, and so long a wait is at most.
const LOOK: Duration = Duration(LOOK_NS);

/// A clock that starts when it is made.
#[derive(Clone, Copy, Debug)]
struct Clock(time::Instant);

impl Clock {
    fn start() -> Self {
        Self(time::Instant::now())
    }

    fn now(&self) -> Instant {
        Instant(1 + u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX / 2))
    }
}

/// Heads of packets, and whom to ask while they do not go out.
struct Out {
    heads: Vec<Head>,
    interrupt: Option<Interrupt>,
}

impl Out {
    fn new(interrupt: Option<Interrupt>) -> Self {
        Self { heads: vec![Head::EMPTY; PACKETS], interrupt }
    }

    fn look(&self) -> Result<(), Error> {
        let asked = self.interrupt.as_ref().is_some_and(Interrupt::is_asked);
        if asked { Err(Error::Interrupted) } else { Ok(()) }
    }

    /// One packet.
    fn packet(&mut self, carrier: &mut impl Carrier, header: &Header, payload: &[u8]) -> Result<(), Error> {
        self.heads[0].0[..HEADER].copy_from_slice(&header.write());
        let run = Run { head: HEADER, heads: &self.heads[..1], payload, each: payload.len() };
        self.put(carrier, run)
    }

    /// Packets of a move whose data this is.
    fn run(&mut self, carrier: &mut impl Carrier, run: &ikp::Run, data: &[u8]) -> Result<(), Error> {
        let packets = run.count() as usize;
        for (n, head) in self.heads[..packets].iter_mut().enumerate() {
            head.0[..HEADER].copy_from_slice(&run.header(n as u32).write());
        }
        let each = run.span(0).1 as usize;
        self.put(carrier, Run { head: HEADER, heads: &self.heads[..packets], payload: data, each })
    }

    /// What the carrier does not take at once is lost to the protocol, which sends it again; a queue that stays full is
    /// waited for inside of the carrier.
    fn put(&self, carrier: &mut impl Carrier, run: Run<'_>) -> Result<(), Error> {
        let mut gone = 0;
        for _ in 0..8 {
            match carrier::send(carrier, run.after(gone)) {
                Ok(packets) => gone += packets,
                Err(error) if error.kind() == ErrorKind::Interrupted => self.look()?,
                Err(error) => return Err(Error::of("sending", error)),
            }
            if gone == run.heads.len() {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// Packets of so many bytes of data that go as one.
fn train(carrier: &impl Carrier, packet: u32) -> u32 {
    let joined = carrier.facts().joined_out;
    train::joined(packet as usize + HEADER, joined.min(PACKETS)) as u32
}

/// The part of a segment that a run is about.
fn part(run: &ikp::Run) -> (usize, usize) {
    let (from, _) = run.span(0);
    let (last, bytes) = run.span(run.count() - 1);
    (from as usize, last as usize + bytes as usize)
}

/// A signal came while packets were waited for.
fn is_interruption(error: &io::Error) -> bool {
    error.kind() == ErrorKind::Interrupted
}
