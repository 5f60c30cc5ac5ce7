//! Access control of the display's web view. A browser gets the page and the WebSocket only if its request carries the secret and does not
//! come from another site's page. Every other request is refused with a sentence that says why.

use crate::address::DisplayAddress;
use hyper::body::Incoming;
use hyper::header::{
    ALLOW, CONNECTION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderMap, HeaderName,
    HeaderValue, ORIGIN, REFERRER_POLICY, SEC_WEBSOCKET_VERSION, UPGRADE, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Method, Request, Response, StatusCode};
use stackline_guard::secret::Secret;
use std::net::{IpAddr, SocketAddr};
use tungstenite::handshake::server::create_response_with_body;

const PAGE: &str = include_str!("../view.html");
/// The `Content-Security-Policy` of every response: the page connects only to this server, and runs only its inline script and styles.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; \
                      frame-ancestors 'none'; base-uri 'none'; form-action 'none'";
/// The reason that a refused WebSocket gets; it does not say which condition failed.
const NO_ACCESS: &str = "a viewer needs the secret and must use a page from this server\n";

/// The response to a request, and whether the request is to be counted as a guess.
pub(super) struct BrowserAnswer {
    pub(super) response: Response<String>,
    /// Whether the request carried a wrong secret: somebody may be guessing.
    pub(super) is_wrong_secret: bool,
}

impl From<Response<String>> for BrowserAnswer {
    fn from(response: Response<String>) -> Self {
        Self {
            response,
            is_wrong_secret: false,
        }
    }
}

/// A plain-text response.
pub(super) fn text_response(status: StatusCode, body: impl Into<String>) -> Response<String> {
    response(status, "text/plain; charset=utf-8", body.into())
}

/// The response to any request while the server has no room for it: 503 with the reason `why`.
pub(super) fn busy_response(why: &str) -> Response<String> {
    text_response(
        StatusCode::SERVICE_UNAVAILABLE,
        format!("{why}: try again later\n"),
    )
}

fn response(status: StatusCode, kind: &'static str, body: String) -> Response<String> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    for (name, value) in [
        // The server handles one request per connection.
        (CONNECTION, "close"),
        (CONTENT_TYPE, kind),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
    ] {
        set_field(&mut response, name, value);
    }
    response
}

fn set_field(response: &mut Response<String>, name: HeaderName, value: &'static str) {
    response
        .headers_mut()
        .insert(name, HeaderValue::from_static(value));
}

/// Decides which requests get the page or the WebSocket: they need the secret, this server's host name and, if any, its origin.
#[derive(Debug)]
pub(super) struct BrowserAccess {
    /// The secret: the query of the page's address and of the WebSocket's.
    token: Secret,
    /// The IP address at which the server listens. None if it listens at all addresses (`0.0.0.0`, `::`) or at a Unix socket.
    address: Option<IpAddr>,
}

impl BrowserAccess {
    pub(super) fn new(token: Secret, at: DisplayAddress) -> Self {
        let place = if let DisplayAddress::Tcp(place) = at {
            place.parse::<SocketAddr>().ok()
        } else {
            None
        };
        let address = place
            .map(|place| place.ip())
            .filter(|address| !address.is_unspecified());
        Self { token, address }
    }

    /// Answers a request. A WebSocket request that is allowed gets `101 Switching Protocols`.
    pub(super) fn answer(&self, request: &Request<Incoming>) -> BrowserAnswer {
        let headers = request.headers();
        let host = match host_of(headers) {
            Ok(host) => host,
            Err(why) => return text_response(StatusCode::BAD_REQUEST, why).into(),
        };
        // A request for a proxy has the host in its target, which takes precedence over `Host` (RFC 9112, section 3.2.2).
        let authority = request.uri().authority();
        if !self.is_own(host) || !authority.is_none_or(|authority| self.is_own(authority.as_str()))
        {
            let why = "this server has no page for that host: open the address that it prints\n";
            return text_response(StatusCode::MISDIRECTED_REQUEST, why).into();
        }
        let is_socket = headers
            .get(UPGRADE)
            .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"));
        let mode = if is_socket { "websocket" } else { "navigate" };
        if is_foreign(headers, mode, host) {
            let why =
                "the request comes from another site: open the address that the server prints\n";
            return text_response(StatusCode::FORBIDDEN, why).into();
        }
        if is_socket {
            self.web_socket(request)
        } else {
            self.page(request)
        }
    }

    /// Whether a host (name or IP address, with or without a port) is this server. Another site can make its own name resolve to this
    /// address (DNS rebinding), so a name must be `localhost` or the machine's, and an IP address must be one at which the server listens.
    /// The port is ignored: it may be forwarded.
    fn is_own(&self, host: &str) -> bool {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => name,
            _ => host,
        };
        let literal = name
            .strip_prefix('[')
            .and_then(|name| name.strip_suffix(']'))
            .unwrap_or(name);
        match (literal.parse::<IpAddr>(), self.address) {
            (Ok(address), Some(own)) => {
                address == own || (own.is_loopback() && address.is_loopback())
            }
            (Ok(_), None) => true,
            (Err(_), own)
                if own.is_none_or(|own| own.is_loopback())
                    && name.eq_ignore_ascii_case("localhost") =>
            {
                true
            }
            (Err(_), _) => name.eq_ignore_ascii_case(&stackline_events::setting::host()),
        }
    }

    /// Answers a request that is not for a WebSocket: `/` with the secret as its query gets the page. The page does not contain the secret.
    fn page(&self, request: &Request<Incoming>) -> BrowserAnswer {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let why = "the page supports only GET and HEAD\n";
            let mut refused = text_response(StatusCode::METHOD_NOT_ALLOWED, why);
            set_field(&mut refused, ALLOW, "GET, HEAD");
            return refused.into();
        }
        let secret = request.uri().query().unwrap_or_default();
        match request.uri().path() {
            "/" if self.token.is(secret.as_bytes()) => {
                response(StatusCode::OK, "text/html; charset=utf-8", PAGE.into()).into()
            }
            "/" => {
                let why = "the address lacks the secret: open the address that the server prints\n";
                BrowserAnswer {
                    response: text_response(StatusCode::FORBIDDEN, why),
                    is_wrong_secret: !secret.is_empty(),
                }
            }
            _ => text_response(StatusCode::NOT_FOUND, "the only page here is /\n").into(),
        }
    }

    /// Answers a WebSocket request: it must be for `/pixels`, have an `Origin` and the secret, and ask for version 13 (RFC 6455).
    fn web_socket(&self, request: &Request<Incoming>) -> BrowserAnswer {
        let headers = request.headers();
        if headers
            .get(SEC_WEBSOCKET_VERSION)
            .is_none_or(|version| version != "13")
        {
            let why = "the WebSocket version must be 13 (RFC 6455)\n";
            let mut refused = text_response(StatusCode::UPGRADE_REQUIRED, why);
            set_field(&mut refused, SEC_WEBSOCKET_VERSION, "13");
            return refused.into();
        }
        let opened = match create_response_with_body(request, String::new) {
            Ok(opened) => opened,
            Err(error) => {
                let why = format!("cannot open a WebSocket: {error}\n");
                return text_response(StatusCode::BAD_REQUEST, why).into();
            }
        };
        // `answer` has already refused every origin other than this host; a request without an origin is not from a page.
        if !headers.contains_key(ORIGIN) || request.uri().path() != "/pixels" {
            return text_response(StatusCode::FORBIDDEN, NO_ACCESS).into();
        }
        let secret = request.uri().query().unwrap_or_default();
        if self.token.is(secret.as_bytes()) {
            return opened.into();
        }
        BrowserAnswer {
            response: text_response(StatusCode::FORBIDDEN, NO_ACCESS),
            is_wrong_secret: true,
        }
    }
}

/// The value of the only `Host` field of a request (RFC 9112, section 3.2). An error if there is not exactly one, if it is not a host, or
/// if there are several origins. hyper has checked the rest of the head.
fn host_of(headers: &HeaderMap) -> Result<&str, &'static str> {
    if headers.get_all(ORIGIN).iter().count() > 1 {
        return Err("the request names several origins\n");
    }
    let mut hosts = headers.get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return Err("the request must name exactly one host\n");
    };
    let is_part = |letter: char| letter.is_whitespace() || "/?#@\\".contains(letter);
    host.to_str()
        .ok()
        .filter(|host| !host.contains(is_part))
        .ok_or("the request's host is not a valid host name\n")
}

/// Whether the browser states that another site's page made the request (`Origin`, and `Sec-Fetch-Site` and `Sec-Fetch-Mode` of Fetch
/// Metadata). `mode` is the only allowed fetch mode: `websocket` for the WebSocket, `navigate` for the page. Missing fields are allowed.
fn is_foreign(headers: &HeaderMap, mode: &str, host: &str) -> bool {
    let is_other = |name: &str, known: &[&str]| {
        headers
            .get(name)
            .is_some_and(|value| known.iter().all(|known| value != known))
    };
    is_other("sec-fetch-site", &["same-origin", "none"])
        || is_other("sec-fetch-mode", &[mode])
        || is_other("origin", &[&format!("http://{host}")])
}
