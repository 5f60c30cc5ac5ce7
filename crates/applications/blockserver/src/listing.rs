//! The sets, servers and disks of a master, as tables and as JSON.

use serde_json::{Value, json};
use stackline_blocks::placement::BlockPlacementPolicy;
use stackline_blocks::wire::master_messages::{ServerInfo, SetInfo};
use stackline_core::units;

/// All sets and servers as JSON.
#[must_use]
pub fn listing_json(sets: &[SetInfo], servers: &[ServerInfo]) -> Value {
    let sets: Vec<Value> = sets.iter().map(set_json).collect();
    let servers: Vec<Value> = servers.iter().map(server_json).collect();
    json!({ "sets": sets, "servers": servers })
}

fn placement(placement: BlockPlacementPolicy) -> String {
    match placement {
        BlockPlacementPolicy::RoundRobin => "round-robin".into(),
        BlockPlacementPolicy::Random(seed) => format!("random:{seed}"),
        BlockPlacementPolicy::Hash => "hash".into(),
        BlockPlacementPolicy::Tiles => "tiles".into(),
        BlockPlacementPolicy::Given => "given".into(),
    }
}

fn set_json(set: &SetInfo) -> Value {
    let about = &set.about;
    let picture = about.picture.as_ref().map(|picture| { json!({ "width": picture.width, "height": picture.height, "tile": picture.tile, "pixel_bytes": picture.pixel_bytes, "levels": picture.levels() }) });
    json!({ "name": about.name, "complete": set.sealed, "blocks": about.blocks(), "bytes": about.bytes, "block_bytes": about.block_size, "written_blocks": set.written, "reachable_blocks": set.reachable, "replicas": about.replicas, "placement": placement(about.placement), "picture": picture })
}

fn server_json(server: &ServerInfo) -> Value {
    let disk = |disk: &stackline_blocks::wire::server_messages::DiskInfo| json!({ "path": disk.path, "identity": format!("{:032x}", disk.identity), "up": disk.up, "writable": disk.writable, "used_bytes": disk.used, "capacity_bytes": disk.capacity, "damaged_copies": disk.damaged });
    let disks: Vec<Value> = server.disks.iter().map(disk).collect();
    json!({ "id": server.id, "name": server.name, "address": server.address, "up": server.up, "disks": disks })
}

/// All sets and servers as tables.
#[must_use]
pub fn listing_text(sets: &[SetInfo], servers: &[ServerInfo]) -> String {
    let mut rows = vec![
        [
            "set",
            "blocks",
            "bytes",
            "block",
            "reachable",
            "copies",
            "placement",
            "picture",
        ]
        .map(String::from),
    ];
    rows.extend(sets.iter().map(set_row));
    let mut text = if sets.is_empty() {
        "no sets\n".into()
    } else {
        columns(&rows)
    };
    let mut rows = vec![
        [
            "server", "address", "state", "disk", "state", "used", "of", "",
        ]
        .map(String::from),
    ];
    for server in servers {
        let state = |up: bool| if up { "up" } else { "down" }.to_owned();
        let mut first = [
            server.name.clone(),
            server.address.clone(),
            state(server.up),
        ];
        for disk in &server.disks {
            let [name, address, up] = std::mem::take(&mut first);
            let (used, of) = (room(disk.used), room(disk.capacity));
            let damaged = match disk.damaged {
                0 => String::new(),
                1 => "1 damaged copy found".into(),
                copies => format!("{copies} damaged copies found"),
            };
            let is_read_only = disk.up && !disk.writable;
            let disk_state = if is_read_only {
                "read-only".to_owned()
            } else {
                state(disk.up)
            };
            rows.push([
                name,
                address,
                up,
                disk.path.clone(),
                disk_state,
                used,
                of,
                damaged,
            ]);
        }
    }
    text.push('\n');
    text += &if servers.is_empty() {
        "no servers\n".into()
    } else {
        columns(&rows)
    };
    text
}

/// A size in bytes: exact if it is below 10 MiB or a whole number of MiB, else with three digits.
fn room(bytes: u64) -> String {
    let exact = bytes < 10 << 20 || bytes.is_multiple_of(1 << 20);
    // An odd number is not a whole number of any larger unit, so it is rounded.
    units::format_size(if exact { bytes } else { bytes | 1 })
}

fn set_row(set: &SetInfo) -> [String; 8] {
    let about = &set.about;
    let blocks = about.blocks();
    let written = if set.sealed {
        blocks.to_string()
    } else {
        format!("{} of {blocks} (incomplete)", set.written)
    };
    let reachable = if set.reachable == set.written {
        "all".into()
    } else {
        format!("{} of {}", set.reachable, set.written)
    };
    let picture = about.picture.as_ref();
    let picture = picture.map_or_else(String::new, |p| {
        format!("{}x{}, {} levels", p.width, p.height, p.levels())
    });
    let (bytes, block) = (
        units::format_size(about.bytes),
        units::format_size(about.block_size.into()),
    );
    [
        about.name.clone(),
        written,
        bytes,
        block,
        reachable,
        about.replicas.to_string(),
        placement(about.placement),
        picture,
    ]
}

/// Rows of a table, each column as wide as its widest word.
fn columns<const N: usize>(rows: &[[String; N]]) -> String {
    let widths: Vec<usize> = (0..N)
        .map(|at| {
            rows.iter()
                .map(|row| row[at].chars().count())
                .max()
                .unwrap_or(0)
        })
        .collect();
    let line = |row: &[String; N]| {
        let cells: Vec<String> = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        cells.join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}
