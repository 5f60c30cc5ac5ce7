//! SHA-256 of what is written or read, in hexadecimal as `sha256sum` prints it.

use sha2::{Digest, Sha256};
use std::io::{self, Read, Write};

/// Letters of a digest that identify it to people.
const SHORT: usize = 16;

/// Computes a digest of all bytes that are written to it, and counts them.
#[derive(Default)]
pub(crate) struct DigestSum {
    sum: Sha256,
    bytes: u64,
}

impl DigestSum {
    /// The number of bytes so far.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The digest in hexadecimal.
    pub(crate) fn finish(self) -> String {
        let bytes = self.sum.finalize();
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn update(&mut self, bytes: &[u8]) {
        self.sum.update(bytes);
        self.bytes += bytes.len() as u64;
    }
}

impl Write for DigestSum {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Passes on what is read, and computes its digest.
pub(crate) struct DigestReader<R> {
    from: R,
    sum: DigestSum,
}

impl<R: Read> DigestReader<R> {
    pub(crate) fn new(from: R) -> Self {
        Self {
            from,
            sum: DigestSum::default(),
        }
    }

    /// The digest of all that was read.
    pub(crate) fn sum(self) -> DigestSum {
        self.sum
    }
}

impl<R: Read> Read for DigestReader<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(bytes)?;
        self.sum.update(&bytes[..read]);
        Ok(read)
    }
}

/// The digest of a text.
pub(crate) fn sha256(text: &str) -> String {
    let mut sum = DigestSum::default();
    sum.update(text.as_bytes());
    sum.finish()
}

/// The beginning of a digest, for people.
#[must_use]
pub fn short_digest(digest: &str) -> &str {
    digest.get(..SHORT).unwrap_or(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_fips_180() {
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256("abc"), abc);
        let mut reader = DigestReader::new(&b"abc"[..]);
        io::copy(&mut reader, &mut io::sink()).unwrap();
        let sum = reader.sum();
        assert_eq!((sum.bytes(), sum.finish().as_str()), (3, abc));
        assert_eq!(short_digest(abc), "ba7816bf8f01cfea");
    }
}
