//! `udpecho`: the echo service of RFC 862 over UDP.

use super::datagrams::{DATAGRAM_TABLE, DatagramAnswer, DatagramProtocol, FarEndDatagramStack};
use crate::error::{Error, Result};
use stackline_core::catalogue::{ServiceMapping, StackTable};

pub(crate) static UDPECHO: FarEndDatagramStack = FarEndDatagramStack {
    table: &StackTable {
        name: "udpecho",
        summary: "client of a UDP echo server (RFC 862); the first 8 bytes of a request are its number",
        least_unit: NUMBER_BYTES as u64,
        largest_unit: 65_507,
        mapping: ServiceMapping(
            "\
ConnectRequest -> socket, connect
RPCCall -> send of the request, recv until it has come back; without that within `timeout` the call counts as lost
DisconnectRequest -> close",
        ),
        ..DATAGRAM_TABLE
    },
    port: 7,
    client: |_, _| Ok(Box::<UdpEcho>::default()),
};

/// The number of a request, with which it begins.
const NUMBER_BYTES: usize = 8;

#[derive(Default)]
struct UdpEcho {
    calls: u64,
    request: Vec<u8>,
}

impl DatagramProtocol for UdpEcho {
    fn request(&mut self, data: &[u8], datagram: &mut Vec<u8>) -> Result<()> {
        self.calls += 1;
        datagram.extend_from_slice(data);
        if let Some(number) = datagram.first_chunk_mut::<NUMBER_BYTES>() {
            *number = self.calls.to_be_bytes();
        }
        self.request.clone_from(datagram);
        Ok(())
    }

    fn answer(&mut self, datagram: &[u8]) -> Result<DatagramAnswer> {
        if datagram == self.request {
            return Ok(DatagramAnswer::Present);
        }
        let number = datagram.first_chunk::<NUMBER_BYTES>();
        let number = number.map_or(0, |number| u64::from_be_bytes(*number));
        if number == self.calls {
            return Err(Error::measurement(format!(
                "the server sent back {} B that differ from the {} B of the request",
                datagram.len(),
                self.request.len()
            ))
            .hint("is it an echo server?"));
        }
        Ok(if (1..self.calls).contains(&number) {
            DatagramAnswer::Earlier(self.calls - number)
        } else {
            DatagramAnswer::Stray
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_is_the_whole_request() {
        let mut echo = UdpEcho::default();
        let (mut first, mut second) = (Vec::new(), Vec::new());
        echo.request(&[7; 9], &mut first).unwrap();
        echo.request(&[7; 9], &mut second).unwrap();
        assert_eq!(second, [0, 0, 0, 0, 0, 0, 0, 2, 7]);
        assert_eq!(echo.answer(&first).unwrap(), DatagramAnswer::Earlier(1));
        assert_eq!(echo.answer(&second).unwrap(), DatagramAnswer::Present);
        assert_eq!(echo.answer(b"hello").unwrap(), DatagramAnswer::Stray);
        assert!(echo.answer(&second[..8]).is_err());
    }
}
