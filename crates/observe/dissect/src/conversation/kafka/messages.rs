//! The parts of Kafka messages from which names and status are made: the known APIs, the topic of a request, and the first error code of
//! a response.

use super::super::RedactedName;
use super::super::records::RecordFieldReader;
use super::HEAD;
use stackline_redact::operation;

/// API numbers.
const PRODUCE: usize = 0;
const FETCH: usize = 1;
const METADATA: usize = 3;
const JOIN_GROUP: usize = 11;
const SYNC_GROUP: usize = 14;
const API_VERSIONS: usize = 18;
/// The error code with which a broker assigns a member id: a normal step of joining a group.
const MEMBER_ID_REQUIRED: usize = 79;

/// An API of Kafka: a kind of request.
#[derive(Clone, Copy, Debug)]
pub(super) struct KafkaApi {
    name: &'static str,
    /// The first flexible version, with variable-length integers and tagged fields.
    flexible: usize,
    /// The first version whose response begins with a throttle time.
    throttled: usize,
    /// The first version whose response no longer has an error code next; 0 if none is read there.
    errors_before: usize,
    /// The newest version by which the API is recognised.
    pub(super) newest: usize,
}

/// For a version that does not exist.
const NEVER: usize = usize::MAX;

/// An API whose responses are not read.
const fn named(name: &'static str) -> KafkaApi {
    KafkaApi {
        name,
        flexible: NEVER,
        throttled: NEVER,
        errors_before: 0,
        newest: 20,
    }
}

/// An API whose responses have an error code at their beginning.
const fn with_error(
    name: &'static str,
    flexible: usize,
    throttled: usize,
    errors_before: usize,
) -> KafkaApi {
    KafkaApi {
        name,
        flexible,
        throttled,
        errors_before,
        newest: 20,
    }
}

/// The APIs by number.
const APIS: [KafkaApi; 51] = [
    KafkaApi {
        name: "Produce",
        flexible: 9,
        throttled: NEVER,
        errors_before: 0,
        newest: 20,
    },
    KafkaApi {
        name: "Fetch",
        flexible: 12,
        throttled: 1,
        errors_before: 0,
        newest: 20,
    },
    named("ListOffsets"),
    KafkaApi {
        name: "Metadata",
        flexible: 9,
        throttled: 3,
        errors_before: 0,
        newest: 20,
    },
    named("LeaderAndIsr"),
    named("StopReplica"),
    named("UpdateMetadata"),
    named("ControlledShutdown"),
    named("OffsetCommit"),
    named("OffsetFetch"),
    with_error("FindCoordinator", 3, 1, 4),
    with_error("JoinGroup", 6, 2, NEVER),
    with_error("Heartbeat", 4, 1, NEVER),
    with_error("LeaveGroup", 4, 1, NEVER),
    with_error("SyncGroup", 4, 1, NEVER),
    named("DescribeGroups"),
    named("ListGroups"),
    with_error("SaslHandshake", NEVER, NEVER, NEVER),
    with_error("ApiVersions", NEVER, NEVER, NEVER),
    named("CreateTopics"),
    named("DeleteTopics"),
    named("DeleteRecords"),
    with_error("InitProducerId", 2, 0, NEVER),
    named("OffsetForLeaderEpoch"),
    named("AddPartitionsToTxn"),
    with_error("AddOffsetsToTxn", 3, 0, NEVER),
    with_error("EndTxn", 3, 0, NEVER),
    named("WriteTxnMarkers"),
    named("TxnOffsetCommit"),
    named("DescribeAcls"),
    named("CreateAcls"),
    named("DeleteAcls"),
    named("DescribeConfigs"),
    named("AlterConfigs"),
    named("AlterReplicaLogDirs"),
    named("DescribeLogDirs"),
    with_error("SaslAuthenticate", 2, NEVER, NEVER),
    named("CreatePartitions"),
    named("CreateDelegationToken"),
    named("RenewDelegationToken"),
    named("ExpireDelegationToken"),
    named("DescribeDelegationToken"),
    named("DeleteGroups"),
    named("ElectLeaders"),
    named("IncrementalAlterConfigs"),
    named("AlterPartitionReassignments"),
    named("ListPartitionReassignments"),
    named("OffsetDelete"),
    named("DescribeClientQuotas"),
    named("AlterClientQuotas"),
    named("DescribeUserScramCredentials"),
];
/// Stands for the APIs of newer servers, up to number [`LAST`].
const NEWER: KafkaApi = named("request");
const LAST: usize = 92;

/// The API with a number.
pub(super) fn api(key: usize) -> Option<&'static KafkaApi> {
    APIS.get(key).or((key <= LAST).then_some(&NEWER))
}

/// The head of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct KafkaRequest {
    key: usize,
    version: usize,
    /// The correlation id.
    pub(super) number: usize,
    api: &'static KafkaApi,
}

/// The first fields of a Produce, Fetch or Metadata request.
#[derive(Clone, Copy, Debug, Default)]
struct KafkaBeginning<'b> {
    /// How many acknowledgements a Produce request asks for; 0 means that no response comes.
    acknowledgements: Option<usize>,
    /// Whether a Fetch request may wait for data.
    waits: bool,
    topic: Option<&'b [u8]>,
}

impl KafkaRequest {
    /// Reads the head of a request.
    pub(super) fn read(held: &[u8]) -> Option<Self> {
        let mut fields = RecordFieldReader(held.get(4..)?);
        let (key, version, number) = (fields.number(2)?, fields.number(2)?, fields.number(4)?);
        let api = api(key)?;
        Some(Self {
            key,
            version,
            number,
            api,
        })
    }

    const fn is_flexible(&self) -> bool {
        self.version >= self.api.flexible
    }

    /// Whether more bytes are needed to know if the request is answered.
    pub(super) fn needs_more(&self, held: &[u8]) -> bool {
        self.key == PRODUCE
            && self
                .beginning(held)
                .and_then(|beginning| beginning.acknowledgements)
                .is_none()
    }

    /// Whether no response comes.
    pub(super) fn is_one_way(&self, held: &[u8]) -> bool {
        self.beginning(held)
            .and_then(|beginning| beginning.acknowledgements)
            == Some(0)
    }

    /// The name of the request, with its topic.
    pub(super) fn name(&self, held: &[u8]) -> RedactedName {
        let beginning = self.beginning(held).unwrap_or_default();
        let name = operation::redact_at_subject(self.api.name, beginning.topic.unwrap_or_default());
        match self.key {
            JOIN_GROUP | SYNC_GROUP => operation::blocking(&name),
            FETCH if beginning.waits => operation::blocking(&name),
            _ => name,
        }
    }

    /// Reads the first fields of the request's body.
    fn beginning<'b>(&self, held: &'b [u8]) -> Option<KafkaBeginning<'b>> {
        let mut fields = RecordFieldReader(held.get(HEAD..)?);
        // The client's id keeps its old form in flexible versions.
        text(&mut fields, false)?;
        if self.is_flexible() {
            // The count of tagged fields, of which none is defined so far.
            fields.take(1)?;
        }
        let mut beginning = KafkaBeginning::default();
        match self.key {
            PRODUCE => {
                // The id of a transaction.
                if self.version >= 3 {
                    text(&mut fields, self.is_flexible())?;
                }
                beginning.acknowledgements = Some(fields.number(2)?);
                let _ = fields.take(4);
                beginning.topic = self.first_topic(&mut fields, 13);
            }
            FETCH => {
                let _ = (self.version < 15).then(|| fields.take(4));
                // How long the broker may wait, and for how many bytes at least.
                beginning.waits = fields.number(4)? > 0 && fields.number(4)? > 0;
                // The most bytes since version 3, the isolation since 4, session and epoch since 7.
                let between = [(3, 4), (4, 1), (7, 8)];
                let skipped: usize = between
                    .iter()
                    .filter(|(from, _)| self.version >= *from)
                    .map(|(_, bytes)| bytes)
                    .sum();
                let _ = fields.take(skipped);
                beginning.topic = self.first_topic(&mut fields, 13);
            }
            METADATA => {
                // The UUID of a topic.
                let id = if self.version >= 10 { 16 } else { 0 };
                beginning.topic = self.first_topic_behind(&mut fields, id);
            }
            _ => {}
        }
        Some(beginning)
    }

    /// The name of the first topic, in versions before `numbered_from`, from which on topics have ids instead of names.
    fn first_topic<'b>(
        &self,
        fields: &mut RecordFieldReader<'b>,
        numbered_from: usize,
    ) -> Option<&'b [u8]> {
        (self.version < numbered_from)
            .then(|| self.first_topic_behind(fields, 0))
            .flatten()
    }

    /// The name of the first topic in an array, behind its id of `id` bytes.
    fn first_topic_behind<'b>(
        &self,
        fields: &mut RecordFieldReader<'b>,
        id: usize,
    ) -> Option<&'b [u8]> {
        // Compact arrays count from 1; their 0 is null, as -1 is in the old form.
        let (none, count) = match self.is_flexible() {
            true => (1, short_number(fields)?),
            false => (0, fields.number(4).filter(|count| *count < 1 << 24)?),
        };
        if count <= none {
            return None;
        }
        fields.take(id)?;
        text(fields, self.is_flexible())
    }

    /// The status of a response, from the error code at its beginning, if it has one there.
    pub(super) fn status(&self, body: &[u8]) -> RedactedName {
        match self.error(RecordFieldReader(body)) {
            Some(MEMBER_ID_REQUIRED) if self.key == JOIN_GROUP => {
                RedactedName::fixed("member id required")
            }
            Some(0) | None => RedactedName::fixed("OK"),
            Some(error) => RedactedName::number("ERROR ", error as u64),
        }
    }

    /// The first error code of a response.
    fn error(&self, mut fields: RecordFieldReader<'_>) -> Option<usize> {
        let is_flexible = self.is_flexible();
        // Its response keeps the old head, which clients of any version can read (KIP-511).
        if is_flexible && self.key != API_VERSIONS {
            fields.take(1)?;
        }
        if self.version >= self.api.throttled {
            fields.take(4)?;
        }
        match self.key {
            PRODUCE if self.version < 13 => {
                self.first_topic_behind(&mut fields, 0)?;
                let partitions = if is_flexible {
                    short_number(&mut fields)?.saturating_sub(1)
                } else {
                    fields.number(4)?
                };
                fields.take(4)?;
                fields.number(2).filter(|_| partitions > 0)
            }
            FETCH if self.version >= 7 => fields.number(2),
            _ if self.version < self.api.errors_before => fields.number(2),
            _ => None,
        }
    }
}

/// A text, which may be null (then it is empty); `is_short` for the format of flexible versions.
fn text<'b>(fields: &mut RecordFieldReader<'b>, is_short: bool) -> Option<&'b [u8]> {
    let length = match is_short {
        // Compact lengths are one higher; 0 is null.
        true => short_number(fields)?.saturating_sub(1),
        false => fields
            .number(2)
            // A negative length is null.
            .map(|length| if length >= 0x8000 { 0 } else { length })?,
    };
    fields.take(length)
}

/// A variable-length integer: seven bits per byte, the lowest bits first.
fn short_number(fields: &mut RecordFieldReader<'_>) -> Option<usize> {
    let mut number = 0;
    for shift in [0, 7, 14, 21] {
        let byte = fields.number(1)?;
        number |= (byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}
