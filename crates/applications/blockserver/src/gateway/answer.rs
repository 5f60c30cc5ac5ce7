//! Turns a request into an answer. Only GET, HEAD and OPTIONS are supported, and no request may have a body.

use super::body::{END, GatewayBody, GatewayListBody, GatewayListViewer, GatewayRangeBody};
use super::fault::GatewayFault;
use super::limits;
use super::memory_limit::Room;
use super::range::{self, GatewayRangeRequest};
use super::route::{self, GatewayRoute, GatewayTileName};
use super::session::{GatewayOpenSet, GatewaySessions};
use super::viewers::Viewers;
use super::{entity_tag, pages, picture, request_check, server_timing};
use crate::server::now;
use bytes::Bytes;
use hyper::body::{Body as _, Incoming};
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use png::ColorType;
use stackline_blocks::pyramid::Pyramid;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// What all connections of a gateway share.
pub(super) struct Gateway {
    pub(super) sessions: GatewaySessions,
    pub(super) viewers: Arc<Viewers>,
    /// The memory that is held for all clients.
    pub(super) room: Arc<Room>,
    /// Limits how many large pictures are encoded at the same time.
    pub(super) pictures: Semaphore,
    pub(super) texts: Semaphore,
}

pub(super) type GatewayResponse = Response<GatewayBody>;

const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");
/// A set's name can be deleted and loaded again at any time, so caches have to revalidate by the tag, which costs no block.
const ASK_AGAIN: &str = "public, no-cache";
const METHODS: &str = "GET, HEAD, OPTIONS";
const EXPOSED: &str = "Accept-Ranges, Content-Length, Content-Range, ETag, Server-Timing";

/// The parts of a request that matter for its answer.
struct GatewayRequest {
    headers: HeaderMap,
    head_only: bool,
    entered: u64,
}

impl GatewayRequest {
    fn header(&self, name: HeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The answer if the client requires another tag (If-Match), or has this one already (If-None-Match); otherwise `None`.
    fn judged(&self, tag: &str) -> Result<Option<GatewayResponse>, GatewayFault> {
        if self
            .header(header::IF_MATCH)
            .is_some_and(|header| !entity_tag::is_wanted(header, tag))
        {
            return Err(GatewayFault::new(
                StatusCode::PRECONDITION_FAILED,
                "the resource does not match the version that the client requires (If-Match)",
            ));
        }
        let has_it = self
            .header(header::IF_NONE_MATCH)
            .is_some_and(|header| entity_tag::matches_entity_tag(header, tag));
        Ok(has_it.then(|| unchanged(tag)))
    }
}

impl Gateway {
    /// Answers a request.
    pub(super) async fn answer(&self, request: Request<Incoming>) -> GatewayResponse {
        let entered = now().0;
        let (parts, body) = request.into_parts();
        let head_only = parts.method == Method::HEAD;
        let mut answer = match request_check::find_request_fault(&parts)
            .map(malformed)
            .or_else(|| self.judged(&parts.method, &body))
        {
            Some(answer) => answer,
            None => {
                let asking = GatewayRequest {
                    headers: parts.headers,
                    head_only,
                    entered,
                };
                let (path, query) = (parts.uri.path(), parts.uri.query());
                self.routed(path, query, &asking)
                    .await
                    .unwrap_or_else(|fault| refused(&fault))
            }
        };
        let headers = answer.headers_mut();
        headers.insert(
            header::ACCESS_CONTROL_ALLOW_ORIGIN,
            HeaderValue::from_static("*"),
        );
        headers.insert(
            header::ACCESS_CONTROL_EXPOSE_HEADERS,
            HeaderValue::from_static(EXPOSED),
        );
        headers.insert(
            HeaderName::from_static("timing-allow-origin"),
            HeaderValue::from_static("*"),
        );
        headers.insert(
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        );
        if head_only {
            let length = answer.body().size_hint().exact();
            if let (Some(length), None) = (length, answer.headers().get(header::CONTENT_LENGTH)) {
                answer
                    .headers_mut()
                    .insert(header::CONTENT_LENGTH, length.into());
            }
            *answer.body_mut() = GatewayBody::Whole(Bytes::new());
        }
        answer
    }

    /// The answer if it does not depend on the path.
    fn judged(&self, method: &Method, body: &Incoming) -> Option<GatewayResponse> {
        if *method == Method::OPTIONS {
            let mut answer = plain(StatusCode::NO_CONTENT, Bytes::new());
            let headers = answer.headers_mut();
            headers.insert(header::ALLOW, HeaderValue::from_static(METHODS));
            headers.insert(
                header::ACCESS_CONTROL_ALLOW_METHODS,
                HeaderValue::from_static(METHODS),
            );
            headers.insert(
                header::ACCESS_CONTROL_ALLOW_HEADERS,
                HeaderValue::from_static("Range, If-None-Match"),
            );
            headers.insert(
                header::ACCESS_CONTROL_MAX_AGE,
                HeaderValue::from_static("86400"),
            );
            return Some(answer);
        }
        if !matches!(*method, Method::GET | Method::HEAD) {
            let words = format!("this gateway is read-only: use {METHODS}");
            let mut answer = refused(&GatewayFault::new(StatusCode::METHOD_NOT_ALLOWED, words));
            answer
                .headers_mut()
                .insert(header::ALLOW, HeaderValue::from_static(METHODS));
            return Some(answer);
        }
        if !body.is_end_stream() {
            let mut answer = refused(&GatewayFault::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "requests here must not have a body",
            ));
            answer
                .headers_mut()
                .insert(header::CONNECTION, HeaderValue::from_static("close"));
            return Some(answer);
        }
        None
    }

    async fn routed(
        &self,
        path: &str,
        query: Option<&str>,
        asking: &GatewayRequest,
    ) -> Result<GatewayResponse, GatewayFault> {
        let route =
            GatewayRoute::parse(path).ok_or_else(|| GatewayFault::not_found("no such path"))?;
        match route {
            GatewayRoute::Sets => self.sets(asking).await,
            GatewayRoute::Whole(name) => self.whole(&name, asking).await,
            GatewayRoute::Block(name, number) => self.block(&name, number, asking).await,
            GatewayRoute::Tile(name, tile) => self.tile(&name, tile, asking).await,
            GatewayRoute::View(name) => self.view(&name).await,
            GatewayRoute::List(name) => self.list(&name, query).await,
        }
    }

    async fn sets(&self, asking: &GatewayRequest) -> Result<GatewayResponse, GatewayFault> {
        let _few = self.texts.acquire().await;
        let (sets, servers) = self.sessions.list().await?;
        let wants_page = asking
            .header(header::ACCEPT)
            .is_some_and(|accept| accept.contains("text/html"));
        let (kind, text) = match wants_page {
            true => ("text/html; charset=utf-8", pages::sets_page(&sets)),
            false => ("application/json", pages::sets_json(&sets, &servers)),
        };
        drop((sets, servers));
        let words = "the gateway has reached its memory limit for clients";
        let taken = self
            .room
            .wait(text.len() as u64)
            .await
            .ok_or_else(|| GatewayFault::unavailable(words))?;
        let mut answer = typed(kind, GatewayBody::Whole(taken.holding(text.into_bytes())));
        let headers = answer.headers_mut();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(header::VARY, HeaderValue::from_static("Accept"));
        headers.insert(
            header::CONTENT_SECURITY_POLICY,
            HeaderValue::from_static("default-src 'none'"),
        );
        Ok(answer)
    }

    async fn view(&self, name: &str) -> Result<GatewayResponse, GatewayFault> {
        let open = self.sessions.open_now(name).await?;
        let (picture, _) = picture::check_drawable(name, open.set.about.picture.as_ref())?;
        let nonce = crate::key::generate_identity()
            .map_err(|error| GatewayFault::unavailable(error.to_string()))?;
        let nonce = format!("{nonce:032x}");
        let mut answer = typed(
            "text/html; charset=utf-8",
            GatewayBody::Whole(pages::render_view_page(name, &picture, &nonce).into()),
        );
        let policy = format!(
            "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; \
             base-uri 'none'; form-action 'none'"
        );
        set(&mut answer, header::CONTENT_SECURITY_POLICY, &policy);
        set(&mut answer, header::CACHE_CONTROL, "no-store");
        Ok(answer)
    }

    async fn block(
        &self,
        name: &str,
        number: u64,
        asking: &GatewayRequest,
    ) -> Result<GatewayResponse, GatewayFault> {
        let mut open = self.sessions.open(name).await?;
        if let Some(answer) = self.known(&mut open, number, "block", asking).await? {
            return Ok(answer);
        }
        let came = self.sessions.block(&mut open, number).await?;
        let tag =
            entity_tag::format_entity_tag("block", &open.set, came.head.checksum, came.head.length);
        if let Some(answer) = asking.judged(&tag)? {
            return Ok(answer);
        }
        let mut answer = typed(
            "application/octet-stream",
            GatewayBody::Whole(came.data.clone()),
        );
        set(
            &mut answer,
            SERVER_TIMING,
            &server_timing::format_block_timing(&came, asking.entered),
        );
        Ok(tagged(answer, &tag))
    }

    async fn tile(
        &self,
        name: &str,
        tile: GatewayTileName,
        asking: &GatewayRequest,
    ) -> Result<GatewayResponse, GatewayFault> {
        let mut open = self.sessions.open(name).await?;
        let (picture, mut came) = loop {
            let (picture, number) = tile_of(&open, tile)?;
            let before = open.set.id;
            if let Some(answer) = self.known(&mut open, number, "png", asking).await? {
                return Ok(answer);
            }
            let came = self.sessions.block(&mut open, number).await?;
            // If this fails, the set was loaded again in the meantime, perhaps as another picture.
            if open.set.id == before {
                break (picture, came);
            }
        };
        let tag =
            entity_tag::format_entity_tag("png", &open.set, came.head.checksum, came.head.length);
        if let Some(answer) = asking.judged(&tag)? {
            return Ok(answer);
        }
        let begun = now().0;
        // The memory of the pixels is released as soon as the picture is encoded.
        let pixels = std::mem::take(&mut came.data);
        let file = self.encoded(picture, pixels).await?;
        let encoding = now().0.saturating_sub(begun);
        let mut answer = typed("image/png", GatewayBody::Whole(file));
        let header = format!(
            "{}, png;dur={:.3}",
            server_timing::format_block_timing(&came, asking.entered),
            encoding as f64 / 1e6
        );
        set(&mut answer, SERVER_TIMING, &header);
        Ok(tagged(answer, &tag))
    }

    /// The answer that needs no block: for a client that has the block already, or wants only the head. `None` if the master, which knows
    /// the checksums, cannot be asked, or if the picture would have to be encoded.
    async fn known(
        &self,
        open: &mut GatewayOpenSet,
        number: u64,
        kind: &str,
        asking: &GatewayRequest,
    ) -> Result<Option<GatewayResponse>, GatewayFault> {
        let asks_of_tag = [header::IF_MATCH, header::IF_NONE_MATCH]
            .into_iter()
            .any(|name| asking.header(name).is_some());
        let asks = asking.head_only || asks_of_tag;
        if !asks {
            return Ok(None);
        }
        let Some(checksum) = self.sessions.checksum(open, number).await? else {
            return Ok(None);
        };
        let length = open.set.about.length(number);
        let tag = entity_tag::format_entity_tag(kind, &open.set, checksum, length);
        if let Some(answer) = asking.judged(&tag)? {
            return Ok(Some(answer));
        }
        if !asking.head_only || kind != "block" {
            return Ok(None);
        }
        let mut answer = typed("application/octet-stream", GatewayBody::Whole(Bytes::new()));
        answer
            .headers_mut()
            .insert(header::CONTENT_LENGTH, length.into());
        Ok(Some(tagged(answer, &tag)))
    }

    async fn whole(
        &self,
        name: &str,
        asking: &GatewayRequest,
    ) -> Result<GatewayResponse, GatewayFault> {
        // A set has no tag, so only `If-Match: *` can match.
        let _ = asking
            .header(header::IF_MATCH)
            .map(|_| asking.judged(""))
            .transpose()?;
        let mut open = match asking.head_only {
            true => self.sessions.open_now(name).await?,
            false => self.sessions.open(name).await?,
        };
        let mut again = true;
        loop {
            let length = open.set.about.bytes;
            let asked = range_asked_for(asking, length);
            let (first, last) = match asked {
                GatewayRangeRequest::All => (0, length - 1),
                GatewayRangeRequest::Part(first, last) => (first, last),
                GatewayRangeRequest::Nowhere => {
                    return Ok(unsatisfied(length, "the set ends before that range"));
                }
                GatewayRangeRequest::Several => {
                    return Ok(unsatisfied(length, "only one range at a time"));
                }
            };
            if asking.head_only {
                return Ok(describe_set(length));
            }
            let mut body = GatewayRangeBody::begin(&open, first, last);
            let waited = match body.first(asking.entered).await {
                Ok(waited) => waited,
                Err((_, failure)) if again && self.sessions.mend(&open, &failure).await => {
                    again = false;
                    open = self.sessions.open(name).await?;
                    continue;
                }
                Err((number, failure)) => {
                    return Err(GatewayFault::of_block(name, number, &failure));
                }
            };
            let size = u64::from(open.set.about.block_size);
            let blocks = last / size - first / size + 1;
            let mut answer = typed(
                "application/octet-stream",
                GatewayBody::Range(Box::new(body)),
            );
            answer
                .headers_mut()
                .insert(header::CONTENT_LENGTH, (last - first + 1).into());
            set(
                &mut answer,
                SERVER_TIMING,
                &server_timing::format_range_timing(blocks, waited.blocks, waited.slowest),
            );
            if asked != GatewayRangeRequest::All {
                *answer.status_mut() = StatusCode::PARTIAL_CONTENT;
                set(
                    &mut answer,
                    header::CONTENT_RANGE,
                    &format!("bytes {first}-{last}/{length}"),
                );
            }
            return Ok(ranged(answer));
        }
    }

    async fn encoded(
        &self,
        picture: (Pyramid, ColorType),
        pixels: Bytes,
    ) -> Result<Bytes, GatewayFault> {
        let (large, room) = (pixels.len() >= picture::LARGE, Arc::clone(&self.room));
        let work = move || {
            let mut file = picture::encode_picture(&picture.0, picture.1, &pixels)?;
            file.shrink_to_fit();
            Ok(room.take_anyway(file.len() as u64).holding(file))
        };
        if !large {
            return work();
        }
        let _few = self.pictures.acquire().await;
        let done = tokio::task::spawn_blocking(work).await;
        done.unwrap_or_else(|_| Err(GatewayFault::unavailable("the gateway is shutting down")))
    }

    async fn list(&self, name: &str, query: Option<&str>) -> Result<GatewayResponse, GatewayFault> {
        let (numbers, viewer) = wanted(query.unwrap_or_default())?;
        let open = self.sessions.open_now(name).await?;
        let viewer = viewer.map(|name| GatewayListViewer {
            viewers: Arc::clone(&self.viewers),
            name,
        });
        let list = GatewayListBody::begin(&open, numbers, viewer);
        let mut answer = typed(
            "application/vnd.stackline.blocks",
            GatewayBody::List(Box::new(list)),
        );
        set(&mut answer, header::CACHE_CONTROL, "no-store");
        Ok(answer)
    }
}

fn tile_of(
    open: &GatewayOpenSet,
    tile: GatewayTileName,
) -> Result<((Pyramid, ColorType), u64), GatewayFault> {
    let name = &open.set.about.name;
    let picture = picture::check_drawable(name, open.set.about.picture.as_ref())?;
    let number = tile
        .tile(&picture.0)
        .and_then(|tile| picture.0.number(tile));
    let number = number
        .ok_or_else(|| GatewayFault::not_found(format!("the picture {name} has no such tile")))?;
    Ok((picture, number))
}

/// Parses the blocks and the viewer from a query such as `numbers=1,2,7-9&viewer=me`.
fn wanted(query: &str) -> Result<(Vec<u64>, Option<String>), GatewayFault> {
    let bad = |words: &str| GatewayFault::new(StatusCode::BAD_REQUEST, words);
    let (mut numbers, mut viewer) = (Vec::new(), None);
    for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
        match name {
            "numbers" => {
                for part in value.split(',') {
                    let (first, last) = part.split_once('-').unwrap_or((part, part));
                    let ends = route::number::<u64>(first).zip(route::number::<u64>(last));
                    let (first, last) =
                        ends.ok_or_else(|| bad("write numbers as in numbers=1,2,7-9"))?;
                    let count = last
                        .checked_sub(first)
                        .ok_or_else(|| bad("a range must begin with its smaller number"))?;
                    if last == END {
                        return Err(bad(&format!(
                            "{END} is not a block number: it marks the end of a list"
                        )));
                    }
                    if count >= (limits::LIST - numbers.len()) as u64 {
                        return Err(bad(&format!(
                            "a list may have at most {} blocks",
                            limits::LIST
                        )));
                    }
                    numbers.extend(first..=last);
                }
            }
            "viewer" => {
                let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
                if value.is_empty() || value.len() > limits::VIEWER || !value.chars().all(plain) {
                    return Err(bad(
                        "a viewer name may have up to 64 letters, digits, dots, underscores and dashes",
                    ));
                }
                viewer = Some(value.to_owned());
            }
            _ => {
                return Err(bad(
                    "a list takes numbers=1,2,7-9 and optionally viewer=NAME",
                ));
            }
        }
    }
    Ok((numbers, viewer))
}

fn plain(status: StatusCode, words: Bytes) -> GatewayResponse {
    let mut answer = Response::new(GatewayBody::Whole(words));
    *answer.status_mut() = status;
    answer
}

/// The answer to a malformed request. The connection is closed, since what follows cannot be trusted to be a request.
fn malformed(words: &str) -> GatewayResponse {
    let mut answer = refused(&GatewayFault::new(StatusCode::BAD_REQUEST, words));
    answer
        .headers_mut()
        .insert(header::CONNECTION, HeaderValue::from_static("close"));
    answer
}

/// The answer when nothing came for too long.
pub(super) fn build_late_response() -> GatewayResponse {
    refused(&GatewayFault::new(
        StatusCode::GATEWAY_TIMEOUT,
        "the servers sent nothing for too long",
    ))
}

fn refused(fault: &GatewayFault) -> GatewayResponse {
    let words = format!("{}: {}\n", fault.status.as_u16(), fault.words);
    let mut answer = plain(fault.status, words.into());
    let headers = answer.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if fault.status == StatusCode::SERVICE_UNAVAILABLE {
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    answer
}

fn typed(kind: &'static str, body: GatewayBody) -> GatewayResponse {
    let mut answer = Response::new(body);
    answer
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

/// Sets a header, unless the text is not allowed in a header.
fn set(answer: &mut GatewayResponse, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        answer.headers_mut().insert(name, value);
    }
}

fn tagged(mut answer: GatewayResponse, tag: &str) -> GatewayResponse {
    set(&mut answer, header::ETAG, tag);
    set(&mut answer, header::CACHE_CONTROL, ASK_AGAIN);
    answer
}

fn unchanged(tag: &str) -> GatewayResponse {
    tagged(plain(StatusCode::NOT_MODIFIED, Bytes::new()), tag)
}

fn ranged(mut answer: GatewayResponse) -> GatewayResponse {
    set(&mut answer, header::ACCEPT_RANGES, "bytes");
    // Ranges have no tag that would show whether the set was loaded again, so they must not be cached.
    set(&mut answer, header::CACHE_CONTROL, "no-store");
    answer
}

fn unsatisfied(length: u64, words: &str) -> GatewayResponse {
    let mut answer = refused(&GatewayFault::new(StatusCode::RANGE_NOT_SATISFIABLE, words));
    set(
        &mut answer,
        header::CONTENT_RANGE,
        &format!("bytes */{length}"),
    );
    answer
}

/// The range of bytes that a request asks for.
fn range_asked_for(asking: &GatewayRequest, length: u64) -> GatewayRangeRequest {
    // A set has no tag, so If-Range never matches, and the whole set is meant (RFC 9110, section 13.1.5).
    let header = asking
        .header(header::RANGE)
        .filter(|_| asking.header(header::IF_RANGE).is_none());
    if asking.head_only {
        GatewayRangeRequest::All
    } else {
        range::parse_range(header, length)
    }
}

/// The answer to a HEAD request for a set.
fn describe_set(length: u64) -> GatewayResponse {
    let mut answer = typed("application/octet-stream", GatewayBody::Whole(Bytes::new()));
    answer
        .headers_mut()
        .insert(header::CONTENT_LENGTH, length.into());
    ranged(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_numbers_and_spans() {
        assert_eq!(
            wanted("numbers=1,2,7-9").unwrap(),
            (vec![1, 2, 7, 8, 9], None)
        );
        assert_eq!(
            wanted("viewer=me&numbers=0").unwrap(),
            (vec![0], Some("me".into()))
        );
        assert_eq!(wanted("").unwrap(), (vec![], None));
        assert_eq!(
            wanted(&format!("numbers=1-{}", limits::LIST))
                .unwrap()
                .0
                .len(),
            limits::LIST
        );
        let too_long = format!("numbers=0-{}", limits::LIST);
        for query in [
            "numbers=",
            "numbers=a",
            "numbers=3-1",
            "numbers=0-18446744073709551615",
            "numbers=18446744073709551615",
            "numbers=0,18446744073709551614-18446744073709551615",
            "viewer=",
            "viewer=a%20",
            "x=1",
            &too_long,
        ] {
            assert_eq!(
                wanted(query).unwrap_err().status,
                StatusCode::BAD_REQUEST,
                "{query}"
            );
        }
    }
}
