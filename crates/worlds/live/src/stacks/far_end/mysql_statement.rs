//! Prepared statements of MySQL's protocol: what a server says of one, and how it is executed with a text as its parameter
//! (<https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_command_phase_ps.html>).

/// The commands, as first bytes of packets.
pub(super) const PREPARE: u8 = 0x16;
const EXECUTE: u8 = 0x17;
/// The type of a text.
const VAR_STRING: u8 = 0xfd;

/// A statement that a server has prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MysqlStatement {
    id: [u8; 4],
    pub(super) columns: u16,
    pub(super) parameters: u16,
}

impl MysqlStatement {
    /// What the answer to PREPARE says.
    pub(super) fn parse(body: &[u8]) -> Option<Self> {
        let [0, a, b, c, d, columns @ ..] = body else {
            return None;
        };
        let [low, high, parameters_low, parameters_high, ..] = columns else {
            return None;
        };
        Some(Self {
            id: [*a, *b, *c, *d],
            columns: u16::from_le_bytes([*low, *high]),
            parameters: u16::from_le_bytes([*parameters_low, *parameters_high]),
        })
    }

    /// Writes what executes it, up to the bytes of its parameter, of which there are so many; without one, all of it.
    pub(super) fn write_execution(&self, parameter: Option<usize>, packet: &mut Vec<u8>) {
        packet.push(EXECUTE);
        packet.extend_from_slice(&self.id);
        // No cursor, and one execution.
        packet.extend_from_slice(&[0, 1, 0, 0, 0]);
        if let Some(bytes) = parameter {
            // It is not null, and its type follows.
            packet.extend_from_slice(&[0, 1, VAR_STRING, 0]);
            write_length(bytes as u64, packet);
        }
    }
}

/// A number of any length, as texts have it before them.
fn write_length(bytes: u64, packet: &mut Vec<u8>) {
    let written = bytes.to_le_bytes();
    match bytes {
        0..=250 => packet.push(written[0]),
        251..=0xffff => {
            packet.push(0xfc);
            packet.extend_from_slice(&written[..2]);
        }
        0x1_0000..=0xff_ffff => {
            packet.push(0xfd);
            packet.extend_from_slice(&written[..3]);
        }
        _ => {
            packet.push(0xfe);
            packet.extend_from_slice(&written);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_executed_by_its_number() {
        let body = [0, 7, 0, 0, 0, 2, 0, 1, 0, 0, 0, 0];
        let statement = MysqlStatement::parse(&body).unwrap();
        assert_eq!((statement.columns, statement.parameters), (2, 1));
        for cut in 0..9 {
            assert_eq!(MysqlStatement::parse(&body[..cut]), None, "{cut}");
        }
        let written = |parameter| {
            let mut packet = Vec::new();
            statement.write_execution(parameter, &mut packet);
            packet
        };
        let head = [0x17, 7, 0, 0, 0, 0, 1, 0, 0, 0];
        assert_eq!(written(None), head);
        assert_eq!(written(Some(3)), [&head[..], &[0, 1, 0xfd, 0, 3]].concat());
        assert_eq!(
            written(Some(300)),
            [&head[..], &[0, 1, 0xfd, 0, 0xfc, 44, 1]].concat()
        );
        assert_eq!(written(Some(70_000))[14..], [0xfd, 0x70, 0x11, 1]);
    }
}
