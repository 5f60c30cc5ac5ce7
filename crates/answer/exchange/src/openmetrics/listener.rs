//! Serves metrics over HTTP/1: `GET /metrics`, one request for each connection.
//!
//! Clients are hostile. A request and an answer each have a bounded time, a request has a bounded head, and there is a bounded number of
//! connections, of which the oldest gives way. On a loopback address only requests for this machine's own names are answered, so that no
//! web page reads metrics by a name of its own that resolves to that address (DNS rebinding). It stands here rather than in a crate of
//! services because it knows nothing but families, and uses the same HTTP as the page of a display.

use super::MetricFamily;
use super::format_choice::MetricsFormat;
use hyper::header::{
    ACCEPT, ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST,
    HeaderMap, HeaderName, HeaderValue, VARY, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Method, Request, Response, StatusCode};
use stackline_core::error::{Error, Result};
use stackline_guard::connection_slots::{ConnectionSlot, ConnectionSlotPool};
use stackline_guard::http_answer::answer_http_request;
use stackline_guard::serve::{ConnectionService, accept_tcp, listen_at, serve_connections};
use stackline_guard::stop::StopSwitch;
use std::fmt;
use std::io;
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The limit on connections; when there are more, the oldest is closed.
pub const CONNECTIONS: usize = 64;
/// How long a client may take to send its request, and to take the answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// The page of `/`.
const PAGE: &str = "<!doctype html><title>stackline</title><p>stackline serves its metrics at <a href=\"/metrics\">/metrics</a>.\n";

/// A listener that serves metrics until it is dropped.
#[derive(Debug)]
pub struct MetricsListener {
    address: SocketAddr,
    stop: StopSwitch,
    connections: Arc<ConnectionSlotPool>,
    thread: Option<JoinHandle<()>>,
}

impl MetricsListener {
    /// Listens at an address (port 0: a free port) and serves what `source` collects, which is called for every scrape, by several threads.
    ///
    /// # Errors
    /// An error of the environment if nothing can listen there, or no thread can be started.
    pub fn start(
        address: SocketAddr,
        source: impl Fn() -> Vec<MetricFamily> + Send + Sync + 'static,
    ) -> Result<Self> {
        let listener = listen_at(address)?;
        let failed =
            |error: io::Error| Error::environment(format!("cannot serve metrics: {error}"));
        let address = listener.local_addr().map_err(failed)?;
        let (stop, connections) = (
            StopSwitch::new().map_err(failed)?,
            ConnectionSlotPool::new(CONNECTIONS),
        );
        let service = Arc::new(MetricsService {
            source: Box::new(source),
            is_local: address.ip().is_loopback(),
            connections: Arc::clone(&connections),
        });
        let stopped = stop.clone();
        let work =
            move || serve_connections(&service, &stopped, || accept_tcp(&listener, &stopped));
        let thread = thread::Builder::new()
            .name("metrics".into())
            .spawn(work)
            .map_err(failed)?;
        Ok(Self {
            address,
            stop,
            connections,
            thread: Some(thread),
        })
    }

    /// The address at which it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL to scrape, as seen from this machine.
    #[must_use]
    pub fn url(&self) -> String {
        let mut address = self.address;
        if address.ip().is_unspecified() {
            let here: IpAddr = match address.is_ipv4() {
                true => [127, 0, 0, 1].into(),
                false => [0, 0, 0, 0, 0, 0, 0, 1].into(),
            };
            address.set_ip(here);
        }
        format!("http://{address}/metrics")
    }
}

impl Drop for MetricsListener {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        self.connections.close_all();
    }
}

/// What the threads of connections share.
struct MetricsService {
    source: Box<dyn Fn() -> Vec<MetricFamily> + Send + Sync>,
    /// Whether it listens on a loopback address.
    is_local: bool,
    connections: Arc<ConnectionSlotPool>,
}

impl fmt::Debug for MetricsService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetricsService")
            .field("is_local", &self.is_local)
            .finish_non_exhaustive()
    }
}

impl ConnectionService for MetricsService {
    type Connection = TcpStream;

    fn strangers(&self) -> &Arc<ConnectionSlotPool> {
        &self.connections
    }

    fn end_of(&self, stream: &TcpStream) -> io::Result<impl FnOnce() + Send + 'static> {
        let stream = stream.try_clone()?;
        Ok(move || drop(stream.shutdown(Shutdown::Both)))
    }

    fn serve(self: Arc<Self>, stream: TcpStream, _place: ConnectionSlot) {
        answer_http_request(
            stream,
            PATIENCE,
            |request| self.answer(request),
            text_response,
        );
    }
}

impl MetricsService {
    fn answer<B>(&self, request: &Request<B>) -> Response<String> {
        let headers = request.headers();
        let mut hosts = headers.get_all(HOST).iter();
        let host = match (hosts.next().map(HeaderValue::to_str), hosts.next()) {
            (Some(Ok(host)), None) => Some(host),
            // Only HTTP/1.0 may leave it out (RFC 9112, section 3.2).
            (None, _) if request.version() == hyper::Version::HTTP_10 => None,
            _ => {
                let why = "the request must name exactly one host\n";
                return text_response(StatusCode::BAD_REQUEST, why.into());
            }
        };
        let authority = request.uri().authority().map(|name| name.as_str());
        if self.is_local && ![host, authority].into_iter().flatten().all(is_this_machine) {
            let why = "these metrics are served to this machine only: ask for localhost\n";
            return text_response(StatusCode::MISDIRECTED_REQUEST, why.into());
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let why = "metrics are read with GET or HEAD\n";
            let mut refused = text_response(StatusCode::METHOD_NOT_ALLOWED, why.into());
            set_field(&mut refused, ALLOW, "GET, HEAD");
            return refused;
        }
        match request.uri().path() {
            "/metrics" => {
                let format = MetricsFormat::by_accept(&accepted(headers));
                let text = format.text(&(self.source)());
                let mut answer = response(StatusCode::OK, format.content_type(), text);
                set_field(&mut answer, VARY, "accept");
                answer
            }
            "/" => response(StatusCode::OK, "text/html; charset=utf-8", PAGE.into()),
            _ => text_response(StatusCode::NOT_FOUND, "metrics are at /metrics\n".into()),
        }
    }
}

/// All `Accept` fields as one.
fn accepted(headers: &HeaderMap) -> String {
    let fields: Vec<&str> = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|field| field.to_str().ok())
        .collect();
    fields.join(",")
}

/// Whether a host, with or without a port, is a name or address of this machine's loopback interface, or this machine's own name.
fn is_this_machine(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => name,
        _ => host,
    };
    let literal = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'))
        .unwrap_or(name);
    match literal.parse::<IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => {
            name.eq_ignore_ascii_case("localhost")
                || name.eq_ignore_ascii_case(&stackline_events::setting::host())
        }
    }
}

fn text_response(status: StatusCode, body: String) -> Response<String> {
    response(status, "text/plain; charset=utf-8", body)
}

fn response(status: StatusCode, kind: &'static str, body: String) -> Response<String> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    for (name, value) in [
        // One request for each connection.
        (CONNECTION, "close"),
        (CONTENT_TYPE, kind),
        (CACHE_CONTROL, "no-store"),
        (CONTENT_SECURITY_POLICY, "default-src 'none'"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
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

#[cfg(test)]
mod tests;
