//! V's message passing (its interkernel protocol, `ikp`) over UDP: Send, Receive, Reply, MoveTo, MoveFrom, on the calling thread.
//!
//! An [`IkpUdpClient`] sends a message and is blocked until the reply. With the message it may grant two segments of its memory for
//! that time ([`IkpClientSegments`]): one the server may read, one it may write. An [`IkpUdpServer`] receives [`IkpRequest`]s from
//! many clients, moves data to and from what was granted, and replies. What a server moves to a client lands in the client's memory
//! straight from the kernel.
//!
//! ```
//! use stackline_transfer::ikp::{IkpUdpClient, IkpTransferOptions, IkpClientSegments, IkpUdpServer};
//!
//! let mut server = IkpUdpServer::bind("127.0.0.1:0".parse()?, &IkpTransferOptions::default())?;
//! let address = server.local()?;
//! let serving = std::thread::spawn(move || {
//!     let mut request = server.receive()?;
//!     assert_eq!(request.message(), b"a page, please");
//!     request.move_to(0, &[7; 4096])?;
//!     request.reply(b"here")
//! });
//!
//! let mut client = IkpUdpClient::connect(address, &IkpTransferOptions::default())?;
//! let (mut page, mut reply) = ([0; 4096], [0; 32]);
//! let bytes = client.send(b"a page, please", IkpClientSegments::writable(&mut page), &mut reply)?;
//! assert_eq!(&reply[..bytes], b"here");
//! assert_eq!(page, [7; 4096]);
//! serving.join().expect("no panic")?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How much fits where
//!
//! A packet holds 1024 bytes of data as in V ([`Protocol::packet`]) and a message of 32 bytes beside them; a longer message
//! takes from the data's room. What a message leaves of its packet is used: the first bytes of the readable segment travel with the
//! message, and [`IkpRequest::reply_with`] puts data into the reply. So a small call is one packet each way, and one system call on each
//! side for each. Segments are up to 4 GiB.
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
//! * While a server moves, replies or receives, it answers clients that repeat their message. If it does something else for longer
//!   than its clients' patience (10 s by default), they give up.
//!
//! Nothing is encrypted; anyone who knows a client's address and number can impersonate it.

mod client;
mod error;
mod options;
mod output;
mod request;
mod server;
mod table;

pub use client::{IkpClientSegments, IkpUdpClient};
pub use error::IkpTransferError;
pub use options::{IkpTransferOptions, Protocol};
pub use request::IkpRequest;
pub use server::IkpUdpServer;
pub use table::{RefusedIkpPackets, Ticket};
