//! What both the clients of far ends and the stacks of both ends need of TLS: which certificate of a server is accepted other than by an
//! authority, and what a session has agreed on.

use crate::error::{Error, Result};
use ::ring::digest::{SHA256, digest};
use rcgen::generate_simple_self_signed;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, CommonState, DigitallySignedStruct, HandshakeKind,
    ProtocolVersion, ServerConfig, SignatureScheme, SupportedProtocolVersion,
};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The version of a session.
pub(super) fn session_version(session: &CommonState) -> Option<&'static str> {
    session.protocol_version()?.as_str()
}

/// Whether a session was resumed, in a word.
pub(super) fn session_handshake(session: &CommonState) -> Option<&'static str> {
    session.handshake_kind().map(|kind| match kind {
        HandshakeKind::Resumed => "resumed",
        HandshakeKind::Full | HandshakeKind::FullWithHelloRetryRequest => "full",
    })
}

/// The version and the cipher of a session, by option name.
pub(super) fn session_settings(session: &CommonState) -> BTreeMap<String, String> {
    let cipher = session
        .negotiated_cipher_suite()
        .and_then(|suite| suite.suite().as_str());
    [("tls", session_version(session)), ("cipher", cipher)]
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_string(), value?.to_string())))
        .collect()
}

/// The round trips that the handshake of a client's session took before it could send data (RFC 8446, 2; RFC 5246, 7.3).
pub(super) fn handshake_round_trips(session: &CommonState) -> u32 {
    let is_old = session.protocol_version() == Some(ProtocolVersion::TLSv1_2);
    match session.handshake_kind() {
        Some(HandshakeKind::Resumed) => 1,
        Some(HandshakeKind::FullWithHelloRetryRequest) => 2,
        _ => 1 + u32::from(is_old),
    }
}

/// The SHA-256 of a certificate in hexadecimal digits.
fn fingerprint(certificate: &CertificateDer<'_>) -> String {
    let mut digits = String::new();
    for byte in digest(&SHA256, certificate).as_ref() {
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

/// The name in the certificate of a run: fingerprints are compared, names are not.
pub(super) const NAME: &str = "stackline";

/// The key and the certificate (ECDSA, P-256) that a responder makes for the run.
pub(super) struct RunCertificate {
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

impl RunCertificate {
    pub(super) fn new() -> Result<Self> {
        let made = generate_simple_self_signed(vec![NAME.into()]).map_err(|e| unavailable(&e))?;
        Ok(Self {
            certificate: made.cert.der().clone(),
            key: PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into()),
        })
    }

    /// Its SHA-256 in hexadecimal digits.
    pub(super) fn fingerprint(&self) -> String {
        fingerprint(&self.certificate)
    }

    /// A server that has it.
    pub(super) fn server(
        self,
        versions: &[&'static SupportedProtocolVersion],
    ) -> Result<ServerConfig> {
        ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(versions)
            .map_err(|e| unavailable(&e))?
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate], self.key)
            .map_err(|e| unavailable(&e))
    }
}

/// A client that accepts the certificate with that fingerprint alone.
pub(super) fn client_of(
    fingerprint: &str,
    versions: &[&'static SupportedProtocolVersion],
) -> Result<ClientConfig> {
    client_counting(fingerprint, versions, Arc::default())
}

/// The same, counting the certificates that it has accepted: a handshake that resumes a session has none.
pub(super) fn client_counting(
    fingerprint: &str,
    versions: &[&'static SupportedProtocolVersion],
    verified: Arc<AtomicU64>,
) -> Result<ClientConfig> {
    let provider = Arc::new(ring::default_provider());
    let accepted = AcceptedCertificate {
        provider: Arc::clone(&provider),
        fingerprint: Some(fingerprint.to_string()),
        verified,
    };
    Ok(ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .map_err(|e| unavailable(&e))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(accepted))
        .with_no_client_auth())
}

/// The error when the library refuses its settings.
pub(super) fn unavailable(error: &dyn std::error::Error) -> Error {
    Error::environment(format!("TLS is not available: {error}"))
}

/// Accepts a certificate without an authority; its key has to have signed the handshake.
#[derive(Debug)]
pub(super) struct AcceptedCertificate {
    provider: Arc<CryptoProvider>,
    /// The only one that is accepted; any, if there is none.
    fingerprint: Option<String>,
    /// How many were accepted.
    verified: Arc<AtomicU64>,
}

impl AcceptedCertificate {
    /// Any certificate.
    pub(super) fn any(provider: Arc<CryptoProvider>) -> Self {
        Self {
            provider,
            fingerprint: None,
            verified: Arc::default(),
        }
    }
}

impl ServerCertVerifier for AcceptedCertificate {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match &self.fingerprint {
            Some(pin) if *pin != fingerprint(certificate) => {
                Err(CertificateError::ApplicationVerificationFailure.into())
            }
            _ => {
                self.verified.fetch_add(1, Ordering::Relaxed);
                Ok(ServerCertVerified::assertion())
            }
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(
            message,
            certificate,
            signed,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            certificate,
            signed,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
