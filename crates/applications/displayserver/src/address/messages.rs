//! `ikp:HOST:PORT`: V's messages.

use super::host_port::HostPortScheme;
use super::scheme::DisplayCarriage;
use super::variants::DisplayAddress;
use crate::message_stream::DisplayMessageStream;
use crate::stream::DisplayStream;
use stackline_core::error::Error;

pub(super) static MESSAGES: HostPortScheme = HostPortScheme {
    prefix: "ikp:",
    expected: "expected HOST:PORT after `ikp:`",
    address: DisplayAddress::Messages,
    connect: |place| DisplayMessageStream::connect(place).map(DisplayStream::Messages),
    listen: |_, _| {
        Err(Error::input("V messages have no connections to listen for").hint(
            "serve a display over them with `display serve --listen ikp:HOST:PORT`; other programs listen on HOST:PORT or unix:PATH",
        ))
    },
    carriage: DisplayCarriage::Messages,
    is_behind_server: false,
};
