//! Which statuses of answers say that a request failed, by protocol, and what their codes mean in words.

/// Protocols in which a status that begins with one of [`ERRORS`] is a failure.
const ERRORS_FAIL: [&str; 9] = [
    "AMQP",
    "Kafka",
    "MQTT",
    "MongoDB",
    "MySQL",
    "NATS",
    "PostgreSQL",
    "SOCKS",
    "memcached",
];
/// How the statuses of errors begin.
const ERRORS: [&str; 3] = ["ERROR", "FATAL", "PANIC"];
/// TLS alerts that are no failures, as they only end a session or refuse a part of it: close_notify, user_canceled, no_renegotiation.
const GOODBYES: [&str; 3] = ["0", "90", "100"];
/// The first words of Redis errors that are failures. Errors that tell a client where to ask, that a script is not loaded, or that a group
/// exists are ordinary answers.
const REDIS: &str = " BUSY BUSYKEY CLUSTERDOWN CROSSSLOT DENIED ERR ERROR EXECABORT INPROG IOERR LOADING MASTERDOWN MISCONF \
    NOADDR NOAUTH NOGOODSLAVE NOGROUP NOMASTERLINK NOPERM NOPROTO NOQUORUM NOREPLICAS NOSUB NOTBUSY NOTREADY OOM READONLY STALE \
    SYNTAX TRYAGAIN UNKILLABLE WRONGPASS WRONGTYPE ";

/// Codes and their meaning: SQLSTATE (PostgreSQL, appendix A; MySQL reports it in brackets), complete or its first digits, and the first
/// words of Redis errors. More specific codes come first.
const WORDS: &[(&str, &str)] = &[
    ("08", "no connection"),
    ("22", "an invalid value"),
    ("23502", "a value is missing"),
    (
        "23503",
        "the object it refers to does not exist, or other objects still refer to it",
    ),
    ("23505", "it already exists"),
    ("23", "a violated constraint"),
    ("25P02", "its transaction has already failed"),
    ("28", "the login was refused"),
    ("40001", "another transaction came first"),
    ("40P01", "deadlock"),
    ("40", "its transaction was rolled back"),
    ("42501", "not permitted"),
    ("42601", "syntax"),
    ("42703", "no such column"),
    ("42P01", "no such table"),
    ("42S02", "no such table"),
    ("42S22", "no such column"),
    ("42", "a syntax error or an unknown name"),
    ("53300", "too many connections"),
    ("53", "out of memory, disk or connections"),
    ("55P03", "a lock could not be acquired"),
    ("57014", "cancelled or timed out"),
    ("57", "the server was shut down"),
    ("CLUSTERDOWN", "the cluster is incomplete"),
    ("LOADING", "it is loading its data"),
    ("MISCONF", "it cannot write to its disk"),
    ("NOAUTH", "not logged in"),
    ("NOPERM", "not permitted"),
    ("OOM", "out of memory"),
    ("READONLY", "a replica accepts no writes"),
    ("WRONGPASS", "the login was refused"),
    ("WRONGTYPE", "the key holds another kind of value"),
];

/// TLS alerts in words (RFC 8446, 6.2).
const ALERTS: &[(&str, &str)] = &[
    ("20", "a damaged record"),
    ("40", "no parameters in common"),
    ("42", "a bad certificate"),
    ("43", "an unsupported kind of certificate"),
    ("44", "a revoked certificate"),
    ("45", "an expired certificate"),
    ("46", "an unacceptable certificate"),
    ("47", "an illegal value"),
    ("48", "an unknown certificate authority"),
    ("49", "not permitted"),
    ("51", "a wrong signature"),
    ("70", "no version in common"),
    ("71", "insufficient security"),
    ("80", "an internal error"),
    ("112", "an unknown server name"),
    ("116", "a certificate is required"),
    ("120", "no application protocol in common"),
];

/// Whether a client introduces itself by a request, or asks what its server can do: an error is an ordinary answer then, and the client
/// goes on.
#[must_use]
pub(crate) fn is_introduction(protocol: &str, name: &str) -> bool {
    let command = name.split([' ', ':']).next().unwrap_or_default();
    match protocol {
        "RESP" => ["CLIENT", "COMMAND", "HELLO"].contains(&command),
        "FTP" => FTP_PROBES.contains(&command),
        _ => false,
    }
}

/// Commands by which clients of FTP find out what a server can do: a refusal is an ordinary answer.
const FTP_PROBES: [&str; 13] = [
    "AUTH", "CLNT", "EPRT", "EPSV", "FEAT", "HOST", "LANG", "MDTM", "MLSD", "MLST", "OPTS", "SIZE",
    "SYST",
];

/// Before the status of a handshake that its client ended with an alert.
const OF_CLIENT: &str = "client ";

/// Whether the client ended a handshake with an alert: it does not accept what the server sent.
#[must_use]
pub(crate) fn is_client_alert(protocol: &str, status: &str) -> bool {
    let of_client = status.strip_prefix(OF_CLIENT);
    of_client.is_some_and(|status| is_failure_status(protocol, status))
}

/// Whether a status says that its request failed: HTTP 4xx and 5xx, gRPC other than 0, errors of databases, brokers and caches, TLS alerts.
/// An answer that nothing was found is not a failure there.
#[must_use]
pub fn is_failure_status(protocol: &str, status: &str) -> bool {
    // HTTP and FTP: three digits, of which the first says what went wrong.
    let is_http = (protocol.starts_with("HTTP") || protocol == "FTP")
        && status.len() == 3
        && (status.starts_with('4') || status.starts_with('5'));
    let is_grpc = status
        .strip_prefix("grpc-status ")
        .is_some_and(|code| !code.starts_with('0'));
    let is_error =
        ERRORS_FAIL.contains(&protocol) && ERRORS.iter().any(|word| status.starts_with(word));
    let is_alert = protocol.contains("TLS")
        && without_side(status)
            .strip_prefix("alert ")
            .is_some_and(|code| !GOODBYES.contains(&code));
    let is_redis = protocol == "RESP" && REDIS.split(' ').any(|word| word == status);
    is_http || is_grpc || is_error || is_alert || (is_redis && !status.is_empty())
}

/// A status without the side that it is of.
fn without_side(status: &str) -> &str {
    status.strip_prefix(OF_CLIENT).unwrap_or(status)
}

/// A status with its meaning, if that is known: `ERROR 42P01, no such table`.
pub(crate) fn status_in_words(protocol: &str, status: &str) -> String {
    let is_alert = protocol.contains("TLS");
    let code = match protocol {
        _ if is_alert => without_side(status).strip_prefix("alert "),
        "PostgreSQL" => status.rsplit(' ').next(),
        "MySQL" => status
            .split_once('(')
            .and_then(|(_, code)| code.strip_suffix(')')),
        "RESP" => Some(status),
        _ => None,
    };
    let is_meant = |known: &str, code: &str| match protocol {
        _ if is_alert => known == code,
        "RESP" => known == code,
        _ => code.starts_with(known) && known.starts_with(|first: char| first.is_ascii_digit()),
    };
    let words = code.and_then(|code| {
        let mut known = if is_alert { ALERTS } else { WORDS }.iter();
        let found = known.find(|(known, _)| is_meant(known, code));
        found.map(|(_, words)| *words)
    });
    words.map_or_else(|| status.to_owned(), |words| format!("{status}, {words}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_failures_and_nothing_found_is_none() {
        for (protocol, status) in [
            ("HTTP/1.1", "404"),
            ("HTTP/2", "503"),
            ("gRPC", "grpc-status 14"),
            ("PostgreSQL", "ERROR 42P01"),
            ("PostgreSQL", "FATAL 53300"),
            ("MySQL", "ERROR 1146 (42S02)"),
            ("RESP", "ERR"),
            ("RESP", "WRONGTYPE"),
            ("RESP", "ERROR"),
            ("memcached", "ERROR"),
            ("TLS, alternating", "alert 48"),
            ("TLS", "client alert 42"),
            ("FTP", "550"),
            ("TLS", "client alert (encrypted)"),
        ] {
            assert!(is_failure_status(protocol, status), "{protocol} {status}");
        }
        for (protocol, status) in [
            ("HTTP/1.1", "302"),
            ("gRPC", "grpc-status 0"),
            ("PostgreSQL", "SELECT 0"),
            ("PostgreSQL", "OK"),
            ("MySQL", "0 rows"),
            ("RESP", "nil"),
            ("RESP", "OK"),
            ("RESP", ""),
            ("RESP", "MOVED"),
            ("RESP", "NOSCRIPT"),
            ("memcached", "miss"),
            ("alternating", "ERROR"),
            ("TLS, alternating", "alert 0"),
            ("TLS", "client alert 0"),
            ("TLS", "TLS 1.3"),
        ] {
            assert!(!is_failure_status(protocol, status), "{protocol} {status}");
        }
    }

    #[test]
    fn codes_are_said_in_words() {
        for (protocol, status, words) in [
            ("PostgreSQL", "ERROR 42P01", "ERROR 42P01, no such table"),
            (
                "PostgreSQL",
                "ERROR 23514",
                "ERROR 23514, a violated constraint",
            ),
            (
                "PostgreSQL",
                "FATAL 28P01",
                "FATAL 28P01, the login was refused",
            ),
            ("PostgreSQL", "ERROR XX000", "ERROR XX000"),
            (
                "MySQL",
                "ERROR 1146 (42S02)",
                "ERROR 1146 (42S02), no such table",
            ),
            ("MySQL", "ERROR 1234", "ERROR 1234"),
            ("RESP", "OOM", "OOM, out of memory"),
            ("RESP", "ERR", "ERR"),
            (
                "TLS, alternating",
                "alert 48",
                "alert 48, an unknown certificate authority",
            ),
            ("TLS", "alert 4", "alert 4"),
            (
                "TLS",
                "client alert 45",
                "client alert 45, an expired certificate",
            ),
            ("HTTP/1.1", "404", "404"),
        ] {
            assert_eq!(status_in_words(protocol, status), words);
        }
    }
}
