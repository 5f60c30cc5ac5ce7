//! Names of monitor points and of segments (the time between two points), two or three words each. Text, JSON, page and pictures
//! use the same names; docs/EVENTS.md explains them.

use crate::lifelines::LifelinePoint;

/// The name of the time from a loss between two points to the retransmission.
pub const SENDS_AGAIN: &str = "wait for retransmission";

/// The step of a unit's way that a point stands for, independent of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TransitStep {
    /// The application hands a unit over, or asks for a connection.
    Call,
    /// A sending system call begins.
    SystemCall,
    /// The protocol sends.
    Protocol,
    /// A sending system call returns.
    SystemCallReturned,
    /// The application's send operation returns.
    Returned,
    /// A packet enters the queue of a port.
    Queue,
    /// A packet leaves the queue: its transmission on the link begins.
    Link,
    /// A packet is seen at a captured interface.
    Capture,
    /// A packet is delivered to its host.
    Delivered,
    /// The protocol has received it.
    Received,
    /// A receiving system call returns.
    Read,
    /// The application has all of it.
    Got,
    /// The client goes on with the next round trip of a request.
    Turn,
    /// A handshake of an opening connection is over.
    Handshake,
    /// Data waits for a flow-control window.
    Blocked,
    /// Data has waited for a flow-control window.
    Released,
    /// A step of a request to a display.
    Display,
    /// A keyword that is not in stackline's catalogue.
    Other,
}

fn step(keyword: &str) -> TransitStep {
    match keyword {
        "APP_CALL" | "APP_SEND" | "APP_REPLY" | "APP_CONNECT" => TransitStep::Call,
        "APP_TURN" => TransitStep::Turn,
        "TCP_CONNECTED" | "TLS_CONNECTED" | "QUIC_CONNECTED" => TransitStep::Handshake,
        "STREAM_BLOCKED" | "CONNECTION_BLOCKED" => TransitStep::Blocked,
        "STREAM_RELEASED" | "CONNECTION_RELEASED" => TransitStep::Released,
        "SOCK_SEND" => TransitStep::SystemCall,
        "TCP_SEGMENT" | "BLAST_SEND" | "QUIC_SENT" => TransitStep::Protocol,
        "SOCK_SENT" => TransitStep::SystemCallReturned,
        "APP_SENT" | "APP_REPLIED" => TransitStep::Returned,
        "NET_ENQUEUE" => TransitStep::Queue,
        "NET_DEQUEUE" => TransitStep::Link,
        "NET_SEEN" => TransitStep::Capture,
        "NET_DELIVER" => TransitStep::Delivered,
        "QUIC_RECEIVED" => TransitStep::Received,
        "SOCK_RECEIVED" => TransitStep::Read,
        "APP_INDICATION" | "APP_RECEIVED" | "APP_RESPONSE" | "APP_CONNECTED" => TransitStep::Got,
        _ if keyword.starts_with("DISPLAY_") => {
            display(keyword).map_or(TransitStep::Other, |_| TransitStep::Display)
        }
        _ => TransitStep::Other,
    }
}

/// For a point of a display request: the name of the point, and the name of the time before it on the same host.
fn display(keyword: &str) -> Option<(&'static str, &'static str)> {
    Some(match keyword {
        "DISPLAY_CALL" => ("draw call", "draw call"),
        "DISPLAY_SEND" => ("handed over", "gathering"),
        "DISPLAY_ARRIVE" => ("arrived", "transport"),
        "DISPLAY_INTERNET" => ("internet server", "internet wait"),
        "DISPLAY_AGENT" => ("agent", "agent wait"),
        "DISPLAY_PARSE" => ("display turns", "display wait"),
        "DISPLAY_STORE" => ("stored", "storing"),
        "DISPLAY_RENDER" => ("drawn", "drawing"),
        "DISPLAY_DONE" => ("answered", "answer"),
        _ => return None,
    })
}

/// The name of a point without its host, as for a row of a picture.
#[must_use]
pub fn point_name(point: &LifelinePoint) -> String {
    let protocol = protocol(&point.keyword);
    match (step(&point.keyword), point.keyword.as_str()) {
        (_, "APP_CONNECT") => "connect call".into(),
        (_, "APP_CONNECTED") => "connected".into(),
        (_, "APP_CALL") => "request call".into(),
        (_, "APP_REPLY") => "reply call".into(),
        (_, "APP_INDICATION") => "request received".into(),
        (_, "APP_RESPONSE") => "response received".into(),
        (TransitStep::Handshake, _) => format!("{protocol} open"),
        (TransitStep::Blocked, keyword) => format!("{} full", window(keyword)),
        (TransitStep::Released, keyword) => format!("{} opens", window(keyword)),
        (TransitStep::Call, _) => "send call".into(),
        (TransitStep::SystemCall, _) => "send system call".into(),
        (TransitStep::Protocol, _) => format!("{protocol} sends"),
        (TransitStep::SystemCallReturned, _) => "system call returns".into(),
        (TransitStep::Returned, _) => "call returns".into(),
        (TransitStep::Queue, _) => "queue".into(),
        (TransitStep::Link, _) => "link".into(),
        (TransitStep::Capture, _) => "capture".into(),
        (TransitStep::Delivered, _) => "delivery".into(),
        (TransitStep::Received, _) => format!("{protocol} receives"),
        (TransitStep::Read, _) => "read".into(),
        (TransitStep::Got, _) => "receive call".into(),
        (TransitStep::Turn, _) => "second round trip".into(),
        (TransitStep::Display, keyword) => display(keyword)
            .map_or(keyword, |(point, _)| point)
            .to_owned(),
        (TransitStep::Other, keyword) => keyword.to_owned(),
    }
}

/// The name of a segment, without the host that it is spent on.
#[must_use]
pub fn segment_name(from: &LifelinePoint, to: &LifelinePoint) -> String {
    let (a, b) = (step(&from.keyword), step(&to.keyword));
    let apart = from.host != to.host;
    match (a, b) {
        (TransitStep::Other, _) | (_, TransitStep::Other) => format!("to {}", to.keyword),
        (_, TransitStep::Handshake) => format!("{} handshake", protocol(&to.keyword)),
        (TransitStep::Handshake, _) => "protocol opening".into(),
        (TransitStep::Blocked, TransitStep::Released) => {
            format!("wait for {}", window(&to.keyword))
        }
        (_, TransitStep::Blocked) => format!("until {} is full", window(&to.keyword)),
        (_, TransitStep::Released) => format!("until {} opens", window(&to.keyword)),
        (TransitStep::Turn, _) => "further round trips".into(),
        (_, TransitStep::Turn) => "between round trips".into(),
        (TransitStep::Display, TransitStep::Display) if to.keyword == "DISPLAY_DONE" => {
            "answer".into()
        }
        (TransitStep::Display, TransitStep::Display) if !apart => {
            display(&to.keyword).map_or_else(String::new, |(_, until)| until.into())
        }
        (TransitStep::Queue, TransitStep::Link) => format!("queue {}", from.place),
        (TransitStep::Link, _) => format!("link {}", from.place),
        (TransitStep::Queue, _) => format!("path {}", from.place),
        (TransitStep::Got, TransitStep::Call) => "service time".into(),
        (TransitStep::Call, TransitStep::Got) if to.keyword == "APP_CONNECTED" => {
            "connection setup".into()
        }
        (TransitStep::Call, TransitStep::Got) => format!("{} transit", carried(to)),
        (_, TransitStep::SystemCall) | (TransitStep::Call, TransitStep::Returned) => {
            "send call".into()
        }
        (TransitStep::SystemCall, TransitStep::SystemCallReturned) => "send system call".into(),
        (_, TransitStep::Protocol) => format!("{} hold", protocol(&to.keyword)),
        (_, TransitStep::Returned | TransitStep::SystemCallReturned) => "send return".into(),
        (TransitStep::Capture, TransitStep::Capture) => "between captures".into(),
        (TransitStep::Protocol, TransitStep::Queue | TransitStep::Capture | TransitStep::Link) => {
            "host output".into()
        }
        // Without a system call before it, this may be a kernel's protocol or a simulated one: of a host at an IMP, say.
        (TransitStep::Call, TransitStep::Queue | TransitStep::Capture | TransitStep::Link) => {
            "protocol hold".into()
        }
        // The kernel's protocol code emits no events, so the time before the queue is its own.
        (_, TransitStep::Queue | TransitStep::Capture | TransitStep::Link) => "kernel hold".into(),
        _ if apart => format!("transit {}>{}", from.host, to.host),
        (TransitStep::Read, TransitStep::Got) => "receive call".into(),
        (_, TransitStep::Read) => "wake and read".into(),
        (_, TransitStep::Got) => "receive call".into(),
        _ => format!("to {}", point_name(to)),
    }
}

/// The name of a segment with its place, if the name alone does not contain it.
#[must_use]
pub fn segment_label(from: &LifelinePoint, to: &LifelinePoint) -> String {
    let name = segment_name(from, to);
    match segment_place(from, to) {
        Some(place) => format!("{name} {place}"),
        None => name,
    }
}

/// The host that a segment is spent on, or the two hosts that it leads between, and the service if points have one; `None` if the
/// segment's name already says it.
#[must_use]
pub fn segment_place(from: &LifelinePoint, to: &LifelinePoint) -> Option<String> {
    let host = segment_host(from, to);
    if to.service.is_empty() {
        return host;
    }
    // The queue's host may be the next one: the time before a packet enters a queue is spent on the host that sends it.
    let at = if step(&to.keyword) == TransitStep::Queue {
        from
    } else {
        to
    };
    match host {
        Some(_) if is_service_time(from, to) && from.service != to.service => {
            Some(format!("{} {}", at.host, between_services(from, to)))
        }
        Some(_) if is_service_time(from, to) && asks(to) => {
            Some(format!("{} between calls to {}", at.host, to.service))
        }
        Some(host) if host == at.host && answers(at) => Some(to.service.clone()),
        Some(host) => Some(format!("{host} for {}", to.service)),
        None => Some(format!("for {}", to.service)),
    }
}

/// The host or pair of hosts of a segment, without services.
fn segment_host(from: &LifelinePoint, to: &LifelinePoint) -> Option<String> {
    let name = segment_name(from, to);
    let says = |place: &str| !place.is_empty() && name.ends_with(place);
    let apart = from.host != to.host;
    let between = format!("{}>{}", from.host, to.host);
    // The queue's host may be the next one: the time before a packet enters a queue is spent on the host that sends it.
    let host = if step(&to.keyword) == TransitStep::Queue {
        &from.host
    } else {
        &to.host
    };
    (!says(&from.place) && !says(&between)).then(|| {
        if apart && carries(&name) {
            between
        } else {
            host.clone()
        }
    })
}

/// Whether a segment is from a received unit to the next call or reply: the time of the application itself.
fn is_service_time(from: &LifelinePoint, to: &LifelinePoint) -> bool {
    step(&from.keyword) == TransitStep::Got && step(&to.keyword) == TransitStep::Call
}

/// Where in a server's work a service time lies: before, between or after its own calls to other services.
fn between_services(from: &LifelinePoint, to: &LifelinePoint) -> String {
    match (asks(from), asks(to)) {
        (true, true) => format!("between {} and {}", from.service, to.service),
        (true, false) => format!("after {}", from.service),
        (false, _) => format!("before {}", to.service),
    }
}

/// Whether a point is at the client end of its service.
fn asks(point: &LifelinePoint) -> bool {
    !answers(point)
}

/// Whether a point is at the server end of its service: by its host, then its keyword, then its direction if both ends are on one
/// host.
fn answers(point: &LifelinePoint) -> bool {
    let is_host = point
        .service
        .rsplit_once(':')
        .is_some_and(|(host, _)| host == point.host);
    let receives = matches!(
        step(&point.keyword),
        TransitStep::Read | TransitStep::Received | TransitStep::Delivered
    );
    is_host
        && match (point.keyword.as_str(), point.place.as_str()) {
            ("APP_CALL" | "APP_CONNECT" | "APP_RESPONSE" | "APP_CONNECTED", _) => false,
            ("APP_INDICATION" | "APP_REPLY", _) => true,
            (_, "there") => receives,
            (_, "back") => !receives,
            _ => true,
        }
}

/// Whether a segment with this name is a transfer from host to host.
fn carries(name: &str) -> bool {
    name.ends_with("transit") || name == "answer"
}

/// What a received unit is called in "... transit".
fn carried(to: &LifelinePoint) -> &'static str {
    match to.keyword.as_str() {
        "APP_INDICATION" => "request",
        "APP_RESPONSE" => "response",
        _ => "unit",
    }
}

/// The flow-control window of a keyword such as `STREAM_BLOCKED`.
fn window(keyword: &str) -> &'static str {
    if keyword.starts_with("STREAM") {
        "stream window"
    } else {
        "connection window"
    }
}

/// The protocol of a keyword: its first word, such as `TCP` of `TCP_SEGMENT`.
fn protocol(keyword: &str) -> &str {
    keyword.split('_').next().unwrap_or(keyword)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(text: &str) -> LifelinePoint {
        let mut words = text.split(' ').map(str::to_owned);
        let mut next = || words.next().unwrap_or_default();
        LifelinePoint {
            keyword: next(),
            host: next(),
            place: next(),
            service: next(),
        }
    }

    fn named(path: &[&str]) -> Vec<String> {
        let points: Vec<LifelinePoint> = path.iter().map(|text| point(text)).collect();
        points
            .windows(2)
            .map(|pair| segment_label(&pair[0], &pair[1]))
            .collect()
    }

    #[test]
    fn a_unit_across_a_switch() {
        let path = [
            "APP_SEND usw",
            "APP_SENT usw",
            "TCP_SEGMENT usw",
            "NET_ENQUEUE usw usw>asx",
            "NET_DEQUEUE usw usw>asx",
            "NET_ENQUEUE asx asx>onyx",
            "NET_DEQUEUE asx asx>onyx",
            "NET_DELIVER onyx onyx",
            "APP_RECEIVED onyx",
        ];
        let expected = [
            "send call usw",
            "TCP hold usw",
            "host output usw",
            "queue usw>asx",
            "link usw>asx",
            "queue asx>onyx",
            "link asx>onyx",
            "receive call onyx",
        ];
        assert_eq!(named(&path), expected);
    }

    #[test]
    fn a_call_over_sockets() {
        let path = [
            "APP_CALL k",
            "SOCK_SEND k",
            "SOCK_SENT k",
            "SOCK_RECEIVED u",
            "APP_INDICATION u",
            "APP_REPLY u",
            "SOCK_SEND u",
            "SOCK_SENT u",
            "APP_REPLIED u",
            "SOCK_RECEIVED k",
            "APP_RESPONSE k",
        ];
        let expected = [
            "send call k",
            "send system call k",
            "transit k>u",
            "receive call u",
            "service time u",
            "send call u",
            "send system call u",
            "send return u",
            "transit u>k",
            "receive call k",
        ];
        assert_eq!(named(&path), expected);
    }

    #[test]
    fn a_connection_with_handshakes() {
        let path = [
            "APP_CONNECT k",
            "TCP_CONNECTED k",
            "TLS_CONNECTED k",
            "APP_CONNECTED k",
        ];
        let expected = ["TCP handshake k", "TLS handshake k", "protocol opening k"];
        assert_eq!(named(&path), expected);
        assert_eq!(
            named(&["APP_CONNECT k", "QUIC_CONNECTED k"]),
            ["QUIC handshake k"]
        );
    }

    #[test]
    fn a_unit_that_waits_for_a_window() {
        let path = [
            "APP_SEND k",
            "STREAM_BLOCKED k",
            "STREAM_RELEASED k",
            "SOCK_SEND k",
        ];
        let expected = [
            "until stream window is full k",
            "wait for stream window k",
            "send call k",
        ];
        assert_eq!(named(&path), expected);
        assert_eq!(
            named(&["CONNECTION_BLOCKED k", "CONNECTION_RELEASED k"]),
            ["wait for connection window k"]
        );
    }

    #[test]
    fn a_request_behind_a_proxy() {
        let path = [
            "APP_CALL client there web:80",
            "SOCK_RECEIVED web there web:80",
            "APP_INDICATION web there web:80",
            "APP_CALL web there app:8000",
            "APP_INDICATION app there app:8000",
            "APP_REPLY app back app:8000",
            "NET_ENQUEUE app app>web app:8000",
            "NET_DEQUEUE app app>web app:8000",
            "APP_RESPONSE web back app:8000",
            "APP_REPLY web back web:80",
        ];
        let expected = [
            "transit client>web for web:80",
            "receive call web:80",
            "service time web before app:8000",
            "request transit web>app for app:8000",
            "service time app:8000",
            "protocol hold app:8000",
            "queue app>web for app:8000",
            "link app>web for app:8000",
            "service time web after app:8000",
        ];
        assert_eq!(named(&path), expected);
    }

    #[test]
    fn where_the_kernel_s_protocol_records_nothing_the_kernel_holds() {
        assert_eq!(
            named(&["SOCK_SENT a", "NET_ENQUEUE a a>b"]),
            ["kernel hold a"]
        );
        assert_eq!(
            named(&["APP_CALL a", "NET_ENQUEUE a a>b"]),
            ["protocol hold a"]
        );
    }

    #[test]
    fn a_request_to_a_display() {
        let path = [
            "CALL k", "SEND k", "ARRIVE u", "AGENT u", "PARSE u", "STORE u", "RENDER u", "DONE k",
        ];
        let path = path.map(|point| format!("DISPLAY_{point}"));
        let expected = [
            "gathering k",
            "transit k>u",
            "agent wait u",
            "display wait u",
            "storing u",
            "drawing u",
            "answer u>k",
        ];
        assert_eq!(named(&path.each_ref().map(String::as_str)), expected);
        assert_eq!(named(&["DISPLAY_RENDER k", "DISPLAY_DONE k"]), ["answer k"]);
        assert_eq!(
            named(&["DISPLAY_CLEAR k", "DISPLAY_DONE k"]),
            ["to DISPLAY_DONE k"]
        );
    }

    #[test]
    fn of_others_the_keyword_is_the_name() {
        assert_eq!(
            named(&["DPSS_START_READ s", "DPSS_END_READ s"]),
            ["to DPSS_END_READ s"]
        );
        assert_eq!(
            named(&[
                "APP_CALL k",
                "APP_INDICATION u",
                "APP_REPLY u",
                "APP_RESPONSE k"
            ])[0],
            "request transit k>u"
        );
        assert_eq!(point_name(&point("DPSS_END_READ s")), "DPSS_END_READ");
    }

    /// A keyword that lies on ways has a name of two or three words, so that none is shown as a keyword.
    #[test]
    fn every_keyword_on_a_path_has_a_name() {
        for entry in stackline_events::catalogue::ENTRIES {
            let role = crate::assemble::roles::KeywordRole::from_keyword(entry.keyword);
            if role.class == crate::assemble::roles::EventClass::OnPath {
                assert_ne!(step(entry.keyword), TransitStep::Other, "{}", entry.keyword);
            }
        }
    }
}
