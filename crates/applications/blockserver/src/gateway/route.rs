//! Parses the paths of requests. A name that no set can have makes a path invalid.

use stackline_blocks::pyramid::{Pyramid, Tile};
use std::borrow::Cow;

/// What a path asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum GatewayRoute {
    /// `/`
    Sets,
    /// `/SET`
    Whole(String),
    /// `/SET/NUMBER`
    Block(String, u64),
    /// `/SET/tile/LEVEL/ROW/COLUMN.png` or `/SET/xyz/Z/X/Y.png`
    Tile(String, GatewayTileName),
    /// `/SET/view`
    View(String),
    /// `/SET/blocks`
    List(String),
}

/// A tile as a path names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GatewayTileName {
    /// By level, 0 for the full resolution.
    Level(Tile),
    /// By zoom, 0 for the whole picture in one tile, as map viewers count.
    Zoom { zoom: u8, column: u32, row: u32 },
}

impl GatewayTileName {
    /// The tile of a picture. Whether the picture has that tile is checked elsewhere.
    pub(super) fn tile(self, picture: &Pyramid) -> Option<Tile> {
        match self {
            Self::Level(tile) => Some(tile),
            Self::Zoom { zoom, column, row } => {
                let level = picture.levels().checked_sub(1)?.checked_sub(zoom)?;
                Some(Tile { level, row, column })
            }
        }
    }
}

impl GatewayRoute {
    /// Parses a path.
    pub(super) fn parse(path: &str) -> Option<Self> {
        let path = decoded(path)?;
        let rest = path.strip_prefix('/')?;
        if rest.is_empty() {
            return Some(Self::Sets);
        }
        let parts: Vec<&str> = rest.splitn(6, '/').collect();
        let name = name(parts[0])?;
        match parts[1..] {
            [] => Some(Self::Whole(name)),
            ["view"] => Some(Self::View(name)),
            ["blocks"] => Some(Self::List(name)),
            [block] => Some(Self::Block(name, number(block)?)),
            ["tile", level, row, file] => {
                let (level, row, column) = (
                    number(level)?,
                    number(row)?,
                    number(file.strip_suffix(".png")?)?,
                );
                Some(Self::Tile(
                    name,
                    GatewayTileName::Level(Tile { level, row, column }),
                ))
            }
            ["xyz", zoom, column, file] => {
                let (zoom, column, row) = (
                    number(zoom)?,
                    number(column)?,
                    number(file.strip_suffix(".png")?)?,
                );
                Some(Self::Tile(
                    name,
                    GatewayTileName::Zoom { zoom, column, row },
                ))
            }
            _ => None,
        }
    }
}

/// Decodes escapes of characters that need none (RFC 3986, section 6.2.2.2); a path with other escapes is invalid.
fn decoded(path: &str) -> Option<Cow<'_, str>> {
    if !path.contains('%') {
        return Some(path.into());
    }
    let mut parts = path.split('%');
    let mut plain = parts.next()?.to_owned();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        let byte = digits
            .bytes()
            .all(|digit| digit.is_ascii_hexdigit())
            .then(|| u8::from_str_radix(digits, 16).ok())??;
        if !byte.is_ascii_alphanumeric() && !b"-._~".contains(&byte) {
            return None;
        }
        plain.push(byte.into());
        plain.push_str(rest);
    }
    Some(plain.into())
}

fn name(text: &str) -> Option<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let fits =
        !text.is_empty() && text.len() <= 100 && !text.starts_with('.') && text.chars().all(plain);
    fits.then(|| text.to_owned())
}

/// Parses a number that consists of digits only.
pub(super) fn number<N: std::str::FromStr>(text: &str) -> Option<N> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        None
    } else {
        text.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_sets_blocks_and_tiles() {
        let map = || "map".to_string();
        let tile = Tile {
            level: 2,
            row: 7,
            column: 9,
        };
        for (path, route) in [
            ("/", GatewayRoute::Sets),
            ("/map", GatewayRoute::Whole(map())),
            ("/map/0", GatewayRoute::Block(map(), 0)),
            (
                "/map/18446744073709551615",
                GatewayRoute::Block(map(), u64::MAX),
            ),
            ("/map/view", GatewayRoute::View(map())),
            ("/map/blocks", GatewayRoute::List(map())),
            (
                "/map/tile/2/7/9.png",
                GatewayRoute::Tile(map(), GatewayTileName::Level(tile)),
            ),
            (
                "/map/xyz/2/9/7.png",
                GatewayRoute::Tile(
                    map(),
                    GatewayTileName::Zoom {
                        zoom: 2,
                        column: 9,
                        row: 7,
                    },
                ),
            ),
            ("/a.b_c-d/1", GatewayRoute::Block("a.b_c-d".into(), 1)),
            ("/%6d%61p/%30", GatewayRoute::Block(map(), 0)),
        ] {
            assert_eq!(GatewayRoute::parse(path), Some(route), "{path}");
        }
    }

    #[test]
    fn what_is_no_name_or_number_is_no_path() {
        let long = format!("/{}", "a".repeat(101));
        for path in [
            "",
            "map",
            "//",
            "//map",
            "/map/",
            "/map/+1",
            "/map/-1",
            "/map/1/",
            "/map/18446744073709551616",
            "/../etc/passwd",
            "/.hidden",
            "/map/%2e%2e",
            "/m%2fap",
            "/m%c3%a4p",
            "/m%6",
            "/m%+1p",
            "/map/../other",
            "/map/tile/2/7/9",
            "/map/tile/2/7/9.jpg",
            "/map/tile/256/0/0.png",
            "/map/tile/1/2/3/4.png",
            "/map/xyz/1/4294967296/0.png",
            "/map/1 ",
            "/m\u{e4}p",
            &long,
        ] {
            assert_eq!(GatewayRoute::parse(path), None, "{path}");
        }
    }

    #[test]
    fn zoom_0_is_the_whole_picture() {
        let picture = Pyramid {
            width: 1000,
            height: 300,
            tile: 128,
            pixel_bytes: 3,
        };
        let at = |zoom| {
            GatewayTileName::Zoom {
                zoom,
                column: 0,
                row: 0,
            }
            .tile(&picture)
            .map(|tile| tile.level)
        };
        assert_eq!((at(0), at(3), at(4)), (Some(3), Some(0), None));
    }
}
