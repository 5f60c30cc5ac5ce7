//! HTTP/3 (RFC 9114) to a web server, by h3 on QUIC (quinn): `https(version = http3)`. What is asked is what the client of HTTP/1.1 asks; each
//! request has a stream of its own.

use super::http3_client::{Http3Client, Http3Link};
use super::socket::notes_of_replacements;
use super::tls::FarEndTlsClient;
use super::web::{UploadForm, answered_early, refused_status, request_uri};
use crate::buffers::LiveThreadBuffers;
use crate::cancel::LiveCancelFlags;
use crate::error::{Error, Result};
use crate::stacks::byte_channel::ChannelEnd as _;
use crate::stacks::contract::{Connector, LiveConnectParameters, LiveConnection};
use crate::stacks::http_exchange::{SharedUnits, of_the_other_side};
use crate::stacks::quic::client::{failed, store};
use bytes::Bytes;
use h3::client::RequestStream;
use h3::error::{Code, StreamError};
use h3_quinn::BidiStream;
use http::{Method, Request, Response, Uri};
use stackline_core::far_end::FarEndAddress;
use stackline_core::run_record::TransportRecord;
use stackline_core::time::Instant;
use stackline_endpoint::BulkDirection;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

type RequestAndResponse = RequestStream<BidiStream<Bytes>, Bytes>;

/// Connects to a web server for HTTP/3.
pub(super) struct Http3Connector {
    client: Arc<Http3Client>,
    uri: Uri,
    upload: UploadForm,
    /// The pair's number among those that share the connection; `None` where it has its own.
    member: Option<u16>,
}

impl Http3Connector {
    pub(super) fn new(
        parameters: &LiveConnectParameters,
        address: &FarEndAddress,
        servers: &[SocketAddr],
        tls: &FarEndTlsClient,
    ) -> Result<Self> {
        let uri = request_uri(address)?;
        let open = || Http3Client::new(parameters, address, servers, tls);
        let (client, member) = match &parameters.member {
            None => (Arc::new(open()?), None),
            Some(member) => (member.common(open)?, Some(member.number())),
        };
        Ok(Self {
            client,
            uri,
            upload: UploadForm::in_options(&parameters.stack),
            member,
        })
    }
}

impl Connector for Http3Connector {
    fn connect(&mut self, buffers: &mut LiveThreadBuffers) -> Result<Box<dyn LiveConnection>> {
        let link = self.client.connect(self.member, &buffers.flags)?;
        Ok(Box::new(Http3Connection {
            link,
            client: Arc::clone(&self.client),
            uri: self.uri.clone(),
            upload: self.upload.clone(),
            member: self.member,
            replaced: 0,
            units: SharedUnits::default(),
            get: None,
            put: None,
            ahead: 0,
            body: 0,
        }))
    }
}

/// What became of a request.
enum Http3Outcome<T> {
    Done(T),
    /// The server closes the connection and has not looked at the request, which may be made again (RFC 9114, 5.2).
    Unseen(Error),
}

impl Http3Link {
    fn outcome<T>(&self, done: std::result::Result<T, StreamError>) -> Result<Http3Outcome<T>> {
        match done {
            Ok(value) => Ok(Http3Outcome::Done(value)),
            Err(error) if is_unseen(&error) => Ok(Http3Outcome::Unseen(failed(&self.end, &error))),
            Err(error) => Err(failed(&self.end, &error)),
        }
    }

    /// Sends a request's head.
    fn request(&mut self, method: Method, uri: &Uri) -> Result<Http3Outcome<RequestAndResponse>> {
        self.send_head(without_body(method, uri))
    }

    /// Sends the head of an upload.
    fn upload(&mut self, form: &UploadForm, uri: &Uri) -> Result<Http3Outcome<RequestAndResponse>> {
        let mut request = without_body(form.method.clone(), uri);
        form.say_length(&mut request);
        self.send_head(request)
    }

    fn send_head(&mut self, request: Request<()>) -> Result<Http3Outcome<RequestAndResponse>> {
        match self.end.run(self.sender.send_request(request))? {
            // There was no connection any more that could have carried it.
            Err(error) if error.is_h3_no_error() => {
                Ok(Http3Outcome::Unseen(failed(&self.end, &error)))
            }
            stream => self.outcome(stream),
        }
    }

    /// Makes a request whose body is known as a whole, and awaits the response's head.
    fn exchange(
        &mut self,
        uri: &Uri,
        unit: Option<&Bytes>,
    ) -> Result<Http3Outcome<(RequestAndResponse, Response<()>)>> {
        let method = if unit.is_none() {
            Method::GET
        } else {
            Method::POST
        };
        let mut stream = match self.request(method, uri)? {
            Http3Outcome::Done(stream) => stream,
            Http3Outcome::Unseen(error) => return Ok(Http3Outcome::Unseen(error)),
        };
        let end = &self.end;
        let answered = end.run(async {
            if let Some(unit) = unit {
                stream.send_data(unit.clone()).await?;
            }
            stream.finish().await?;
            stream.recv_response().await
        })?;
        Ok(match self.outcome(answered)? {
            Http3Outcome::Done(head) => Http3Outcome::Done((stream, head)),
            Http3Outcome::Unseen(error) => Http3Outcome::Unseen(error),
        })
    }

    /// Whether the server has done what it was asked for.
    fn check(&self, head: &Response<()>) -> Result<()> {
        let status = head.status();
        if status.is_success() {
            return Ok(());
        }
        let location = head.headers().get(http::header::LOCATION);
        let location = location.map(|value| String::from_utf8_lossy(value.as_bytes()));
        let reason = status.canonical_reason().unwrap_or_default();
        Err(refused_status(
            self.server,
            status.as_u16(),
            reason,
            location.as_deref(),
            true,
        ))
    }

    /// More of a response's body; none at its end.
    fn more(
        &self,
        stream: &mut RequestAndResponse,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<Option<u64>> {
        let acknowledged = || Some(self.end.connection.stats().frame_rx.acks);
        self.patience.check_limit(&self.flags, acknowledged)?;
        let data = self.end.run(stream.recv_data())?;
        let data = data.map_err(|e| failed(&self.end, &e))?;
        store(&self.end, data, buffers)
    }
}

/// The head of a request.
fn without_body(method: Method, uri: &Uri) -> Request<()> {
    let mut request = Request::new(());
    *request.method_mut() = method;
    *request.uri_mut() = uri.clone();
    request
}

/// Whether a request has failed before the server has looked at it.
const fn is_unseen(error: &StreamError) -> bool {
    matches!(
        error,
        StreamError::RemoteClosing { .. }
            | StreamError::RemoteTerminate {
                code: Code::H3_REQUEST_REJECTED,
                ..
            }
    )
}

/// An open connection.
struct Http3Connection {
    link: Http3Link,
    client: Arc<Http3Client>,
    uri: Uri,
    upload: UploadForm,
    member: Option<u16>,
    /// How many connections the server has closed that were replaced.
    replaced: u64,
    units: SharedUnits,
    /// The response whose body is being received, and how much of it has come.
    get: Option<(RequestAndResponse, u64)>,
    /// The request whose body is being sent, and how much of it was.
    put: Option<(RequestAndResponse, u64)>,
    /// Bytes that were received and that no operation has asked for.
    ahead: u64,
    /// Bytes of the last body that was received whole.
    body: u64,
}

impl Http3Connection {
    /// Makes a request and awaits an answer that says that it was done. Where the server closes the connection meanwhile, as it may after a
    /// number of requests, another one takes its place, once.
    fn exchange(
        &mut self,
        unit: Option<&Bytes>,
        flags: &Arc<LiveCancelFlags>,
    ) -> Result<RequestAndResponse> {
        let (stream, head) = match self.link.exchange(&self.uri, unit)? {
            Http3Outcome::Done(answer) => answer,
            Http3Outcome::Unseen(_) => {
                self.reconnect(flags)?;
                match self.link.exchange(&self.uri, unit)? {
                    Http3Outcome::Done(answer) => answer,
                    Http3Outcome::Unseen(error) => return Err(error),
                }
            }
        };
        self.link.check(&head)?;
        Ok(stream)
    }

    fn reconnect(&mut self, flags: &Arc<LiveCancelFlags>) -> Result<()> {
        // One that is shared ends when all have left it.
        self.link.end.close();
        self.link = self.client.connect(self.member, flags)?;
        self.replaced += 1;
        Ok(())
    }

    /// Receives a response's body whole.
    fn whole(
        &mut self,
        mut stream: RequestAndResponse,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<()> {
        self.body = 0;
        while let Some(came) = self.link.more(&mut stream, buffers)? {
            self.body += came;
        }
        Ok(())
    }

    /// The error of a PUT whose data the server does not take, or what it has answered instead.
    fn refused_put(&self, mut stream: RequestAndResponse, error: &StreamError) -> Result<Error> {
        let end = &self.link.end;
        let failure = failed(end, error);
        Ok(match end.run(stream.recv_response())? {
            Ok(head) => {
                let refused = self.link.check(&head).err();
                refused.unwrap_or_else(|| answered_early(self.link.server, &self.upload.method))
            }
            Err(_) => failure,
        })
    }
}

impl LiveConnection for Http3Connection {
    fn call(
        &mut self,
        request: usize,
        _: usize,
        _: Instant,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<bool> {
        let unit = match request {
            0 => None,
            bytes => Some(self.units.next(bytes, buffers)?),
        };
        let stream = self.exchange(unit.as_ref(), &buffers.flags)?;
        self.whole(stream, buffers)?;
        Ok(true)
    }

    fn send(&mut self, bytes: usize, times: u64, buffers: &mut LiveThreadBuffers) -> Result<u64> {
        for done in 0..times {
            if buffers.flags.limit() && times > 1 {
                return Ok(done);
            }
            let unit = self.units.next(bytes, buffers)?;
            if let Some((mut stream, sent)) = self.put.take() {
                self.upload.has_room(sent, bytes as u64)?;
                match self.link.end.run(stream.send_data(unit))? {
                    Ok(()) => self.put = Some((stream, sent + bytes as u64)),
                    Err(error) => return Err(self.refused_put(stream, &error)?),
                }
                self.link.end.runtime.push();
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
                let (mut stream, mut came) = match self.get.take() {
                    Some(open) => open,
                    None => (self.exchange(None, &buffers.flags)?, 0),
                };
                match self.link.more(&mut stream, buffers)? {
                    Some(more) => {
                        came += more;
                        self.ahead += more;
                        self.get = Some((stream, came));
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
        let stream = match self.link.upload(&self.upload, &self.uri)? {
            Http3Outcome::Done(stream) => stream,
            Http3Outcome::Unseen(_) => {
                self.reconnect(&buffers.flags)?;
                match self.link.upload(&self.upload, &self.uri)? {
                    Http3Outcome::Done(stream) => stream,
                    Http3Outcome::Unseen(error) => return Err(error),
                }
            }
        };
        self.put = Some((stream, 0));
        Ok(())
    }

    fn await_start_bulk(&mut self, _: BulkDirection, _: &mut LiveThreadBuffers) -> Result<bool> {
        Err(of_the_other_side())
    }

    fn stop_bulk(&mut self, _: BulkDirection, buffers: &mut LiveThreadBuffers) -> Result<()> {
        let Some((mut stream, sent)) = self.put.take() else {
            return Ok(());
        };
        self.upload.is_complete(sent)?;
        let end = &self.link.end;
        let answered = end.run(async {
            stream.finish().await?;
            stream.recv_response().await
        })?;
        let head = answered.map_err(|e| failed(end, &e))?;
        self.link.check(&head)?;
        self.whole(stream, buffers)
    }

    fn await_stop_bulk(&mut self, _: BulkDirection, _: &mut LiveThreadBuffers) -> Result<()> {
        Err(of_the_other_side())
    }

    fn end_stream(&mut self, _: &mut LiveThreadBuffers) -> Result<()> {
        Ok(())
    }

    fn disconnect(self: Box<Self>, _: &mut LiveThreadBuffers) -> Result<()> {
        let Self { link, get, put, .. } = *self;
        drop((get, put, link.sender));
        link.end.close();
        Ok(())
    }

    fn await_disconnect(&mut self, _: &mut LiveThreadBuffers) -> Result<()> {
        Err(of_the_other_side())
    }

    fn transport(&self) -> Option<TransportRecord> {
        // Of connections that were replaced nothing is known any more.
        Some(self.link.end.transport()?).filter(|_| self.replaced == 0)
    }

    fn settings(&self) -> BTreeMap<String, String> {
        let mut settings = self.link.end.settings();
        settings.insert("server".into(), self.link.server.to_string());
        settings.insert("http".into(), "3".into());
        if self.body > 0 {
            settings.insert("body".into(), format!("{} B", self.body));
        }
        settings
    }

    fn notes(&self) -> Vec<String> {
        notes_of_replacements(self.replaced)
    }
}
