//! Control datagrams: the token, a kind, a value. Datagrams of any other form are ignored.

use super::DatagramToken;

/// Bytes of a control datagram: token, kind, value.
pub const CONTROL: usize = 16 + 1 + 8;
/// The bit that is set in the kind of an answer.
pub const ANSWER: u8 = 0x80;

/// Control messages, repeated until answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum DatagramControl {
    /// Requests a connection.
    Hello = 1,
    /// A bulk transfer begins.
    Start = 2,
    /// No more data units follow; the value holds how many were sent ([`super::COUNT_BITS`]).
    End = 3,
    /// The connection is closed.
    Bye = 4,
}

impl DatagramControl {
    /// The kind with that number; `None` for an answer or an unknown number.
    #[must_use]
    pub fn from_kind(kind: u8) -> Option<Self> {
        [Self::Hello, Self::Start, Self::End, Self::Bye]
            .into_iter()
            .find(|control| *control as u8 == kind)
    }
}

/// The bytes of a control datagram.
#[must_use]
pub fn write_control(token: &DatagramToken, kind: u8, value: u64) -> [u8; CONTROL] {
    let mut bytes = [0_u8; CONTROL];
    bytes[..16].copy_from_slice(token);
    bytes[16] = kind;
    bytes[17..].copy_from_slice(&value.to_le_bytes());
    bytes
}

/// The kind and the value of a control datagram; `None` if it is not one of this run.
#[must_use]
pub fn read_control(bytes: &[u8], token: &DatagramToken) -> Option<(u8, u64)> {
    let bytes: &[u8; CONTROL] = bytes.try_into().ok()?;
    let (shown, rest) = bytes.split_at(16);
    let value: [u8; 8] = rest[1..].try_into().ok()?;
    (shown == token).then(|| (rest[0], u64::from_le_bytes(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_message_is_read_with_its_token_only() {
        let bytes = write_control(&[7; 16], DatagramControl::End as u8, 1 << 40);
        assert_eq!(
            read_control(&bytes, &[7; 16]),
            Some((DatagramControl::End as u8, 1 << 40))
        );
        assert_eq!(read_control(&bytes, &[8; 16]), None);
        assert_eq!(read_control(&bytes[1..], &[7; 16]), None);
    }

    #[test]
    fn an_answer_is_no_control() {
        assert_eq!(
            DatagramControl::from_kind(DatagramControl::Bye as u8),
            Some(DatagramControl::Bye)
        );
        assert_eq!(
            DatagramControl::from_kind(DatagramControl::Bye as u8 | ANSWER),
            None
        );
    }
}
