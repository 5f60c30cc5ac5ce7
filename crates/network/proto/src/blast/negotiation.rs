//! The parameters that two ends exchange when a connection is opened, and how they agree.

use super::options::BlastOptions;

/// The bytes of the parameters in a packet.
pub const PARAMETERS_BYTES: usize = 56;
/// The version of this format.
const VERSION: u8 = 1;

/// Proves that both ends belong to the same run.
pub type BlastToken = [u8; 16];
/// Fresh random bytes of each side, for keys; zeros where nothing is encrypted.
pub type Nonce = [u8; 16];

/// Why a connection is not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum BlastRefusal {
    /// The ends have different versions of the protocol.
    Version = 1,
    /// The ends have different strategies, or only one of them checks blasts.
    Parameters = 2,
    /// The peer has a connection already.
    Busy = 3,
}

impl BlastRefusal {
    /// The reason with that number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        [Self::Version, Self::Parameters, Self::Busy]
            .into_iter()
            .find(|refusal| *refusal as u8 == number)
    }
}

/// The parameters of one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlastParameters {
    version: u8,
    /// Proves that the side belongs to the run.
    pub token: BlastToken,
    strategy: u8,
    checked: bool,
    packet: u32,
    size: u32,
    flight: u32,
    /// Bytes that this side grants.
    pub buffer: u64,
    /// Fresh random bytes.
    pub nonce: Nonce,
}

impl BlastParameters {
    /// The parameters that a side with these options offers.
    #[must_use]
    pub fn new(options: &BlastOptions, token: BlastToken, nonce: Nonce) -> Self {
        let BlastOptions {
            strategy,
            packet,
            size,
            flight,
            buffer,
            checked,
            ..
        } = options.fitted();
        Self {
            version: VERSION,
            token,
            strategy: strategy as u8,
            checked,
            packet,
            size,
            flight,
            buffer,
            nonce,
        }
    }

    /// The options that both ends can use: the smaller of all sizes.
    ///
    /// # Errors
    /// A [`BlastRefusal`] when version, strategy or checking differ.
    pub fn agree(&self, options: &BlastOptions) -> Result<BlastOptions, BlastRefusal> {
        if self.version != VERSION {
            return Err(BlastRefusal::Version);
        }
        if self.strategy != options.strategy as u8
            || self.checked != options.checked
            || self.packet == 0
        {
            return Err(BlastRefusal::Parameters);
        }
        let fitted = options.fitted();
        let agreed = BlastOptions {
            packet: fitted.packet.min(self.packet),
            size: fitted.size.min(self.size),
            flight: fitted.flight.min(self.flight),
            ..fitted
        };
        // A blast has to fit into the smaller grant of the two.
        let little = BlastOptions {
            buffer: agreed.buffer.min(self.buffer),
            ..agreed
        };
        Ok(BlastOptions {
            buffer: agreed.buffer,
            ..little.fitted()
        })
    }

    /// The parameters as bytes.
    #[must_use]
    pub fn write(&self) -> [u8; PARAMETERS_BYTES] {
        let mut bytes = [0; PARAMETERS_BYTES];
        bytes[..16].copy_from_slice(&self.token);
        bytes[16] = self.version;
        bytes[17] = self.strategy;
        bytes[18] = u8::from(self.checked);
        bytes[20..24].copy_from_slice(&self.packet.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.size.to_le_bytes());
        bytes[28..32].copy_from_slice(&self.flight.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.buffer.to_le_bytes());
        bytes[40..56].copy_from_slice(&self.nonce);
        bytes
    }

    /// The parameters in a packet's body, if it carries this token.
    #[must_use]
    pub fn read(bytes: &[u8], token: &BlastToken) -> Option<Self> {
        let bytes: &[u8; PARAMETERS_BYTES] = bytes.try_into().ok()?;
        let four = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let sixteen = |at: usize| bytes[at..at + 16].try_into().ok();
        let shown: BlastToken = sixteen(0)?;
        (shown == *token).then_some(Self {
            version: bytes[16],
            token: shown,
            strategy: bytes[17],
            checked: bytes[18] != 0,
            packet: four(20),
            size: four(24),
            flight: four(28),
            buffer: u64::from(four(32)) | u64::from(four(36)) << 32,
            nonce: sixteen(40)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blast::options::BlastStrategy;

    #[test]
    fn both_sides_come_to_the_same() {
        let one = BlastOptions {
            flight: 4,
            buffer: 100_000,
            ..BlastOptions::blast(BlastStrategy::Selective, 1440, 1 << 20)
        };
        let other = BlastOptions {
            flight: 8,
            buffer: 1 << 20,
            ..BlastOptions::blast(BlastStrategy::Selective, 8900, 64 << 10)
        };
        let (token, nonce) = ([7; 16], [9; 16]);
        let sent = BlastParameters::new(&one, token, nonce);
        let received = BlastParameters::read(&sent.write(), &token).unwrap();
        assert_eq!(received, sent);
        let agreed = received.agree(&other).unwrap();
        let back = BlastParameters::new(&other, token, nonce)
            .agree(&one)
            .unwrap();
        assert_eq!(
            (agreed.packet, agreed.size, agreed.flight),
            (back.packet, back.size, back.flight)
        );
        assert_eq!(
            (agreed.packet, agreed.flight, agreed.buffer, back.buffer),
            (1440, 4, 1 << 20, 100_000)
        );
    }

    #[test]
    fn strangers_and_other_kinds_are_turned_away() {
        let options = BlastOptions::saw(1024);
        let parameters = BlastParameters::new(&options, [7; 16], [0; 16]);
        assert_eq!(BlastParameters::read(&parameters.write(), &[8; 16]), None);
        assert_eq!(
            parameters.agree(&BlastOptions {
                strategy: BlastStrategy::Full,
                ..options
            }),
            Err(BlastRefusal::Parameters)
        );
        let old = BlastParameters {
            version: 0,
            ..parameters
        };
        assert_eq!(old.agree(&options), Err(BlastRefusal::Version));
    }
}
