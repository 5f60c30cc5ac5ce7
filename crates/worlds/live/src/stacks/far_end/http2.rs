//! HTTP/2 (RFC 9113) to a web server, by hyper: `https(version = http2)`, or `http(version = http2)` to a server that expects it without TLS;
//! and to a gRPC server, which has it below.
//! What is asked is what the client of HTTP/1.1 asks; each request has a stream of its own.

use super::grpc_status::{has_status, is_unimplemented, without_status};
use super::http2_opener::Http2Opener;
use super::socket::notes_of_replacements;
use super::tls::FarEndTlsClient;
use super::web::{UploadForm, answered_early, refused_status};
use crate::buffers::LiveThreadBuffers;
use crate::cancel::LiveCancelFlags;
use crate::error::{Error, Result};
use crate::stacks::contract::{Connector, LiveConnectParameters, LiveConnection};
use crate::stacks::http_exchange::{SharedUnits, of_the_other_side};
use crate::stacks::layered::http_client::{
    BodySender, GRPC_CONTENT_TYPE, Http2Sender, HttpDriver, IncomingBody, OpenedHttp, OutgoingBody,
    SentBody, SharedHttpClient, SharedHttpUse, grpc_message,
};
use bytes::Bytes;
use http::uri::PathAndQuery;
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue, TE};
use hyper::{Method, Request, Response, Uri};
use stackline_core::run_record::TransportRecord;
use stackline_core::time::Instant;
use stackline_endpoint::{BulkDirection, ConnectionOpening};
use std::collections::BTreeMap;
use std::error::Error as _;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

type ResponseFuture = Pin<Box<dyn Future<Output = hyper::Result<Response<Incoming>>> + Send>>;

/// Connects to a web server for HTTP/2.
#[derive(Clone)]
pub(super) struct Http2Connector {
    opener: Http2Opener,
    form: Http2Form,
    /// The connection of the pair's group, and the pair's number in it; `None` where each pair has its own.
    group: Option<(Arc<SharedHttpClient<Http2Opener>>, u16)>,
}

/// What is asked, and how.
#[derive(Clone)]
pub(super) struct Http2Form {
    /// The address as requests have it.
    pub(super) uri: Uri,
    /// How data whose units follow one another is sent.
    pub(super) upload: UploadForm,
    /// Whether a method of gRPC is called.
    pub(super) is_grpc: bool,
    /// The message of its requests, if it is not made of a unit of data.
    pub(super) message: Option<Bytes>,
}

impl Http2Form {
    /// A request, and its body on its way; without a unit of data it asks for something.
    fn request(&self, unit: Option<&Bytes>) -> (Request<OutgoingBody>, Option<SentBody>) {
        if self.is_grpc {
            let pieces = match &self.message {
                Some(message) => vec![grpc_prefix(message.len()), message.clone()],
                None => grpc_message(unit.cloned().unwrap_or_default()),
            };
            return (self.grpc_request(pieces), None);
        }
        match unit {
            None => {
                let body = OutgoingBody::whole(Vec::new(), None);
                (self.with(Method::GET, body), None)
            }
            Some(unit) => {
                let (body, sent) = OutgoingBody::watched(unit);
                (self.with(Method::POST, body), Some(sent))
            }
        }
    }

    /// A request of gRPC with that body.
    fn grpc_request(&self, pieces: Vec<Bytes>) -> Request<OutgoingBody> {
        let mut request = self.with(Method::POST, OutgoingBody::whole(pieces, None));
        let fields = request.headers_mut();
        fields.insert(CONTENT_TYPE, GRPC_CONTENT_TYPE);
        fields.insert(TE, HeaderValue::from_static("trailers"));
        request
    }

    /// An upload with that body.
    fn upload_request(&self, body: OutgoingBody) -> Request<OutgoingBody> {
        let mut request = self.with(self.upload.method.clone(), body);
        self.upload.say_length(&mut request);
        request
    }

    fn with(&self, method: Method, body: OutgoingBody) -> Request<OutgoingBody> {
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = self.uri.clone();
        request
    }
}

impl Http2Connector {
    pub(super) fn new(
        parameters: &LiveConnectParameters,
        servers: Vec<SocketAddr>,
        tls: Option<FarEndTlsClient>,
        form: Http2Form,
    ) -> Result<Self> {
        // What a group has in common does not hold the group.
        let mut parameters = parameters.clone();
        let member = parameters.member.take();
        let opener = Http2Opener {
            parameters,
            servers,
            tls,
        };
        let group = member.map(|member| {
            let shared = member.common(|| SharedHttpClient::new(opener.clone()))?;
            Ok((shared, member.number()))
        });
        Ok(Self {
            group: group.transpose()?,
            opener,
            form,
        })
    }

    /// Lets each request carry that message.
    pub(super) fn set_message(&mut self, message: Bytes) {
        self.form.message = Some(message);
    }

    fn open(&mut self, flags: &Arc<LiveCancelFlags>) -> Result<Http2Link> {
        match &self.group {
            None => self.open_alone(flags),
            Some((shared, member)) => {
                let (opened, usage) = shared.connect(*member, flags)?;
                Http2Link::new(&self.opener, opened, None, Some(usage))
            }
        }
    }

    /// A connection that no other pair shares.
    fn open_alone(&mut self, flags: &Arc<LiveCancelFlags>) -> Result<Http2Link> {
        let (opened, opening) = self.opener.open_alone(flags)?;
        Http2Link::new(&self.opener, opened, Some(opening), None)
    }
}

/// What stands before a message of gRPC: that it is not compressed, and its length.
fn grpc_prefix(bytes: usize) -> Bytes {
    let mut prefix = vec![0];
    prefix.extend_from_slice(&(bytes as u32).to_be_bytes());
    prefix.into()
}

/// Calls methods of a gRPC server before anything is measured.
pub(super) struct GrpcCaller(Http2Link, Http2Form);

impl GrpcCaller {
    /// Connects, until `flags` end it.
    pub(super) fn connect(
        connector: &Http2Connector,
        flags: &Arc<LiveCancelFlags>,
    ) -> Result<Self> {
        let mut connector = connector.clone();
        let link = connector.open_alone(flags)?;
        Ok(Self(link, connector.form))
    }

    /// Sends a message to the method at that path, and returns the message that comes back, of at most so many bytes. `None` if the
    /// server has no such method.
    pub(super) fn call(
        &mut self,
        path: &'static str,
        message: Vec<u8>,
        most: usize,
    ) -> Result<Option<Vec<u8>>> {
        let Self(link, form) = self;
        let server = link.server;
        let mut parts = form.uri.clone().into_parts();
        parts.path_and_query = Some(PathAndQuery::from_static(path));
        let uri = Uri::from_parts(parts);
        form.uri = uri.map_err(|e| Error::input(format!("`{path}` is not a path: {e}")))?;
        let pieces = vec![grpc_prefix(message.len()), message.into()];
        let head = match link.exchange(form.grpc_request(pieces))? {
            Http2Outcome::Done(head) => head,
            Http2Outcome::Unseen(error) => return Err(error),
        };
        if is_unimplemented(Some(head.headers())) {
            return Ok(None);
        }
        has_status(server, Some(head.headers()))?;
        let mut body = link.incoming(head)?;
        let mut bytes = Vec::new();
        loop {
            let frame = link
                .driver
                .until(|context| Pin::new(&mut body).poll_frame(context))?;
            let Some(frame) = frame else {
                break;
            };
            let frame = frame.map_err(|e| link.driver.failure(&e))?;
            match frame.into_data() {
                Ok(data) if bytes.len() + data.len() > most => {
                    let message =
                        format!("the server at {server} says more than {most} B of its types");
                    return Err(Error::measurement(message));
                }
                Ok(data) => bytes.extend_from_slice(&data),
                Err(frame) => {
                    let trailers = frame.into_trailers().ok();
                    if is_unimplemented(trailers.as_ref()) {
                        return Ok(None);
                    }
                    has_status(server, trailers.as_ref())?;
                }
            }
        }
        unwrapped(bytes).map(Some).ok_or_else(|| {
            Error::measurement(format!(
                "the server at {server} answered without a message of gRPC"
            ))
        })
    }
}

/// The first message of gRPC in a body.
fn unwrapped(mut body: Vec<u8>) -> Option<Vec<u8>> {
    let head = body.first_chunk::<5>()?;
    let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
    let is_plain = head[0] == 0 && body.len() - 5 >= length;
    is_plain.then(|| {
        body.drain(..5);
        body.truncate(length);
        body
    })
}

impl Connector for Http2Connector {
    fn connect(&mut self, buffers: &mut LiveThreadBuffers) -> Result<Box<dyn LiveConnection>> {
        let link = self.open(&buffers.flags)?;
        Ok(Box::new(Http2Connection {
            link,
            connector: self.clone(),
            replaced: 0,
            units: SharedUnits::default(),
            sent: None,
            get: None,
            put: None,
            ahead: 0,
            body: 0,
            has_status: false,
        }))
    }

    fn counts(&self) -> BTreeMap<String, u64> {
        FarEndTlsClient::counts(self.opener.tls.as_ref())
    }
}

/// A connection of HTTP/2, until its server ends it.
struct Http2Link {
    driver: HttpDriver,
    /// `None` once it was left.
    sender: Option<Http2Sender>,
    server: SocketAddr,
    /// The settings of what is below HTTP.
    below: BTreeMap<String, String>,
    /// What opening it took; `None` of one that is shared, which one pair opens for all.
    opening: Option<ConnectionOpening>,
    /// That the pair uses a connection which it shares with others.
    usage: Option<SharedHttpUse>,
}

/// What became of a request.
enum Http2Outcome<T> {
    Done(T),
    /// The server has closed the connection and has not looked at the request, which may be made again (RFC 9113, 8.7).
    Unseen(Error),
}

impl Http2Link {
    fn new(
        opener: &Http2Opener,
        opened: OpenedHttp<Http2Sender>,
        opening: Option<ConnectionOpening>,
        usage: Option<SharedHttpUse>,
    ) -> Result<Self> {
        let OpenedHttp {
            mut driver,
            sender,
            below,
            ..
        } = opened;
        let peer = driver.shared().addresses().map(|(_, peer)| peer);
        let server = peer.or_else(|| opener.servers.first().copied());
        let server = server.ok_or_else(|| Error::measurement("the connection has no peer"))?;
        driver.limit(opener.patience(server));
        Ok(Self {
            driver,
            sender: Some(sender),
            server,
            below,
            opening,
            usage,
        })
    }

    fn outcome<T>(&self, done: hyper::Result<T>) -> Result<Http2Outcome<T>> {
        match done {
            Ok(value) => Ok(Http2Outcome::Done(value)),
            Err(error) if is_unseen(&error) => self.unseen(self.driver.failure(&error)),
            Err(error) => Err(self.driver.failure(&error)),
        }
    }

    /// The outcome of a request that did not reach the server, unless it speaks something else and would fail again.
    fn unseen<T>(&self, error: Error) -> Result<Http2Outcome<T>> {
        if self.driver.has_failed(is_unseen) {
            Err(error)
        } else {
            Ok(Http2Outcome::Unseen(error))
        }
    }

    /// Begins a request.
    fn request(&mut self, request: Request<OutgoingBody>) -> Result<Http2Outcome<ResponseFuture>> {
        let Some(sender) = &mut self.sender else {
            return self.unseen(self.driver.end_of_connection());
        };
        let ready = self
            .driver
            .until_end(|context| sender.poll_ready(context))?;
        let Some(ready) = ready else {
            return self.unseen(self.driver.end_of_connection());
        };
        if let Http2Outcome::Unseen(error) = self.outcome(ready)? {
            return Ok(Http2Outcome::Unseen(error));
        }
        match &mut self.sender {
            Some(sender) => Ok(Http2Outcome::Done(Box::pin(sender.send_request(request)))),
            None => self.unseen(self.driver.end_of_connection()),
        }
    }

    /// Makes a request whose body is known as a whole, and awaits the response's head.
    fn exchange(
        &mut self,
        request: Request<OutgoingBody>,
    ) -> Result<Http2Outcome<Response<Incoming>>> {
        match self.request(request)? {
            Http2Outcome::Unseen(error) => Ok(Http2Outcome::Unseen(error)),
            Http2Outcome::Done(mut response) => {
                let head = self
                    .driver
                    .until(|context| response.as_mut().poll(context))?;
                self.outcome(head)
            }
        }
    }

    /// The body of a response, if the server has done what it was asked for.
    fn accepted(&self, head: Response<Incoming>) -> Result<IncomingBody> {
        Ok(IncomingBody::new(self.incoming(head)?, false, 0))
    }

    /// The same, as the library has it.
    fn incoming(&self, head: Response<Incoming>) -> Result<Incoming> {
        let status = head.status();
        if status.is_success() {
            return Ok(head.into_body());
        }
        let location = head.headers().get(hyper::header::LOCATION);
        let location = location.map(|value| String::from_utf8_lossy(value.as_bytes()));
        let reason = status.canonical_reason().unwrap_or_default();
        Err(refused_status(
            self.server,
            status.as_u16(),
            reason,
            location.as_deref(),
            self.below.contains_key("tls"),
        ))
    }
}

/// Whether a request has failed before the server has looked at it.
fn is_unseen(error: &hyper::Error) -> bool {
    let below = error
        .source()
        .and_then(|cause| cause.downcast_ref::<h2::Error>());
    let is_refused = below.is_some_and(|error| {
        error.is_remote()
            && match error.reason() {
                Some(h2::Reason::NO_ERROR) => error.is_go_away(),
                Some(reason) => error.is_reset() && reason == h2::Reason::REFUSED_STREAM,
                None => false,
            }
    });
    error.is_canceled() || error.is_closed() || is_refused
}

/// A body that is being sent.
struct Http2Put {
    body: BodySender,
    response: ResponseFuture,
    /// Bytes that were sent so far.
    sent: u64,
}

/// An open connection.
struct Http2Connection {
    link: Http2Link,
    connector: Http2Connector,
    /// How many connections the server has closed that were replaced.
    replaced: u64,
    units: SharedUnits,
    /// What became of the present request's body.
    sent: Option<SentBody>,
    /// The body that is being received, and how much of it has come.
    get: Option<(IncomingBody, u64)>,
    put: Option<Http2Put>,
    /// Bytes that were received and that no operation has asked for.
    ahead: u64,
    /// Bytes of the last body that was received whole.
    body: u64,
    /// Whether the present answer of a gRPC server began with its status.
    has_status: bool,
}

impl Http2Connection {
    /// Makes a request and awaits an answer that says that it was done. Where the server has closed the connection meanwhile, as it may
    /// after a number of requests, another one takes its place, once.
    fn exchange(
        &mut self,
        unit: Option<&Bytes>,
        flags: &Arc<LiveCancelFlags>,
    ) -> Result<IncomingBody> {
        let head = match self.try_exchange(unit)? {
            Http2Outcome::Done(head) => head,
            Http2Outcome::Unseen(_) => {
                self.reconnect(flags)?;
                match self.try_exchange(unit)? {
                    Http2Outcome::Done(head) => head,
                    Http2Outcome::Unseen(error) => return Err(error),
                }
            }
        };
        // A gRPC server that refuses says so at once.
        self.has_status =
            self.connector.form.is_grpc && has_status(self.link.server, Some(head.headers()))?;
        self.link.accepted(head)
    }

    fn try_exchange(&mut self, unit: Option<&Bytes>) -> Result<Http2Outcome<Response<Incoming>>> {
        let (request, sent) = self.connector.form.request(unit);
        self.sent = sent;
        self.link.exchange(request)
    }

    fn reconnect(&mut self, flags: &Arc<LiveCancelFlags>) -> Result<()> {
        // A connection that is shared ends when all have left it.
        drop((self.link.sender.take(), self.link.usage.take()));
        self.link = self.connector.open(flags)?;
        self.replaced += 1;
        Ok(())
    }

    /// Receives a response whole.
    fn whole(&mut self, mut body: IncomingBody, buffers: &mut LiveThreadBuffers) -> Result<()> {
        self.body = body.end(&mut self.link.driver, buffers)?;
        let server = self.link.server;
        if let Some(sent) = self.sent.take()
            && !sent.is_whole(&mut self.link.driver)?
        {
            return Err(answered_early(server, &Method::POST));
        }
        let wants_status = self.connector.form.is_grpc && !self.has_status;
        if wants_status && !has_status(server, body.trailers())? {
            return Err(without_status(server));
        }
        Ok(())
    }
}

impl LiveConnection for Http2Connection {
    fn call(
        &mut self,
        request: usize,
        _: usize,
        _: Instant,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<bool> {
        let unit = match request {
            0 => None,
            _ if self.connector.form.message.is_some() => {
                return Err(Error::input(
                    "the option `message` is the request, but the call has data",
                )
                .hint("write `rr 0`"));
            }
            bytes => Some(self.units.next(bytes, buffers)?),
        };
        let body = self.exchange(unit.as_ref(), &buffers.flags)?;
        self.whole(body, buffers)?;
        Ok(true)
    }

    fn send(&mut self, bytes: usize, times: u64, buffers: &mut LiveThreadBuffers) -> Result<u64> {
        for done in 0..times {
            if buffers.flags.limit() && times > 1 {
                return Ok(done);
            }
            let unit = self.units.next(bytes, buffers)?;
            if let Some(put) = &mut self.put {
                let upload = &self.connector.form.upload;
                upload.has_room(put.sent, bytes as u64)?;
                put.sent += bytes as u64;
                let response = put.response.as_mut();
                match put
                    .body
                    .send_unless(vec![unit], response, &mut self.link.driver)?
                {
                    None => {}
                    Some(early) => {
                        let head = early.map_err(|e| self.link.driver.failure(&e))?;
                        self.link.accepted(head)?;
                        return Err(answered_early(
                            self.link.server,
                            &self.connector.form.upload.method,
                        ));
                    }
                }
            }
        }
        Ok(times)
    }

    fn receive(
        &mut self,
        bytes: usize,
        times: u64,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<u64> {
        for done in 0..times {
            // No server knows of the time limit, so what has come by then is the end.
            if buffers.flags.limit() {
                return Ok(done);
            }
            while self.ahead < bytes as u64 {
                let (mut body, mut came) = match self.get.take() {
                    Some(open) => open,
                    None => (self.exchange(None, &buffers.flags)?, 0),
                };
                match body.receive(&mut self.link.driver, buffers)? {
                    Some(more) => {
                        came += more;
                        self.ahead += more;
                        self.get = Some((body, came));
                    }
                    None if came == 0 => {
                        return Err(Error::measurement(format!(
                            "the answer of the web server at {} is empty",
                            self.link.server
                        ))
                        .hint("measure an address that has data, or calls (`request_response`)"));
                    }
                    None => self.body = came,
                }
            }
            self.ahead -= bytes as u64;
        }
        Ok(times)
    }

    fn closed(&self) -> bool {
        false
    }

    fn start_bulk(
        &mut self,
        direction: BulkDirection,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<()> {
        if direction == BulkDirection::Get {
            return Ok(());
        }
        let mut again = true;
        loop {
            let (body, sender) = OutgoingBody::streamed();
            match self
                .link
                .request(self.connector.form.upload_request(body))?
            {
                Http2Outcome::Done(response) => {
                    self.link.driver.flush()?;
                    let body = sender;
                    self.put = Some(Http2Put {
                        body,
                        response,
                        sent: 0,
                    });
                    return Ok(());
                }
                Http2Outcome::Unseen(_) if again => self.reconnect(&buffers.flags)?,
                Http2Outcome::Unseen(error) => return Err(error),
            }
            again = false;
        }
    }

    fn await_start_bulk(&mut self, _: BulkDirection, _: &mut LiveThreadBuffers) -> Result<bool> {
        Err(of_the_other_side())
    }

    fn stop_bulk(&mut self, _: BulkDirection, buffers: &mut LiveThreadBuffers) -> Result<()> {
        let Some(put) = self.put.take() else {
            return Ok(());
        };
        self.connector.form.upload.is_complete(put.sent)?;
        let (mut response, driver) = (put.response, &mut self.link.driver);
        put.body.end(None, driver)?;
        let head = driver.until(|context| response.as_mut().poll(context))?;
        let head = head.map_err(|e| driver.failure(&e))?;
        let body = self.link.accepted(head)?;
        self.whole(body, buffers)
    }

    fn await_stop_bulk(&mut self, _: BulkDirection, _: &mut LiveThreadBuffers) -> Result<()> {
        Err(of_the_other_side())
    }

    fn end_stream(&mut self, _: &mut LiveThreadBuffers) -> Result<()> {
        Ok(())
    }

    fn disconnect(self: Box<Self>, _: &mut LiveThreadBuffers) -> Result<()> {
        let Http2Link {
            mut driver,
            sender,
            usage,
            ..
        } = self.link;
        drop((sender, usage));
        driver.flush()
    }

    fn await_disconnect(&mut self, _: &mut LiveThreadBuffers) -> Result<()> {
        Err(of_the_other_side())
    }

    fn opening(&self) -> Option<ConnectionOpening> {
        self.link.opening
    }

    fn transport(&self) -> Option<TransportRecord> {
        // The first pair of a group reports their connection. Of connections that were replaced nothing is known any more.
        let reports = self
            .connector
            .group
            .as_ref()
            .is_none_or(|(_, member)| *member == 0);
        let record = self.link.driver.shared().transport();
        record.filter(|_| reports && self.replaced == 0)
    }

    fn settings(&self) -> BTreeMap<String, String> {
        let mut settings = self.link.below.clone();
        settings.insert("server".into(), self.link.server.to_string());
        settings.insert("http".into(), "2".into());
        if let Some(message) = &self.connector.form.message {
            settings.insert("message".into(), format!("{} B", message.len()));
        }
        if self.body > 0 {
            settings.insert("body".into(), format!("{} B", self.body));
        }
        settings
    }

    fn addresses(&self) -> Option<(SocketAddr, SocketAddr)> {
        self.link.driver.shared().addresses()
    }

    fn notes(&self) -> Vec<String> {
        notes_of_replacements(self.replaced)
    }
}
