//! What two ends of TLS are made from that trust each other and whose secrets are known.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, DigitallySignedStruct, KeyLog, ServerConfig, SignatureScheme,
    SupportedProtocolVersion,
};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

/// Both ends.
#[derive(Debug)]
pub struct TlsPair {
    /// Believes any server, and writes its secrets down.
    pub client: ClientConfig,
    /// Has a certificate of that name.
    pub server: ServerConfig,
    /// What the client writes down.
    pub secrets: Arc<WrittenTlsSecrets>,
}

impl TlsPair {
    /// With these ciphers and versions.
    ///
    /// # Panics
    /// Where the ciphers do not fit the versions.
    #[must_use]
    pub fn new(
        provider: CryptoProvider,
        versions: &[&'static SupportedProtocolVersion],
        name: &str,
    ) -> Self {
        let provider = Arc::new(provider);
        let made = rcgen::generate_simple_self_signed(vec![name.into()]).expect("a certificate");
        let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
        let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(versions)
            .expect("ciphers of these versions")
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .expect("its key");
        let mut client = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(versions)
            .expect("ciphers of these versions")
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyServer(provider)))
            .with_no_client_auth();
        let secrets = Arc::<WrittenTlsSecrets>::default();
        client.key_log = Arc::<WrittenTlsSecrets>::clone(&secrets);
        Self {
            client,
            server,
            secrets,
        }
    }
}

/// Secrets of sessions, as programs write them down.
#[derive(Debug, Default)]
pub struct WrittenTlsSecrets(Mutex<String>);

impl WrittenTlsSecrets {
    /// All so far.
    ///
    /// # Panics
    /// Where a thread panicked that wrote one.
    #[must_use]
    pub fn text(&self) -> String {
        self.0.lock().expect("nobody panicked").clone()
    }
}

impl KeyLog for WrittenTlsSecrets {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let mut text = self
            .0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let _ = write!(text, "{label} ");
        for bytes in [client_random, secret] {
            for byte in bytes {
                let _ = write!(text, "{byte:02x}");
            }
            text.push(' ');
        }
        text.push('\n');
    }
}

/// Nobody is asked whose certificate it is.
#[derive(Debug)]
struct AnyServer(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
