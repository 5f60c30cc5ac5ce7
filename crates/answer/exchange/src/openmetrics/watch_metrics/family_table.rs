//! The families of `stackline watch`, and which field of which event goes into which of them.

use crate::openmetrics::MetricKind;
use MetricKind::{Counter, Gauge};

/// A family that a watch serves.
#[derive(Clone, Copy, Debug)]
pub struct WatchFamily {
    /// Its name, without `_total`.
    pub name: &'static str,
    /// What its samples are.
    pub kind: MetricKind,
    /// Its unit.
    pub unit: Option<&'static str>,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// What it is.
    pub help: &'static str,
}

/// The families that a watch serves, besides that of its version.
#[must_use]
pub const fn watch_families() -> &'static [WatchFamily] {
    FAMILIES
}

macro_rules! families {
    ($($name:literal $kind:ident $unit:tt [$($label:literal),*] $help:literal;)+) => {
        &[$(WatchFamily {
            name: concat!("stackline_", $name),
            kind: $kind,
            unit: families!(unit $unit),
            labels: &[$($label),*],
            help: $help,
        }),+]
    };
    (unit none) => { None };
    (unit $unit:ident) => { Some(stringify!($unit)) };
}

pub(super) const FAMILIES: &[WatchFamily] = families! {
    "cpu_seconds" Counter seconds ["core", "mode"] "Time of a core by what it was used for.";
    "context_switches" Counter none [] "Context switches of all cores.";
    "interrupts" Counter none [] "Interrupts of all cores.";
    "forks" Counter none [] "Processes and threads started.";
    "page_faults" Counter none ["kind"] "Page faults; a major one waits for a disk.";
    "swapped_pages" Counter none ["direction"] "Pages of 4 KiB swapped in or out.";
    "system_calls" Counter none [] "System calls of all processes (with --system-calls).";
    "memory_bytes" Gauge bytes ["state"] "Memory that is available, free, or waits to be written.";
    "pressure_seconds" Counter seconds ["resource", "waiting"] "Time during which some or all tasks waited for a resource.";
    "throttled_seconds" Counter seconds [] "Time during which the control group was throttled.";
    "disk_bytes" Counter bytes ["device", "direction"] "Bytes read from or written to a disk or partition.";
    "disk_operations" Counter none ["device", "direction"] "Operations completed by a disk or partition.";
    "disk_busy_seconds" Counter seconds ["device"] "Time during which a disk or partition was busy.";
    "interface_bytes" Counter bytes ["interface", "direction"] "Bytes through an interface.";
    "interface_packets" Counter none ["interface", "direction"] "Packets through an interface.";
    "interface_drops" Counter none ["interface", "direction"] "Packets that an interface dropped.";
    "interface_errors" Counter none ["interface", "direction"] "Packets with errors at an interface.";
    "softirq_packets" Counter none ["core", "outcome"] "Packets that a core's softirqs processed or dropped.";
    "softirq_squeezed" Counter none ["core"] "How often a core's softirqs stopped with packets left.";
    "tcp_segments" Counter none ["direction"] "TCP segments.";
    "tcp_retransmissions" Counter none [] "Retransmitted TCP segments.";
    "tcp_timeouts" Counter none [] "Retransmission timeouts of TCP.";
    "tcp_loss_probes" Counter none [] "Tail loss probes of TCP.";
    "tcp_resets" Counter none [] "TCP resets sent.";
    "tcp_listen_drops" Counter none [] "Connections dropped because a listening socket's queue was full.";
    "tcp_receive_queue_drops" Counter none [] "Segments dropped because a receive queue was full.";
    "tcp_out_of_order" Counter none [] "Segments received out of order.";
    "tcp_drops" Counter none ["reason"] "Packets of TCP connections that the kernel dropped (as root, with the kernel's reason).";
    "udp_datagrams" Counter none ["direction"] "UDP datagrams.";
    "udp_errors" Counter none ["kind"] "UDP datagrams lost to a full buffer or a wrong checksum.";
    "connections_active" Gauge none ["program", "pid"] "TCP connections with activity in the last 20 samples.";
    "connection_retransmissions" Counter none ["program", "pid"] "Retransmitted segments, by process: the slowest, the others summed.";
    "connection_acknowledged_bytes" Counter bytes ["program", "pid"] "Bytes sent and acknowledged, by process: the slowest, the others summed.";
    "connection_round_trip_seconds" Gauge seconds ["program", "pid"] "The longest smoothed round-trip time of a process's connections.";
    "connection_send_queue_bytes" Gauge bytes ["program", "pid"] "Bytes written and not acknowledged.";
    "connection_unread_bytes" Gauge bytes ["program", "pid"] "Bytes received that the program has not read.";
    "switch_bytes" Counter bytes ["switch", "port", "direction"] "Bytes through a switch port (SNMP).";
    "switch_packets" Counter none ["switch", "port", "direction"] "Packets through a switch port (SNMP).";
    "switch_discards" Counter none ["switch", "port", "direction"] "Packets that a switch port discarded (SNMP).";
    "switch_errors" Counter none ["switch", "port", "direction"] "Packets with errors at a switch port (SNMP).";
    "events" Counter none [] "Events of the watch.";
    "events_lost" Counter none [] "Events lost because a buffer was full.";
    "left_out_values" Counter none [] "Values left out because there were too many series.";
    "watch_interval_seconds" Gauge seconds [] "The sampling interval.";
};

/// Where a label's value comes from.
#[derive(Clone, Copy, Debug)]
pub(super) enum LabelSource {
    /// A word of ours.
    Fixed(&'static str),
    /// A field of the event.
    Field(&'static str),
    /// The host of the event.
    Host,
}

/// How a field's value goes into a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldScale {
    /// Added as it is.
    Count,
    /// Added as seconds, from ns.
    Nanoseconds,
    /// Added as seconds: parts per million of the event's interval.
    ShareOfInterval,
    /// Added as 1 for each event; there is no field.
    Occurrence,
    /// The latest value.
    Latest,
}

/// A field of an event that is part of a family.
#[derive(Clone, Copy, Debug)]
pub(super) struct WatchedField {
    pub(super) keyword: &'static str,
    pub(super) field: &'static str,
    pub(super) scale: FieldScale,
    pub(super) family: &'static str,
    pub(super) labels: &'static [LabelSource],
}

macro_rules! fields {
    ($($keyword:literal $field:literal $scale:ident $family:literal [$($label:expr),*];)+) => {
        &[$(WatchedField {
            keyword: $keyword,
            field: $field,
            scale: FieldScale::$scale,
            family: concat!("stackline_", $family),
            labels: &[$($label),*],
        }),+]
    };
}

const CORE: LabelSource = LabelSource::Field("core");
const DEVICE: LabelSource = LabelSource::Field("device");
const INTERFACE: LabelSource = LabelSource::Field("interface");
const PORT: LabelSource = LabelSource::Field("port");
const RESOURCE: LabelSource = LabelSource::Field("resource");
const SWITCH: LabelSource = LabelSource::Host;
const RECEIVED: LabelSource = LabelSource::Fixed("received");
const SENT: LabelSource = LabelSource::Fixed("sent");
const IN: LabelSource = LabelSource::Fixed("in");
const OUT: LabelSource = LabelSource::Fixed("out");
const READ: LabelSource = LabelSource::Fixed("read");
const WRITTEN: LabelSource = LabelSource::Fixed("written");

const fn fixed(word: &'static str) -> LabelSource {
    LabelSource::Fixed(word)
}

pub(super) const WATCHED_FIELDS: &[WatchedField] = fields! {
    "CPU_USE" "user_ppm" ShareOfInterval "cpu_seconds" [CORE, fixed("user")];
    "CPU_USE" "system_ppm" ShareOfInterval "cpu_seconds" [CORE, fixed("system")];
    "CPU_USE" "softirq_ppm" ShareOfInterval "cpu_seconds" [CORE, fixed("softirq")];
    "CPU_USE" "irq_ppm" ShareOfInterval "cpu_seconds" [CORE, fixed("irq")];
    "CPU_USE" "steal_ppm" ShareOfInterval "cpu_seconds" [CORE, fixed("steal")];
    "CPU_USE" "idle_ppm" ShareOfInterval "cpu_seconds" [CORE, fixed("idle")];
    "CPU_USE" "iowait_ppm" ShareOfInterval "cpu_seconds" [CORE, fixed("iowait")];
    "VMSTAT" "switches" Count "context_switches" [];
    "VMSTAT" "interrupts" Count "interrupts" [];
    "VMSTAT" "forks" Count "forks" [];
    "VMSTAT" "faults" Count "page_faults" [fixed("all")];
    "VMSTAT" "major_faults" Count "page_faults" [fixed("major")];
    "VMSTAT" "swapped_in" Count "swapped_pages" [IN];
    "VMSTAT" "swapped_out" Count "swapped_pages" [OUT];
    "VMSTAT_SYS_CALLS" "calls" Count "system_calls" [];
    "MEMORY" "available_bytes" Latest "memory_bytes" [fixed("available")];
    "MEMORY" "free_bytes" Latest "memory_bytes" [fixed("free")];
    "MEMORY" "dirty_bytes" Latest "memory_bytes" [fixed("dirty")];
    "PRESSURE" "some_ppm" ShareOfInterval "pressure_seconds" [RESOURCE, fixed("some")];
    "PRESSURE" "full_ppm" ShareOfInterval "pressure_seconds" [RESOURCE, fixed("all")];
    "THROTTLED" "throttled_ns" Nanoseconds "throttled_seconds" [];
    "DISK" "read_bytes" Count "disk_bytes" [DEVICE, READ];
    "DISK" "written_bytes" Count "disk_bytes" [DEVICE, WRITTEN];
    "DISK" "reads" Count "disk_operations" [DEVICE, READ];
    "DISK" "writes" Count "disk_operations" [DEVICE, WRITTEN];
    "DISK" "busy_ns" Nanoseconds "disk_busy_seconds" [DEVICE];
    "NETIF" "received_bytes" Count "interface_bytes" [INTERFACE, RECEIVED];
    "NETIF" "sent_bytes" Count "interface_bytes" [INTERFACE, SENT];
    "NETIF" "received_packets" Count "interface_packets" [INTERFACE, RECEIVED];
    "NETIF" "sent_packets" Count "interface_packets" [INTERFACE, SENT];
    "NETIF" "received_drops" Count "interface_drops" [INTERFACE, RECEIVED];
    "NETIF" "sent_drops" Count "interface_drops" [INTERFACE, SENT];
    "NETIF" "received_errors" Count "interface_errors" [INTERFACE, RECEIVED];
    "NETIF" "sent_errors" Count "interface_errors" [INTERFACE, SENT];
    "SOFTNET" "packets" Count "softirq_packets" [CORE, fixed("processed")];
    "SOFTNET" "drops" Count "softirq_packets" [CORE, fixed("dropped")];
    "SOFTNET" "squeezed" Count "softirq_squeezed" [CORE];
    "NETSTAT_TCP" "segments_in" Count "tcp_segments" [RECEIVED];
    "NETSTAT_TCP" "segments_out" Count "tcp_segments" [SENT];
    "NETSTAT_TCP" "retransmits" Count "tcp_retransmissions" [];
    "NETSTAT_TCP" "timeouts" Count "tcp_timeouts" [];
    "NETSTAT_TCP" "loss_probes" Count "tcp_loss_probes" [];
    "NETSTAT_TCP" "resets" Count "tcp_resets" [];
    "NETSTAT_TCP" "listen_drops" Count "tcp_listen_drops" [];
    "NETSTAT_TCP" "receive_queue_drops" Count "tcp_receive_queue_drops" [];
    "NETSTAT_TCP" "out_of_order" Count "tcp_out_of_order" [];
    "TCP_DROP" "" Occurrence "tcp_drops" [LabelSource::Field("reason")];
    "NETSTAT_UDP" "in" Count "udp_datagrams" [RECEIVED];
    "NETSTAT_UDP" "out" Count "udp_datagrams" [SENT];
    "NETSTAT_UDP" "receive_buffer_errors" Count "udp_errors" [fixed("receive_buffer")];
    "NETSTAT_UDP" "send_buffer_errors" Count "udp_errors" [fixed("send_buffer")];
    "NETSTAT_UDP" "checksum_errors" Count "udp_errors" [fixed("checksum")];
    "SWITCH_PORT" "in_bytes" Count "switch_bytes" [SWITCH, PORT, IN];
    "SWITCH_PORT" "out_bytes" Count "switch_bytes" [SWITCH, PORT, OUT];
    "SWITCH_PORT" "in_packets" Count "switch_packets" [SWITCH, PORT, IN];
    "SWITCH_PORT" "out_packets" Count "switch_packets" [SWITCH, PORT, OUT];
    "SWITCH_PORT" "in_discards" Count "switch_discards" [SWITCH, PORT, IN];
    "SWITCH_PORT" "out_discards" Count "switch_discards" [SWITCH, PORT, OUT];
    "SWITCH_PORT" "in_errors" Count "switch_errors" [SWITCH, PORT, IN];
    "SWITCH_PORT" "out_errors" Count "switch_errors" [SWITCH, PORT, OUT];
    "EVENTS_LOST" "count" Count "events_lost" [];
};
