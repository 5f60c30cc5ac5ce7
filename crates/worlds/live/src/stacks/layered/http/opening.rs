//! How a client opens a connection of HTTP.

use super::body::OutgoingBody;
use super::driver::{HttpDriver, HttpWire};
use super::style::HttpWindows;
use crate::error::Result;
use crate::stacks::byte_channel::ChannelEnd as _;
use crate::stacks::layered::wire::LayeredWire;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::TokioIo;
use std::collections::BTreeMap;

/// hyper's own windows of HTTP/2, of a stream and of the connection, bytes.
pub(super) const WINDOWS: HttpWindows = HttpWindows {
    stream: 2 << 20,
    connection: 5 << 20,
};

/// What the initiator has of a connection of HTTP/2.
pub(crate) type Http2Sender = http2::SendRequest<OutgoingBody>;

/// A connection of the initiator that is open.
pub(crate) struct OpenedHttp<S> {
    pub(crate) driver: HttpDriver,
    pub(crate) sender: S,
    pub(crate) is_over_tls: bool,
    /// The settings of what is below HTTP, and its windows.
    pub(crate) below: BTreeMap<String, String>,
}

/// Opens HTTP/2 over a wire, with the library's own windows unless others are given.
pub(crate) fn open_http2(
    mut driver: HttpDriver,
    wire: LayeredWire,
    windows: Option<HttpWindows>,
) -> Result<OpenedHttp<Http2Sender>> {
    let is_over_tls = matches!(wire, LayeredWire::Tls(_));
    let mut below = wire.settings();
    let mut builder = http2::Builder::new(driver.executor());
    if let Some(windows) = windows {
        below.extend(windows.settings());
        builder
            .initial_stream_window_size(windows.stream)
            .initial_connection_window_size(windows.connection);
    }
    let io = TokioIo::new(HttpWire::new(wire, &driver)?);
    let mut handshake = Box::pin(builder.handshake(io));
    let opened = driver.until_alone(|context| handshake.as_mut().poll(context))?;
    let (sender, connection) = opened.map_err(|e| driver.failure(&e))?;
    driver.adopt(connection);
    driver.flush()?;
    Ok(OpenedHttp {
        driver,
        sender,
        is_over_tls,
        below,
    })
}

/// Opens HTTP/1.1 over a wire.
pub(super) fn open_http1(
    mut driver: HttpDriver,
    wire: LayeredWire,
) -> Result<OpenedHttp<http1::SendRequest<OutgoingBody>>> {
    let is_over_tls = matches!(wire, LayeredWire::Tls(_));
    let below = wire.settings();
    let io = TokioIo::new(HttpWire::new(wire, &driver)?);
    let mut handshake = Box::pin(http1::handshake(io));
    let opened = driver.until_alone(|context| handshake.as_mut().poll(context))?;
    let (sender, connection) = opened.map_err(|e| driver.failure(&e))?;
    driver.adopt(connection);
    driver.flush()?;
    Ok(OpenedHttp {
        driver,
        sender,
        is_over_tls,
        below,
    })
}
