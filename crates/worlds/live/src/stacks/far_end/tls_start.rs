//! When a connection to a far end becomes one of TLS, and what it may mean that it did not.

use super::byte_stream::FarEndStream;
use super::tls::{FarEndTlsClient, TlsForm, TlsTrust};
use crate::error::{Blame, Error, Result};
use stackline_core::far_end::FarEndAddress;
use stackline_core::plan::Stack;

/// When a protocol of far ends begins with TLS.
pub(super) enum TlsStart {
    /// Never; how addresses of the same protocol over TLS begin, if there is one.
    Never(Option<&'static str>),
    /// With the connection.
    AtOnce {
        /// The name of the protocol within TLS (ALPN, RFC 7301), if it is asked for.
        protocol: Option<&'static str>,
        /// How addresses of the same protocol without TLS begin.
        plain: &'static str,
    },
    /// After words of the protocol, if address and options ask for it.
    Within(fn(&FarEndAddress, &Stack) -> Result<Option<TlsTrust>>),
}

impl TlsStart {
    /// The client of TLS for a server, if there is to be one. `name` is that of the stack.
    pub(super) fn client(
        &self,
        address: &FarEndAddress,
        stack: &Stack,
        name: &'static str,
    ) -> Result<Option<FarEndTlsClient>> {
        let (trust, mut form) = match *self {
            Self::Never(_) => return Ok(None),
            Self::AtOnce { protocol, plain } => {
                let form = TlsForm {
                    protocol,
                    is_first: true,
                    is_option: false,
                    name,
                    plain: Some(plain),
                };
                (TlsTrust::in_options(stack), form)
            }
            Self::Within(find_trust) => {
                let Some(trust) = find_trust(address, stack)? else {
                    return Ok(None);
                };
                let form = TlsForm {
                    protocol: None,
                    is_first: false,
                    is_option: stack.flag("tls"),
                    name,
                    plain: None,
                };
                (trust, form)
            }
        };
        match stack.word("version") {
            Some("http2") => form.protocol = Some("h2"),
            Some("http3") => form.protocol = Some("h3"),
            _ => {}
        }
        FarEndTlsClient::new(&address.host, trust, form).map(Some)
    }

    /// How addresses of the same protocol over TLS begin, where this one has none.
    pub(super) const fn secure_scheme(&self) -> Option<&'static str> {
        match self {
            Self::Never(scheme) => *scheme,
            _ => None,
        }
    }
}

/// An error of a connection without TLS, with what it may come from: a server that expects TLS there, which `secure` addresses name.
pub(super) fn suspect_tls(stream: &FarEndStream, secure: Option<&str>, error: Error) -> Error {
    let Some(secure) = secure.filter(|_| error.blame == Blame::Measurement) else {
        return error;
    };
    if stream.received_tls() {
        let server = stream.server();
        Error::measurement(format!("the server at {server} speaks TLS there"))
            .hint(format!("`{secure}://` is with TLS"))
    } else if stream.was_left_at_once() && error.hint.is_none() {
        error.hint(format!(
            "is this its port for TLS? `{secure}://` is with TLS; or another protocol listens there"
        ))
    } else {
        error
    }
}
