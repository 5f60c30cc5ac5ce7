//! Finds where the response to a command ends, packet by packet: a single packet, or result sets of columns and rows.

use super::super::RedactedName;
use super::super::records::RecordFieldReader;
use stackline_redact::sql::{Backslash, answer};

/// The capabilities of both sides that decide where responses end.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Abilities {
    /// Whether there is no EOF packet behind columns (`CLIENT_DEPRECATE_EOF`).
    pub(super) no_eof: bool,
    /// Whether column definitions may be omitted (`CLIENT_OPTIONAL_RESULTSET_METADATA`).
    pub(super) may_lack_columns: bool,
    /// The same in MariaDB (`MARIADB_CLIENT_CACHE_METADATA`).
    pub(super) may_know_columns: bool,
    /// Whether queries have attributes before their text (`CLIENT_QUERY_ATTRIBUTES`).
    pub(super) attributes: bool,
}

/// What the server's next packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExpectedMysqlPacket {
    /// The whole response.
    Single,
    /// The first packet of a result: OK, an error, or a number of columns.
    First,
    /// The response to a statement that is being prepared.
    Prepared,
    /// One of this many packets, with the last of which the response ends.
    Count(u64),
    /// One of this many column definitions.
    Columns(u64),
    /// The EOF packet behind the columns.
    ColumnsEnd,
    /// A row, or the end of the rows; this many rows came before.
    Rows(u64),
    /// Any packet until the login succeeds or fails.
    Login,
    /// An event of a replication stream.
    Events,
    /// Unknown: the response ends when the next command begins.
    Unknown,
}

/// What a packet means for the response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Means {
    /// The response goes on with this kind of packet.
    More(ExpectedMysqlPacket),
    /// The server asks for a file of the client.
    File,
    /// An event of a replication stream is complete.
    Event,
    /// The response is complete, with this status.
    Whole(RedactedName),
}

/// First bytes of packets.
const OK: u8 = 0;
const FILE: u8 = 0xfb;
const EOF: u8 = 0xfe;
const ERROR: u8 = 0xff;
/// A status flag: another result follows this one (`SERVER_MORE_RESULTS_EXISTS`).
const MORE_RESULTS: u64 = 8;
/// A status flag: rows are fetched later (`SERVER_STATUS_CURSOR_EXISTS`).
const CURSOR: u64 = 64;
/// A status flag: a backslash in a string is an ordinary character (`SERVER_STATUS_NO_BACKSLASH_ESCAPES`).
const NO_BACKSLASH_ESCAPES: u64 = 512;
/// The longest EOF packet in bytes.
const LONGEST_EOF: u64 = 8;

impl ExpectedMysqlPacket {
    /// The first packet of the response to a command.
    pub(super) const fn from_command(command: u8) -> Self {
        match command {
            // COM_QUERY, COM_PROCESS_INFO, COM_STMT_EXECUTE, and MariaDB's bulk execution.
            0x03 | 0x0a | 0x17 | 0xfa => Self::First,
            0x16 => Self::Prepared,
            // COM_FIELD_LIST and COM_STMT_FETCH: rows without a head.
            0x04 | 0x1c => Self::Rows(0),
            0x11 => Self::Login,
            // COM_BINLOG_DUMP and COM_BINLOG_DUMP_GTID.
            0x12 | 0x1e => Self::Events,
            0x02 | 0x05..=0x09 | 0x0c..=0x0e | 0x14 | 0x15 | 0x1a | 0x1b | 0x1f => Self::Single,
            _ => Self::Unknown,
        }
    }

    /// What a packet of `length` bytes means; `bytes` are the first of them that were captured.
    pub(super) fn packet(self, bytes: &[u8], length: u64, abilities: Abilities) -> Means {
        let Some(&mark) = bytes.first() else {
            return self.unseen(length, abilities);
        };
        match self {
            Self::Unknown => Means::More(self),
            Self::Count(_) | Self::Columns(_) => self.counted(abilities),
            _ if mark == ERROR && bytes.starts_with(&[ERROR, 0xff, 0xff]) => Means::More(self), // How far it is.
            _ if mark == ERROR => Means::Whole(error(bytes)),
            Self::Single => Means::Whole(RedactedName::fixed("OK")),
            Self::First => self.first(bytes, abilities),
            Self::Prepared => prepared(bytes, abilities),
            Self::ColumnsEnd if flags(bytes) & CURSOR != 0 => {
                Means::Whole(RedactedName::fixed("OK"))
            }
            Self::ColumnsEnd => Means::More(Self::Rows(0)),
            Self::Rows(rows) if is_end(mark, length, abilities) => {
                match flags(bytes) & MORE_RESULTS {
                    0 => Means::Whole(RedactedName::count(
                        rows,
                        if rows == 1 { " row" } else { " rows" },
                    )),
                    _ => Means::More(Self::First),
                }
            }
            Self::Rows(rows) => Means::More(Self::Rows(rows + 1)),
            Self::Login if mark == OK => Means::Whole(RedactedName::fixed("OK")),
            Self::Events if mark == EOF && length <= LONGEST_EOF => {
                Means::Whole(RedactedName::fixed("OK"))
            }
            Self::Login => Means::More(self),
            Self::Events => Means::Event,
        }
    }

    /// The meaning of a backslash in strings from here on, if the packet has status flags that say it.
    pub(super) fn backslash(
        self,
        bytes: &[u8],
        length: u64,
        abilities: Abilities,
    ) -> Option<Backslash> {
        let mark = *bytes.first()?;
        let has_flags = match self {
            Self::First | Self::Single | Self::Login => mark == OK,
            Self::ColumnsEnd => mark == EOF && length <= LONGEST_EOF,
            Self::Rows(_) => is_end(mark, length, abilities),
            _ => false,
        };
        if has_flags {
            flags_of(bytes).map(backslash)
        } else {
            None
        }
    }

    /// What a packet means of which only the length is known.
    fn unseen(self, length: u64, abilities: Abilities) -> Means {
        match self {
            Self::Count(_) | Self::Columns(_) => self.counted(abilities),
            Self::Single => Means::Whole(RedactedName::fixed("not seen")),
            Self::Events => Means::Event,
            // Too long for the end of the rows or an error.
            Self::Rows(rows) if length > 4096 => Means::More(Self::Rows(rows + 1)),
            _ => Means::More(Self::Unknown),
        }
    }

    /// What one packet of a counted number means.
    fn counted(self, abilities: Abilities) -> Means {
        match self {
            Self::Count(left @ 2..) => Means::More(Self::Count(left - 1)),
            Self::Columns(left @ 2..) => Means::More(Self::Columns(left - 1)),
            Self::Columns(_) => Means::More(behind_columns(abilities)),
            _ => Means::Whole(RedactedName::fixed("OK")),
        }
    }

    /// What the first packet of a result means.
    fn first(self, bytes: &[u8], abilities: Abilities) -> Means {
        match bytes[0] {
            OK => match flags(bytes) & MORE_RESULTS {
                0 => Means::Whole(RedactedName::fixed("OK")),
                _ => Means::More(self),
            },
            FILE => Means::File,
            _ => columns(bytes, abilities).map_or(Means::More(Self::Unknown), Means::More),
        }
    }
}

/// Reads the number of columns in the first packet of a result set.
fn columns(bytes: &[u8], abilities: Abilities) -> Option<ExpectedMysqlPacket> {
    let mut fields = RecordFieldReader(bytes);
    let count = number(&mut fields)?;
    let may_lack = abilities.may_lack_columns || abilities.may_know_columns;
    let follow = !may_lack || fields.little(1)? != 0;
    Some(if follow && count > 0 {
        ExpectedMysqlPacket::Columns(count)
    } else {
        behind_columns(abilities)
    })
}

/// What follows the column definitions.
const fn behind_columns(abilities: Abilities) -> ExpectedMysqlPacket {
    if abilities.no_eof {
        ExpectedMysqlPacket::Rows(0)
    } else {
        ExpectedMysqlPacket::ColumnsEnd
    }
}

/// What the response to PREPARE means: it says how many definitions of parameters and columns follow.
fn prepared(bytes: &[u8], abilities: Abilities) -> Means {
    let mut fields = RecordFieldReader(bytes);
    let counts = (|| {
        fields.take(5)?;
        Some((fields.little(2)?, fields.little(2)?))
    })();
    let Some((columns, parameters)) = counts else {
        return Means::More(ExpectedMysqlPacket::Unknown);
    };
    // An EOF packet ends each list that is not empty, unless both sides do without.
    let packets = |count: u64| count + u64::from(count > 0 && !abilities.no_eof);
    let lacks = abilities.may_lack_columns && bytes.get(12) == Some(&0);
    match packets(columns) + packets(parameters) {
        1.. if !lacks => Means::More(ExpectedMysqlPacket::Count(
            packets(columns) + packets(parameters),
        )),
        _ => Means::Whole(RedactedName::fixed("OK")),
    }
}

/// Whether a packet is the end of the rows.
fn is_end(mark: u8, length: u64, abilities: Abilities) -> bool {
    // A row with this first byte has a field of 2^24 bytes or more, so it fills its packet.
    let most = if abilities.no_eof {
        super::LONGEST - 1
    } else {
        LONGEST_EOF
    };
    mark == EOF && length <= most
}

/// The status flags of an OK or EOF packet; 0 if it has none.
fn flags(bytes: &[u8]) -> u64 {
    flags_of(bytes).unwrap_or(0)
}

/// The same; `None` if the packet has none.
fn flags_of(bytes: &[u8]) -> Option<u64> {
    let mut fields = RecordFieldReader(bytes);
    let mark = fields.little(1)?;
    // An EOF packet has the warnings before the flags, an OK packet two numbers.
    if mark == u64::from(EOF) && bytes.len() <= 5 {
        fields.take(2)?;
    } else {
        number(&mut fields)?;
        number(&mut fields)?;
    }
    fields.little(2)
}

/// The meaning of a backslash in strings, by the status flags.
pub(super) const fn backslash(flags: u64) -> Backslash {
    if flags & NO_BACKSLASH_ESCAPES == 0 {
        Backslash::Escapes
    } else {
        Backslash::Plain
    }
}

/// A length-encoded integer, whose first byte says how long it is.
pub(super) fn number(fields: &mut RecordFieldReader<'_>) -> Option<u64> {
    match fields.little(1)? {
        0xfc => fields.little(2),
        0xfd => fields.little(3),
        0xfe => fields.little(8),
        number @ 0..=0xfa => Some(number),
        _ => None,
    }
}

/// The status in an error packet, such as `ERROR 1146 (42S02)`.
pub(super) fn error(bytes: &[u8]) -> RedactedName {
    let mut fields = RecordFieldReader(bytes.get(1..).unwrap_or_default());
    let code = fields.little(2);
    let state = fields.0.strip_prefix(b"#").and_then(|state| state.get(..5));
    answer::mysql_error(code, state)
}
