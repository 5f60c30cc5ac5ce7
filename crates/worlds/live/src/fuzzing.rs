//! Gives a fuzz target access to the private parser of byte streams.

use crate::buffers::LiveThreadBuffers;
use crate::cancel::LiveCancelFlags;
use crate::error::Result;
use crate::files::AgentFileDirectory;
use crate::stacks;
use crate::stacks::contract::LiveConnection;
use socket2::{Domain, Socket, Type};
use stackline_core::plan::DataAccess;
use stackline_endpoint::BulkDirection;
use std::io::Write;
use std::net::Shutdown;
use std::sync::Arc;

/// Feeds `bytes` (at most the first 64 KiB, which fit a socket's buffer), followed by the end of the stream, to the client of a far end's
/// protocol: the first byte says which, and the rest answers a call, a second one, and 100 bytes of data.
///
/// # Errors
/// The error that the client reports for these bytes.
pub fn far_end(bytes: &[u8]) -> Result<()> {
    let io = |error| crate::error::io_error("a socket pair", &error);
    let (which, answer) = bytes.split_first().unwrap_or((&0, &[]));
    let (near, mut far) = Socket::pair(Domain::UNIX, Type::STREAM, None).map_err(io)?;
    far.write_all(&answer[..answer.len().min(1 << 16)])
        .and_then(|()| far.shutdown(Shutdown::Write))
        .map_err(io)?;
    stacks::answer_far_end(usize::from(*which), near)
}

/// Feeds `bytes` as datagrams, each behind a byte that is its length, to the client of a far end's protocol in datagrams: the first byte
/// says which, and the rest answers two calls.
///
/// # Errors
/// The last error that the client reports for these datagrams.
pub fn far_end_in_datagrams(bytes: &[u8]) -> Result<()> {
    let (which, answers) = bytes.split_first().unwrap_or((&0, &[]));
    stacks::answer_in_datagrams(usize::from(*which), answers)
}

/// Feeds `bytes` (at most the first 64 KiB, which fit a socket's buffer), followed by the end of the stream, to a responder that awaits
/// a call, a bulk put and a disconnect, with data units of `unit` bytes. Returns how many data units it received.
///
/// # Errors
/// The error that the stream's operations report for these bytes.
pub fn stream(bytes: &[u8], unit: usize) -> Result<u64> {
    let io = |error| crate::error::io_error("a socket pair", &error);
    let (near, mut far) = Socket::pair(Domain::UNIX, Type::STREAM, None).map_err(io)?;
    far.write_all(&bytes[..bytes.len().min(1 << 16)])
        .and_then(|()| far.shutdown(Shutdown::Write))
        .map_err(io)?;
    let memory = DataAccess::Memory;
    let mut buffers = LiveThreadBuffers::new(
        Arc::new(LiveCancelFlags::default()),
        &AgentFileDirectory::default(),
        &memory,
        &memory,
        unit,
    )?;
    let mut stream = stacks::stream_over(near)?;
    let called = u64::from(stream.await_call(unit, &mut buffers)?);
    let units = if stream.await_start_bulk(BulkDirection::Put, &mut buffers)? {
        stream.receive(unit, 1000, &mut buffers)?
    } else {
        0
    };
    stream.await_stop_bulk(BulkDirection::Put, &mut buffers)?;
    stream.await_disconnect(&mut buffers)?;
    Ok(called + units)
}

#[cfg(test)]
mod tests {
    use super::{far_end, far_end_in_datagrams, stream};
    use crate::recording::ONE_RECORDS;

    #[test]
    fn a_client_takes_an_answer_and_reports_the_lack_of_the_next() {
        let _alone = ONE_RECORDS.lock();
        for bytes in [
            &b"\0HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"[..],
            b"\x01$2\r\nhi\r\n",
            b"\x03INFO {}\r\nPONG\r\nPONG\r\n",
            b"\x0e\x20\x02\0\0\xd0\0",
            b"\x05R\0\0\0\x08\0\0\0\0Z\0\0\0\x05IZ\0\0\0",
        ] {
            let error = far_end(bytes).unwrap_err().message;
            assert!(error.contains("closed the connection within"), "{error}");
        }
    }

    /// What servers say; the first byte is the protocol.
    const CONVERSATIONS: &[&[u8]] = &[
        b"\0HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 204 No\r\n\r\nHTTP/1.0 200 OK\r\n\r\nrest",
        b"\0HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nhel\r\n0\r\nT: x\r\n\r\nHTTP/1.1 302 F\r\n\r\n",
        b"\x01*2\r\n$2\r\nhi\r\n:1\r\n%1\r\n+k\r\n_\r\n-ERR no\r\n",
        b"\x03INFO {\"max_payload\":9}\r\nPING\r\nPONG\r\nPONG\r\nHMSG a.1 1 r 12 15\r\nNATS/1.0\r\n\r\nabc\r\nMSG a 2 3\r\nabc\r\n-ERR \'no\'\r\n",
        b"\x0e\x20\x02\0\0\xd0\0\x40\x02\0\x01\x32\x08\0\x01a\0\x07abc\x62\x02\0\x07\x50\x02\0\x02\x70\x02\0\x02",
        b"\x05R\0\0\0\x08\0\0\0\0S\0\0\0\x06a\0Z\0\0\0\x05IT\0\0\0\x05xD\0\0\0\x06abC\0\0\0\x04Z\0\0\0\x05IE\0\0\0\x0cSE\0C1\0M\0\0",
        b"\x06\x45\0\0\0\x0a8\0\x01\0\0\0ABCDEFGH\0\xff\xff\x2d\x02\0\xff\xff\x15\0\0\0\0\0\0\0\0\0\0IJKLMNOPQRST\0caching_sha2_password\0\
      \x02\0\0\x02\x01\x03\x07\0\0\x03\0\0\0\x02\0\0\0\x01\0\0\x01\x01\x01\0\0\x02x\x05\0\0\x03\xfe\0\0\x0a\0\x01\0\0\x04y",
        b"\x10\x45\0\0\0\x0a8\0\x01\0\0\0ABCDEFGH\0\xff\xff\x2d\x02\0\xff\xff\x15\0\0\0\0\0\0\0\0\0\0IJKLMNOPQRST\0caching_sha2_password\0\
      \x02\0\0\x02\x01\x03\x07\0\0\x03\0\0\0\x02\0\0\0\x0c\0\0\x01\0\x07\0\0\0\x01\0\0\0\0\0\0\x02\0\0\x02xy\x05\0\0\x03\xfe\0\0\x02\0\
      \x01\0\0\x01\x01\x01\0\0\x02x\x05\0\0\x03\xfe\0\0\x02\0\x02\0\0\x04\0y\x05\0\0\x05\xfe\0\0\x02\0",
        b"\x13\0\x1a\0\x01\x81\x80\0\x01\0\0\0\0\0\0\x04path\0\0\x01\0\x01\0\x03abc",
        b"\x07220-hi\r\nthere\r\n220 hi\r\n331 who?\r\n230 in\r\n200 I\r\n200 ok\r\n",
    ];

    proptest::proptest! {
        #[test]
        fn whatever_a_server_says_is_an_answer_or_an_error(
            which in 0_usize..CONVERSATIONS.len(),
            changes in proptest::collection::vec((0_usize..120, proptest::num::u8::ANY), 0..6),
        ) {
            let _alone = ONE_RECORDS.lock();
            let mut bytes = CONVERSATIONS[which].to_vec();
            for (at, byte) in changes {
                if let Some(place) = bytes.get_mut(at).filter(|_| at > 0) {
                    *place = byte;
                }
            }
            let _ = far_end(&bytes);
        }
    }

    proptest::proptest! {
        #[test]
        fn any_datagrams_are_answers_or_errors(
            which in 0_u8..5,
            lengths in proptest::collection::vec(0_u8..80, 0..6),
            bytes in proptest::collection::vec(proptest::num::u8::ANY, 400),
        ) {
            let mut datagrams = vec![which];
            for (length, bytes) in lengths.iter().zip(bytes.chunks(80)) {
                datagrams.push(*length);
                datagrams.extend_from_slice(&bytes[..usize::from(*length)]);
            }
            let _ = far_end_in_datagrams(&datagrams);
        }
    }

    #[test]
    fn a_stream_is_what_its_bytes_say() {
        let _alone = ONE_RECORDS.lock();
        assert_eq!(stream(b"", 4).ok(), Some(0));
        assert_eq!(stream(b"call", 4).ok(), Some(1));
        assert_eq!(
            stream(b"callSunit", 4).ok(),
            Some(2),
            "a control byte may be taken with the units before it"
        );
        assert!(stream(b"callSunit!", 4).is_err(), "more than whole units");
        assert!(stream(b"cal", 4).is_err(), "a torn data unit");
    }
}
