//! Commands of Redis: the command and its first key, as far as both are known. Arguments are left out; of commands whose arguments may
//! be scripts or secrets (AUTH, CONFIG, EVAL, MIGRATE) keys too. In a key, parts that look like tokens or addresses of people are.

use crate::name::{RedactedName, printable};
use crate::{LEFT_OUT, LONGEST_NAME, secret_words};
use std::collections::HashMap;
use std::sync::LazyLock;

/// Commands whose first key is the second word.
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
/// Commands whose first key is the third word, and the fourth.
const KEY_BEHIND_ONE: &str = " BITOP LMPOP SINTERCARD ZDIFF ZINTER ZINTERCARD ZMPOP ZUNION ";
const KEY_BEHIND_TWO: &str = " BLMPOP BZMPOP ";
/// Commands of which nothing but the command is kept.
const ALONE: &str = " ASKING AUTH BGREWRITEAOF BGSAVE DBSIZE DISCARD ECHO EVAL EVALSHA EVALSHA_RO EVAL_RO EXEC FAILOVER FCALL FCALL_RO \
    FLUSHALL FLUSHDB HELLO INFO KEYS LASTSAVE LOLWUT MIGRATE MONITOR MULTI PFDEBUG PFSELFTEST PING PSYNC QUIT RANDOMKEY \
    READONLY READWRITE REPLCONF REPLICAOF RESET RESTORE-ASKING ROLE SAVE SCAN SELECT SENTINEL SHUTDOWN SLAVEOF SWAPDB SYNC TIME \
    UNWATCH WAIT WAITAOF XREAD XREADGROUP ";
/// Commands of which the second word is a part, and those of them that name a key behind it.
const IN_TWO_WORDS: &str =
    " ACL CLIENT CLUSTER COMMAND CONFIG DEBUG FUNCTION LATENCY MODULE PUBSUB SCRIPT SLOWLOG ";
const IN_TWO_WORDS_AND_KEY: &str = " MEMORY OBJECT XGROUP XINFO ";
/// Second words.
const SECOND: &str = " ADDSLOTS BUMPEPOCH CACHING CAT CHANNELS CONSUMERS COUNT COUNT-FAILURE-REPORTS COUNTKEYSINSLOT CREATE CREATECONSUMER \
    DELCONSUMER DELETE DELSLOTS DELUSER DESTROY DOCS DOCTOR DRYRUN DUMP ENCODING EXISTS FAILOVER FLUSH FLUSHSLOTS FORGET FREQ \
    GENPASS GET GETKEYS GETKEYSANDFLAGS GETNAME GETREDIR GETUSER GRAPH GROUPS HELP HISTOGRAM HISTORY ID IDLETIME INFO JMAP KEYSLOT \
    KILL LATEST LEN LINKS LIST LOAD LOADEX LOG MALLOC-STATS MEET MYID MYSHARDID NO-EVICT NO-TOUCH NODES NUMPAT NUMSUB OBJECT PAUSE \
    PURGE REFCOUNT REPLICAS REPLICATE REPLY RESET RESETSTAT RESTORE REWRITE SAVE SET SET-CONFIG-EPOCH SETID SETINFO SETNAME SETSLOT \
    SETUSER SHARDCHANNELS SHARDNUMSUB SHARDS SLAVES SLEEP SLOT-STATS SLOTS STATS STREAM TRACKING TRACKINGINFO UNBLOCK UNLOAD UNPAUSE \
    USAGE USERS WHOAMI ";
/// Commands of modules begin so; of these nothing but the command is kept.
const OF_MODULES: [&str; 11] = [
    "BF.", "CF.", "CMS.", "FT.", "GRAPH.", "JSON.", "TDIGEST.", "TOPK.", "TS.", "AI.", "RG.",
];
/// Commands that wait for something that others do.
const BLOCKING: &str =
    " BLMOVE BLMPOP BLPOP BRPOP BRPOPLPUSH BZMPOP BZPOPMAX BZPOPMIN WAIT WAITAOF ";
pub(crate) const BLOCKS: &str = ", blocking";
/// For the whole name: the key is the fourth word of these too.
const KEY_BEHIND_COUNT: &str = " EVAL EVALSHA EVALSHA_RO EVAL_RO FCALL FCALL_RO MIGRATE ";
/// What a server says in a word that is not about data.
const STATUSES: &str = " OK PONG QUEUED BACKGROUND RESET NOKEY none string list set hash zset stream CONTINUE FULLRESYNC FIRST SECOND ";
/// First words of errors.
const ERRORS: &str = " ASK BUSY BUSYGROUP BUSYKEY CLUSTERDOWN CROSSSLOT DENIED ERR EXECABORT INPROG IOERR LOADING MASTERDOWN MISCONF \
    MOVED NOADDR NOAUTH NOGOODSLAVE NOGROUP NOMASTERLINK NOPERM NOPROTO NOQUORUM NOREPLICAS NOSCRIPT NOSUB NOTBUSY NOTREADY OOM \
    READONLY STALE SYNTAX TRYAGAIN UNBLOCKED UNKILLABLE WRONGPASS WRONGTYPE ";

/// A command of which these are the first words.
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
    RedactedName::of(&kept.text(), &printable(whole.text().as_bytes()))
}

/// What a server says that nobody asked for at that moment: its kind and its channel.
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
    RedactedName::of(
        &format!("{of_kind}{}", channel.unwrap_or_default()),
        &printable(&whole),
    )
}

/// A text that answers: the few that servers have are kept, what a script made is not.
#[must_use]
pub fn redact_status(text: &[u8]) -> RedactedName {
    let whole = printable(text);
    let first = whole.split(' ').next().unwrap_or_default();
    let kept = if is_one_of(first, STATUSES) {
        first
    } else {
        "text"
    };
    RedactedName::of(kept, &whole)
}

/// The first word of an error, if servers have it; what follows it may quote anything.
#[must_use]
pub fn redact_error(text: &[u8]) -> RedactedName {
    let first = printable(text.split(|byte| *byte == b' ').next().unwrap_or_default());
    RedactedName::of(
        if is_one_of(&first, ERRORS) {
            &first
        } else {
            "ERROR"
        },
        &first,
    )
}

/// What is kept of a key: its parts between `:`, `/` and the like, up to what may begin a value.
#[must_use]
pub fn redact_key(key: &[u8]) -> String {
    redact_parts(key, &[':', '/', '|', ','])
}

/// The same with parts between other marks.
pub(crate) fn redact_parts(key: &[u8], between: &[char]) -> String {
    let ends = |byte: &u8| {
        !byte.is_ascii_graphic()
            || matches!(byte, b'=' | b'?' | b'#' | b';' | b'&' | b'"' | b'\'' | b'%')
    };
    let end = key.iter().position(ends).unwrap_or(key.len());
    // What is cut off may belong to an address of somebody.
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

/// Where the key of a command stands that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RedisKeyPosition {
    /// It is the word of that number.
    Word(usize),
    /// There is none, or it is left out.
    Nowhere,
    /// There is none, but the second word is a part of the command.
    TwoWords,
    /// It is behind such a one.
    BehindTwoWords,
}

impl RedisKeyPosition {
    const fn word(self) -> Option<usize> {
        match self {
            Self::Word(at) => Some(at),
            Self::BehindTwoWords => Some(2),
            Self::Nowhere | Self::TwoWords => None,
        }
    }
}

/// Every command that is known.
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

/// Whether it is a command of one of the usual modules.
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
