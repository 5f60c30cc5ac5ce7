//! Redacts Redis commands: keeps the command and its first key, if both are known. Other arguments are dropped; for commands whose
//! arguments may be scripts or secrets (AUTH, CONFIG, EVAL, MIGRATE), the key too. Parts of a key that look like tokens or personal
//! addresses are replaced by `…`.

use crate::name::{RedactedName, printable};
use crate::{LEFT_OUT, LONGEST_NAME, secret_words};
use std::collections::HashMap;
use std::sync::LazyLock;

/// Commands whose first key is the second word. In all these lists, words are separated by spaces.
const KEYED: &str = " APPEND BITCOUNT BITFIELD BITFIELD_RO BITPOS BLMOVE BLPOP BRPOP BRPOPLPUSH BZPOPMAX BZPOPMIN COPY DECR DECRBY \
    DEL DUMP EXISTS EXPIRE EXPIREAT EXPIRETIME GEOADD GEODIST GEOHASH GEOPOS GEORADIUS GEORADIUSBYMEMBER GEOSEARCH GEOSEARCHSTORE \
    GET GETBIT GETDEL GETEX GETRANGE GETSET HDEL HEXISTS HEXPIRE HEXPIREAT HEXPIRETIME HGET HGETALL HGETDEL HGETEX HINCRBY \
    HINCRBYFLOAT HKEYS HLEN HMGET HMSET HPERSIST HPEXPIRE HPEXPIREAT HPTTL HRANDFIELD HSCAN HSET HSETEX HSETNX HSTRLEN HTTL HVALS \
    INCR INCRBY INCRBYFLOAT LCS LINDEX LINSERT LLEN LMOVE LPOP LPOS LPUSH LPUSHX LRANGE LREM LSET LTRIM MGET MOVE MSET MSETNX \
    PERSIST PEXPIRE PEXPIREAT PEXPIRETIME PFADD PFCOUNT PFMERGE PSETEX PSUBSCRIBE PTTL PUBLISH PUNSUBSCRIBE RENAME RENAMENX \
    RESTORE RPOP RPOPLPUSH RPUSH RPUSHX SADD SCARD SDIFF SDIFFSTORE SET SETBIT SETEX SETNX SETRANGE SINTER SINTERSTORE SISMEMBER \
    SMEMBERS SMISMEMBER SMOVE SORT SORT_RO SPOP SPUBLISH SRANDMEMBER SREM SSCAN SSUBSCRIBE STRLEN SUBSCRIBE SUBSTR SUNION \
    SUNIONSTORE SUNSUBSCRIBE TOUCH TTL TYPE UNLINK UNSUBSCRIBE WATCH XACK XACKDEL XADD XAUTOCLAIM XCLAIM XDEL XDELEX XLEN \
    XPENDING XRANGE XREVRANGE XSETID XTRIM ZADD ZCARD ZCOUNT ZDIFFSTORE ZINCRBY ZINTERSTORE ZLEXCOUNT ZMSCORE ZPOPMAX ZPOPMIN \
    ZRANDMEMBER ZRANGE ZRANGEBYLEX ZRANGEBYSCORE ZRANGESTORE ZRANK ZREM ZREMRANGEBYLEX ZREMRANGEBYRANK ZREMRANGEBYSCORE ZREVRANGE \
    ZREVRANGEBYLEX ZREVRANGEBYSCORE ZREVRANK ZSCAN ZSCORE ZUNIONSTORE ";
/// Commands whose first key is the third word.
const KEY_BEHIND_ONE: &str = " BITOP LMPOP SINTERCARD ZDIFF ZINTER ZINTERCARD ZMPOP ZUNION ";
/// Commands whose first key is the fourth word.
const KEY_BEHIND_TWO: &str = " BLMPOP BZMPOP ";
/// Commands of which only the command itself is kept.
const ALONE: &str = " ASKING AUTH BGREWRITEAOF BGSAVE DBSIZE DISCARD ECHO EVAL EVALSHA EVALSHA_RO EVAL_RO EXEC FAILOVER FCALL FCALL_RO \
    FLUSHALL FLUSHDB HELLO INFO KEYS LASTSAVE LOLWUT MIGRATE MONITOR MULTI PFDEBUG PFSELFTEST PING PSYNC QUIT RANDOMKEY \
    READONLY READWRITE REPLCONF REPLICAOF RESET RESTORE-ASKING ROLE SAVE SCAN SELECT SENTINEL SHUTDOWN SLAVEOF SWAPDB SYNC TIME \
    UNWATCH WAIT WAITAOF XREAD XREADGROUP ";
/// Commands whose second word is a subcommand.
const IN_TWO_WORDS: &str =
    " ACL CLIENT CLUSTER COMMAND CONFIG DEBUG FUNCTION LATENCY MODULE PUBSUB SCRIPT SLOWLOG ";
/// Commands whose second word is a subcommand and whose third word is a key.
const IN_TWO_WORDS_AND_KEY: &str = " MEMORY OBJECT XGROUP XINFO ";
/// Known subcommands.
const SECOND: &str = " ADDSLOTS BUMPEPOCH CACHING CAT CHANNELS CONSUMERS COUNT COUNT-FAILURE-REPORTS COUNTKEYSINSLOT CREATE CREATECONSUMER \
    DELCONSUMER DELETE DELSLOTS DELUSER DESTROY DOCS DOCTOR DRYRUN DUMP ENCODING EXISTS FAILOVER FLUSH FLUSHSLOTS FORGET FREQ \
    GENPASS GET GETKEYS GETKEYSANDFLAGS GETNAME GETREDIR GETUSER GRAPH GROUPS HELP HISTOGRAM HISTORY ID IDLETIME INFO JMAP KEYSLOT \
    KILL LATEST LEN LINKS LIST LOAD LOADEX LOG MALLOC-STATS MEET MYID MYSHARDID NO-EVICT NO-TOUCH NODES NUMPAT NUMSUB OBJECT PAUSE \
    PURGE REFCOUNT REPLICAS REPLICATE REPLY RESET RESETSTAT RESTORE REWRITE SAVE SET SET-CONFIG-EPOCH SETID SETINFO SETNAME SETSLOT \
    SETUSER SHARDCHANNELS SHARDNUMSUB SHARDS SLAVES SLEEP SLOT-STATS SLOTS STATS STREAM TRACKING TRACKINGINFO UNBLOCK UNLOAD UNPAUSE \
    USAGE USERS WHOAMI ";
/// Prefixes of module commands; only the command itself is kept of these.
const OF_MODULES: [&str; 11] = [
    "BF.", "CF.", "CMS.", "FT.", "GRAPH.", "JSON.", "TDIGEST.", "TOPK.", "TS.", "AI.", "RG.",
];
/// Commands that wait until another client does something.
const BLOCKING: &str =
    " BLMOVE BLMPOP BLPOP BRPOP BRPOPLPUSH BZMPOP BZPOPMAX BZPOPMIN WAIT WAITAOF ";
/// Appended to the name of a command that waits.
pub(crate) const BLOCKS: &str = ", blocking";
/// In the unredacted name, the fourth word is the key of these too.
const KEY_BEHIND_COUNT: &str = " EVAL EVALSHA EVALSHA_RO EVAL_RO FCALL FCALL_RO MIGRATE ";
/// Status replies that contain no data.
const STATUSES: &str = " OK PONG QUEUED BACKGROUND RESET NOKEY none string list set hash zset stream CONTINUE FULLRESYNC FIRST SECOND ";
/// The first words of known errors.
const ERRORS: &str = " ASK BUSY BUSYGROUP BUSYKEY CLUSTERDOWN CROSSSLOT DENIED ERR EXECABORT INPROG IOERR LOADING MASTERDOWN MISCONF \
    MOVED NOADDR NOAUTH NOGOODSLAVE NOGROUP NOMASTERLINK NOPERM NOPROTO NOQUORUM NOREPLICAS NOSCRIPT NOSUB NOTBUSY NOTREADY OOM \
    READONLY STALE SYNTAX TRYAGAIN UNBLOCKED UNKILLABLE WRONGPASS WRONGTYPE ";

/// Redacts a command from its first words.
#[must_use]
pub fn redact_command(words: &[Vec<u8>]) -> RedactedName {
    let Some(first) = words.first() else {
        return RedactedName::default();
    };
    let command = String::from_utf8_lossy(first).to_uppercase();
    let known = COMMANDS.get(command.as_str()).copied();
    let is = |word: &Vec<u8>, what: &str| word.eq_ignore_ascii_case(what.as_bytes());
    let reads = command.starts_with("XREAD");
    let streams = words.iter().position(|word| reads && is(word, "STREAMS"));
    // Behind STREAMS it would be a key.
    let block = words
        .iter()
        .take(streams.unwrap_or(0))
        .any(|word| is(word, "BLOCK"));
    let waits = if block || is_one_of(&command, BLOCKING) {
        BLOCKS
    } else {
        ""
    };
    let two = matches!(
        known,
        Some(RedisKeyPosition::TwoWords | RedisKeyPosition::BehindTwoWords)
    );
    let second = words
        .get(1)
        .filter(|_| two)
        .map(|word| String::from_utf8_lossy(word).to_uppercase());
    let (kept_at, whole_at) = match known {
        _ if reads => (streams.map(|at| at + 1), streams.map(|at| at + 1)),
        // The fourth word is the first key of all of these.
        Some(place) if is_one_of(&command, KEY_BEHIND_COUNT) => (place.word(), Some(3)),
        Some(place) => (place.word(), place.word()),
        None => (None, Some(1)),
    };
    let word = |at: Option<usize>| at.and_then(|at| words.get(at)).map(Vec::as_slice);
    let kept = RedisCommandParts {
        command: if known.is_some() || is_of_module(&command) {
            &command
        } else {
            "command"
        },
        second: second.as_deref().map(|second| {
            if is_one_of(second, SECOND) {
                second
            } else {
                "…"
            }
        }),
        key: word(kept_at).map(redact_key),
        waits,
    };
    let whole = RedisCommandParts {
        command: &command,
        second: second.as_deref(),
        key: word(whole_at).map(|key| String::from_utf8_lossy(key).into_owned()),
        waits,
    };
    RedactedName::new(&kept.text(), &printable(whole.text().as_bytes()))
}

/// Redacts a push message: its kind and its channel.
#[must_use]
pub fn redact_message(words: &[Vec<u8>]) -> RedactedName {
    const KINDS: &str = " invalidate message pmessage smessage subscribe psubscribe ssubscribe unsubscribe punsubscribe sunsubscribe ";
    let kind = words
        .first()
        .map(|kind| String::from_utf8_lossy(kind))
        .unwrap_or_default();
    let of_kind = if is_one_of(&kind, KINDS) {
        &*kind
    } else {
        "push"
    };
    let channel = words
        .get(1)
        .map(|channel| format!(" {}", redact_key(channel)))
        .filter(|_| of_kind != "push");
    let whole = words
        .iter()
        .take(2)
        .map(Vec::as_slice)
        .collect::<Vec<_>>()
        .join(&b' ');
    RedactedName::new(
        &format!("{of_kind}{}", channel.unwrap_or_default()),
        &printable(&whole),
    )
}

/// Redacts a status reply: known ones are kept, those that a script may have made are not.
#[must_use]
pub fn redact_status(text: &[u8]) -> RedactedName {
    let whole = printable(text);
    let first = whole.split(' ').next().unwrap_or_default();
    let kept = if is_one_of(first, STATUSES) {
        first
    } else {
        "text"
    };
    RedactedName::new(kept, &whole)
}

/// Redacts an error: its first word is kept if it is a known one; the rest may quote data and is dropped.
#[must_use]
pub fn redact_error(text: &[u8]) -> RedactedName {
    let first = printable(text.split(|byte| *byte == b' ').next().unwrap_or_default());
    RedactedName::new(
        if is_one_of(&first, ERRORS) {
            &first
        } else {
            "ERROR"
        },
        &first,
    )
}

/// Redacts a key: keeps its parts between `:`, `/`, `|` and `,`, up to a character that may begin a value.
#[must_use]
pub fn redact_key(key: &[u8]) -> String {
    redact_parts(key, &[':', '/', '|', ','])
}

/// The same, with other separators between the parts.
pub(crate) fn redact_parts(key: &[u8], between: &[char]) -> String {
    let ends = |byte: &u8| {
        !byte.is_ascii_graphic()
            || matches!(byte, b'=' | b'?' | b'#' | b';' | b'&' | b'"' | b'\'' | b'%')
    };
    let end = key.iter().position(ends).unwrap_or(key.len());
    // If an `@` follows the cut, the text before it may be a personal address.
    let begin = if key[end..].contains(&b'@') {
        &[][..]
    } else {
        &key[..end]
    };
    let text = String::from_utf8_lossy(begin);
    let mut out = String::new();
    for part in text.split_inclusive(between) {
        let name = part.trim_end_matches(between);
        if secret_words::is_opaque(name) {
            out.push(LEFT_OUT)
        } else {
            out.push_str(name)
        }
        out.push_str(&part[name.len()..]);
    }
    if end < key.len() && !out.ends_with(LEFT_OUT) {
        out.push(LEFT_OUT);
    }
    out
}

/// The parts of a command's name.
struct RedisCommandParts<'p> {
    command: &'p str,
    second: Option<&'p str>,
    key: Option<String>,
    waits: &'static str,
}

impl RedisCommandParts<'_> {
    fn text(&self) -> String {
        let words = [Some(self.command), self.second, self.key.as_deref()];
        let mut text = words.into_iter().flatten().collect::<Vec<_>>().join(" ");
        text.truncate(text.floor_char_boundary(LONGEST_NAME - BLOCKS.len()));
        text + self.waits
    }
}

/// Which word of a command is the key that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RedisKeyPosition {
    /// The word with this index.
    Word(usize),
    /// There is no key, or it is not kept.
    Nowhere,
    /// There is no key, but the second word is a subcommand.
    TwoWords,
    /// The key follows a subcommand.
    BehindTwoWords,
}

impl RedisKeyPosition {
    /// The index of the key's word.
    const fn word(self) -> Option<usize> {
        match self {
            Self::Word(at) => Some(at),
            Self::BehindTwoWords => Some(2),
            Self::Nowhere | Self::TwoWords => None,
        }
    }
}

/// All known commands.
static COMMANDS: LazyLock<HashMap<&'static str, RedisKeyPosition>> = LazyLock::new(|| {
    let places = [
        (KEYED, RedisKeyPosition::Word(1)),
        (KEY_BEHIND_ONE, RedisKeyPosition::Word(2)),
        (KEY_BEHIND_TWO, RedisKeyPosition::Word(3)),
        (ALONE, RedisKeyPosition::Nowhere),
        (IN_TWO_WORDS, RedisKeyPosition::TwoWords),
        (IN_TWO_WORDS_AND_KEY, RedisKeyPosition::BehindTwoWords),
    ];
    places
        .into_iter()
        .flat_map(|(names, place)| {
            names
                .split_ascii_whitespace()
                .map(move |name| (name, place))
        })
        .collect()
});

/// Whether a command is one of a known module.
fn is_of_module(command: &str) -> bool {
    let fits = |name: &str| {
        name.len() <= 20
            && name
                .bytes()
                .all(|byte| byte.is_ascii_uppercase() || byte == b'_')
    };
    OF_MODULES
        .iter()
        .any(|module| command.strip_prefix(module).is_some_and(fits))
}

fn is_one_of(word: &str, words: &str) -> bool {
    words.split_ascii_whitespace().any(|one| one == word)
}
