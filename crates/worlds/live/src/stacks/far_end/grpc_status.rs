//! The status with which a gRPC server ends each answer.

use crate::error::{Error, Result};
use http::HeaderMap;
use std::net::SocketAddr;

/// The names of statuses, by number
/// (<https://github.com/grpc/grpc/blob/master/doc/statuscodes.md>).
const STATUSES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];
/// Most characters of a server's message that are shown.
const MESSAGE_MOST: usize = 200;

/// Whether headers or trailers have a status; an error if it is not that of success.
pub(super) fn has_status(server: SocketAddr, fields: Option<&HeaderMap>) -> Result<bool> {
    let field = |name: &str| fields.and_then(|fields| fields.get(name));
    let Some(status) = field("grpc-status") else {
        return Ok(false);
    };
    if status == "0" {
        return Ok(true);
    }
    let text = status.to_str().unwrap_or("?");
    let name = text
        .parse()
        .ok()
        .and_then(|number: usize| STATUSES.get(number));
    let said = field("grpc-message").map_or(String::new(), |said| {
        let said = String::from_utf8_lossy(said.as_bytes());
        let shown = said.chars().filter(|c| !c.is_control()).take(MESSAGE_MOST);
        format!(": {}", shown.collect::<String>())
    });
    let name = name.map_or(String::new(), |name| format!(" {name}"));
    let failure = Error::measurement(format!(
        "the gRPC server at {server} answered with status {text}{name}{said}"
    ));
    Err(match text {
        "12" => {
            failure.hint("it has no such method; name one: \"grpc://HOST/package.Service/Method\"")
        }
        "3" | "13" => failure
            .hint("calls send their bytes as field 1 of the message, of type bytes or string; the option `message` has a whole message in JSON"),
        "5" => failure
            .hint("the health check knows services by name; `rr 0` asks for the server as a whole"),
        "7" | "16" => failure.hint("measure a method that needs no login"),
        "8" | "14" => failure.hint(
            "the server is overloaded or limits its clients: use fewer pairs or a lower rate",
        ),
        _ => failure,
    })
}

/// Whether the server has no such method.
pub(super) fn is_unimplemented(fields: Option<&HeaderMap>) -> bool {
    let status = fields.and_then(|fields| fields.get("grpc-status"));
    status.is_some_and(|status| status == "12")
}

/// The error of an answer without a status.
pub(super) fn without_status(server: SocketAddr) -> Error {
    Error::measurement(format!(
        "the server at {server} ended an answer without a gRPC status"
    ))
    .hint("is it a gRPC server? `http(version = http2)` measures a web server")
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn a_status_is_reported_with_its_name_and_what_the_server_said() {
        let server = SocketAddr::from(([127, 0, 0, 1], 1));
        let mut fields = HeaderMap::new();
        assert!(!has_status(server, Some(&fields)).unwrap());
        fields.insert("grpc-status", HeaderValue::from_static("0"));
        assert!(has_status(server, Some(&fields)).unwrap());
        fields.insert("grpc-status", HeaderValue::from_static("12"));
        fields.insert("grpc-message", HeaderValue::from_static("no such method"));
        let refused = has_status(server, Some(&fields)).unwrap_err();
        assert!(
            refused
                .message
                .ends_with("status 12 UNIMPLEMENTED: no such method"),
            "{refused}"
        );
        fields.insert("grpc-status", HeaderValue::from_static("99"));
        assert!(has_status(server, Some(&fields)).is_err());
    }
}
