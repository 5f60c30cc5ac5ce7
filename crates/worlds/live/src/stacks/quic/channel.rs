//! The bidirectional stream of a QUIC connection as a channel of bytes.

use super::end::{QuicEnd, as_io};
use crate::error::{Error, Result};
use crate::stacks::byte_channel::{ByteChannel, ByteChannelConnection, ChannelEnd};
use crate::stacks::contract::{LiveConnection, connection_vanished};
use bytes::Bytes;
use quinn::{ConnectionError, ReadError, RecvStream, SendStream, WriteError};
use std::io;

/// A connection with its stream.
struct QuicChannel {
    end: QuicEnd,
    /// In procedures without data only the first connection has one.
    stream: Option<(SendStream, RecvStream)>,
    /// What was sent as early data, until it is known whether the server takes it.
    early_sent: Option<SentEarlyData>,
}

/// What was sent as early data.
#[derive(Default)]
struct SentEarlyData {
    pieces: Vec<Bytes>,
    bytes: usize,
}

/// Most bytes of early data: what more is sent waits for the handshake, as over TLS.
const EARLY_DATA_BYTES: usize = 16 << 10;

/// The initiator's side: opens the stream with the token.
pub(super) fn connect(end: QuicEnd) -> Result<Box<dyn LiveConnection>> {
    let early_sent = end.offers_early_data().then(SentEarlyData::default);
    let mut channel = QuicChannel {
        end,
        stream: None,
        early_sent,
    };
    if channel.end.introduces {
        let end = &channel.end;
        let opened = end.run(end.connection.open_bi())?;
        let opened = opened.map_err(|e| end.failure("opening a stream", &as_io(&e)));
        channel.stream = Some(opened?);
        let token = channel.end.settings.token;
        let sent = channel.send(Bytes::copy_from_slice(&token));
        sent.map_err(|e| channel.end.failure("opening a stream", &e))?;
    }
    Ok(Box::new(ByteChannelConnection::new(channel)))
}

/// The responder's side: accepts the stream that begins with the token.
pub(super) fn accept(end: QuicEnd) -> Result<Box<dyn LiveConnection>> {
    if !end.introduces {
        let channel = QuicChannel {
            end,
            stream: None,
            early_sent: None,
        };
        return Ok(Box::new(ByteChannelConnection::new(channel)));
    }
    let opened = end.run(end.connection.accept_bi())?;
    let (send, mut receive) = opened.map_err(|e| end.failure("accepting a stream", &as_io(&e)))?;
    let mut shown = [0; 16];
    let read = end.run(receive.read_exact(&mut shown))?;
    if read.is_err() || shown != end.settings.token {
        return Err(connection_vanished("before it had introduced itself"));
    }
    Ok(Box::new(ByteChannelConnection::new(QuicChannel {
        end,
        stream: Some((send, receive)),
        early_sent: None,
    })))
}

/// The side of a pair that has that stream of a connection which it shares.
pub(super) fn over(end: QuicEnd, send: SendStream, receive: RecvStream) -> Box<dyn LiveConnection> {
    Box::new(ByteChannelConnection::new(QuicChannel {
        end,
        stream: Some((send, receive)),
        early_sent: None,
    }))
}

/// The error of a job that was ended: [`ChannelEnd::failure`] asks the flags.
fn ended(_: Error) -> io::Error {
    io::Error::other("the job was ended")
}

impl QuicChannel {
    /// Writes into the stream.
    fn write(&mut self, bytes: Bytes) -> io::Result<Result<(), WriteError>> {
        let Some((send, _)) = &mut self.stream else {
            return Err(io::Error::other("a connection without data has no stream"));
        };
        self.end.run(send.write_chunk(bytes)).map_err(ended)
    }

    /// Waits until it is known whether the server takes early data; what it rejects is sent again, on a new stream.
    #[cold]
    fn confirm(&mut self) -> io::Result<()> {
        let Some(sent) = self.early_sent.take() else {
            return Ok(());
        };
        if !self.end.await_rejection().map_err(ended)? {
            return Ok(());
        }
        let opened = self.end.run(self.end.connection.open_bi());
        self.stream = Some(opened.map_err(ended)?.map_err(|e| as_io(&e))?);
        for bytes in sent.pieces {
            self.write(bytes)?.map_err(write_failed)?;
        }
        self.end.runtime.push();
        Ok(())
    }
}

fn write_failed(error: WriteError) -> io::Error {
    match error {
        WriteError::ConnectionLost(error) => as_io(&error),
        error => io::Error::new(io::ErrorKind::BrokenPipe, error),
    }
}

impl ByteChannel for QuicChannel {
    fn send(&mut self, bytes: Bytes) -> io::Result<()> {
        self.ask(bytes)?;
        self.end.runtime.push();
        Ok(())
    }

    fn ask(&mut self, bytes: Bytes) -> io::Result<()> {
        if let Some(sent) = &mut self.early_sent {
            if sent.bytes + bytes.len() <= EARLY_DATA_BYTES {
                sent.bytes += bytes.len();
                sent.pieces.push(bytes.clone());
            } else {
                self.confirm()?;
            }
        }
        match self.write(bytes)? {
            // It is among what is sent again.
            Err(WriteError::ZeroRttRejected) if self.early_sent.is_some() => self.confirm(),
            sent => sent.map_err(write_failed),
        }
    }

    fn receive(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let Some((_, receive)) = &mut self.stream else {
            // A connection without data ends when it is closed.
            let closed = self.end.run(self.end.connection.closed());
            return closed.map(|_| 0).map_err(ended);
        };
        let read = self.end.run(receive.read(room)).map_err(ended)?;
        if self.early_sent.is_some() {
            self.confirm()?;
            if matches!(read, Err(ReadError::ZeroRttRejected)) {
                return self.receive(room);
            }
        }
        match read {
            Ok(Some(bytes)) => {
                self.end.count(bytes as u64);
                Ok(bytes)
            }
            Ok(None) | Err(ReadError::ConnectionLost(ConnectionError::ApplicationClosed(_))) => {
                Ok(0)
            }
            Err(ReadError::ConnectionLost(error)) => Err(as_io(&error)),
            Err(error) => Err(io::Error::other(error)),
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        self.confirm()?;
        if let Some((send, _)) = &mut self.stream {
            // It may be finished, or its connection lost.
            let _ = send.finish();
            self.end.runtime.push();
        }
        Ok(())
    }

    fn close(&mut self) -> io::Result<()> {
        self.confirm()?;
        let Some((mut send, receive)) = self.stream.take() else {
            self.end.close();
            return Ok(());
        };
        let closer = self.end.leave();
        let _ = send.finish();
        // What was sent last may have to be sent again: closing waits for it, beside what comes next.
        self.end.runtime.spawn_closing(async move {
            let _ = send.stopped().await;
            drop(receive);
            if let Some(closer) = closer {
                closer.close();
            }
        });
        self.end.runtime.push();
        Ok(())
    }

    fn part(&mut self) {
        // The peer has everything, as it has ended first: nothing is lost by closing at once.
        self.end.close();
    }

    fn end(&self) -> &dyn ChannelEnd {
        &self.end
    }
}
