//! Blocks as blasts (Zwaenepoel 1985): what is said of a block goes over the connection, its data as blasts beside it, out of the
//! server's memory and straight into the client's. The next block begins when all of one is there: a round trip lies between two.
//!
//! It decides nothing: which block is next is the machine's to say, what is sent again `stackline_transfer`'s.

use stackline_blocks::wire::message::Message;
use stackline_blocks::wire::server_messages::BlockHead;
use stackline_core::time::Duration;
use stackline_guard::stop::StopSwitch;
use stackline_transfer::{
    BlastChannel, BlastChannelListener, BlastChannelOptions, Error, Interrupt,
};
use std::io::{ErrorKind, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream};

/// How long a side may take nothing, or say nothing, in the midst of a block.
const PATIENCE: Duration = Duration(60_000_000_000);

fn options(session: u128) -> BlastChannelOptions {
    let mut options = BlastChannelOptions {
        token: session.to_be_bytes(),
        ..BlastChannelOptions::default()
    };
    options.blast.patience = PATIENCE;
    options
}

fn failed(error: Error) -> std::io::Error {
    match error {
        Error::Io(_, error) => error,
        other => std::io::Error::new(ErrorKind::BrokenPipe, other.to_string()),
    }
}

/// The server's end.
#[derive(Debug)]
pub(crate) struct BlockBlastSender {
    channel: BlastChannel,
}

impl BlockBlastSender {
    /// To where a client waits, until it goes or `stop` is thrown.
    ///
    /// # Errors
    /// When nobody answers there.
    pub(crate) fn open(
        to: SocketAddr,
        session: u128,
        connection: &TcpStream,
        stop: &StopSwitch,
    ) -> std::io::Result<Self> {
        let (connection, stop) = (connection.try_clone()?, stop.clone());
        let interrupt = Interrupt::new(move || stop.is_stopped() || is_closed(&connection));
        let options = BlastChannelOptions {
            interrupt: Some(interrupt),
            ..options(session)
        };
        Ok(Self {
            channel: BlastChannel::connect(to, &options).map_err(failed)?,
        })
    }

    /// Sends a block; when it returns, the client has it.
    ///
    /// # Errors
    /// When the client is gone, or takes nothing for a minute.
    pub(crate) fn block(
        &mut self,
        mut connection: &TcpStream,
        head: &BlockHead,
        data: &[u8],
    ) -> std::io::Result<()> {
        connection.write_all(&Message::from(head.clone()).bytes())?;
        self.channel.send(data).map_err(failed)
    }
}

/// Whether the other side has closed.
fn is_closed(connection: &TcpStream) -> bool {
    use nix::sys::socket::{MsgFlags, recv};
    use std::os::fd::AsRawFd as _;
    let looked = recv(
        connection.as_raw_fd(),
        &mut [0],
        MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT,
    );
    !matches!(
        looked,
        Ok(1) | Err(nix::errno::Errno::EAGAIN | nix::errno::Errno::EINTR)
    )
}

/// Where a client waits for a server's blocks.
pub(crate) struct Landing {
    listener: BlastChannelListener,
}

impl Landing {
    /// At a free port of that address.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn open(at: IpAddr, session: u128) -> std::io::Result<Self> {
        Ok(Self {
            listener: BlastChannelListener::bind(SocketAddr::new(at, 0), &options(session))
                .map_err(failed)?,
        })
    }

    /// Its port.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn port(&self) -> std::io::Result<u16> {
        Ok(self.listener.local().map_err(failed)?.port())
    }

    /// Waits for the server, until `over` says that it will not come.
    ///
    /// # Errors
    /// That it is over.
    pub(crate) fn accept(
        mut self,
        over: impl Fn() -> bool + Send + Sync + 'static,
    ) -> std::io::Result<Landed> {
        self.listener.interrupted_by(Interrupt::new(over));
        let channel = self.listener.accept().map_err(failed)?;
        Ok(Landed {
            channel,
            _listener: self.listener,
        })
    }
}

/// The client's end.
pub(crate) struct Landed {
    channel: BlastChannel,
    /// Packets of a connection come to its own socket once it is there; the listener's keeps the port.
    _listener: BlastChannelListener,
}

impl Landed {
    /// Fills memory with the data of the next block.
    ///
    /// # Errors
    /// When the server is gone, or says nothing for a minute.
    pub(crate) fn block(&mut self, into: &mut [u8]) -> std::io::Result<()> {
        match self.channel.receive_into(into).map_err(failed)? {
            got if got == into.len() => Ok(()),
            _ => Err(ErrorKind::UnexpectedEof.into()),
        }
    }
}
