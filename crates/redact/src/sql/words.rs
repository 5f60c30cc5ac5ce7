//! Which statements are kept whole (without literals), and which in part because values stand in them as words.

/// What is kept of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// All but literals.
    All,
    /// So many words of its beginning.
    Words(usize),
    /// What is set, not what to.
    Setting,
}

/// First words of statements, in order.
const VERBS: [&str; 107] = [
    "ABORT",
    "ALTER",
    "ANALYSE",
    "ANALYZE",
    "ATTACH",
    "BACKUP",
    "BASE_BACKUP",
    "BEGIN",
    "BINLOG",
    "CACHE",
    "CALL",
    "CHANGE",
    "CHECK",
    "CHECKPOINT",
    "CHECKSUM",
    "CLONE",
    "CLOSE",
    "CLUSTER",
    "COMMENT",
    "COMMIT",
    "COPY",
    "CREATE",
    "CREATE_REPLICATION_SLOT",
    "DEALLOCATE",
    "DECLARE",
    "DELETE",
    "DESC",
    "DESCRIBE",
    "DETACH",
    "DISCARD",
    "DO",
    "DROP",
    "DROP_REPLICATION_SLOT",
    "END",
    "EXEC",
    "EXECUTE",
    "EXPLAIN",
    "FETCH",
    "FLUSH",
    "GET",
    "GRANT",
    "HANDLER",
    "HELP",
    "IDENTIFY_SYSTEM",
    "IMPORT",
    "INSERT",
    "INSTALL",
    "KILL",
    "LISTEN",
    "LOAD",
    "LOCK",
    "MERGE",
    "MOVE",
    "NOTIFY",
    "OPTIMIZE",
    "PRAGMA",
    "PREPARE",
    "PURGE",
    "READ_REPLICATION_SLOT",
    "REASSIGN",
    "REFRESH",
    "REINDEX",
    "RELEASE",
    "RENAME",
    "REPAIR",
    "REPLACE",
    "RESET",
    "RESIGNAL",
    "RESTART",
    "RESTORE",
    "REVOKE",
    "ROLLBACK",
    "SAVE",
    "SAVEPOINT",
    "SECURITY",
    "SELECT",
    "SET",
    "SHOW",
    "SHUTDOWN",
    "SIGNAL",
    "START",
    "START_REPLICATION",
    "STOP",
    "SYNC",
    "TABLE",
    "TIMELINE_HISTORY",
    "TRUNCATE",
    "UNINSTALL",
    "UNLISTEN",
    "UNLOCK",
    "UPDATE",
    "UPLOAD_MANIFEST",
    "UPSERT",
    "USE",
    "VACUUM",
    "VALUES",
    "WITH",
    "XA",
    // Of other servers.
    "EXISTS",
    "FLASHBACK",
    "GO",
    "MSCK",
    "OPEN",
    "PRINT",
    "RAISERROR",
    "THROW",
    "WAITFOR",
];
/// Statements of data: what stands in them as a word is a name.
const OF_DATA: [&str; 11] =
    ["DELETE", "EXPLAIN", "INSERT", "MERGE", "REPLACE", "SELECT", "TABLE", "UPDATE", "UPSERT", "VALUES", "WITH"];
/// Objects whose statements may set a password or say how to log in elsewhere.
const OF_ACCESS: [&str; 14] = [
    "CONNECTION",
    "CREDENTIAL",
    "EXTERNAL",
    "FOREIGN",
    "GROUP",
    "INSTANCE",
    "LINK",
    "LOGIN",
    "ROLE",
    "SECRET",
    "SERVER",
    "SUBSCRIPTION",
    "SYSTEM",
    "USER",
];
/// Words before the kind of an object.
const MODIFIERS: [&str; 11] =
    ["DATABASE", "EXISTS", "GLOBAL", "IF", "LOCAL", "NOT", "OR", "PERSISTENT", "PUBLIC", "REPLACE", "SCOPED"];
/// Words of statements of any kind that are about access.
const ACCESS: [&str; 16] = [
    "ACCESS_KEY_ID",
    "CREDENTIALS",
    "DBLINK",
    "DBLINK_CONNECT",
    "DBLINK_CONNECT_U",
    "DBLINK_EXEC",
    "DBLINK_OPEN",
    "DBLINK_SEND_QUERY",
    "IAM_ROLE",
    "IDENTIFIED",
    "MASTER_PASSWORD",
    "OPENDATASOURCE",
    "OPENROWSET",
    "SECRET_ACCESS_KEY",
    "SESSION_TOKEN",
    "SOURCE_PASSWORD",
];
/// The same where the statement is not one of data: there they are usual names of columns.
const PASSWORDS: [&str; 5] = ["AUTH_STRING", "PASSPHRASE", "PASSWD", "PASSWORD", "PWD"];

/// Whether a statement may begin with that word.
pub(crate) fn is_verb(word: &str) -> bool {
    is_one(word, &VERBS)
}

/// What is kept of a statement of these words.
pub(super) fn kept_of(words: &[&str]) -> Kept {
    let is = |at: usize, what: &str| words.get(at).is_some_and(|word| word.eq_ignore_ascii_case(what));
    let has = |list: &[&str]| words.iter().any(|word| is_one(word, list));
    let Some(verb) = words.first() else { return Kept::All };
    if is(0, "CHANGE") {
        return Kept::Words(if is(1, "MASTER") || is(1, "REPLICATION") { 2 } else { 1 });
    }
    if is(0, "CLONE") {
        return Kept::Words(1);
    }
    if ["CREATE", "ALTER", "DROP", "RENAME"].iter().any(|verb| is(0, verb)) {
        let modifiers = words[1..].iter().take_while(|word| is_one(word, &MODIFIERS)).count();
        let is_access = words.get(1 + modifiers).is_some_and(|object| is_one(object, &OF_ACCESS));
        return match modifiers {
            0 if is_access || is(0, "ALTER") && is(1, "EXTENSION") => Kept::Words(2),
            _ if is_access || has(&ACCESS) => Kept::Words(1),
            // What a database is set to.
            _ if is(1, "DATABASE") => Kept::Words(2),
            _ => Kept::All,
        };
    }
    if has(&ACCESS) {
        return Kept::Words(1);
    }
    if is(0, "SET") && (is(1, "PASSWORD") || is(1, "ROLE") || is(1, "SESSION") && is(2, "AUTHORIZATION")) {
        return Kept::Words(2);
    }
    if is(0, "SET") && !is(1, "TRANSACTION") && !is(1, "NAMES") {
        return Kept::Setting;
    }
    if !is_one(verb, &OF_DATA) && has(&PASSWORDS) {
        return Kept::Words(1);
    }
    // SELECT set_config, INTO OUTFILE and the like have their values in literals.
    Kept::All
}

fn is_one(word: &str, words: &[&str]) -> bool {
    words.iter().any(|one| one.eq_ignore_ascii_case(word))
}
