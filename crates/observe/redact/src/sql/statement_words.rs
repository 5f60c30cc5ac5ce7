//! Decides which statements are kept whole (without literals) and which in part, because values appear in them as plain words.

/// How much of a statement is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StatementRetention {
    /// Everything but literals.
    All,
    /// This many words at its beginning.
    Words(usize),
    /// The name of a setting, without its value.
    Setting,
}

/// Words that begin statements, sorted.
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
    // Verbs of other servers.
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
/// Statements on data: plain words in them are names.
const OF_DATA: [&str; 10] = [
    "DELETE", "INSERT", "MERGE", "REPLACE", "SELECT", "TABLE", "UPDATE", "UPSERT", "VALUES", "WITH",
];
/// Verbs of statements that define objects.
const OF_OBJECTS: [&str; 4] = ["ALTER", "CREATE", "DROP", "RENAME"];
/// Kinds of objects whose statements may set a password or hold credentials.
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
/// Words that may stand before another statement.
const BEFORE_OTHERS: [&str; 5] = ["ANALYSE", "ANALYZE", "DESC", "DESCRIBE", "EXPLAIN"];
/// Replication commands.
const OF_REPLICATION: [&str; 8] = [
    "ALTER_REPLICATION_SLOT",
    "BASE_BACKUP",
    "CREATE_REPLICATION_SLOT",
    "DROP_REPLICATION_SLOT",
    "READ_REPLICATION_SLOT",
    "START_REPLICATION",
    "TIMELINE_HISTORY",
    "UPLOAD_MANIFEST",
];
/// Words that may stand between the verb and the kind of an object.
const MODIFIERS: [&str; 11] = [
    "DATABASE",
    "EXISTS",
    "GLOBAL",
    "IF",
    "LOCAL",
    "NOT",
    "OR",
    "PERSISTENT",
    "PUBLIC",
    "REPLACE",
    "SCOPED",
];
/// Words that show, in any statement, that it holds credentials.
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
/// Words that show it only outside statements on data, where they are common column names.
const PASSWORDS: [&str; 5] = ["AUTH_STRING", "PASSPHRASE", "PASSWD", "PASSWORD", "PWD"];

/// Whether a statement may begin with this word.
pub(crate) fn is_verb(word: &str) -> bool {
    is_one(word, &VERBS)
}

/// The number of words before the kind of an object, and whether this kind is in [`OF_ACCESS`].
fn object_of(words: &[&str]) -> (usize, bool) {
    let modifiers = words
        .iter()
        .take_while(|word| is_one(word, &MODIFIERS))
        .count();
    (
        modifiers,
        words
            .get(modifiers)
            .is_some_and(|object| is_one(object, &OF_ACCESS)),
    )
}

/// How much of a statement with these words is kept.
pub(super) fn kept_of(words: &[&str]) -> StatementRetention {
    let is = |at: usize, what: &str| {
        words
            .get(at)
            .is_some_and(|word| word.eq_ignore_ascii_case(what))
    };
    let has = |list: &[&str]| words.iter().any(|word| is_one(word, list));
    let Some(verb) = words.first() else {
        return StatementRetention::All;
    };
    if is(0, "CHANGE") {
        return StatementRetention::Words(if is(1, "MASTER") || is(1, "REPLICATION") {
            2
        } else {
            1
        });
    }
    if is(0, "CLONE") || is_one(verb, &OF_REPLICATION) {
        return StatementRetention::Words(1);
    }
    if is_one(verb, &OF_OBJECTS) {
        let (modifiers, is_access) = object_of(&words[1..]);
        return match modifiers {
            0 if is_access || is(0, "ALTER") && is(1, "EXTENSION") => StatementRetention::Words(2),
            _ if is_access || has(&ACCESS) => StatementRetention::Words(1),
            // Drops the settings of a database.
            _ if is(1, "DATABASE") => StatementRetention::Words(2),
            // Drops the settings of a function.
            _ if has(&["SET"]) => StatementRetention::Setting,
            _ => StatementRetention::All,
        };
    }
    let of_access = |at: usize| is_one(words[at], &OF_OBJECTS) && object_of(&words[at + 1..]).1;
    if has(&ACCESS) || has(&PASSWORDS) && (1..words.len()).any(of_access) {
        return StatementRetention::Words(1);
    }
    if is_one(verb, &BEFORE_OTHERS)
        && let Some(inner) =
            (1..words.len()).find(|at| is_verb(words[*at]) && !is_one(words[*at], &BEFORE_OTHERS))
    {
        let is_data = is_one(words[inner], &OF_DATA) || !has(&PASSWORDS);
        return if is_data && kept_of(&words[inner..]) == StatementRetention::All {
            StatementRetention::All
        } else {
            StatementRetention::Words(1)
        };
    }
    if is(0, "SET")
        && (is(1, "PASSWORD") || is(1, "ROLE") || is(1, "SESSION") && is(2, "AUTHORIZATION"))
    {
        return StatementRetention::Words(2);
    }
    if is(0, "SET") && !is(1, "TRANSACTION") && !is(1, "NAMES") {
        return StatementRetention::Setting;
    }
    if !is_one(verb, &OF_DATA) && has(&PASSWORDS) {
        return StatementRetention::Words(1);
    }
    // The values of SELECT set_config, INTO OUTFILE and the like are literals, which are masked anyway.
    StatementRetention::All
}

fn is_one(word: &str, words: &[&str]) -> bool {
    words.iter().any(|one| one.eq_ignore_ascii_case(word))
}
