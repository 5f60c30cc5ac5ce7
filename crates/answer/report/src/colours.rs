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

/// A colour as SVG and style sheets write it.
pub(crate) fn written(colour: u32) -> String {
    format!("#{colour:06x}")
}

/// Both palettes as JSON for the page.
pub(crate) fn json() -> Value {
    json!({ "light": LIGHT.map(written), "dark": DARK.map(written) })
}
