//! Which version of HTTP a web server chooses where a client offers HTTP/2 and HTTP/1.1 (ALPN, RFC 7301; RFC 9113, 3.2).

use super::tls_start::TlsStart;
use super::{FarEndStack, HTTPS, socket};
use crate::error::{self, Error, Result};
use crate::stacks::contract::LiveConnectParameters;
use crate::stacks::layered::wire::LayeredSocket;
use crate::stacks::server_patience::server_timeout;
use stackline_core::catalogue::OptionValue;
use stackline_core::far_end::FarEndAddress;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// The names of both versions in ALPN, the preferred one first.
const OFFERED: [&str; 2] = ["h2", "http/1.1"];

/// The version of HTTP that the web server of an address beginning with `https://` chooses, as the option `version` names it: `http2` or
/// `http1`. It takes one connection and its TLS handshake; `insecure` believes any certificate.
///
/// # Errors
/// When the server does not answer, its certificate is not believed, or it speaks neither version.
pub fn negotiate_http_version(address: &str, insecure: bool) -> Result<&'static str> {
    let address = FarEndAddress::parse(address)?;
    let FarEndStack {
        table, port, tls, ..
    } = &HTTPS;
    let port = address.port.or(*port).unwrap_or_default();
    let believed = insecure.then(|| ("insecure".to_string(), OptionValue::Set));
    let parameters = LiveConnectParameters {
        stack: table.stack(believed.into_iter().collect::<BTreeMap<_, _>>()),
        token: [0; 16],
        carries_data: true,
        replica: 0,
        bind: Ipv4Addr::LOCALHOST.into(),
        member: None,
        foreign: Arc::default(),
    };
    let stack = &parameters.stack;
    let client = TlsStart::client(tls, &address, stack, table.name)?;
    let client = client.ok_or_else(|| Error::input("only `https://` has ALPN"))?;
    let mut servers = socket::resolve(&address.socket(port), stack)?;
    let flags = Arc::default();
    let (connected, server) = socket::connect_any(&parameters, &mut servers, &flags)?;
    let socket = LayeredSocket::new(connected, stack, None, &flags)?;
    let patience = Some(server_timeout(stack));
    let limited = socket.shared().socket.set_read_timeout(patience);
    limited.map_err(|e| error::io_error("SO_RCVTIMEO", &e))?;
    let session = client.offering(&OFFERED).shake_hands_over(socket, server)?;
    // A server without ALPN says nothing, and expects HTTP/1.1.
    Ok(match session.protocol() {
        Some(b"h2") => "http2",
        _ => "http1",
    })
}
