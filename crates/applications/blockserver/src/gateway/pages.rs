//! Pages for people and JSON for programs: the list of sets, and the page that shows a picture.
//!
//! Pages load nothing from other hosts, and run no script but their own.

use serde_json::json;
use stackline_blocks::pyramid::Pyramid;
use stackline_blocks::wire::master_messages::{ServerInfo, SetInfo};
use std::fmt::Write;

const VIEW: &str = include_str!("view.html");
const SETS: &str = include_str!("sets.html");

/// All sets and servers as JSON.
pub(super) fn sets_json(sets: &[SetInfo], servers: &[ServerInfo]) -> String {
    let sets = sets.iter().map(|set| {
        let about = &set.about;
        let picture = about.picture.as_ref().map(|picture| {
            let Pyramid { width, height, tile, pixel_bytes } = picture;
            json!({"width": width, "height": height, "tile": tile, "pixel_bytes": pixel_bytes, "levels": picture.levels()})
        });
        json!({
            "name": about.name, "bytes": about.bytes, "block_size": about.block_size, "blocks": about.blocks(),
            "copies": about.replicas, "written": set.written, "reachable": set.reachable, "whole": set.sealed,
            "picture": picture,
        })
    });
    let servers = servers.iter().map(|server| {
        let disks = server.disks.iter().filter(|disk| disk.up).count();
        json!({"number": server.id, "name": server.name, "up": server.up, "disks": server.disks.len(), "disks_up": disks})
    });
    let all = json!({"sets": sets.collect::<Vec<_>>(), "servers": servers.collect::<Vec<_>>()});
    format!("{all:#}\n")
}

/// The list of all sets as a page.
pub(super) fn sets_page(sets: &[SetInfo]) -> String {
    let mut rows = String::new();
    for set in sets {
        let name = escaped(&set.about.name);
        let picture = set
            .about
            .picture
            .as_ref()
            .map_or_else(String::new, |picture| {
                format!(
                    "<a href=\"/{name}/view\">{} &times; {} pixels</a>",
                    picture.width, picture.height
                )
            });
        let _ = writeln!(
            rows,
            "<tr><td><a href=\"/{name}\">{name}</a><td>{}<td>{}<td>{}<td>{picture}",
            set.about.bytes,
            set.about.blocks(),
            set.reachable
        );
    }
    if sets.is_empty() {
        rows.push_str("<tr><td colspan=\"5\">No set has been loaded.");
    }
    SETS.replace("{{ROWS}}", &rows)
}

/// The page that shows a picture; its script and style carry the nonce of the content security policy.
pub(super) fn render_view_page(name: &str, picture: &Pyramid, nonce: &str) -> String {
    let Pyramid {
        width,
        height,
        tile,
        ..
    } = picture;
    let set = json!({"name": name, "width": width, "height": height, "tile": tile, "levels": picture.levels()});
    // Within a script, `<` could end it.
    let set = set.to_string().replace('<', "\\u003c");
    VIEW.replace("{{NONCE}}", nonce)
        .replace("{{NAME}}", &escaped(name))
        .replace("{{SET}}", &set)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
