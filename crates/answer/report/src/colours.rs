//! The colours of lines in charts, in pictures and on the page: after Okabe and Ito (2008), so that colour-blind readers can
//! distinguish them; some are darker, for contrast with the background.

use serde_json::{Value, json};

/// Colours on a light background, 0xRRGGBB.
pub(crate) const LIGHT: [u32; 8] = [
    0x0072b2, 0xd55e00, 0x009e73, 0xb0488a, 0x8a6d00, 0x3a9bd6, 0x5b4bb5, 0x6b7280,
];
/// The same colours on a dark background.
pub(crate) const DARK: [u32; 8] = [
    0x4aa8e0, 0xff8a3d, 0x2fd0a2, 0xe58cc0, 0xe6c84a, 0x8fd0f5, 0xa99cf5, 0xa3acb8,
];

/// Text, and what has to be seen first.
pub(crate) const INK: u32 = 0x1f2933;
/// Text beside the main thing.
pub(crate) const SOFT: u32 = 0x52606d;
/// Lines of a grid.
pub(crate) const RULE: u32 = 0xdde3ea;
/// The ground of a panel.
pub(crate) const PANEL: u32 = 0xf5f7fa;
/// The ground of a picture.
pub(crate) const PAPER: u32 = 0xff_ffff;

/// What stands for a colour on a dark screen; `None` if it stays.
pub(crate) fn on_dark(colour: u32) -> Option<u32> {
    match colour {
        INK => Some(0xe4e7eb),
        SOFT => Some(0x9aa5b1),
        RULE => Some(0x2b333d),
        PANEL => Some(0x1b2128),
        PAPER => Some(0x14181d),
        _ => {
            let at = LIGHT.iter().position(|known| *known == colour)?;
            DARK.get(at).copied()
        }
    }
}

/// A colour as SVG and style sheets write it.
pub(crate) fn written(colour: u32) -> String {
    format!("#{colour:06x}")
}

/// Both palettes as JSON for the page.
pub(crate) fn json() -> Value {
    json!({ "light": LIGHT.map(written), "dark": DARK.map(written) })
}
