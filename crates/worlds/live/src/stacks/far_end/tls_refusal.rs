//! Why a session of TLS with a far end was refused, with whose fault it is and what helps.

use super::tls::TlsForm;
use crate::error::Error;
use rustls::pki_types::UnixTime;
use rustls::{AlertDescription, CertificateError};
use std::net::SocketAddr;

/// The error of a session that failed, with whose fault it is.
pub(super) fn refused(server: SocketAddr, form: TlsForm, error: &rustls::Error) -> Error {
    match error {
        rustls::Error::InvalidCertificate(why) => refused_certificate(server, form, why),
        rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol) => {
            Error::measurement(format!(
                "the server at {server} does not speak this version of the protocol within TLS (ALPN)"
            ))
            .hint("`version = http1` is what every web server speaks")
        }
        rustls::Error::InvalidMessage(_) => form.suspect_plain(Error::measurement(format!(
            "the server at {server} does not speak TLS"
        ))),
        rustls::Error::AlertReceived(alert) => Error::measurement(format!(
            "the server at {server} refused the TLS handshake: {alert:?}"
        )),
        error => Error::measurement(format!("TLS with the server at {server} failed: {error}")),
    }
}

/// The error of a certificate that is not accepted.
fn refused_certificate(server: SocketAddr, form: TlsForm, why: &CertificateError) -> Error {
    let insecure = format!(
        "`over {}({}insecure)`",
        form.name,
        if form.is_option { "tls, " } else { "" }
    );
    let authority =
        format!("for a server of your own: SSL_CERT_FILE=ITS-AUTHORITY.pem, or {insecure}");
    let (why, hint) = match why {
        CertificateError::Other(why) if why.to_string().contains("CaUsedAsEndEntity") => (
            "it is that of an authority, not of a server".to_owned(),
            format!(
                "{insecure} accepts it; openssl makes one of a server with `-addext basicConstraints=CA:FALSE`"
            ),
        ),
        CertificateError::BadSignature => (
            "it is self-signed, or signed by another authority of that name".to_owned(),
            authority,
        ),
        CertificateError::UnknownIssuer => {
            ("it is signed by an unknown authority".to_owned(), authority)
        }
        CertificateError::ExpiredContext { time, not_after } => (
            format!("it expired {} ago", shown_span(*not_after, *time)),
            format!("renew it, or measure with {insecure}"),
        ),
        CertificateError::NotValidYetContext { time, not_before } => (
            format!("it is valid in {} only", shown_span(*time, *not_before)),
            format!("is the clock of this host right? {insecure} accepts it"),
        ),
        CertificateError::NotValidForNameContext {
            expected,
            presented,
        } => {
            let names: Vec<&str> = presented.iter().map(|name| bare_name(name)).collect();
            let has = match names.is_empty() {
                true => "it has no name".to_owned(),
                false => format!("it is for {}", names.join(", ")),
            };
            (
                format!("{has}, not for {}", expected.to_str()),
                format!("name the server as its certificate does, or measure with {insecure}"),
            )
        }
        other => (other.to_string(), authority),
    };
    Error::measurement(format!(
        "the certificate of the server at {server} is not accepted: {why}"
    ))
    .hint(hint)
}

/// How much later the second moment is, in whole days, hours or minutes.
fn shown_span(from: UnixTime, to: UnixTime) -> String {
    let seconds = to.as_secs().saturating_sub(from.as_secs());
    let (unit, name) = [(86_400, "day"), (3600, "hour"), (60, "minute")]
        .into_iter()
        .find(|(unit, _)| seconds >= *unit)
        .unwrap_or((1, "second"));
    let n = seconds / unit;
    format!("{n} {name}{}", if n == 1 { "" } else { "s" })
}

/// A name of a certificate without the kind that rustls writes around it, as in `DnsName("a.example")`.
fn bare_name(presented: &str) -> &str {
    let quoted = presented.split('"').nth(1);
    quoted.unwrap_or_else(|| {
        let inner = presented.split_once('(').map(|(_, inner)| inner);
        inner.map_or(presented, |inner| inner.trim_end_matches(')'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::pki_types::ServerName;
    use std::time::Duration;

    #[test]
    fn a_refused_certificate_is_explained_with_what_helps() {
        let at = |seconds| UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        let named = CertificateError::NotValidForNameContext {
            expected: ServerName::try_from("b.example").unwrap(),
            presented: vec![
                "DnsName(\"a.example\")".into(),
                "IpAddress(10.0.0.1)".into(),
            ],
        };
        let cases = [
            (
                CertificateError::ExpiredContext {
                    time: at(10 * 86_400),
                    not_after: at(86_400),
                },
                "it expired 9 days ago",
                "renew it",
            ),
            (
                CertificateError::NotValidYetContext {
                    time: at(0),
                    not_before: at(3600),
                },
                "it is valid in 1 hour only",
                "clock",
            ),
            (
                named,
                "it is for a.example, 10.0.0.1, not for b.example",
                "name the server",
            ),
            (
                CertificateError::UnknownIssuer,
                "authority",
                "SSL_CERT_FILE",
            ),
        ];
        let form = TlsForm {
            protocol: None,
            is_first: true,
            is_option: false,
            name: "https",
            plain: None,
        };
        for (why, message, hint) in cases {
            let error = refused_certificate(([127, 0, 0, 1], 443).into(), form, &why);
            assert!(error.message.contains(message), "{}", error.message);
            let hinted = error.hint.unwrap();
            assert!(hinted.contains(hint), "{hinted}");
            assert!(hinted.contains("`over https(insecure)`"), "{hinted}");
        }
    }
}
